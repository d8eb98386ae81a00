/*
 * cosign.h - a witness's dated signature under a checkpoint: C2SP tlog-cosignature v1, Ed25519
 *
 * Reads:  the text of a checkpoint
 * Writes: nothing; the caller supplies the time
 * Next:   note.h verifies cosignatures next to the log's signature, proof.h counts them
 */
#ifndef WRIT_TLOG_COSIGN_H
#define WRIT_TLOG_COSIGN_H

#include "tlog/note.h"

enum { COSIGN_BYTES = 8 + sizeof(struct signature) };
#define COSIGN_TIME_MAX ((uint64_t)INT64_MAX)

/* Appends the cosignature line of @key for @text, the text of a checkpoint. @key has type
 * cosignature and belongs to @sec; @text must not be stored in @b. @time is in seconds since
 * 1970. */
must_check int cosign_sign(const struct note_key *key, const struct sign_secret *sec,
			   uint64_t time, struct sv text, struct buf *b, struct writ_err *err);

/* Verifies a cosignature. @bytes are the time and the signature, which follow the key id in a
 * line. */
must_check int cosign_verify(const struct note_key *key, struct sv text,
			     const uint8_t bytes[static COSIGN_BYTES], uint64_t *ret_time,
			     struct writ_err *err);

#endif
