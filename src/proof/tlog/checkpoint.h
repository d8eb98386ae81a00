/*
 * checkpoint.h - which log, how many entries, which root: C2SP tlog-checkpoint
 *
 * Reads:  texts of notes
 * Writes: nothing
 * Next:   proof.h, witness.h
 *
 * A checkpoint has exactly three lines. The format allows extension lines after them, but no
 * verifier checks their meaning, so this module neither writes nor accepts them.
 */
#ifndef WRIT_TLOG_CHECKPOINT_H
#define WRIT_TLOG_CHECKPOINT_H

#include "tlog/note.h"
#include "tlog/tree.h"

struct checkpoint {
	struct sv origin; /* name of the log, and of the key that signs the log */
	uint64_t size;
	struct digest root;
};

/*
 * Checks the name of a log.
 * SECURITY: the origin is the first text that a log key signs, so the origin must not look like the
 * beginning of any other kind of signed message. The origin must be a valid key name (note.h),
 * contain a slash, and not begin with eyJ (a JWS), DSSEv1 or cosignature.
 */
must_check int checkpoint_origin_check(struct sv origin, struct writ_err *err);

must_check int checkpoint_parse(struct sv text, struct checkpoint *ret_c, struct writ_err *err);
must_check int checkpoint_print(const struct checkpoint *c, struct buf *b, struct writ_err *err);

/* Parses a signed checkpoint, and verifies no signature. @ret_note may be NULL. */
must_check int checkpoint_read(struct sv bytes, struct note *ret_note, struct checkpoint *ret_c,
			       struct writ_err *err);
/* Appends the checkpoint @c as a signed note. The name of @key must be the origin. */
must_check int checkpoint_sign(const struct checkpoint *c, const struct note_key *key,
			       const struct sign_secret *sec, struct buf *b,
			       struct writ_err *err);

/*
 * Parses a signed checkpoint and verifies that @log signed the checkpoint and that its origin is
 * the name of @log. @ret_note may be NULL.
 */
must_check int checkpoint_open(struct sv bytes, const struct note_key *log, struct note *ret_note,
			       struct checkpoint *ret_c, struct writ_err *err);

/* --- cosignatures: a witness's dated signature under a checkpoint, C2SP tlog-cosignature v1 --- */

enum { COSIGN_BYTES = 8 + sizeof(struct signature) };
#define COSIGN_TIME_MAX ((uint64_t)INT64_MAX)

/*
 * Appends the cosignature line of @key for @text, the text of a checkpoint. @key has type
 * cosignature and belongs to @sec; @text must not be stored in @b. @time is in seconds since 1970.
 */
must_check int cosign_sign(const struct note_key *key, const struct sign_secret *sec,
			   uint64_t time, struct sv text, struct buf *b, struct writ_err *err);

/*
 * Verifies a cosignature. @bytes are the time and the signature, which follow the key id in a line.
 */
must_check int cosign_verify(const struct note_key *key, struct sv text,
			     const uint8_t bytes[static COSIGN_BYTES], uint64_t *ret_time,
			     struct writ_err *err);

#endif
