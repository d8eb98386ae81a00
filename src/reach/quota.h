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

struct quota {
	struct arena *a;
	const struct cap_set *set;
	VEC(struct quota_entry) entries; /* by index of the grant */
	VEC(struct quota_entry) prices;	 /* by index of the price */
	struct quota_total own;
	struct quota_total *total; /* shared; NULL: our own */
};

void quota_init(struct quota *q, struct arena *a, const struct cap_set *set);

/* From now on totals are counted there, which must outlive @q. */
void quota_share(struct quota *q, struct quota_total *total);

/*
 * One use at @now_ms (a clock that does not go back). NULL, or which limit is used
 * up; then nothing was counted.
 */
const char *quota_use(struct quota *q, const struct quota_bill *bill, uint64_t now_ms);

/* How many more bytes may pass; UINT64_MAX: no limit. */
uint64_t quota_left(const struct quota *q, const struct quota_bill *bill, bool up);
void quota_pass(struct quota *q, const struct quota_bill *bill, bool up, uint64_t bytes);

#endif
