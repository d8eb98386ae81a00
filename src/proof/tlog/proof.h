/*
 * proof.h - one entry is in a log, and witnesses saw it: C2SP tlog-proof@v1
 *
 * Reads:  a proof file, the entry, a policy (policy.h)
 * Writes: nothing
 * Next:   attest/ and cli/, which verify without access to the log
 */
#ifndef WRIT_TLOG_PROOF_H
#define WRIT_TLOG_PROOF_H

#include "tlog/checkpoint.h"
#include "tlog/policy.h"

enum {
	PROOF_EXTRA_MAX = 87380, /* base64 of the largest entry of a bundle */
	PROOF_MAX = NOTE_MAX + PROOF_EXTRA_MAX + TREE_PROOF_MAX * 45 + 128,
};

struct proof {
	struct sv extra; /* extra data, base64; may be empty; no signature covers the extra data */
	uint64_t index;
	struct tree_proof path;
	struct sv checkpoint; /* signed checkpoint, as a note */
};

must_check int proof_parse(struct sv bytes, struct proof *ret_p, struct writ_err *err);
/* Prints a proof; refuses a proof that proof_parse() would not accept. */
must_check int proof_print(const struct proof *p, struct buf *b, struct writ_err *err);

enum proof_verdict {
	/* the text is not a proof, or the checkpoint in the proof is malformed */
	PROOF_MALFORMED = 0,
	PROOF_BAD_SIGNATURE, /* a signature under the name of a known key is invalid */
	PROOF_UNKNOWN_LOG,   /* no log of the policy signed this checkpoint as its own checkpoint */
	PROOF_NO_QUORUM,     /* too few witnesses cosigned */
	PROOF_NOT_INCLUDED,  /* the entry is not in the tree at this index */
	PROOF_HOLDS,
};

/* Facts established by a proof that holds. */
struct proof_facts {
	uint64_t index;
	struct checkpoint checkpoint;
	/* witnesses that cosigned: bit i is witness[i] of the policy */
	uint32_t cosigned;
	/* when each witness cosigned, by the clock of that witness */
	uint64_t time[TLOG_WITNESSES_MAX];
};

/*
 * Verifies that @entry is in a log that @policy trusts.
 * SECURITY: only PROOF_HOLDS means yes; only then *@ret_facts is set. With any other verdict, @err
 * explains the verdict. Cosignature times are reported, but not checked against any limit.
 */
must_check enum proof_verdict proof_verify(struct sv bytes, struct sv entry,
					   const struct tlog_policy *policy,
					   struct proof_facts *ret_facts, struct writ_err *err);

const char *proof_verdict_name(enum proof_verdict verdict);

#endif
