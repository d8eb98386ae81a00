#include "cli/token.h"

#include "codec/json.h"

#include "base/banned.h"

static int open_operand(struct args *a, struct launch_token *t)
{
	struct writ_err err = { 0 };
	struct find_where w;

	if (a->operands.n > 2)
		return cli_end(EXIT_FAILED, "%s one chain: a file, or - for standard input",
			       a->operands.v[0]);
	if (cli_where_find(a->arena, a->value[OPT_CWD], true, &w, &err) < 0)
		return cli_fail(&err, NULL);
	return cli_token_open(a, &w, a->operands.n > 1 ? a->operands.v[1] : "-", true, t);
}

int cli_token_verify_verb(struct args *a)
{
	struct buf b = BUF_INIT(4096);
	struct launch_token t = { 0 };
	const int code = open_operand(a, &t);

	if (code || !t.chain.issuer)
		return code;
	if (a->given[OPT_QUIET])
		return EXIT_DONE;
	buf_fmt(&b, "good: %zu hop%s of " SV_FMT ", until ", t.chain.n, t.chain.n == 1 ? "" : "s",
		SV_ARG(t.chain.issuer->iss));
	cli_token_put_time(&b, t.chain.deadline, t.wallet.now);
	buf_ch(&b, '\n');
	return cli_out(&b, EXIT_DONE);
}

/* --- inspect --- */

bool cli_token_has(const struct cap *c, const struct cap_set *s, bool whole)
{
	for (size_t i = 0; i < s->caps.n; i++)
		if (whole ? cap_within(c, &s->caps.v[i].cap) : cap_within(&s->caps.v[i].cap, c))
			return true;
	return false;
}

static bool key_is_here(const struct launch_token *t, const struct token *hop)
{
	struct writ_err err = { 0 };
	scoped_key_pair pair;

	return wallet_holder(&t->wallet, &hop->cnf_kid, &pair, &err) == 0;
}

static void put_list(struct buf *b, const char *head, struct sv text)
{
	buf_fmt(b, "  %-9s ", head);
	diag_put_safe(b, text);
	buf_ch(b, '\n');
}

/* Prints the limits of a hop, and how much of them the sessions of its token have used together. */
static void limits_text(const struct launch_token *t, const struct token *hop, struct buf *b)
{
	const uint64_t *l = hop->set.limits;
	struct wallet_use use;

	for (enum cap_limit k = 0; k < LIMIT_COUNT; k++)
		if (l[k])
			buf_fmt(b, "  limit     %s=%llu\n", cap_limit_name(k),
				(unsigned long long)l[k]);
	if (!wallet_used_limits(&t->wallet, hop, &use))
		return;
	if (l[LIMIT_REQUESTS])
		buf_fmt(b, "            %llu of %llu requests were used\n",
			(unsigned long long)use.uses, (unsigned long long)l[LIMIT_REQUESTS]);
	if (l[LIMIT_UP] || l[LIMIT_DOWN])
		buf_fmt(b, "            %llu bytes were sent, %llu received\n",
			(unsigned long long)use.up, (unsigned long long)use.down);
}

static void hop_text(const struct launch_token *t, size_t at, struct buf *b)
{
	const struct token *hop = &t->chain.token[at];
	const struct cap_set *before = at ? &t->chain.token[at - 1].set : NULL;

	buf_fmt(b, "hop %zu     token %s, holder %.12s...%s\n", at + 1, hop->jti.s, hop->cnf_kid.s,
		key_is_here(t, hop) ? " (its key is here)" : "");
	buf_str(b, "  until     ");
	cli_token_put_time(b, hop->exp, t->wallet.now);
	buf_ch(b, '\n');
	for (size_t i = 0; i < hop->set.caps.n; i++) {
		const struct cap *c = &hop->set.caps.v[i].cap;
		struct wallet_use use;

		put_list(b, i ? "" : at ? "keeps" : "allows", c->text);
		if (!wallet_used(&t->wallet, hop, c, &use))
			continue;
		if (c->n)
			buf_fmt(b, "            %llu of %llu uses left\n",
				(unsigned long long)(c->n > use.uses ? c->n - use.uses : 0),
				(unsigned long long)c->n);
		if (c->max_in || c->max_out)
			buf_fmt(b, "            %llu bytes were sent, %llu received\n",
				(unsigned long long)use.up, (unsigned long long)use.down);
	}
	for (size_t i = 0; before && i < before->caps.n; i++) {
		const struct cap *c = &before->caps.v[i].cap;

		if (!cli_token_has(c, &hop->set, true))
			put_list(b, cli_token_has(c, &hop->set, false) ? "narrowed" : "dropped",
				 c->text);
	}
	for (size_t i = 0; i < hop->set.nots.n; i++)
		put_list(b, "denies", hop->set.nots.v[i].cap.text);
	limits_text(t, hop, b);
	if (hop->depth >= hop->max_depth)
		buf_str(b, "  depth     nothing is derived from it\n");
	else
		buf_fmt(b, "  depth     %llu more\n",
			(unsigned long long)(hop->max_depth - hop->depth));
}

