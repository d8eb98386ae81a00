/*
 * proof.h - an entry is in a log, and witnesses saw it: C2SP tlog-proof@v1
 *
 * Reads:  a proof file, the entry, a policy (policy.h)
 * Writes: nothing
 * Next:   whoever verifies without the log at hand
 */
#ifndef WRIT_TLOG_PROOF_H
#define WRIT_TLOG_PROOF_H

#include "tlog/checkpoint.h"
#include "tlog/policy.h"
#include "tlog/tree.h"

enum {
	PROOF_EXTRA_MAX = 87380, /* base64 of the largest entry of a bundle */
	PROOF_MAX = NOTE_MAX + PROOF_EXTRA_MAX + TREE_PROOF_MAX * 45 + 128,
};

struct proof {
	struct sv extra; /* base64, empty if there is none. Nothing vouches for it. */
	uint64_t index;
	struct tree_proof path;
	struct sv checkpoint; /* the signed note */
};

must_check int proof_parse(struct sv bytes, struct proof *ret_p, struct writ_err *err);
/* Refuses what proof_parse() would not read. */
must_check int proof_print(const struct proof *p, struct buf *b, struct writ_err *err);

enum proof_verdict {
	PROOF_MALFORMED = 0,	/* not a proof, not a checkpoint */
	PROOF_BAD_SIGNATURE,	/* one that a known key is said to have made */
	PROOF_UNKNOWN_LOG,	/* no log of the policy has signed this checkpoint as its own */
	PROOF_NO_QUORUM,	/* too few witnesses have cosigned */
	PROOF_NOT_INCLUDED,	/* the entry is not in the tree at this index */
	PROOF_HOLDS,
};

/* What a proof that holds shows. */
struct proof_facts {
	uint64_t index;
	struct checkpoint checkpoint;
	uint32_t cosigned;		       /* bit i: witness[i] of the policy */
	uint64_t time[TLOG_WITNESSES_MAX]; /* when it did, by its own clock */
};

/*
 * SECURITY: the only verdict that means yes is PROOF_HOLDS; *@ret_facts is set then,
 * and @err says why otherwise. Times are reported, not judged.
 */
must_check enum proof_verdict proof_verify(struct sv bytes, struct sv entry,
					   const struct tlog_policy *policy,
					   struct proof_facts *ret_facts, struct writ_err *err);

const char *proof_verdict_name(enum proof_verdict verdict);

#endif
