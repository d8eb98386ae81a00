/*
 * quota.h - count uses, rates and bytes against the limits of rules
 *
 * Reads:  cap/set.h
 * Writes: its own counters, and counters shared with other sessions
 * Next:   egress/ and l7/ charge each connection, request and byte
 *
 * Counters exist on three levels: per rule of this session (struct quota_entry), per session
 * (struct quota_total, in memory shared by egress, l7 and the git helper), and per realm (struct
 * quota_counter, in a file that all sessions of the realm map). A use is charged to all of
 * them or to none.
 */
#ifndef WRIT_REACH_QUOTA_H
#define WRIT_REACH_QUOTA_H

#include "cap/cause.h"
#include "cap/set.h"

enum { QUOTA_PRICES_MAX = 8 };

/*
 * The rules that a use is charged to: the grant that allowed the use, and every price (a rule that
 * only limits) that matches the use too.
 */
struct quota_bill {
	size_t entry; /* index in the set of the grant that allowed the use */
	uint32_t prices[QUOTA_PRICES_MAX], prices_n;
};

struct quota_entry;

/* Totals of a session. Egress, the reader and the git helper may count in the same memory. */
struct quota_total {
	_Atomic uint64_t requests, up, down;
};

/* A counter of a realm, in the file that all sessions of the realm map. */
struct quota_counter {
	uint8_t key[32];
	_Atomic uint64_t uses, up, down;
	uint64_t exp; /* seconds since the epoch after which the slot may be reused */
};
_Static_assert(sizeof(struct quota_counter) == 64, "quota_counter is a file format");

/* Links price @price of the set to counter @slot, which other sessions may use too. */
struct quota_cell {
	uint32_t price, slot;
};

/*
 * A limit on all requests and bytes of the sessions that share counter @slot. A
 * limit of 0 means no limit.
 */
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

/*
 * Return how many bytes the pools of @s still allow in one direction (UINT64_MAX: no limit), and
 * charge bytes to the pools. For processes that have no struct quota.
 */
uint64_t quota_pools_left(const struct quota_shared *s, bool up);
void quota_pools_pass(const struct quota_shared *s, bool up, uint64_t bytes);

struct quota {
	struct arena *a;
	const struct cap_set *set;
	/* counters of the grants, by the index of the grant in the set */
	VEC(struct quota_entry) entries;
	/* counters of the prices, by the index of the price in the set */
	VEC(struct quota_entry) prices;
	struct quota_total own;
	/* totals in memory that other processes share; NULL: use @own */
	struct quota_total *total;
	/*
	 * Counters shared with other sessions, which the owner of the struct may set. A use is
	 * written to disk before the use happens. Bytes are charged after they have passed, so a
	 * counter may lag by the buffer of one connection.
	 */
	struct quota_shared shared;
};

void quota_init(struct quota *q, struct arena *a, const struct cap_set *set);

/*
 * Charges one use at time @now_ms (a monotonic clock). Returns CAUSE_NONE, or the reason why the
 * use is refused; in that case no counter has changed.
 */
enum cap_cause quota_use(struct quota *q, const struct quota_bill *bill, uint64_t now_ms);

/*
 * Return how many bytes may still pass in one direction (UINT64_MAX: no limit), and charge bytes
 * that have passed.
 */
uint64_t quota_left(const struct quota *q, const struct quota_bill *bill, bool up);
void quota_pass(struct quota *q, const struct quota_bill *bill, bool up, uint64_t bytes);

#endif
