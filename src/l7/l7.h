/*
 * l7.h - the reader of requests: TLS ends here, each request is decided on, secrets
 * are set, answers are looked through
 *
 * Reads:  bytes of the agent's connections and of servers
 * Writes: requests that were allowed, answers, events to the supervisor
 * Next:   egress/ hands connections over and dials; the supervisor keeps the record
 *
 * One process per session, with no files and no way to make a socket. A request is
 * read by one strict reader whatever it came in (HTTP/1 or HTTP/2, inside TLS or
 * not) and written anew for the server. Nothing waits in unbounded memory: whoever
 * cannot send does not read.
 */
#ifndef WRIT_L7_L7_H
#define WRIT_L7_L7_H

#include "base/err.h"
#include "base/sv.h"

/* Descriptors that the supervisor leaves for it. */
enum l7_fd {
	L7_BOSS = 3,
	L7_EGRESS,
	L7_SETTINGS,
	L7_ROOTS,
	L7_TOTALS,
	L7_COUNTERS,
};

/* Returns when the supervisor is gone, or with an error if it could not start. */
must_check int l7_main(struct writ_err *err);

#endif
