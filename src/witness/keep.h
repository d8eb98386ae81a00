/*
 * keep.h - what a witness remembers of each log, and its answer to a request
 *
 * Reads:  its directory
 * Writes: its directory, before it signs
 * Next:   serve.h
 *
 * A file per log, named by the hash of its origin: the last checkpoint that was
 * cosigned, with all signatures. One process has the directory.
 */
#ifndef WRIT_WITNESS_KEEP_H
#define WRIT_WITNESS_KEEP_H

#include "tlog/cosign.h"
#include "tlog/witness.h"

struct keep {
	const char *dir;
	int lock;	     /* -1: not open */
	struct note_key key; /* of type cosignature */
	struct sign_secret sec;
	const struct note_key *logs; /* that it witnesses */
	size_t logs_n;
};

/* Fails if somebody else has the directory. */
must_check int keep_open(struct keep *k, struct writ_err *err);
void keep_close(struct keep *k);

/* Appends the body of the answer; its status. @time in seconds since 1970. */
unsigned keep_answer(struct keep *k, struct sv request, uint64_t time, struct buf *body);

#endif
