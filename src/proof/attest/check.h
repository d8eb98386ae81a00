/*
 * check.h - verify the evidence about a session
 *
 * Reads:  the files of an attestation, and the keys that the caller trusts
 * Writes: verified facts, and the findings of judge.h
 * Next:   cli/ (writ attest verify)
 *
 * docs/protocol/attestation.md lists the steps of verification in the order of this code.
 */
#ifndef WRIT_ATTEST_CHECK_H
#define WRIT_ATTEST_CHECK_H

#include "attest/bundle.h"
#include "attest/judge.h"
#include "tlog/policy.h"

struct attest_evidence {
	struct attest_file entries, start, end;
	/* manifest and bundle: both present, or both absent with a NULL name */
	struct attest_file manifest, bundle;
	/* Rotations of the log's key that came with the evidence. */
	struct attest_rotated rotated;
	bool lines; /* entries come from the session's own file and include private members */
};

struct attest_trust {
	const struct tlog_policy *policy;
	const struct attest_rotated *ended; /* rotations known from the local log, or NULL */
	const struct attest_key *keys;
	size_t keys_n;
	const struct note_key
		*signer; /* log key that the installed signer reports as its own, or NULL */
	/*
	 * Verifies the signature @sig of @key over @bytes. Returns 0, or WRIT_E_DENIED if invalid.
	 */
	int (*verify)(void *ctx, const struct attest_key *key, struct sv bytes, struct sv sig,
		      struct writ_err *err);
	void *ctx;
};

enum attest_answer {
	/* The evidence contradicts itself or a signature; @err names the file and the reason. */
	ATTEST_NO = 0,
	ATTEST_UNPINNED, /* the evidence may be consistent, but no trusted key signed it */
	/* the evidence is consistent, but the session was interrupted and its end is unknown */
	ATTEST_CUT,
	ATTEST_YES,
};

struct attest_checked {
	struct attest_facts facts;
	struct attest_log log;
	struct digest key; /* key that signed the statement; zero if no statement was given */
	unsigned cosigned; /* number of witnesses of the policy that cosigned */
	/* The verifier knows who holds the log key; if false, only the log claims the custody. */
	bool custody_known;
	struct judgement judgement;
};

/*
 * Verifies the evidence @ev.
 * SECURITY: *@ret is set for ATTEST_CUT and ATTEST_YES only.
 */
must_check enum attest_answer attest_check(struct arena *a, const struct attest_evidence *ev,
					   const struct attest_trust *trust,
					   struct attest_checked *ret, struct writ_err *err);

#endif
