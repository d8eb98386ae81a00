#include "reach/quota.h"

#include "base/banned.h"

/* Times of the last uses, a ring as long as the rate allows uses. */
struct quota_entry {
	uint64_t uses, up, down;
	uint64_t *times;
	size_t next;
};

void quota_init(struct quota *q, struct arena *a, const struct cap_set *set)
{
	*q = (struct quota){ .a = a, .set = set };
}

static struct quota_entry *entry_of(struct quota *q, size_t i)
{
	while (q->entries.n <= i) {
		struct quota_entry *e = vec_push(q->a, &q->entries);

		if (!e)
			return NULL;
		*e = (struct quota_entry){ 0 };
	}
	return &q->entries.v[i];
}

/* True if the oldest of the last @c->rate_n uses is still inside the window. */
static bool too_fast(const struct quota_entry *e, const struct cap *c, uint64_t now_ms)
{
	return e->uses >= c->rate_n && now_ms - e->times[e->next] < c->rate_s * 1000;
}

const char *quota_use(struct quota *q, size_t entry, uint64_t now_ms)
{
	const struct cap *c = &q->set->caps.v[entry].cap;
	struct quota_entry *e = entry_of(q, entry);

	/* SECURITY: what cannot be counted is not allowed. */
	if (!e)
		return "memory";
	if (q->set->limits[LIMIT_REQUESTS] && q->requests >= q->set->limits[LIMIT_REQUESTS])
		return "requests of the session";
	if (c->n && e->uses >= c->n)
		return "count of the rule";
	if (c->rate_n && !e->times) {
		e->times = arena_array(q->a, uint64_t, c->rate_n);
		if (!e->times)
			return "memory";
	}
	if (c->rate_n && too_fast(e, c, now_ms))
		return "rate of the rule";
	if (c->rate_n) {
		e->times[e->next] = now_ms;
		e->next = (e->next + 1) % c->rate_n;
	}
	e->uses++;
	q->requests++;
	return NULL;
}

static uint64_t left(uint64_t limit, uint64_t used)
{
	return limit == 0 ? UINT64_MAX : limit > used ? limit - used : 0;
}

uint64_t quota_left(const struct quota *q, size_t entry, bool up)
{
	const struct cap *c = &q->set->caps.v[entry].cap;
	const struct quota_entry *e = entry < q->entries.n ? &q->entries.v[entry] : NULL;
	const uint64_t *l = q->set->limits;
	const uint64_t session =
		up ? left(l[LIMIT_UP], q->up) : left(l[LIMIT_DOWN], q->down);
	const uint64_t rule = up ? left(c->max_out, e ? e->up : 0) :
				   left(c->max_in, e ? e->down : 0);

	return session < rule ? session : rule;
}

void quota_pass(struct quota *q, size_t entry, bool up, uint64_t bytes)
{
	struct quota_entry *e = entry_of(q, entry);

	*(up ? &q->up : &q->down) += bytes;
	if (e)
		*(up ? &e->up : &e->down) += bytes;
}
