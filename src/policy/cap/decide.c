#include "cap/component.h"
#include "cap/set.h"

#include "base/banned.h"

/* Properties of a request that may_match() compares with the hint of every entry. */
struct probe {
	uint64_t has;	  /* hash bits of the request's segments and host */
	uint32_t actions; /* bits of the actions whose entries can match the request */
	struct sv rest;	  /* text of the request after the action's name */
	/* host name, a view into the request's text; empty if the request has no host */
	struct sv host;
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
 * Can the entry with hint @h match the request?
 * SECURITY: must return false only if the entry cannot match the request, because the caller then
 * skips the full comparison. The load of eight bytes before @end stays inside the request's text:
 * an action's name has at least six bytes, followed by a colon, the realm and another colon.
 */
static inline bool may_match(const struct probe *p, const struct cap_hint *h,
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

/* Returns index entries for the members of @v whose action is in @actions. */
static const struct cap_index_entry *make_index(struct arena *a, const struct cap_entry *v,
						size_t n, uint32_t actions, size_t *ret_n)
{
	struct cap_index_entry *index = arena_array(a, struct cap_index_entry, n + 1);

	*ret_n = 0;
	for (size_t i = 0; index && i < n; i++)
		if (actions >> v[i].cap.action & 1)
			index[(*ret_n)++] =
				(struct cap_index_entry){ v[i].cap.hint, v[i].cap.action,
							  (uint32_t)i };
	return index;
}

/* Returns the bits of the actions whose entries can match a connection or an HTTP request. */
static uint32_t net_actions(void)
{
	return cap_reached_by(CAP_NET_CONNECT) | cap_reached_by(CAP_HTTP_REQUEST);
}

bool cap_set_index(struct arena *a, struct cap_set *s)
{
	s->index_caps = make_index(a, s->caps.v, s->caps.n, UINT32_MAX, &s->index_caps_n);
	s->index_nots = make_index(a, s->nots.v, s->nots.n, UINT32_MAX, &s->index_nots_n);
	s->index_net_caps =
		make_index(a, s->caps.v, s->caps.n, net_actions(), &s->index_net_caps_n);
	s->index_net_nots =
		make_index(a, s->nots.v, s->nots.n, net_actions(), &s->index_net_nots_n);
	return s->index_caps && s->index_nots && s->index_net_caps && s->index_net_nots;
}

/* Iterator over the entries of a set in order; uses the set's index if the index is current. */
struct walk {
	const struct cap_entry *v;
	const struct cap_index_entry *index;
	size_t n, i;
};

static bool is_net(const struct cap *req)
{
	return req->action == CAP_NET_CONNECT || req->action == CAP_HTTP_REQUEST;
}

static struct walk walk_caps(const struct cap_set *s, const struct cap *req)
{
	const bool fits = s->index_caps && s->index_caps_n == s->caps.n;

	if (fits && is_net(req))
		return (struct walk){ s->caps.v, s->index_net_caps, s->index_net_caps_n, 0 };
	return (struct walk){ s->caps.v, fits ? s->index_caps : NULL, s->caps.n, 0 };
}

static struct walk walk_nots(const struct cap_set *s, const struct cap *req)
{
	const bool fits = s->index_nots && s->index_nots_n == s->nots.n;

	if (fits && is_net(req))
		return (struct walk){ s->nots.v, s->index_net_nots, s->index_net_nots_n, 0 };
	return (struct walk){ s->nots.v, fits ? s->index_nots : NULL, s->nots.n, 0 };
}

/* Returns the position of the next entry that may match the request, or SIZE_MAX. */
static size_t next_candidate(const struct probe *p, struct walk *w)
{
	size_t i = w->i;

	if (w->index)
		while (i < w->n && !may_match(p, &w->index[i].hint, w->index[i].action))
			i++;
	else
		while (i < w->n && !may_match(p, &w->v[i].cap.hint, w->v[i].cap.action))
			i++;
	w->i = i + 1;
	if (i >= w->n)
		return SIZE_MAX;
	return w->index ? w->index[i].at : i;
}

static struct cap_verdict decide_alone(const struct cap_set *s, const struct cap *req)
{
	struct walk caps = walk_caps(s, req), nots = walk_nots(s, req);
	struct cap_verdict v = { .answer = CAP_DENY, .rule = RULE_NONE, .entry = SIZE_MAX };
	struct probe p;
	size_t i;

	/*
	 * SECURITY: a grant passed instead of a request is a bug in the caller and must allow
	 * nothing; deny.
	 */
	if (req->kind != CAP_REQUEST)
		return v;
	p = make_probe(req);
	/* Denials first: a matching denial beats every grant. */
	while ((i = next_candidate(&p, &nots)) != SIZE_MAX)
		if (cap_denies(&s->nots.v[i].cap, req))
			return (struct cap_verdict){ CAP_DENY, s->nots.v[i].rule, i, 0 };
	while ((i = next_candidate(&p, &caps)) != SIZE_MAX) {
		const struct cap_entry *e = &s->caps.v[i];

		if (!cap_matches(&e->cap, req))
			continue;
		/*
		 * Ask beats allow: one matching grant with approvers suffices for the answer
		 * CAP_ASK.
		 */
		if (e->cap.approve_n)
			return (struct cap_verdict){ CAP_ASK, e->rule, i, 0 };
		if (v.answer == CAP_DENY)
			v = (struct cap_verdict){ CAP_ALLOW, e->rule, i, 0 };
	}
	/*
	 * A price that cap_set_meet() kept may require an approval that the narrower grants no
	 * longer require.
	 */
	for (i = 0; v.answer == CAP_ALLOW && i < s->prices.n; i++) {
		const struct cap_entry *e = &s->prices.v[i];

		if (e->cap.approve_n && cap_matches(&e->cap, req))
			return (struct cap_verdict){ CAP_ASK, e->rule, v.entry, 0 };
	}
	return v;
}

/* SECURITY: asks every hop of the set separately; the strictest answer counts. */
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

const char *cap_set_hop_message(const struct cap_set *s, const struct cap_verdict *v)
{
	if (v->answer != CAP_DENY || v->hop == 0 || v->hop > s->hops_n)
		return NULL;
	return s->hops[v->hop - 1].says.n ? s->hops[v->hop - 1].says.p : NULL;
}

enum cap_reason cap_set_reason(const struct cap_set *s, const struct cap_verdict *v)
{
	if (v->answer != CAP_DENY)
		return CAP_REASON_OTHER;
	if (v->rule != RULE_NONE)
		return CAP_REASON_RULE;
	return cap_set_hop_message(s, v) ? CAP_REASON_TOKEN : CAP_REASON_NO_RULE;
}

static const char *const reason_names[CAP_REASONS] = {
	[CAP_REASON_OTHER] = "other",	[CAP_REASON_NO_RULE] = "no-rule",
	[CAP_REASON_RULE] = "rule",	[CAP_REASON_TOKEN] = "token",
	[CAP_REASON_AGENT] = "agent",	[CAP_REASON_PROTECTED] = "protected",
	[CAP_REASON_SOCKET] = "socket",
};

const char *cap_reason_name(enum cap_reason r)
{
	return reason_names[r];
}

enum cap_reason cap_reason_parse(struct sv name)
{
	for (int i = 0; i < CAP_REASONS; i++)
		if (sv_is(name, reason_names[i]))
			return (enum cap_reason)i;
	return CAP_REASON_OTHER;
}
