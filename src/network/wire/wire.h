/*
 * wire.h - decode and encode the protocols that cross the session's boundary
 *
 * Theory of operation
 *
 * The network modules decide about connections and requests by reading them: which host a
 * client asks for, which method and path it requests, where a body ends. This module holds
 * those codecs, one per header:
 *
 *   name.h      host names and authorities, in one canonical spelling
 *   address.h   classification of IP addresses (public, private, metadata, ...)
 *   dns.h       DNS queries of the session and the replies to them
 *   hello.h     the TLS ClientHello, for its server name
 *   socks.h     SOCKS 4, 4a and 5; detection of the protocol by its first byte
 *   http1.h     HTTP/1 heads; http1_body.h has bodies and chunks
 *   target.h    the path and query of a request, in canonical form
 *   upstream.h  CONNECT requests to the operator's own proxy
 *   scan.h      search for secret values in a byte stream
 *
 * Every codec is a pure function of its input: it opens no socket, reads no clock and
 * allocates only from buffers and arenas of the caller. Bytes arrive in arbitrary pieces. An
 * incremental decoder keeps its state in a struct of the caller and returns enum wire_state
 * (or its own enum, where it distinguishes more outcomes).
 *
 * Invariants
 *   - Decoders are strict. Input that two implementations could read differently is refused,
 *     because that difference is how a request is smuggled past a rule: writ would judge one
 *     reading and the server would act on the other.
 *   - No received head is forwarded. The printers write a new one from the decoded values, so
 *     the server sees only bytes that writ itself can produce and has judged.
 *   - The result does not depend on how the input was cut into pieces. Tests and fuzzers
 *     compare all cuts.
 *   - After WIRE_BAD the position in the stream is unknown. The caller must close.
 *
 * Common mistakes
 *   - Views (struct sv) point into the caller's input buffer. Moving or refilling the buffer
 *     invalidates every decoded value.
 *   - A WIRE_DONE message is followed by bytes of the next layer. Use *@ret_used; do not
 *     assume that the buffer is exhausted.
 *
 * Reads:  bytes of the agent and of servers, supplied by the caller
 * Writes: memory of the caller only
 * Next:   egress/ and l7/, which own the sockets
 */
#ifndef WRIT_WIRE_WIRE_H
#define WRIT_WIRE_WIRE_H

#include "base/err.h"
#include "base/sv.h"

/*
 * The result of an incremental decoder. WIRE_BAD sets the error: WRIT_E_SYNTAX for malformed
 * input, WRIT_E_LIMIT for well-formed input that is too long. Close the connection after
 * WIRE_BAD; no later byte can be trusted.
 */
enum wire_state {
	WIRE_BAD = 0,
	WIRE_MORE, /* the input is valid so far; more bytes are needed */
	WIRE_DONE,
};

#endif
