/*
 * serve.h - the HTTP server of a witness
 *
 * Reads:  connections
 * Writes: responses; store.h keeps the state
 * Next:   cli/ (witness serve)
 *
 * The server is a single thread, so comparing and storing a checkpoint cannot interleave with
 * another request. A connection carries one request and must finish within SERVE_MS, no matter how
 * fast its bytes arrive. An address (IPv4 address or IPv6 /64) has at most SERVE_PER_ADDRESS
 * connections. When all SERVE_CONNECTIONS are in use, the address with the most connections loses
 * its oldest one. So a peer that holds connections open cannot lock out other addresses.
 */
#ifndef WRIT_WITNESS_SERVE_H
#define WRIT_WITNESS_SERVE_H

#include "witness/store.h"

enum { SERVE_CONNECTIONS = 128, SERVE_PER_ADDRESS = 32, SERVE_MS = 10000 };

/* Listens on "ADDRESS:PORT"; port 0 selects a free port. *@ret_port is the port in use. */
must_check int witness_serve_listen(struct sv at, int *ret_fd, uint16_t *ret_port,
				    struct writ_err *err);

/*
 * Serves requests until a failure and returns that failure. @log, if not NULL, is called for each
 * response.
 */
must_check int witness_serve_loop(struct witness_store *k, int listener,
				  void (*log)(void *ctx, unsigned status, size_t bytes), void *ctx,
				  struct writ_err *err);

#endif
