#include "cli/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "keys/keys.h"

#include "base/banned.h"

enum { TEXT_MAX = 64 << 10 };

/* --- reading and refusing --- */

int token_refused(const struct token_why *why, int code)
{
	if (why->code == TOKEN_E_NONE)
		return fail(&why->err, NULL);
	/* Not of any token: it says all there is to say. */
	if (why->code == TOKEN_E_TIME && why->hop == TOKEN_HOP_NONE)
		note("%s: %s", token_code_name(why->code), why->err.what);
	else if (why->hop >= 0 && why->hop < TOKEN_CHAIN_MAX)
		note("%s, hop %d: %s (%s)", token_code_name(why->code), why->hop + 1, why->err.what,
		     token_code_says(why->code));
	else
		note("%s%s: %s (%s)", token_code_name(why->code),
		     why->hop == TOKEN_HOP_PROOF     ? ", the proof"
		     : why->hop == TOKEN_HOP_CEILING ? ", the issuer's ceiling"
						     : "",
		     why->err.what, token_code_says(why->code));
	return code;
}

/*
 * SECURITY: whoever runs next must not read it again: standard input is not left where
 * it was, a file would only have to be rewound.
 */
static int close_input(struct writ_err *err)
{
	scoped_fd null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	return null < 0 || dup2(null, STDIN_FILENO) < 0
		       ? writ_fail(err, WRIT_E_SYS, errno, "/dev/null")
		       : 0;
}

int token_read(struct args *a, const char *path, char **ret, size_t *ret_n)
{
	struct token_why why = { .hop = TOKEN_HOP_NONE };
	const bool std = strcmp(path, "-") == 0;
	struct buf b = BUF_INIT(TEXT_MAX);
	struct writ_err err = { 0 };
	struct sv text;
	int r = std ? fd_read_all(STDIN_FILENO, &b, &err) : fd_read_file(path, &b, &err);

	if (r == 0 && std)
		r = close_input(&err);
	text = buf_view(&b);
	while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
		text.n--;
	*ret = arena_str(a->arena, text);
	*ret_n = text.n;
	if (r == 0 && !*ret)
		r = writ_nomem(&err);
	if (b.n)
		crypto_wipe(b.p, b.n);
	buf_clear(&b);
	if (r == WRIT_E_LIMIT) {
		(void)!token_no(&why, TOKEN_E_SIZE, "more than %d bytes", TEXT_MAX);
		return token_refused(&why, EXIT_NO);
	}
	if (r == 0 && *ret_n == 0) {
		why.hop = 0;
		(void)!token_no(&why, TOKEN_E_FORMAT,
				"expected a chain of tokens, as writ token mint prints it; nothing "
				"is in %s",
				std ? "standard input" : path);
		return token_refused(&why, EXIT_NO);
	}
	return r < 0 ? fail(&err, NULL) : 0;
}

int token_open(struct args *a, const struct find_where *w, const char *path, bool anywhere,
	       struct cli_token *ret)
{
	struct token_why why = { .hop = TOKEN_HOP_NONE };
	struct writ_err err = { 0 };
	int code = token_read(a, path, &ret->text, &ret->text_n);

	if (code)
		return code;
	if (wallet_open(a->arena, w->state, w->realm, false, &ret->wallet, &err) < 0)
		return fail(&err, NULL);
	if (wallet_chain(&ret->wallet, token_sv(ret), anywhere, &ret->chain, &why) < 0)
		return token_refused(&why, EXIT_NO);
	return 0;
}

void token_put_time(struct buf *b, uint64_t when, uint64_t now)
{
	const time_t t = (time_t)when;
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&t, &tm))
		(void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%SZ", &tm);
	buf_str(b, text);
	if (when > now)
		buf_fmt(b, " (%llu min %llu s left)", (unsigned long long)(when - now) / 60,
			(unsigned long long)(when - now) % 60);
}

/* --- a policy made of tokens --- */

static int make_hops(struct args *a, const struct chain *c, struct policy_hop *hops, size_t *ret_n)
{
	size_t n = 0;

	if (!c->issuer->self)
		hops[n++] = (struct policy_hop){ &c->issuer->ceiling, SV("ceiling"),
						 SV("the ceiling of its issuer never had it") };
	for (size_t i = 0; i < c->n; i++) {
		const char *name = arena_fmt(a->arena, "token %zu", i + 1);
		const char *says = arena_fmt(a->arena, "hop %zu of %zu of the chain %s", i + 1,
					     c->n, i ? "dropped it" : "never had it");

		if (!name || !says)
			return EXIT_FAILED;
		hops[n++] = (struct policy_hop){ &c->token[i].set, sv_from(name), sv_from(says) };
	}
	*ret_n = n;
	return 0;
}

