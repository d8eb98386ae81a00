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
static inline bool worth_a_look(const struct probe *p, const struct cap *c)
{
	const struct cap_hint *h = &c->hint;
	const char *end;
	uint64_t got;

	if (!(p->actions >> c->action & 1) || (h->need & ~p->has))
		return false;
	if (h->mask == 0)
		return true;
	if (h->tail ? p->host.n < h->name : p->rest.n < h->end)
		return false;
	end = h->tail ? p->host.p + p->host.n - (h->tail - 1) : p->rest.p + h->end;
	memcpy(&got, end - 8, 8);
	return ((got ^ h->want) & h->mask) == 0;
}

struct cap_verdict cap_set_decide(const struct cap_set *s, const struct cap *req)
{
	struct cap_verdict v = { .answer = CAP_DENY, .rule = RULE_NONE, .entry = SIZE_MAX };
	struct probe p;

	if (req->kind != CAP_REQUEST)
		return v;
	p = make_probe(req);
	for (size_t i = 0; i < s->nots.n; i++)
		if (worth_a_look(&p, &s->nots.v[i].cap) && cap_denies(&s->nots.v[i].cap, req))
			return (struct cap_verdict){ CAP_DENY, s->nots.v[i].rule, i };
	for (size_t i = 0; i < s->caps.n; i++) {
		const struct cap_entry *e = &s->caps.v[i];

		if (!worth_a_look(&p, &e->cap) || !cap_matches(&e->cap, req))
			continue;
		if (e->cap.approve_n)
			return (struct cap_verdict){ CAP_ASK, e->rule, i };
		if (v.answer == CAP_DENY)
			v = (struct cap_verdict){ CAP_ALLOW, e->rule, i };
	}
	for (size_t i = 0; v.answer == CAP_ALLOW && i < s->prices.n; i++) {
		const struct cap_entry *e = &s->prices.v[i];

		if (e->cap.approve_n && worth_a_look(&p, &e->cap) && cap_matches(&e->cap, req))
			return (struct cap_verdict){ CAP_ASK, e->rule, v.entry };
	}
	return v;
}
