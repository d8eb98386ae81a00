/*
 * l7.h - the reader: decrypt connections, decide about each request, insert secrets
 *
 * Theory of operation
 *
 * A rule such as `net https://api.example/v1` is about requests, so a process has to read
 * them. The reader is that process, one per session. Egress hands it the connections of the
 * agent whose destination has such rules. The reader terminates TLS with a certificate of
 * the session's own CA, parses each request, decides, and forwards an allowed one to the real
 * server over a connection that egress dialled. For secrets it replaces a placeholder, which
 * is all the agent knows, by the value, and checks that no response contains the value.
 *
 *   client_h1.c client_h2.c  ->  call.c  ->  origin.c  ->  server_h1.c server_h2.c
 *            ^               guard.c (responses)                |
 *            +--------------------------------------------------+
 *
 * A *client* is a connection of the agent, a *server* one of ours to an *origin* (host, port,
 * TLS), and a *call* is one request between them. Client and server sides speak HTTP/1 or
 * HTTP/2 independently. All heads, of both versions, go through the parser of wire/http1.h
 * and are written anew, so there is one interpretation of a request: the one judged is the
 * one sent.
 *
 * States of a call: NEW -> ASKING (a person decides) -> WAITING (for a server) -> SENT. The
 * end of the response ends the call; a refusal or failure can end it in every state.
 *
 * Invariants
 *   - The agent sees a certificate for a host only after the real server has proved its
 *     identity to the reader.
 *   - A secret's value is inserted only inside TLS, only into requests that its rule names. A
 *     placeholder in another field, in another part of the target, or in the body of a request
 *     without a secret stops the request: it would tell another server what the session can do,
 *     or be mistaken for the secret.
 *   - Every buffer is bounded. A side that cannot send does not read (back pressure).
 *   - No function frees a link that may be in use. Links are woken, stepped one after the
 *     other by loop.c, and freed by l7_free_dead() when none of them runs.
 *   - The process has no files and cannot create sockets. An attacker who takes it over has
 *     only the connections it holds.
 *
 * Common mistakes
 *   - Views of a request point into call.head. Do not change that buffer after parsing.
 *   - call_refuse() and call_fail() detach the server; check call.server afterwards.
 *   - HTTP/2 windows must be credited for bytes that are dropped as well, or the connection
 *     stalls (client_h2_consume(), server_h2_consume()).
 *
 * Reads:  bytes of the agent's connections and of servers
 * Writes: allowed requests, responses, events to the supervisor
 * Next:   egress/ hands connections over and dials; the supervisor keeps the record
 */
#ifndef WRIT_L7_L7_H
#define WRIT_L7_L7_H

#include "base/err.h"

/* Descriptors that the supervisor passes to the reader process. */
enum l7_fd {
	L7_SUPERVISOR = 3,
	L7_EGRESS,
	L7_SETTINGS,
	L7_ROOTS,
	L7_TOTALS,
	L7_COUNTERS,
};

/*
 * Runs the reader. Returns when the supervisor or egress has closed its socket, or with an
 * error if the start failed.
 */
must_check int l7_main(struct writ_err *err);

#endif