/* What a token may ask for and nobody here could hold. */
static int check_holdable(const struct chain *c, const struct policy *p)
{
	const struct cap_set *met = &p->set;

	for (size_t i = 0; i < c->n; i++) {
		const struct cap_set *s = &c->token[i].set;

		if (s->has_rt && !digest_eq(&s->rt, &met->rt)) {
			note("token %zu was made for another base profile than this writ has",
			     i + 1);
			return EXIT_GUARANTEE;
		}
		for (size_t k = 0; k < s->caps.n; k++) {
			const struct cap *cap = &s->caps.v[k].cap;

			if (cap->rate_n)
				note("token %zu: " SV_FMT ": a rate is not counted across sessions",
				     i + 1, SV_ARG(cap->text));
			else if (cap->action == CAP_AGENT_SPAWN && p->agents.n == 0)
				note("token %zu: " SV_FMT ": no policy says what that agent may "
				     "do: name one with -p",
				     i + 1, SV_ARG(cap->text));
			else if (cap->action == CAP_SECRET_USE)
				note("token %zu: " SV_FMT
				     ": a token does not say where a secret is",
				     i + 1, SV_ARG(cap->text));
			else
				continue;
			return EXIT_GUARANTEE;
		}
	}
	return 0;
}

int load_token(struct args *a, const char *program, struct loaded *l)
{
	struct policy_hop hops[TOKEN_CHAIN_MAX + 1];
	struct cli_token *t = arena_new(a->arena, struct cli_token);
	struct writ_err err = { 0 };
	size_t n = 0;
	int code, r = 0;

	if (!t)
		return EXIT_FAILED;
	code = token_open(a, &l->in.where, a->value[OPT_TOKEN], false, t);
	if (code)
		return code == EXIT_NO ? EXIT_POLICY : code;
	l->in.args.v = a->rules.v;
	l->in.args.n = l->in.args.room = a->rules.n;
	for (size_t i = 0; r == 0 && i < a->policies.n; i++)
		r = find_add_file(a->arena, &l->in, a->policies.v[i], &err);
	if (r == 0 && program)
		r = find_program(a->arena, program, &l->in, &err);
	if (r < 0)
		return fail(&err, NULL);
	find_world_init(&l->world, a->arena, &l->in);
	code = make_hops(a, &t->chain, hops, &n);
	if (code)
		return code;
	r = policy_chain(&l->world.env,
			 &(struct policy_input){ .files = l->in.files.v,
						 .files_n = l->in.files.n,
						 .args = l->in.args.v,
						 .args_n = l->in.args.n },
			 hops, n, &l->diags, &l->policy, &err);
	if (!a->given[OPT_JSON] || l->diags.errors)
		show_diags(&l->diags);
	if (r == WRIT_E_SYNTAX)
		return EXIT_POLICY;
	if (r < 0)
		return fail(&err, NULL);
	l->token = t;
	return a->verb->run == cmd_why ? 0 : check_holdable(&t->chain, l->policy);
}

/* --- the verb --- */

/* A key for whoever is to get a token from elsewhere: its public half. */
static int holder_verb(struct args *a, const struct find_where *w)
{
	struct buf b = BUF_INIT(4096);
	struct writ_err err = { 0 };
	struct wallet wallet;
	struct jws_pair pair;

	if (wallet_open(a->arena, w->state, w->realm, false, &wallet, &err) < 0 ||
	    wallet_holder_new(&wallet, wallet.now + TOKEN_LIFE_MAX, &pair, &err) < 0)
		return fail(&err, NULL);
	keys_print_public(&pair.pub, &b);
	crypto_wipe(&pair, sizeof(pair));
	return out(&b, EXIT_DONE);
}

/* Who we are to others: what an organisation puts into its bundle. */
static int issuer_verb(struct args *a, const struct find_where *w)
{
	struct buf b = BUF_INIT(4096);
	struct writ_err err = { 0 };
	struct wallet wallet;

	if (wallet_open(a->arena, w->state, w->realm, true, &wallet, &err) < 0)
		return fail(&err, NULL);
	buf_fmt(&b,
		"{\"iss\":\"" SV_FMT
		"\",\"jwk\":{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"%s\"},"
		"\"realms\":[\"" SV_FMT "\"]}\n",
		SV_ARG(wallet.self->iss), jws_text(wallet.self->key.b).s, SV_ARG(w->realm));
	return out(&b, EXIT_DONE);
}

