#include "cli/token.h"

#include <time.h>

#include "keys/keys.h"

#include "base/banned.h"

/* --- reading and refusing --- */

int cli_token_refused(const struct token_why *why, int code)
{
	if (why->code == TOKEN_E_NONE)
		return cli_fail(&why->err, NULL);
	/* A clock error concerns no particular token, so the message names no hop. */
	if (why->code == TOKEN_E_TIME && why->hop == TOKEN_HOP_NONE)
		cli_note("%s: %s", token_code_name(why->code), why->err.what);
	else if (why->hop >= 0 && why->hop < TOKEN_CHAIN_MAX)
		cli_note("%s, hop %d: %s (%s)", token_code_name(why->code), why->hop + 1,
			 why->err.what, token_code_text(why->code));
	else
		cli_note("%s%s: %s (%s)", token_code_name(why->code),
			 why->hop == TOKEN_HOP_PROOF ? ", the proof" : "",
			 why->err.what, token_code_text(why->code));
	return code;
}

int cli_token_open(struct args *a, const struct find_where *w, const char *path, bool anywhere,
		   struct launch_token *ret)
{
	struct launch_result result = { 0 };
	struct writ_err err = { 0 };

	if (launch_token_open(a->arena, w, path, anywhere, ret, &result, &err) == 0)
		return 0;
	return result.end == LAUNCH_TOKEN_REFUSED ? cli_token_refused(&result.why, EXIT_NO)
						  : cli_fail(&err, NULL);
}

void cli_token_put_time(struct buf *b, uint64_t when, uint64_t now)
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

/* --- the verb --- */

/* Creates a holder key for a token from another machine and prints its public half. */
static int holder_verb(struct args *a, const struct find_where *w)
{
	struct buf b = BUF_INIT(4096);
	struct writ_err err = { 0 };
	struct wallet wallet;
	scoped_key_pair pair;

	if (wallet_open(a->arena, w->state, w->realm, false, &wallet, &err) < 0 ||
	    wallet_holder_new(&wallet, wallet.now + TOKEN_LIFE_MAX, &pair, &err) < 0)
		return cli_fail(&err, NULL);
	keys_print_public(&pair.pub, &b);
	return cli_out(&b, EXIT_DONE);
}

/* Prints the issuer record of this user, for the trust bundle of an organisation. */
static int issuer_verb(struct args *a, const struct find_where *w)
{
	struct buf b = BUF_INIT(4096);
	struct writ_err err = { 0 };
	struct wallet wallet;

	if (wallet_open(a->arena, w->state, w->realm, true, &wallet, &err) < 0)
		return cli_fail(&err, NULL);
	buf_fmt(&b,
		"{\"iss\":\"" SV_FMT
		"\",\"jwk\":{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"%s\"},"
		"\"realms\":[\"" SV_FMT "\"]}\n",
		SV_ARG(wallet.self->iss), jws_text(wallet.self->key.b).s, SV_ARG(w->realm));
	return cli_out(&b, EXIT_DONE);
}

static int revoke_verb(struct args *a, const struct find_where *w)
{
	struct token_why why = { .hop = TOKEN_HOP_NONE };
	struct writ_err err = { 0 };
	struct launch_token t = { 0 };
	struct wallet_note entry = { .event = "token.revoke" };
	struct buf b = BUF_INIT(OUT_MAX);
	struct token_id jti;
	bool known;
	int code = 0;

	if (wallet_open(a->arena, w->state, w->realm, a->given[OPT_PRINT], &t.wallet, &err) < 0)
		return cli_fail(&err, NULL);
	if (a->given[OPT_PRINT]) {
		if (wallet_sign_list(&t.wallet, &b, &why) < 0)
			return cli_token_refused(&why, EXIT_FAILED);
		buf_ch(&b, '\n');
		return cli_out(&b, EXIT_DONE);
	}
	if (a->operands.n != 2)
		return cli_end(EXIT_FAILED,
			       "revoke which one? a token's jti, a file with its chain, or -");
	if (!token_id_parse(sv_from(a->operands.v[1]), &jti)) {
		code = cli_token_open(a, w, a->operands.v[1], true, &t);
		if (code)
			return code;
		if (!t.wallet.self || t.chain.issuer != t.wallet.self)
			return cli_end(EXIT_NO, SV_FMT " issued it: only there can it be revoked",
				       SV_ARG(t.chain.issuer->iss));
		jti = chain_leaf(&t.chain)->jti;
		entry.token = chain_leaf(&t.chain)->ath;
	}
	entry.jti = token_id_sv(&jti);
	known = t.chain.n || wallet_has_logged(&t.wallet, &jti);
	if (wallet_revoke(&t.wallet, &jti, &err) < 0 || wallet_log(&t.wallet, &entry, 1, &err) < 0)
		return cli_fail(&err, NULL);
	if (a->given[OPT_QUIET])
		return EXIT_DONE;
	cli_note("revoked %s, and all that was derived from it", jti.s);
	if (!known)
		cli_note(
			"no token of that id was made or used here: if it is not one that somebody "
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

	if (a->operands.n != 2)
		return cli_end(EXIT_FAILED,
			       "trust what? as in: writ token trust bundle.jws --org org.pem");
	if (wallet_open(a->arena, w->state, w->realm, false, &wallet, &err) < 0 ||
	    locate_text_arg(a->arena, a->operands.v[1], &text, &err) < 0 ||
	    (a->given[OPT_ORG] && (locate_text_arg(a->arena, a->value[OPT_ORG], &pem, &err) < 0 ||
				   keys_parse_public(pem.text, &org, &err) < 0)))
		return cli_fail(&err, NULL);
	while (text.text.n && text.text.p[text.text.n - 1] == '\n')
		text.text.n--;
	if (text.text.n == 0)
		return cli_end(EXIT_NO, "there is nothing in %s: expected a bundle of an "
			       "organisation, or a list that writ token revoke --print printed",
			       a->operands.v[1]);
	if (wallet_import(&wallet, text.text, a->given[OPT_ORG] ? &org : NULL, &what, &why, &err) <
	    0)
		return why.code == TOKEN_E_NONE ? cli_fail(&err, NULL)
						: cli_token_refused(&why, EXIT_NO);
	if (!a->given[OPT_QUIET])
		cli_note("taken: %s", what);
	return EXIT_DONE;
}

int cmd_token(struct args *a)
{
	const struct sv what = a->operands.n ? sv_from(a->operands.v[0]) : SV("");
	struct find_where w;
	struct writ_err err = { 0 };

	if (sv_is(what, "mint"))
		return cli_token_mint_verb(a);
	if (sv_is(what, "attenuate"))
		return cli_token_attenuate_verb(a);
	if (sv_is(what, "inspect"))
		return cli_token_inspect_verb(a);
	if (sv_is(what, "verify"))
		return cli_token_verify_verb(a);
	if (cli_where_find(a->arena, a->value[OPT_CWD], true, &w, &err) < 0)
		return cli_fail(&err, NULL);
	if (sv_is(what, "holder"))
		return holder_verb(a, &w);
	if (sv_is(what, "issuer"))
		return issuer_verb(a, &w);
	if (sv_is(what, "revoke"))
		return revoke_verb(a, &w);
	if (sv_is(what, "trust"))
		return trust_verb(a, &w);
	return cli_end(EXIT_FAILED, "token mint, attenuate, inspect, verify, revoke, trust, holder "
		       "or issuer; see writ help token");
}
