#include "token/chain.h"

#include "base/banned.h"

static int add_approve(struct arena *a, struct sv who, struct chain_price *p, struct token_why *why)
{
	size_t at = 0;

	while (at < p->approve.n && sv_cmp(p->approve.v[at], who) < 0)
		at++;
	if (at < p->approve.n && sv_eq(p->approve.v[at], who))
		return 0;
	if (!vec_push(a, &p->approve))
		return token_nomem(why);
	for (size_t i = p->approve.n - 1; i > at; i--)
		p->approve.v[i] = p->approve.v[i - 1];
	p->approve.v[at] = who;
	return 0;
}

/*
 * Adds the price of one matching capability.
 * SECURITY: every matching capability must be paid for, not only the cheapest, or a second
 * capability without a limit would undo the limit of the first.
 */
static int add_price(struct arena *a, const struct digest *token, const struct cap *c,
		     struct chain_price *p, struct token_why *why)
{
	struct chain_debit *d;

	for (size_t i = 0; i < c->approve_n; i++) {
		const int r = add_approve(a, c->approve[i], p, why);

		if (r < 0)
			return r;
	}
	if (!token || !(c->n || c->rate_n || c->max_in || c->max_out))
		return 0;
	d = vec_push(a, &p->debits);
	if (!d)
		return token_nomem(why);
	*d = (struct chain_debit){ *token,    c->text,	 c->n,	    c->rate_n,
				   c->rate_s, c->max_in, c->max_out };
	return 0;
}

/*
 * Asks one set of capabilities about the request. @token is NULL for the ceiling, which has no
 * counters.
 */
static int ask_set(struct arena *a, const struct cap_set *s, const struct digest *token,
		   const struct cap *req, struct chain_price *p, struct token_why *why)
{
	bool any = false;

	for (size_t i = 0; i < s->nots.n; i++)
		if (cap_denies(&s->nots.v[i].cap, req))
			return token_refuse(why, TOKEN_E_NOCAP, "denied by " SV_FMT,
					    SV_ARG(sv_sub(s->nots.v[i].cap.text, 0, 96)));
	for (size_t i = 0; i < s->caps.n; i++) {
		int r;

		if (!cap_matches(&s->caps.v[i].cap, req))
			continue;
		any = true;
		r = add_price(a, token, &s->caps.v[i].cap, p, why);
		if (r < 0)
			return r;
	}
	return any ? 0
		   : token_refuse(why, TOKEN_E_NOCAP, "nothing allows " SV_FMT,
				  SV_ARG(sv_sub(req->text, 0, 96)));
}

int chain_decide(struct arena *a, const struct chain *c, const struct cap *req,
		 struct chain_price *ret_price, struct token_why *why)
{
	struct chain_price p = { 0 };
	int r;

	why->hop = TOKEN_HOP_NONE;
	if (c->n == 0 || req->kind != CAP_REQUEST || !sv_eq(req->realm, c->realm))
		return token_refuse(why, TOKEN_E_NOCAP, "not a request in this realm");
	why->hop = TOKEN_HOP_CEILING;
	r = c->issuer->self ? 0 : ask_set(a, &c->issuer->ceiling, NULL, req, &p, why);
	for (size_t i = 0; r == 0 && i < c->n; i++) {
		why->hop = (int)i;
		r = ask_set(a, &c->token[i].set, &c->token[i].hash, req, &p, why);
	}
	if (r < 0)
		return r;
	*ret_price = p;
	return 0;
}
