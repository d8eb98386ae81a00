#include "cli/token.h"

#include <unistd.h>

#include "keys/keys.h"

#include "base/banned.h"

static bool grants(const struct args *a)
{
	for (size_t i = 0; i < a->rules.n; i++)
		if (a->rules.v[i].kind == ARG_ALLOW || a->rules.v[i].kind == ARG_ASK ||
		    a->rules.v[i].kind == ARG_USE)
			return true;
	return a->policies.n > 0;
}

/* Options that mint and attenuate share: --for, --depth, --holder. */
struct wishes {
	uint64_t seconds; /* lifetime (--for); 0: not given */
	uint64_t depth;	  /* further hops (--depth); TOKEN_CHAIN_MAX: not given */
	struct sign_public holder;
	bool has_holder;
};

static int read_wishes(struct args *a, struct wishes *w)
{
	struct writ_err err = { 0 };
	struct source pem;

	*w = (struct wishes){ .depth = TOKEN_CHAIN_MAX };
	if (a->given[OPT_FOR] && (!policy_duration(sv_from(a->value[OPT_FOR]), &w->seconds) ||
				  w->seconds == 0 || w->seconds > TOKEN_LIFE_MAX))
		return cli_end(EXIT_FAILED, "--for wants a time of at most 8h, as in 20m");
	if (a->given[OPT_DEPTH] &&
	    !sv_to_u64(sv_from(a->value[OPT_DEPTH]), TOKEN_CHAIN_MAX - 1, &w->depth))
		return cli_end(EXIT_FAILED, "--depth wants a number from 0 to %d",
			       TOKEN_CHAIN_MAX - 1);
	if (a->given[OPT_SINGLE_USE])
		w->depth = 0;
	w->has_holder = a->given[OPT_HOLDER];
	if (w->has_holder && (locate_text_arg(a->arena, a->value[OPT_HOLDER], &pem, &err) < 0 ||
			      keys_parse_public(pem.text, &w->holder, &err) < 0))
		return cli_fail(&err, a->value[OPT_HOLDER]);
	return 0;
}

/*
 * Sets the ids, the issue time and the holder key of a token. Unless --holder names a key, creates
 * a key and stores it in this user's wallet.
 */
static int fill(const struct wallet *w, const struct wishes *want, struct token *t,
		struct writ_err *err)
{
	scoped_key_pair pair;
	int r = wallet_new_id(w, &t->jti, err);

	if (r == 0)
		r = wallet_new_id(w, &t->sid, err);
	t->iat = t->nbf = w->now;
	t->cnf = want->holder;
	if (r < 0 || want->has_holder)
		return r;
	r = wallet_holder_new(w, t->exp, &pair, err);
	if (r == 0)
		t->cnf = pair.pub;
	return r;
}

/* Prints the chain and records the new token in the log. */
static int finish(const struct wallet *w, const struct token *t, const char *event, size_t hops,
		  struct sv before, struct buf *text)
{
	const struct wallet_note entry = { .event = event,
					   .token = crypto_sha256(buf_view(text)),
					   .jti = token_id_sv(&t->jti),
					   .sid = token_id_sv(&t->sid),
					   .hops = hops,
					   .exp = t->exp };
	scoped_buf b = BUF_INIT(TOKEN_PRESENTATION_MAX + 1);
	struct writ_err err = { 0 };

	if (before.n) {
		buf_sv(&b, before);
		buf_ch(&b, '~');
	}
	buf_sv(&b, buf_view(text));
	buf_ch(&b, '\n');
	buf_clear(text);
	if (wallet_save_clock(w, &err) < 0 || wallet_log(w, &entry, 1, &err) < 0)
		return cli_fail(&err, NULL);
	/*
	 * On a terminal, say what the printed text is and where to use it. The token in the
	 * scrollback is no risk: a token is useless without its holder key.
	 */
	if (isatty(STDOUT_FILENO))
		cli_note("this is the token: give it to writ token attenuate or writ run --token");
	return cli_out(&b, EXIT_DONE);
}

/*
 * Warns, without failing, about rules that this machine or this version of writ cannot enforce: the
 * token may be meant for another machine.
 */
static void warn_unheld(struct args *a, const struct launch_loaded *l, const struct cap_set *own)
{
	struct host_facts facts;
	struct plan *p;

	if (cli_load_facts_kept(a, l->in.where.state, &facts) ||
	    cli_load_plan(a, l, &l->policy->set, &facts, &p))
		return;
	for (size_t i = 0; i < own->caps.n; i++)
		if (own->caps.v[i].cap.rate_n || own->caps.v[i].cap.action == CAP_SECRET_USE) {
			cli_note(SV_FMT
				 ": no token of this can be run: a rate is not counted across "
				 "sessions, and a token does not say where a secret is",
				 SV_ARG(own->caps.v[i].cap.text));
			return;
		}
	if (plan_runs(p))
		return;
	cli_show_refused(p);
	cli_note("this machine could not hold it: writ run --token would end with %d",
		 EXIT_GUARANTEE);
}

