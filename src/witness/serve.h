/*
 * serve.h - a witness that answers over HTTP
 *
 * Reads:  connections
 * Writes: answers; its memory is keep.h
 * Next:   cli/ (witness serve)
 *
 * One process, no threads: so comparing and keeping are one step. Each connection is one
 * request and has so long for all of it, however fast its bytes come. One address has so many
 * places and no more, and when all are taken the address that has most of them gives one up:
 * the oldest. So nobody who holds connections open keeps another address from being heard.
 */
#ifndef WRIT_WITNESS_SERVE_H
#define WRIT_WITNESS_SERVE_H

#include "witness/keep.h"

enum { SERVE_CONNECTIONS = 128, SERVE_PER_ADDRESS = 32, SERVE_MS = 10000 };

/* "ADDRESS:PORT", port 0: any. *@ret_port is which. */
must_check int serve_listen(struct sv at, int *ret_fd, uint16_t *ret_port, struct writ_err *err);

/* Does not return but with a failure. @log, if not NULL, is told of each answer. */
must_check int serve_loop(struct keep *k, int listener,
			  void (*log)(void *ctx, unsigned status, size_t bytes), void *ctx,
			  struct writ_err *err);

#endif
