/*
 * quota.h - what rules cost: uses, rates and bytes, counted exactly
 *
 * Reads:  cap/set.h
 * Writes: its own counters
 * Next:   egress/ and l7/ charge each connection, request and byte
 */
#ifndef WRIT_REACH_QUOTA_H
#define WRIT_REACH_QUOTA_H

#include "cap/set.h"

enum { QUOTA_PRICES_MAX = 8 };

/* Who pays: a grant, and the prices of the set that its use matches as well. */
struct quota_bill {
	size_t entry;
	uint32_t prices[QUOTA_PRICES_MAX], prices_n;
};

struct quota_entry;

/* Of the whole session; may lie in memory that several processes count in. */
struct quota_total {
	_Atomic uint64_t requests, up, down;
};

/* A counter of a realm: in a file that all its sessions have mapped. */
struct quota_counter {
	uint8_t key[32];
	_Atomic uint64_t uses, up, down;
	uint64_t exp; /* after which nobody uses it any more */
};
_Static_assert(sizeof(struct quota_counter) == 64, "quota_counter is a file format");

/* Whatever price @price of the set counts, counter @slot counts as well. */
struct quota_cell {
	uint32_t price, slot;
};

/* Whatever is used at all, counter @slot counts as well, and no more than this; 0: no limit. */
struct quota_pool {
	uint32_t slot;
	uint64_t requests, up, down;
};

struct quota_shared {
	struct quota_counter *v;
	size_t n;
	const struct quota_cell *cells;
	size_t cells_n;
	const struct quota_pool *pools;
	size_t pools_n;
};

static inline bool quota_shares(const struct quota_shared *s)
{
	return s->cells_n + s->pools_n > 0;
}

/* How many more bytes may pass by the limits of @s alone, and that they did. */
uint64_t quota_pools_left(const struct quota_shared *s, bool up);
void quota_pools_pass(const struct quota_shared *s, bool up, uint64_t bytes);

struct quota {
	struct arena *a;
	const struct cap_set *set;
	VEC(struct quota_entry) entries; /* by index of the grant */
	VEC(struct quota_entry) prices;	 /* by index of the price */
	struct quota_total own;
	struct quota_total *total; /* shared; NULL: our own */
	struct quota_shared shared; /* with other sessions */
};

void quota_init(struct quota *q, struct arena *a, const struct cap_set *set);

/* From now on totals are counted there, which must outlive @q. */
void quota_share(struct quota *q, struct quota_total *total);

/*
 * What other sessions use counts too. Every use is on the disk before it happens; bytes
 * may be counted late by what one connection has in its hands.
 */
void quota_count(struct quota *q, const struct quota_shared *shared);

/*
 * One use at @now_ms (a clock that does not go back). NULL, or which limit is used
 * up; then nothing was counted.
 */
const char *quota_use(struct quota *q, const struct quota_bill *bill, uint64_t now_ms);

/* How many more bytes may pass; UINT64_MAX: no limit. */
uint64_t quota_left(const struct quota *q, const struct quota_bill *bill, bool up);
void quota_pass(struct quota *q, const struct quota_bill *bill, bool up, uint64_t bytes);

#endif
