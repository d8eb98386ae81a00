#include "reach/quota.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "base/banned.h"

/*
 * Counters of one rule. @times is a ring buffer with the times of the last uses. The ring has one
 * slot for each use that the rate allows; the next use is written to slot @next.
 */
struct quota_entry {
	uint64_t uses, up, down;
	uint64_t *times;
	size_t next;
};

void quota_init(struct quota *q, struct arena *a, const struct cap_set *set)
{
	*q = (struct quota){ .a = a, .set = set };
}

static struct quota_total *total_of(struct quota *q)
{
	return q->total ? q->total : &q->own;
}

/*
 * Returns the shared counter of cell @i, and the cell's rule, if the bill contains the cell's
 * price; else NULL.
 */
static struct quota_counter *counter_of(const struct quota *q, const struct quota_bill *b, size_t i,
					const struct cap **ret_cap)
{
	const struct quota_cell *c = &q->shared.cells[i];

	for (uint32_t k = 0; k < b->prices_n; k++)
		if (b->prices[k] == c->price) {
			*ret_cap = &q->set->prices.v[c->price].cap;
			return &q->shared.v[c->slot];
		}
	return NULL;
}

/*
 * Adds one use to a counter, or returns false if the counter has reached @most. SECURITY:
 * compare-and-exchange, because other sessions count in the same memory; a plain increment could
 * exceed the limit.
 */
static bool take(struct quota_counter *c, uint64_t most)
{
	uint64_t used = atomic_load(&c->uses);

	while (used < most)
		if (atomic_compare_exchange_weak(&c->uses, &used, used + 1))
			return true;
	return false;
}

/*
 * Takes a refused use back from the first @cells cells and the first @pools pools, so that
 * the use is charged nowhere.
 */
static void give_back(struct quota *q, const struct quota_bill *b, size_t cells, size_t pools)
{
	const struct cap *cap;

	for (size_t i = 0; i < cells; i++) {
		struct quota_counter *c = counter_of(q, b, i, &cap);

		if (c && cap->n)
			atomic_fetch_sub(&c->uses, 1);
	}
	for (size_t i = 0; i < pools; i++)
		if (q->shared.pools[i].requests)
			atomic_fetch_sub(&q->shared.v[q->shared.pools[i].slot].uses, 1);
}

static enum cap_cause use_shared(struct quota *q, const struct quota_bill *b)
{
	const struct quota_shared *s = &q->shared;
	bool any = false;

	for (size_t i = 0; i < s->cells_n; i++) {
		const struct cap *cap;
		struct quota_counter *c = counter_of(q, b, i, &cap);

		if (!c || !cap->n)
			continue;
		if (!take(c, cap->n)) {
			give_back(q, b, i, 0);
			return CAUSE_USED_SHARED_COUNT;
		}
		any = true;
	}
	for (size_t i = 0; i < s->pools_n; i++) {
		if (!s->pools[i].requests)
			continue;
		if (!take(&s->v[s->pools[i].slot], s->pools[i].requests)) {
			give_back(q, b, s->cells_n, i);
			return CAUSE_USED_SHARED_REQUESTS;
		}
		any = true;
	}
	/*
	 * SECURITY: write the counters to disk before the use happens. Otherwise a crash could
	 * reset the counters, and the use could be repeated.
	 */
	if (any && msync(s->v, s->n * sizeof(*s->v), MS_SYNC) < 0) {
		give_back(q, b, s->cells_n, s->pools_n);
		return CAUSE_UNCOUNTED;
	}
	return CAUSE_NONE;
}

/* Returns rule @i of the bill: 0 is the grant, the following rules are the prices. */
static const struct cap *cap_of(const struct quota *q, const struct quota_bill *b, size_t i)
{
	return i ? &q->set->prices.v[b->prices[i - 1]].cap : &q->set->caps.v[b->entry].cap;
}

static const struct quota_entry *peek(const struct quota *q, const struct quota_bill *b, size_t i)
{
	const size_t at = i ? b->prices[i - 1] : b->entry;

	if (at >= (i ? q->prices.n : q->entries.n))
		return NULL;
	return i ? &q->prices.v[at] : &q->entries.v[at];
}

static struct quota_entry *entry_of(struct quota *q, const struct quota_bill *b, size_t i)
{
	const size_t at = i ? b->prices[i - 1] : b->entry;

	while (i && q->prices.n <= at)
		if (!vec_push(q->a, &q->prices))
			return NULL;
	while (!i && q->entries.n <= at)
		if (!vec_push(q->a, &q->entries))
			return NULL;
	return i ? &q->prices.v[at] : &q->entries.v[at];
}

/* Tests whether all of the last @c->rate_n uses are less than @c->rate_s seconds old. */
static bool too_fast(const struct quota_entry *e, const struct cap *c, uint64_t now_ms)
{
	return e->uses >= c->rate_n && now_ms - e->times[e->next] < c->rate_s * 1000;
}