static int revoke_verb(struct args *a, const struct find_where *w)
{
	struct token_why why = { .hop = TOKEN_HOP_NONE };
	struct writ_err err = { 0 };
	struct cli_token t = { 0 };
	struct wallet_note entry = { .event = "token.revoke" };
	struct buf b = BUF_INIT(OUT_MAX);
	struct token_id jti;
	bool known;
	int code = 0;

	if (wallet_open(a->arena, w->state, w->realm, a->given[OPT_PRINT], &t.wallet, &err) < 0)
		return fail(&err, NULL);
	if (a->given[OPT_PRINT]) {
		if (wallet_list(&t.wallet, &b, &why) < 0)
			return token_refused(&why, EXIT_FAILED);
		buf_ch(&b, '\n');
		return out(&b, EXIT_DONE);
	}
	if (a->operands.n != 2) {
		note("revoke which one? a token's jti, a file with its chain, or -");
		return EXIT_FAILED;
	}
	if (!token_id_parse(sv_from(a->operands.v[1]), &jti)) {
		code = token_open(a, w, a->operands.v[1], true, &t);
		if (code)
			return code;
		if (!t.wallet.self || t.chain.issuer != t.wallet.self) {
			note(SV_FMT " issued it: only there can it be revoked",
			     SV_ARG(t.chain.issuer->iss));
			return EXIT_NO;
		}
		jti = chain_leaf(&t.chain)->jti;
		entry.token = chain_leaf(&t.chain)->ath;
	}
	entry.jti = token_id_sv(&jti);
	known = t.chain.n || wallet_knows(&t.wallet, &jti);
	if (wallet_revoke(&t.wallet, &jti, &err) < 0 || wallet_log(&t.wallet, &entry, 1, &err) < 0)
		return fail(&err, NULL);
	if (a->given[OPT_QUIET])
		return EXIT_DONE;
	note("revoked %s, and all that was derived from it", jti.s);
	if (!known)
		note("no token of that id was made or used here: if it is not one that somebody "
		     "derived elsewhere, it is a slip of the pen");
	return EXIT_DONE;
}

static int trust_verb(struct args *a, const struct find_where *w)
{
	struct token_why why = { .hop = TOKEN_HOP_NONE };
	struct writ_err err = { 0 };
	struct sign_public org;
	struct source pem, text;
	struct wallet wallet;
	const char *what = "";

	if (a->operands.n != 2) {
		note("trust what? as in: writ token trust bundle.jws --org org.pem");
		return EXIT_FAILED;
	}
	if (wallet_open(a->arena, w->state, w->realm, false, &wallet, &err) < 0 ||
	    read_text(a->arena, a->operands.v[1], &text, &err) < 0 ||
	    (a->given[OPT_ORG] && (read_text(a->arena, a->value[OPT_ORG], &pem, &err) < 0 ||
				   keys_parse_public(pem.text, &org, &err) < 0)))
		return fail(&err, NULL);
	while (text.text.n && text.text.p[text.text.n - 1] == '\n')
		text.text.n--;
	if (text.text.n == 0) {
		note("there is nothing in %s: expected a bundle of an organisation, or a list that "
		     "writ token revoke --print printed",
		     a->operands.v[1]);
		return EXIT_NO;
	}
	if (wallet_trust(&wallet, text.text, a->given[OPT_ORG] ? &org : NULL, &what, &why, &err) <
	    0)
		return why.code == TOKEN_E_NONE ? fail(&err, NULL) : token_refused(&why, EXIT_NO);
	if (!a->given[OPT_QUIET])
		note("taken: %s", what);
	return EXIT_DONE;
}

int cmd_token(struct args *a)
{
	const struct sv what = a->operands.n ? sv_from(a->operands.v[0]) : SV("");
	struct find_where w;
	struct writ_err err = { 0 };

	if (sv_is(what, "mint"))
		return token_mint_verb(a);
	if (sv_is(what, "attenuate"))
		return token_attenuate_verb(a);
	if (sv_is(what, "inspect"))
		return token_inspect_verb(a);
	if (sv_is(what, "verify"))
		return token_verify_verb(a);
	if (where_find(a->arena, a->value[OPT_CWD], true, &w, &err) < 0)
		return fail(&err, NULL);
	if (sv_is(what, "holder"))
		return holder_verb(a, &w);
	if (sv_is(what, "issuer"))
		return issuer_verb(a, &w);
	if (sv_is(what, "revoke"))
		return revoke_verb(a, &w);
	if (sv_is(what, "trust"))
		return trust_verb(a, &w);
	note("token mint, attenuate, inspect, verify, revoke, trust, holder or issuer; see writ "
	     "help token");
	return EXIT_FAILED;
}
