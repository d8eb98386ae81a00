#include "cap/part.h"
#include "cap/set.h"

#include "base/banned.h"

/* What a request says about all the hints at once. */
struct probe {
	uint64_t has;	  /* bits of all its segments and its host */
	uint32_t actions; /* bits of those that can reach it */
	struct sv rest;	  /* the text behind the action's name */
	struct sv host;	  /* its host name, inside the text; empty if it has none */
};

static struct probe make_probe(const struct cap *req)
{
	struct probe p = { .has = req->hint.need,
			   .actions = cap_reached_by(req->action),
			   .host = SV("") };

	p.rest = sv_skip(req->text, cap_action_text(req->action).n);
	if (req->action == CAP_NET_CONNECT || req->action == CAP_HTTP_REQUEST)
		p.host = cap_peer(req).host->name;
	return p;
}

/*
 * SECURITY: false only if @c cannot match; everything else is left to the real
 * comparison. Eight bytes always lie before the place: any action is six long
 * and has a colon, a realm and a colon behind it.
 */
static inline bool worth_a_look(const struct probe *p, const struct cap_hint *h,
				enum cap_action action)
{
	const char *end;
	uint64_t got;

	if (!(p->actions >> action & 1) || (h->need & ~p->has))
		return false;
	if (h->mask == 0)
		return true;
	if (h->tail ? p->host.n < h->name : p->rest.n < h->end)
		return false;
	end = h->tail ? p->host.p + p->host.n - (h->tail - 1) : p->rest.p + h->end;
	memcpy(&got, end - 8, 8);
	return ((got ^ h->want) & h->mask) == 0;
}

static const struct cap_look *index_of(struct arena *a, const struct cap_entry *v, size_t n)
{
	struct cap_look *look = arena_array(a, struct cap_look, n + 1);

	for (size_t i = 0; look && i < n; i++)
		look[i] = (struct cap_look){ v[i].cap.hint, v[i].cap.action };
	return look;
}

bool cap_set_index(struct arena *a, struct cap_set *s)
{
	s->look_caps = index_of(a, s->caps.v, s->caps.n);
	s->look_nots = index_of(a, s->nots.v, s->nots.n);
	s->look_caps_n = s->caps.n;
	s->look_nots_n = s->nots.n;
	return s->look_caps && s->look_nots;
}

/* The first of @v at or after @i that may match, by the index if there is one. */
static size_t next_worth(const struct probe *p, const struct cap_entry *v, size_t n,
			 const struct cap_look *look, size_t i)
{
	if (look)
		while (i < n && !worth_a_look(p, &look[i].hint, look[i].action))
			i++;
	else
		while (i < n && !worth_a_look(p, &v[i].cap.hint, v[i].cap.action))
			i++;
	return i;
}

static struct cap_verdict decide_alone(const struct cap_set *s, const struct cap *req)
{
	const struct cap_look *caps = s->look_caps_n == s->caps.n ? s->look_caps : NULL;
	const struct cap_look *nots = s->look_nots_n == s->nots.n ? s->look_nots : NULL;
	struct cap_verdict v = { .answer = CAP_DENY, .rule = RULE_NONE, .entry = SIZE_MAX };
	struct probe p;

	if (req->kind != CAP_REQUEST)
		return v;
	p = make_probe(req);
	for (size_t i = 0; (i = next_worth(&p, s->nots.v, s->nots.n, nots, i)) < s->nots.n; i++)
		if (cap_denies(&s->nots.v[i].cap, req))
			return (struct cap_verdict){ CAP_DENY, s->nots.v[i].rule, i, 0 };
	for (size_t i = 0; (i = next_worth(&p, s->caps.v, s->caps.n, caps, i)) < s->caps.n; i++) {
		const struct cap_entry *e = &s->caps.v[i];

		if (!cap_matches(&e->cap, req))
			continue;
		if (e->cap.approve_n)
			return (struct cap_verdict){ CAP_ASK, e->rule, i, 0 };
		if (v.answer == CAP_DENY)
			v = (struct cap_verdict){ CAP_ALLOW, e->rule, i, 0 };
	}
	for (size_t i = 0; v.answer == CAP_ALLOW && i < s->prices.n; i++) {
		const struct cap_entry *e = &s->prices.v[i];

		if (e->cap.approve_n && cap_matches(&e->cap, req))
			return (struct cap_verdict){ CAP_ASK, e->rule, v.entry, 0 };
	}
	return v;
}

/* SECURITY: each hop is asked for itself, and the strictest answer counts. */
struct cap_verdict cap_set_decide(const struct cap_set *s, const struct cap *req)
{
	struct cap_verdict v = decide_alone(s, req);

	for (size_t i = 0; i < s->hops_n && v.hop == 0; i++) {
		const struct cap_verdict hop = decide_alone(&s->hops[i], req);

		if (hop.answer == CAP_DENY && v.answer != CAP_DENY)
			v = (struct cap_verdict){ CAP_DENY, RULE_NONE, SIZE_MAX, i + 1 };
		else if (hop.answer == CAP_DENY)
			v.hop = i + 1;
		else if (hop.answer == CAP_ASK && v.answer == CAP_ALLOW)
			v.answer = CAP_ASK;
	}
	return v;
}

const char *cap_set_says(const struct cap_set *s, const struct cap_verdict *v)
{
	if (v->answer != CAP_DENY || v->hop == 0 || v->hop > s->hops_n)
		return NULL;
	return s->hops[v->hop - 1].says.n ? s->hops[v->hop - 1].says.p : NULL;
}
