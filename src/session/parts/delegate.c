#include "parts/agents.h"

#include <string.h>

#include "crypto/crypto.h"
#include "token/wallet.h"

#include "base/banned.h"

/*
 * A hop is one of several capability sets that must all allow a request. An agent gets its block of
 * the policy as one more hop after the hops of its session. Under tokens the supervisor derives a
 * token from the last token of the chain, with keys that no process in the jail can reach. The
 * derived token is for this one agent, and no token can be derived from it.
 */

/* --- the agent's block as a hop --- */

static const char *hop_says(struct session *s, size_t at, size_t n)
{
	return arena_fmt(s->a, "hop %zu of %zu of the chain %s", at + 1, n,
			 at ? "dropped it" : "never had it");
}

/*
 * Copies the hops of the session, with messages that fit the agent's chain; a session without hops
 * counts as one hop.
 */
static size_t take_hops(struct session *s, struct cap_set *to)
{
	const struct cap_set *set = &s->opt->policy->set;
	const struct session_token *t = s->opt->token;
	const size_t ceiling = t && !t->chain->issuer->self;

	if (set->hops_n == 0) {
		to[0] = *set;
		to[0].says = SV("the session that started this agent never had it");
		return 1;
	}
	memcpy(to, set->hops, set->hops_n * sizeof(*to));
	for (size_t i = 0; t && i < t->chain->n; i++)
		to[ceiling + i].says = sv_from(hop_says(s, i, t->chain->n + 1));
	return set->hops_n;
}

int delegate_policy(struct session *s, const struct policy_agent *agent, struct policy *ret,
		    struct writ_err *err)
{
	const struct session_token *t = s->opt->token;
	struct cap_set *hops = arena_array(s->a, struct cap_set, s->opt->policy->set.hops_n + 2),
		       *last;
	struct policy p = *agent->lists;
	const char *says;
	size_t n;

	if (!hops)
		return writ_nomem(err);
	p.set = agent->set;
	p.has_base = s->opt->policy->has_base;
	n = take_hops(s, hops);
	says = t ? arena_fmt(s->a, "hop %zu of %zu of the chain, agent " SV_FMT ", dropped it",
			     t->chain->n + 1, t->chain->n + 1, SV_ARG(agent->name))
		 : arena_fmt(s->a, "the block of agent " SV_FMT " dropped it", SV_ARG(agent->name));
	last = &hops[n++];
	*last = agent->set;
	if (!says || cap_set_price_uses(s->a, &p.set, err) < 0 || !cap_set_index(s->a, last) ||
	    !cap_set_index(s->a, &p.set))
		return writ_nomem(err);
	last->says = sv_from(says);
	p.set.hops = hops;
	p.set.hops_n = n;
	*ret = p;
	return 0;
}

/* --- the agent's block as a token --- */

static bool is_covered(const struct cap *c, const struct cap_set *parent)
{
	for (size_t i = 0; i < parent->caps.n; i++)
		if (cap_within(c, &parent->caps.v[i].cap))
			return true;
	return false;
}

static bool has_text(const struct cap_entry *v, size_t n, struct sv text)
{
	for (size_t i = 0; i < n; i++)
		if (sv_eq(v[i].cap.text, text))
			return true;
	return false;
}

/*
 * Makes the capability set of an agent's token. The token names the built-in base rules by their
 * digest only. If the agent's block does not say which programs may run, those of the session may.
 */
static int own_set(struct session *s, const struct cap_set *from, const struct cap_set *leaf,
		   struct cap_set *ret, struct writ_err *err)
{
	struct cap_set own = *from;

	memset(&own.caps, 0, sizeof(own.caps));
	memset(&own.nots, 0, sizeof(own.nots));
	for (size_t i = 0; i < from->caps.n + from->nots.n; i++) {
		const bool deny = i >= from->caps.n;
		const struct cap_entry *e =
			deny ? &from->nots.v[i - from->caps.n] : &from->caps.v[i];
		const bool inherited = from->rules.v[e->rule].built_in;
		struct cap_entry *slot;

		if (deny ? inherited || has_text(own.nots.v, own.nots.n, e->cap.text) ||
				    has_text(leaf->nots.v, leaf->nots.n, e->cap.text)
			 : (inherited && e->cap.action != CAP_PROC_EXEC) ||
				    !is_covered(&e->cap, leaf) ||
				    has_text(own.caps.v, own.caps.n, e->cap.text))
			continue;
		if (deny)
			slot = vec_push(s->a, &own.nots);
		else
			slot = vec_push(s->a, &own.caps);
		if (!slot)
			return writ_nomem(err);
		*slot = *e;
	}
	own.has_rt = leaf->has_rt;
	own.rt = leaf->rt;
	*ret = own;
	return 0;
}