/* Prints which capabilities each hop of the token removed, for `writ explain`. */
void cli_token_put_dropped(const struct launch_token *t, struct buf *b)
{
	for (size_t at = 1; at < t->chain.n; at++)
		for (size_t i = 0; i < t->chain.token[at - 1].set.caps.n; i++) {
			const struct cap *c = &t->chain.token[at - 1].set.caps.v[i].cap;
			const struct cap_set *hop = &t->chain.token[at].set;

			if (cli_token_has(c, hop, true))
				continue;
			buf_fmt(b, "hop %zu of %zu of the chain %s ", at + 1, t->chain.n,
				cli_token_has(c, hop, false) ? "narrowed" : "dropped");
			diag_put_safe(b, c->text);
			buf_ch(b, '\n');
		}
}

static void chain_text(const struct launch_token *t, struct buf *b)
{
	const struct token *leaf = chain_leaf(&t->chain);

	buf_str(b, "issuer    ");
	diag_put_safe(b, t->chain.issuer->iss);
	buf_str(b, t->chain.issuer->self ? " (this machine)\nanswers   " : "\nanswers   ");
	diag_put_safe(b, leaf->sub);
	buf_fmt(b, "\nsession   %s\nrealm    ", leaf->sid.s);
	for (size_t i = 0; i < leaf->aud_n; i++) {
		buf_ch(b, ' ');
		diag_put_safe(b, leaf->aud[i]);
	}
	buf_str(b, "\nuntil     ");
	cli_token_put_time(b, t->chain.deadline, t->wallet.now);
	buf_ch(b, '\n');
	for (size_t i = 0; i < t->chain.n; i++)
		hop_text(t, i, b);
}

static void entries_json(const char *name, const struct cap_entry *v, size_t n, struct buf *b)
{
	json_put_key(b, name);
	buf_ch(b, '[');
	for (size_t i = 0; i < n; i++)
		json_put_item(b, v[i].cap.text);
	buf_ch(b, ']');
}

static void hop_json(const struct launch_token *t, size_t at, struct buf *b)
{
	const struct token *hop = &t->chain.token[at];
	const struct cap_set *before = at ? &t->chain.token[at - 1].set : NULL;
	struct wallet_use use;

	json_put_sep(b);
	buf_ch(b, '{');
	entries_json("caps", hop->set.caps.v, hop->set.caps.n, b);
	buf_str(b, ",\"counters\":[");
	for (size_t i = 0; i < hop->set.caps.n; i++) {
		if (!wallet_used(&t->wallet, hop, &hop->set.caps.v[i].cap, &use))
			continue;
		json_put_sep(b);
		buf_ch(b, '{');
		json_put_member(b, "cap", hop->set.caps.v[i].cap.text);
		json_put_number(b, "down", use.down);
		json_put_number(b, "up", use.up);
		json_put_number(b, "uses", use.uses);
		buf_ch(b, '}');
	}
	buf_str(b, "],\"dropped\":[");
	for (size_t i = 0; before && i < before->caps.n; i++)
		if (!cli_token_has(&before->caps.v[i].cap, &hop->set, true))
			json_put_item(b, before->caps.v[i].cap.text);
	buf_ch(b, ']');
	json_put_number(b, "exp", hop->exp);
	json_put_member(b, "holder", sv_from(hop->cnf_kid.s));
	json_put_flag(b, "key", key_is_here(t, hop));
	json_put_member(b, "jti", sv_from(hop->jti.s));
	buf_str(b, ",\"limits\":{");
	for (enum cap_limit k = 0; k < LIMIT_COUNT; k++)
		if (hop->set.limits[k])
			json_put_number(b, cap_limit_name(k), hop->set.limits[k]);
	buf_ch(b, '}');
	entries_json("not", hop->set.nots.v, hop->set.nots.n, b);
	json_put_member(b, "sid", sv_from(hop->sid.s));
	json_put_member(b, "token", sv_from(jws_text(hop->ath.b).s));
	if (wallet_used_limits(&t->wallet, hop, &use)) {
		buf_str(b, ",\"used\":{");
		json_put_number(b, "down", use.down);
		json_put_number(b, "requests", use.uses);
		json_put_number(b, "up", use.up);
		buf_ch(b, '}');
	}
	buf_ch(b, '}');
}

static void chain_json(const struct launch_token *t, struct buf *b)
{
	const struct token *leaf = chain_leaf(&t->chain);

	buf_ch(b, '{');
	json_put_number(b, "exp", t->chain.deadline);
	buf_str(b, ",\"hops\":[");
	for (size_t i = 0; i < t->chain.n; i++)
		hop_json(t, i, b);
	buf_ch(b, ']');
	json_put_member(b, "iss", t->chain.issuer->iss);
	buf_str(b, ",\"realms\":[");
	for (size_t i = 0; i < leaf->aud_n; i++)
		json_put_item(b, leaf->aud[i]);
	buf_ch(b, ']');
	json_put_member(b, "sid", sv_from(leaf->sid.s));
	json_put_member(b, "sub", leaf->sub);
	buf_str(b, "}\n");
}

int cli_token_inspect_verb(struct args *a)
{
	struct buf b = BUF_INIT(OUT_MAX);
	struct launch_token t = { 0 };
	const int code = open_operand(a, &t);

	if (code || !t.chain.issuer)
		return code;
	if (a->given[OPT_JSON])
		chain_json(&t, &b);
	else
		chain_text(&t, &b);
	return cli_out(&b, EXIT_DONE);
}
