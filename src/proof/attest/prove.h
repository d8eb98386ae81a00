/*
 * prove.h - make proofs, manifest and statement from the realm's log
 *
 * Reads:  the log of a realm, entries of a session
 * Writes: proofs, a manifest, a statement
 * Next:   bundle.h, cli/ (writes the proofs into files), check.h
 */
#ifndef WRIT_ATTEST_PROVE_H
#define WRIT_ATTEST_PROVE_H

#include "attest/attest.h"
#include "audit/realm.h"

/* Entries of the realm's log about one session. */
struct attest_found {
	uint64_t start, end;
	bool started, ended; /* tells whether the start entry and the end entry were found */
};

must_check int attest_find(struct realm *log, struct sv id, struct attest_found *ret,
			   struct writ_err *err);

struct attest_made {
	/* tlog-proofs of the start and end entries, which carry these entries */
	struct buf start, end;
	struct buf manifest, payload; /* session.json, and the statement to sign */
};

#define scoped_attest_made __attribute__((cleanup(attest_made_clear))) struct attest_made
void attest_made_init(struct attest_made *m);
void attest_made_clear(struct attest_made *m);

/*
 * Proves both entries in the checkpoint that witnesses cosigned, if that checkpoint covers both,
 * otherwise in the newest signed checkpoint. Fails with WRIT_E_DENIED if the newest checkpoint does
 * not cover both entries.
 * SECURITY: before proofs leave this machine the checkpoint must cover synced entries only; see
 * realm_sign().
 */
must_check int attest_prove(struct realm *log, const struct attest_found *found,
			    struct attest_made *m, struct writ_err *err);

/*
 * Proves every rotation of the log's key in the checkpoint that both keys signed. The proofs are
 * allocated in @a. An interrupted rotation is skipped.
 */
must_check int attest_prove_rotated(struct realm *log, struct arena *a, struct attest_rotated *ret,
				    struct writ_err *err);

/*
 * Makes the manifest and the statement from the proofs in @m and the public @entries. Fails if the
 * session was interrupted.
 */
must_check int attest_make(struct arena *a, struct sv entries, struct attest_made *m,
			   struct writ_err *err);

/*
 * Reads the facts in the start and end proofs and the position in the log.
 * SECURITY: this function verifies neither signatures nor inclusion; see attest_check().
 */
must_check int attest_read_proofs(struct arena *a, struct sv start, struct sv end,
				  struct attest_facts *f, struct attest_log *log,
				  struct writ_err *err);
/* Returns the log entry that a proof carries. */
must_check int attest_proof_entry(struct arena *a, struct sv proof, struct sv *ret,
				  struct writ_err *err);

#endif
