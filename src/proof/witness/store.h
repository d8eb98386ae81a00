/*
 * store.h - the checkpoint that a witness cosigned last for each log, and its answers
 *
 * Reads:  the directory of the store
 * Writes: the directory of the store, before signing
 * Next:   serve.h
 *
 * The directory has one file per log, named by the hash of the origin. The file contains the last
 * cosigned checkpoint with all signatures. A lock keeps other processes out of the directory:
 * two writers could cosign two histories.
 */
#ifndef WRIT_WITNESS_STORE_H
#define WRIT_WITNESS_STORE_H

#include "tlog/witness.h"

struct witness_store {
	const char *dir;
	int lock;	     /* descriptor of the lock file; -1 if not open */
	struct note_key key; /* key of the witness, of type cosignature */
	struct sign_secret sec;
	const struct note_key *logs; /* logs that this witness accepts */
	size_t logs_n;
};

/* Opens and locks the directory of the store. Fails if another process holds the lock. */
must_check int witness_store_open(struct witness_store *k, struct writ_err *err);
void witness_store_close(struct witness_store *k);

/*
 * Handles a witness request: appends the body of the response to @body and returns the HTTP status
 * of the response. @time is in seconds since 1970.
 */
unsigned witness_store_answer(struct witness_store *k, struct sv request, uint64_t time,
			      struct buf *body);

#endif
