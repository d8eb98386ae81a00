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

/* Those of @v whose action is one of @actions. */
static const struct cap_look *index_of(struct arena *a, const struct cap_entry *v, size_t n,
				       uint32_t actions, size_t *ret_n)
{
	struct cap_look *look = arena_array(a, struct cap_look, n + 1);

	*ret_n = 0;
	for (size_t i = 0; look && i < n; i++)
		if (actions >> v[i].cap.action & 1)
			look[(*ret_n)++] =
				(struct cap_look){ v[i].cap.hint, v[i].cap.action, (uint32_t)i };
	return look;
}

/* All that can reach a connection or a request. */
static uint32_t net_actions(void)
{
	return cap_reached_by(CAP_NET_CONNECT) | cap_reached_by(CAP_HTTP_REQUEST);
}

bool cap_set_index(struct arena *a, struct cap_set *s)
{
	s->look_caps = index_of(a, s->caps.v, s->caps.n, UINT32_MAX, &s->look_caps_n);
	s->look_nots = index_of(a, s->nots.v, s->nots.n, UINT32_MAX, &s->look_nots_n);
	s->look_net_caps = index_of(a, s->caps.v, s->caps.n, net_actions(), &s->look_net_caps_n);
	s->look_net_nots = index_of(a, s->nots.v, s->nots.n, net_actions(), &s->look_net_nots_n);
	return s->look_caps && s->look_nots && s->look_net_caps && s->look_net_nots;
}

/* Entries of a set in their order, by the index if there is one that fits. */
struct walk {
	const struct cap_entry *v;
	const struct cap_look *look;
	size_t n, i;
};

static bool is_net(const struct cap *req)
{
	return req->action == CAP_NET_CONNECT || req->action == CAP_HTTP_REQUEST;
}

static struct walk walk_caps(const struct cap_set *s, const struct cap *req)
{
	const bool fits = s->look_caps && s->look_caps_n == s->caps.n;

	if (fits && is_net(req))
		return (struct walk){ s->caps.v, s->look_net_caps, s->look_net_caps_n, 0 };
	return (struct walk){ s->caps.v, fits ? s->look_caps : NULL, s->caps.n, 0 };
}

static struct walk walk_nots(const struct cap_set *s, const struct cap *req)
{
	const bool fits = s->look_nots && s->look_nots_n == s->nots.n;

	if (fits && is_net(req))
		return (struct walk){ s->nots.v, s->look_net_nots, s->look_net_nots_n, 0 };
	return (struct walk){ s->nots.v, fits ? s->look_nots : NULL, s->nots.n, 0 };
}

/* The next entry that may match; SIZE_MAX: there is none. */
static size_t next_worth(const struct probe *p, struct walk *w)
{
	size_t i = w->i;

	if (w->look)
		while (i < w->n && !worth_a_look(p, &w->look[i].hint, w->look[i].action))
			i++;
	else
		while (i < w->n && !worth_a_look(p, &w->v[i].cap.hint, w->v[i].cap.action))
			i++;
	w->i = i + 1;
	if (i >= w->n)
		return SIZE_MAX;
	return w->look ? w->look[i].at : i;
}

static struct cap_verdict decide_alone(const struct cap_set *s, const struct cap *req)
{
	struct walk caps = walk_caps(s, req), nots = walk_nots(s, req);
	struct cap_verdict v = { .answer = CAP_DENY, .rule = RULE_NONE, .entry = SIZE_MAX };
	struct probe p;
	size_t i;

	if (req->kind != CAP_REQUEST)
		return v;
	p = make_probe(req);
	while ((i = next_worth(&p, &nots)) != SIZE_MAX)
		if (cap_denies(&s->nots.v[i].cap, req))
			return (struct cap_verdict){ CAP_DENY, s->nots.v[i].rule, i, 0 };
	while ((i = next_worth(&p, &caps)) != SIZE_MAX) {
		const struct cap_entry *e = &s->caps.v[i];

		if (!cap_matches(&e->cap, req))
			continue;
		if (e->cap.approve_n)
			return (struct cap_verdict){ CAP_ASK, e->rule, i, 0 };
		if (v.answer == CAP_DENY)
			v = (struct cap_verdict){ CAP_ALLOW, e->rule, i, 0 };
	}
	for (i = 0; v.answer == CAP_ALLOW && i < s->prices.n; i++) {
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
