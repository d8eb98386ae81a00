/*
 * check.h - does all of it fit together, and who says so?
 *
 * Reads:  what was found about a session, and which keys count
 * Writes: facts that hold, and the findings of judge.h
 * Next:   cli/ (writ attest verify)
 *
 * docs/protocol/attestation.md has the same steps in the same order.
 */
#ifndef WRIT_ATTEST_CHECK_H
#define WRIT_ATTEST_CHECK_H

#include "attest/attest.h"
#include "attest/bundle.h"
#include "attest/judge.h"
#include "tlog/policy.h"

struct attest_evidence {
	struct attest_file entries, start, end;
	struct attest_file manifest, bundle; /* both or none: without a name they are not there */
	struct attest_rotated rotated;	     /* changes of the log's key that came along */
	bool lines; /* entries are of the session's own file, with what is private */
};

struct attest_trust {
	const struct tlog_policy *policy;
	const struct attest_rotated *ended; /* changes of its key that are known here; or NULL */
	const struct attest_key *keys;
	size_t keys_n;
	const struct note_key
		*signer; /* of the log that the installed signer has said is its; or NULL */
	/* 0: @sig is of @key over @bytes; WRIT_E_DENIED: it is not. */
	int (*verify)(void *ctx, const struct attest_key *key, struct sv bytes, struct sv sig,
		      struct writ_err *err);
	void *ctx;
};

enum attest_answer {
	ATTEST_NO = 0,	 /* something does not fit: @err says what, and where */
	ATTEST_UNPINNED, /* it may fit, but nobody we know has signed it */
	ATTEST_CUT,	 /* it fits as far as it goes, and nobody knows how it ended */
	ATTEST_YES,
};

struct attest_checked {
	struct attest_facts facts;
	struct attest_log log;
	struct digest key;  /* of the statement; zero: there is none */
	unsigned cosigned;  /* witnesses of the policy */
	bool custody_known; /* by who checks; else it is what the log says of itself */
	struct judgement judgement;
};

/* SECURITY: *@ret is set for the last two answers only. */
must_check enum attest_answer attest_check(struct arena *a, const struct attest_evidence *ev,
					   const struct attest_trust *trust,
					   struct attest_checked *ret, struct writ_err *err);

#endif
