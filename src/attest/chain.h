/*
 * chain.h - which key of a log counted when: changes of it, proved without the log
 *
 * Reads:  tlog-proofs of entries `key.rotate`, each in the checkpoint that both keys signed
 * Writes: the keys that count for a checkpoint of some size
 * Next:   check.h; prove.h makes them
 *
 * A key that was given up speaks for nothing behind the entry that says so, whether it is
 * pinned or not; and who pinned an older one is led to the one that took over. The same as
 * audit/verify.h does with the whole log.
 */
#ifndef WRIT_ATTEST_CHAIN_H
#define WRIT_ATTEST_CHAIN_H

#include "attest/attest.h"
#include "tlog/policy.h"

/* From one key to another: @next counts for more than @index entries. */
struct chain_link {
	uint64_t index;
	struct note_key old, next;
};

struct chain {
	struct chain_link link[ATTEST_ROTATED_MAX];
	size_t n;
};

/* *@ret_at is the file that is not right, if one is not; *@ret has those before it. */
must_check int chain_read(struct arena *a, const struct attest_rotated *files, struct sv origin,
			  struct chain *ret, size_t *ret_at, struct writ_err *err);

bool chain_same(const struct note_key *a, const struct note_key *b);
bool chain_has(const struct chain *c, const struct note_key *key); /* not of an empty one */

/* The link that ended @key before the log had @size entries; NULL: none did. */
const struct chain_link *chain_ended(const struct chain *c, const struct note_key *key,
				     uint64_t size);

/*
 * Takes out of @p the keys of the chain that do not count at @size. With @follow the one
 * that does is put in, if the chain has every key that is pinned for its log, and one is.
 */
void chain_apply(const struct chain *c, uint64_t size, bool follow, struct tlog_policy *p);

#endif
