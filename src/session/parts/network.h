/*
 * network.h - the way to the network: egress, the resolver and the reader of requests
 *
 * Reads:  messages of egress and the reader
 * Writes: entries of connections and requests
 * Next:   egress/ and l7/ decide; inspection.h starts the reader
 *
 * Egress is the process that accepts connections from the jail and connects to the network. Egress
 * is started with the session if a rule allows the network, and otherwise when a process in the
 * jail first looks up a name or connects to the proxy, so that the refusal is recorded. The
 * resolver is started when egress asks for it. SECURITY: if egress ends, its listeners are gone
 * too, so no connection can leave the jail; the session ends.
 */
#ifndef WRIT_PARTS_NETWORK_H
#define WRIT_PARTS_NETWORK_H

#include "egress/egress.h"
#include "loop/loop.h"

struct grant;

extern const struct session_initial network_initial;
must_check int network_init(struct session *s, struct writ_err *err);
must_check int network_start(struct session *s, struct writ_err *err);
void network_poll(struct session *s, struct session_poll *set);
void network_on_event(struct session *s, const struct pollfd *p, size_t n);
int network_deadline(struct session *s, int least);
/* Gives egress and the reader a bounded time to deliver the bytes that the session has sent. */
void network_finish_begin(struct session *s);
/* Waits for the delivery that network_finish_begin() started, and records the result. */
void network_finish(struct session *s);
void network_clear(struct session *s);

/* Passes listeners of writ-init, numbered from @first, on to egress and the git helper. */
void network_listeners(struct session *s, uint32_t first, const int *fds, size_t n);
/* Passes the keeper's answer to a bind request on to egress; @fd is -1 if the bind failed. */
void network_bound(struct session *s, uint32_t id, int fd);
/* Allocates the counters for the limits on bytes and requests, unless no such limit is set. */
must_check int network_totals(struct session *s, struct writ_err *err);
struct quota_total *network_totals_get(const struct session *s);
/*
 * network_route() returns the mediator's end of its socket to egress, or 0 if there is no such
 * socket. network_route_close() closes the supervisor's copy.
 */
int network_route(const struct session *s);
void network_route_close(struct session *s);
/* Sends a person's answer to egress, or to the reader of requests. */
void network_answer(struct session *s, bool reader, uint32_t id, uint32_t answer);
must_check bool network_grant(struct session *s, const struct grant *g);
void network_revoke(struct session *s, const struct grant *g);
bool network_owns(const struct session *s, pid_t pid);

/* denied_names.c: records the counts of names that were refused again and again. */
void denied_names_finish(struct session *s);

#endif
