/*
 * prove.h - what the realm's log has about a session, and what is said about it
 *
 * Reads:  the log of a realm, entries of a session
 * Writes: proofs, a manifest, a statement
 * Next:   bundle.h, cli/ (writes them into files), check.h
 */
#ifndef WRIT_ATTEST_PROVE_H
#define WRIT_ATTEST_PROVE_H

#include "attest/attest.h"
#include "audit/realm.h"

/* Which entries of the log are about the session @id. */
struct attest_found {
	uint64_t start, end;
	bool started, ended; /* the one, the other is there */
};

must_check int attest_find(struct realm *log, struct sv id, struct attest_found *ret,
			   struct writ_err *err);

struct attest_made {
	struct buf start, end;	      /* tlog-proofs with their entries */
	struct buf manifest, payload; /* session.json, the statement */
};

void attest_made_init(struct attest_made *m);
void attest_made_clear(struct attest_made *m);

/*
 * Proofs of both entries in the checkpoint that witnesses cosigned, if that has them, else
 * the one that was signed last; WRIT_E_DENIED if it does not reach them. Whoever shows them to
 * others has it of synced entries: realm_sign().
 */
must_check int attest_prove(struct realm *log, const struct attest_found *found,
			    struct attest_made *m, struct writ_err *err);

/*
 * Proofs of every change of the log's key, in the checkpoint that both have signed; what
 * they are made of is in @a. A change that was never finished has none.
 */
must_check int attest_prove_rotated(struct realm *log, struct arena *a, struct attest_rotated *ret,
				    struct writ_err *err);

/* The other two from these and the public entries. Refuses a session that was cut off. */
must_check int attest_make(struct arena *a, struct sv entries, struct attest_made *m,
			   struct writ_err *err);

/*
 * What the proofs say, without asking whether they hold: the entries in them, and which
 * log they are of.
 */
must_check int attest_read_proofs(struct arena *a, struct sv start, struct sv end,
				  struct attest_facts *f, struct attest_log *log,
				  struct writ_err *err);
/* The entry that a proof carries. */
must_check int attest_proof_entry(struct arena *a, struct sv proof, struct sv *ret,
				  struct writ_err *err);

#endif
