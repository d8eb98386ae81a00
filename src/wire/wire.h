/*
 * wire.h - what the codecs of this room have in common
 *
 * Reads:  bytes of the agent and of servers, given by the caller
 * Writes: nothing but the caller's memory
 * Next:   the room that speaks to the network for a session
 *
 * The room is pure: no sockets, no clock, no heap of its own. Every decoder is
 * strict, because what two readers may take differently is how requests are
 * smuggled past a rule, and we never forward bytes that we could not write
 * ourselves. One header per codec: name.h address.h dns.h hello.h http1.h
 * target.h socks.h scan.h upstream.h.
 */
#ifndef WRIT_WIRE_WIRE_H
#define WRIT_WIRE_WIRE_H

#include "base/err.h"
#include "base/sv.h"

/*
 * What an incremental decoder says. With WIRE_BAD the error is filled:
 * WRIT_E_SYNTAX for a wrong form, WRIT_E_LIMIT for too much of a right one.
 * Nothing after WIRE_BAD is to be trusted: close the connection.
 */
enum wire_state {
	WIRE_BAD = 0,
	WIRE_MORE, /* right so far, needs more bytes */
	WIRE_DONE,
};

#endif
