/*
 * cosign.h - a witness says when it saw a checkpoint: C2SP tlog-cosignature v1, Ed25519
 *
 * Reads:  the text of a checkpoint
 * Writes: nothing; the time is the caller's
 * Next:   note.h verifies such lines beside the log's own, proof.h counts them
 */
#ifndef WRIT_TLOG_COSIGN_H
#define WRIT_TLOG_COSIGN_H

#include "tlog/note.h"

enum { COSIGN_BYTES = 8 + sizeof(struct signature) };
#define COSIGN_TIME_MAX ((uint64_t)INT64_MAX)

/*
 * Appends the line of @key, which is of type cosignature and belongs to @sec, under
 * @text, the text of a checkpoint, which does not lie in @b. @time is in seconds since 1970.
 */
must_check int cosign_sign(const struct note_key *key, const struct sign_secret *sec,
			   uint64_t time, struct sv text, struct buf *b, struct writ_err *err);

/* @bytes are the time and the signature, as they follow the id in a line. */
must_check int cosign_verify(const struct note_key *key, struct sv text,
			     const uint8_t bytes[static COSIGN_BYTES], uint64_t *ret_time,
			     struct writ_err *err);

#endif