static int fill(const struct wallet *w, const struct chain *c, struct token *t,
		struct writ_err *err)
{
	const struct token *leaf = chain_leaf(c);
	struct key_pair own;
	int r = wallet_new_id(w, &t->jti, err);

	t->iat = t->nbf = w->now;
	t->exp = c->deadline;
	t->rvk = leaf->rvk;
	t->aud = leaf->aud;
	t->aud_n = leaf->aud_n;
	t->max_depth = leaf->depth + 1;
	if (r == 0)
		r = wallet_holder_new(w, t->exp, &own, err);
	if (r == 0) {
		t->cnf = own.pub;
		crypto_wipe(&own, sizeof(own));
	}
	return r;
}

/* Appends the derived token to the chain, and an entry about the token to the realm's log. */
static int append(const struct wallet *w, const struct session_token *from, const struct token *t,
		  struct sv text, struct session_token *ret, struct token_why *why)
{
	const struct wallet_note entry = { .event = "delegation.out",
					   .token = crypto_sha256(text),
					   .jti = token_id_sv(&t->jti),
					   .sid = token_id_sv(&t->sid),
					   .hops = from->chain->n + 1,
					   .exp = t->exp };
	scoped_buf b = BUF_INIT(TOKEN_PRESENTATION_MAX);
	int r;

	buf_sv(&b, (struct sv){ from->text, from->text_n });
	buf_ch(&b, '~');
	buf_sv(&b, text);
	r = buf_check(&b, &why->err);
	if (r == 0)
		r = wallet_log(w, &entry, 1, &why->err);
	ret->text_n = b.n;
	ret->text = r < 0 ? NULL : arena_str(w->a, buf_view(&b));
	if (b.n)
		crypto_wipe(b.p, b.n);
	return r < 0 ? r : ret->text ? 0 : token_nomem(why);
}

static int derive(struct session *s, const struct cap_set *block, const struct token_id *sid,
		  struct session_token *to)
{
	const struct session_token *from = s->opt->token;
	const struct token *leaf = chain_leaf(from->chain);
	struct token_why *why = to->why;
	scoped_buf text = BUF_INIT(TOKEN_MAX);
	struct token child = { .sid = *sid };
	struct key_pair holder;
	int r;

	if (leaf->depth >= leaf->max_depth)
		return token_refuse(why, TOKEN_E_DEPTH,
				    "nothing is derived from its session's token");
	r = own_set(s, block, &leaf->set, &child.set, &why->err);
	if (r == 0)
		r = fill(to->wallet, from->chain, &child, &why->err);
	if (r == 0)
		r = wallet_holder(to->wallet, &leaf->cnf_kid, &holder, &why->err);
	if (r < 0)
		return r;
	why->hop = (int)from->chain->n;
	r = token_derive(s->a, leaf, &child, &holder, &text, why);
	crypto_wipe(&holder, sizeof(holder));
	return r < 0 ? r : append(to->wallet, from, &child, buf_view(&text), to, why);
}

int delegate_token(struct session *s, const struct policy_agent *agent, const struct token_id *sid,
		   struct session_token *ret, struct writ_err *err)
{
	struct token_why *why = arena_new(s->a, struct token_why);
	struct session_token to = { .wallet = arena_new(s->a, struct wallet),
				    .chain = arena_new(s->a, struct chain),
				    .why = why };
	int r;

	if (!why || !to.wallet || !to.chain)
		return writ_nomem(err);
	why->hop = TOKEN_HOP_NONE;
	ret->why = why;
	/* Open the wallet again: the session opened its own wallet perhaps hours ago. */
	r = wallet_open(s->a, s->opt->state, s->opt->realm, false, to.wallet, err);
	if (r < 0)
		return r;
	r = derive(s, &agent->set, sid, &to);
	if (r == 0)
		r = wallet_chain(to.wallet, (struct sv){ to.text, to.text_n }, false, to.chain,
				 why);
	if (r < 0) {
		*err = why->err;
		return r;
	}
	*ret = to;
	return 0;
}