int cli_token_mint_verb(struct args *a)
{
	struct token_why why = { .hop = TOKEN_HOP_NONE };
	struct buf text = BUF_INIT(TOKEN_MAX);
	struct writ_err err = { 0 };
	struct key_pair issuer;
	struct wishes want;
	struct wallet w;
	struct token t = { .rvk = WALLET_RVK };
	struct launch_loaded l;
	int code = read_wishes(a, &want), r;

	if (code)
		return code;
	if (!grants(a) || a->operands.n != 1)
		return cli_end(EXIT_FAILED,
			       "mint what? as in: writ token mint --allow write:./out/");
	code = cli_load_policy(a, NULL, true, &l);
	if (code)
		return code;
	if (wallet_open(a->arena, l.in.where.state, l.in.where.realm, true, &w, &err) < 0 ||
	    cli_caps_own(a, &l.policy->set, &t.set, &err) < 0 || wallet_new_id(&w, &t.wf, &err) < 0)
		return cli_fail(&err, NULL);
	t.exp = w.now + (want.seconds ? want.seconds : WALLET_LIFE);
	t.max_depth = want.depth < TOKEN_CHAIN_MAX ? want.depth : TOKEN_CHAIN_MAX - 1;
	t.iss = w.self->iss;
	t.sub = sv_from(arena_fmt(a->arena, "uid:%u", (unsigned)geteuid()));
	t.aud = &l.in.where.realm;
	t.aud_n = 1;
	if (t.sub.n == 0 || fill(&w, &want, &t, &err) < 0 || wallet_issuer(&w, &issuer, &err) < 0)
		return cli_fail(&err, NULL);
	r = token_mint(a->arena, &t, &issuer, &text, &why);
	crypto_wipe(&issuer, sizeof(issuer));
	if (r < 0)
		return cli_token_refused(&why, EXIT_NO);
	if (!a->given[OPT_QUIET])
		warn_unheld(a, &l, &t.set);
	return finish(&w, &t, "token.issue", 1, SV(""), &text);
}

/* --- attenuate --- */

/* Prints every rule and limit of the child that exceeds the parent. True if there is one. */
static bool widens(const struct cap_set *child, const struct cap_set *parent, size_t hop)
{
	uint32_t last = RULE_NONE;
	bool any = false;

	for (size_t i = 0; i < child->caps.n; i++) {
		const struct cap_entry *e = &child->caps.v[i];

		if (cli_token_has(&e->cap, parent, true) || (any && e->rule == last))
			continue;
		cli_note("E_WIDEN: " SV_FMT " (" SV_FMT ") is not within anything that hop %zu has",
			 SV_ARG(e->rule < child->rules.n ? child->rules.v[e->rule].text : SV("")),
			 SV_ARG(e->cap.text), hop);
		last = e->rule;
		any = true;
	}
	for (enum cap_limit k = 0; k < LIMIT_COUNT; k++)
		if (parent->limits[k] && child->limits[k] > parent->limits[k]) {
			cli_note("E_WIDEN: limit %s is %llu, and hop %zu has %llu",
				 cap_limit_name(k), (unsigned long long)child->limits[k], hop,
				 (unsigned long long)parent->limits[k]);
			any = true;
		}
	return any;
}

static int take_caps(struct args *a, struct cap_set *to, const struct cap_set *from,
		     enum cap_action only)
{
	for (size_t i = 0; i < from->caps.n; i++) {

		const struct cap_entry e = { from->caps.v[i].cap, RULE_NONE };

		if ((only == CAP_NONE || e.cap.action == only) && !vec_add(a->arena, &to->caps, e))
			return EXIT_FAILED;
	}
	return 0;
}

/*
 * Builds the capability set of the child token from the given rules. If the rules grant nothing,
 * the child gets all capabilities of the parent; if the rules have no exec line, the child gets the
 * parent's exec capabilities. Limits that the rules do not set come from the parent.
 */
static int child_set(struct args *a, const struct launch_loaded *l, const struct cap_set *parent,
		     struct cap_set *ret)
{
	struct writ_err err = { 0 };
	bool exec_default = false;
	size_t kept = 0;
	int code;

