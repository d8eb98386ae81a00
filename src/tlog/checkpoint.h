/*
 * checkpoint.h - which log, how many entries, which root: C2SP tlog-checkpoint
 *
 * Reads:  texts of notes
 * Writes: nothing
 * Next:   cosign.h, proof.h, witness.h
 *
 * Exactly three lines. The format allows more behind them, which nobody audits;
 * we write none and refuse them.
 */
#ifndef WRIT_TLOG_CHECKPOINT_H
#define WRIT_TLOG_CHECKPOINT_H

#include "tlog/note.h"
#include "tlog/tree.h"

struct checkpoint {
	struct sv origin; /* the name of the log and of its key */
	uint64_t size;
	struct digest root;
};

/*
 * SECURITY: the origin is the first thing a log's key signs. It must not look like
 * the beginning of anything else a key may sign: it is a name of a key (note.h) with
 * a slash, and does not begin with eyJ, DSSEv1 or cosignature.
 */
must_check int checkpoint_origin_check(struct sv origin, struct writ_err *err);

must_check int checkpoint_parse(struct sv text, struct checkpoint *ret_c, struct writ_err *err);
must_check int checkpoint_print(const struct checkpoint *c, struct buf *b, struct writ_err *err);

/* Appends the whole signed note; the name of @key must be the origin. */
must_check int checkpoint_sign(const struct checkpoint *c, const struct note_key *key,
			       const struct sign_secret *sec, struct buf *b,
			       struct writ_err *err);

/* A signed note of the log whose key this is: its signature fits and the origin is its name. */
must_check int checkpoint_open(struct sv bytes, const struct note_key *log, struct note *ret_note,
			       struct checkpoint *ret_c, struct writ_err *err);

#endif
