/*
 * confine.h - our own helpers give up what they do not need
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   egress/, resolve/ and l7/ call it before they read a byte from outside
 */
#ifndef WRIT_CONFINE_CONFINE_H
#define WRIT_CONFINE_CONFINE_H

#include <stddef.h>

#include "base/err.h"

enum { CONFINE_CALLS_MAX = 96 };

/* Sockets it may still make; 0: none. */
enum confine_socket {
	CONFINE_TCP = 1u << 0, /* AF_INET and AF_INET6, streams */
	CONFINE_UDP = 1u << 1, /* and datagrams */
};

/*
 * No files, no new privileges, no core, nobody looks into us; of all system
 * calls only @calls, and socket() only as @sockets says. Anything else ends the
 * process: a helper that does something new is not ours any more.
 */
must_check int confine_self(const int *calls, size_t n, unsigned sockets, struct writ_err *err);

#endif