	if (cli_caps_own(a, &l->policy->set, ret, &err) < 0)
		return cli_fail(&err, NULL);
	for (size_t i = 0; i < ret->caps.n; i++) {
		const struct cap_entry e = ret->caps.v[i];

		if (sv_is(ret->rules.v[e.rule].file, "default"))
			exec_default = true;
		else
			ret->caps.v[kept++] = e;
	}
	ret->caps.n = kept;
	code = !grants(a)     ? take_caps(a, ret, parent, CAP_NONE)
	       : exec_default ? take_caps(a, ret, parent, CAP_PROC_EXEC)
			      : 0;
	for (enum cap_limit k = 0; k < LIMIT_COUNT; k++)
		if (ret->limits[k] == 0)
			ret->limits[k] = parent->limits[k];
	for (enum guarantee g = 0; g < G_COUNT; g++)
		if (ret->require[g] < parent->require[g])
			ret->require[g] = parent->require[g];
	ret->has_rt = ret->has_rt || parent->has_rt;
	if (parent->has_rt)
		ret->rt = parent->rt;
	return code;
}

/*
 * Loads the rules of the child token. Rules for another machine name that machine's realm; the
 * paths of such rules are not resolved on this machine.
 */
static int load_child(struct args *a, struct launch_loaded *l, struct launch_token *t)
{
	struct writ_err err = { 0 };
	const struct token *leaf;
	bool ours = false;
	int code;

	*l = (struct launch_loaded){ .diags.arena = a->arena };
	cli_input_init(a, true, &l->in);
	if (cli_where_find(a->arena, a->value[OPT_CWD], true, &l->in.where, &err) < 0)
		return cli_fail(&err, NULL);
	code = cli_token_open(a, &l->in.where, a->operands.n > 1 ? a->operands.v[1] : "-", true, t);
	if (code)
		return code;
	leaf = chain_leaf(&t->chain);
	for (size_t i = 0; i < leaf->aud_n; i++)
		ours = ours || sv_eq(leaf->aud[i], l->in.where.realm);
	if (!ours) {
		l->in.where.realm = leaf->aud[0];
		l->in.elsewhere = true;
	}
	return cli_load_rules(a, l);
}

static int child_times(const struct launch_token *t, const struct wishes *want, struct token *child)
{
	const struct token *leaf = chain_leaf(&t->chain);

	child->exp = want->seconds ? t->wallet.now + want->seconds : t->chain.deadline;
	/* --depth counts hops after the child; --single-use allows no further hop. */
	child->max_depth =
		want->depth < TOKEN_CHAIN_MAX ? leaf->depth + 1 + want->depth : leaf->max_depth;
	child->rvk = leaf->rvk;
	child->aud = leaf->aud;
	child->aud_n = leaf->aud_n;
	if (child->exp > t->chain.deadline)
		cli_note("E_TIME: hop %zu ends in %llu seconds: --for cannot be longer", t->chain.n,
			 (unsigned long long)(t->chain.deadline - t->wallet.now));
	else if (leaf->depth >= leaf->max_depth)
		cli_note("E_DEPTH: nothing is derived from hop %zu", t->chain.n);
	else if (child->max_depth > leaf->max_depth)
		cli_note("E_DEPTH: hop %zu lets at most %llu be derived from this one", t->chain.n,
			 (unsigned long long)(leaf->max_depth - leaf->depth - 1));
	else
		return 0;
	return EXIT_NO;
}

int cli_token_attenuate_verb(struct args *a)
{
	struct token_why why = { .hop = TOKEN_HOP_NONE };
	struct buf text = BUF_INIT(TOKEN_MAX);
	struct writ_err err = { 0 };
	struct launch_token t = { 0 };
	struct token child = { 0 };
	const struct token *leaf;
	scoped_key_pair holder;
	struct wishes want;
	struct launch_loaded l;
	int code = read_wishes(a, &want);

	if (code)
		return code;
	if (a->operands.n > 2)
		return cli_end(EXIT_FAILED, "attenuate one chain: a file, or - for standard input");
	code = load_child(a, &l, &t);
	if (code)
		return code;
	leaf = chain_leaf(&t.chain);
	if ((code = child_set(a, &l, &leaf->set, &child.set)) ||
	    (widens(&child.set, &leaf->set, t.chain.n) && (code = EXIT_NO)) ||
	    (code = child_times(&t, &want, &child)))
		return code;
	if (wallet_holder(&t.wallet, &leaf->cnf_kid, &holder, &err) < 0 ||
	    fill(&t.wallet, &want, &child, &err) < 0)
		return cli_fail(&err, NULL);
	why.hop = (int)t.chain.n;
	if (token_derive(a->arena, leaf, &child, &holder, &text, &why) < 0)
		return cli_token_refused(&why, EXIT_NO);
	return finish(&t.wallet, &child, "delegation.out", t.chain.n + 1,
		      (struct sv){ t.text, t.text_n }, &text);
}
