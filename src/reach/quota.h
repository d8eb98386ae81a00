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

struct quota_entry;

struct quota {
	struct arena *a;
	const struct cap_set *set;
	VEC(struct quota_entry) entries; /* by index of the grant */
	uint64_t requests, up, down;	 /* of the whole session */
};

void quota_init(struct quota *q, struct arena *a, const struct cap_set *set);

/*
 * One use of grant @entry at @now_ms (a clock that does not go back). NULL, or
 * which limit is used up; then nothing was counted.
 */
const char *quota_use(struct quota *q, size_t entry, uint64_t now_ms);

/* How many more bytes may pass; UINT64_MAX: no limit. */
uint64_t quota_left(const struct quota *q, size_t entry, bool up);
void quota_pass(struct quota *q, size_t entry, bool up, uint64_t bytes);

#endif