/* Returns the reason why rule @i forbids one more use, or CAUSE_NONE. Charges nothing. */
static enum cap_cause refused(struct quota *q, const struct quota_bill *b, size_t i,
			      uint64_t now_ms)
{
	const struct cap *c = cap_of(q, b, i);
	struct quota_entry *e = entry_of(q, b, i);

	/* SECURITY: deny a use that cannot be counted. */
	if (!e)
		return CAUSE_MEMORY;
	if (c->n && e->uses >= c->n)
		return CAUSE_USED_COUNT;
	if (c->rate_n && !e->times) {
		e->times = arena_array(q->a, uint64_t, c->rate_n);
		if (!e->times)
			return CAUSE_MEMORY;
	}
	return c->rate_n && too_fast(e, c, now_ms) ? CAUSE_USED_RATE : CAUSE_NONE;
}

enum cap_cause quota_use(struct quota *q, const struct quota_bill *bill, uint64_t now_ms)
{
	const uint64_t most = q->set->limits[LIMIT_REQUESTS];
	enum cap_cause why = CAUSE_NONE;

	/*
	 * Increment first, and undo the increment after a refusal: egress and the reader share this
	 * counter, and must not both take the last use.
	 */
	if (atomic_fetch_add(&total_of(q)->requests, 1) >= most && most)
		why = CAUSE_USED_REQUESTS;
	for (size_t i = 0; why == CAUSE_NONE && i <= bill->prices_n; i++)
		why = refused(q, bill, i, now_ms);
	if (why == CAUSE_NONE)
		why = use_shared(q, bill);
	for (size_t i = 0; why == CAUSE_NONE && i <= bill->prices_n; i++) {
		const struct cap *c = cap_of(q, bill, i);
		struct quota_entry *e = entry_of(q, bill, i);

		e->uses++;
		if (!c->rate_n)
			continue;
		e->times[e->next] = now_ms;
		e->next = (e->next + 1) % c->rate_n;
	}
	if (why != CAUSE_NONE)
		atomic_fetch_sub(&total_of(q)->requests, 1);
	return why;
}

static uint64_t left(uint64_t limit, uint64_t used)
{
	return limit == 0 ? UINT64_MAX : limit > used ? limit - used : 0;
}

uint64_t quota_pools_left(const struct quota_shared *s, bool up)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < s->pools_n; i++) {
		const struct quota_pool *p = &s->pools[i];
		const struct quota_counter *c = &s->v[p->slot];
		const uint64_t one = up ? left(p->up, c->up) : left(p->down, c->down);

		least = one < least ? one : least;
	}
	return least;
}

void quota_pools_pass(const struct quota_shared *s, bool up, uint64_t bytes)
{
	for (size_t i = 0; i < s->pools_n; i++) {
		struct quota_counter *c = &s->v[s->pools[i].slot];

		atomic_fetch_add(up ? &c->up : &c->down, bytes);
	}
}

uint64_t quota_left(const struct quota *q, const struct quota_bill *bill, bool up)
{
	const struct quota_total *t = q->total ? q->total : &q->own;
	const uint64_t *l = q->set->limits;
	const uint64_t own = up ? left(l[LIMIT_UP], t->up) : left(l[LIMIT_DOWN], t->down);
	uint64_t least = quota_pools_left(&q->shared, up);

	least = own < least ? own : least;
	for (size_t i = 0; i <= bill->prices_n; i++) {
		const struct cap *c = cap_of(q, bill, i);
		const struct quota_entry *e = peek(q, bill, i);
		const uint64_t rule =
			up ? left(c->max_out, e ? e->up : 0) : left(c->max_in, e ? e->down : 0);

		least = rule < least ? rule : least;
	}
	for (size_t i = 0; i < q->shared.cells_n; i++) {
		const struct cap *cap = NULL;
		const struct quota_counter *c = counter_of(q, bill, i, &cap);
		const uint64_t rule = !c   ? UINT64_MAX
				      : up ? left(cap->max_out, c->up)
					   : left(cap->max_in, c->down);

		least = rule < least ? rule : least;
	}
	return least;
}

void quota_pass(struct quota *q, const struct quota_bill *bill, bool up, uint64_t bytes)
{
	atomic_fetch_add(up ? &total_of(q)->up : &total_of(q)->down, bytes);
	for (size_t i = 0; i <= bill->prices_n; i++) {
		struct quota_entry *e = entry_of(q, bill, i);

		if (e)
			*(up ? &e->up : &e->down) += bytes;
	}
	for (size_t i = 0; i < q->shared.cells_n; i++) {
		const struct cap *cap;
		struct quota_counter *c = counter_of(q, bill, i, &cap);

		if (c)
			atomic_fetch_add(up ? &c->up : &c->down, bytes);
	}
	quota_pools_pass(&q->shared, up, bytes);
}
