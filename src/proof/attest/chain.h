/*
 * chain.h - rotations of a log key, proved without access to the log
 *
 * Reads:  tlog-proofs of entries `key.rotate`, each in the checkpoint that both keys signed
 * Writes: the keys that are valid for a checkpoint of a given size
 * Next:   check.h; prove.h makes these proofs
 *
 * A retired key is not valid for any checkpoint after the entry that retired it, whether it is
 * pinned or not. A verifier that pinned an older key follows the chain to the newer one.
 * audit/verify.h applies the same rules when it has the whole log.
 */
#ifndef WRIT_ATTEST_CHAIN_H
#define WRIT_ATTEST_CHAIN_H

#include "attest/attest.h"
#include "tlog/policy.h"

/* Rotation from one log key to another: .next signs checkpoints of more than .index entries. */
struct chain_link {
	uint64_t index;
	struct note_key old, next;
};

struct chain {
	struct chain_link link[ATTEST_ROTATED_MAX];
	size_t n;
};

/*
 * Reads the proofs of all rotations. On failure *@ret_at is the index of the bad file, and *@ret
 * contains the rotations before that file.
 */
must_check int attest_chain_read(struct arena *a, const struct attest_rotated *files,
				 struct sv origin, struct chain *ret, size_t *ret_at,
				 struct writ_err *err);

/* Checks whether @key is in the chain @c, which must not be empty. */
bool attest_chain_has(const struct chain *c, const struct note_key *key);

/* Returns the rotation that retired @key before the log had @size entries, or NULL. */
const struct chain_link *attest_chain_ended(const struct chain *c, const struct note_key *key,
					    uint64_t size);

/*
 * Removes from @p the keys of the chain that are not valid for a checkpoint of @size entries. With
 * @follow the key that is valid is added to @p, if an older key of the chain is pinned and every
 * key pinned for this log is in the chain.
 */
void attest_chain_apply(const struct chain *c, uint64_t size, bool follow, struct tlog_policy *p);

#endif
