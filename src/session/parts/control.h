/*
 * control.h - the control socket: requests of the user's other processes
 *
 * Reads:  requests, as docs/control.md describes them
 * Writes: answers
 * Next:   client.h sends the requests; grants.h and commands.h act on them
 *
 * SECURITY: only the user who runs the session, or root, may connect, and never a process in the
 * jail. The socket is opened once a session has run for CONTROL_ALONE_MS, or has a denial to grant:
 * a session that ends sooner needs no socket. With session_options.named, it is opened at the
 * start.
 */
#ifndef WRIT_PARTS_CONTROL_H
#define WRIT_PARTS_CONTROL_H

#include "loop/loop.h"
#include "rpc/rpc.h"

enum { CLIENTS_MAX = 32, CONTROL_ALONE_MS = 20 };

/* Requests of clients that are answered later; see also SESSION_CALL_FIRST. */
enum call_kind {
	CALL_NONE = 0,
	CALL_GRANT,    /* grant.allow: waits for the keeper to attach a mount */
	CALL_REVOKE,   /* grant.revoke: waits for the keeper to detach a mount */
	CALL_TERMINAL, /* proc.start: waits for the terminal of a command */
	CALL_JOIN,     /* proc.attach: waits for the terminal of a command */
	CALL_WAIT,     /* proc.wait: waits for the end of a command */
};

/* The client and the request that a method is called for. */
struct caller {
	struct rpc_conn *conn;
	struct rpc_call *call;
	size_t client; /* index of the client, below CLIENTS_MAX */
};

extern const struct session_initial control_initial;
must_check int control_init(struct session *s, struct writ_err *err);
must_check int control_start(struct session *s, struct writ_err *err);
void control_poll(struct session *s, struct session_poll *set);
void control_on_event(struct session *s, const struct pollfd *p, size_t n);
int control_deadline(struct session *s, int least);
void control_clear(struct session *s);

/* Opens the control socket now, unless it is open. */
void control_reach(struct session *s);
/* Returns the connection of a client, or NULL. */
struct rpc_conn *control_conn(const struct session *s, size_t client);
#define control_refuse(who, code, ...) rpc_refuse((who)->conn, (who)->call, code, __VA_ARGS__)
/* Finds the first pending request of kind @kind with number @number, of any client. */
must_check bool control_find_call(struct session *s, uint32_t kind, uint32_t number,
				  struct caller *ret);
/* Answers the request that started the session (SESSION_CALL_FIRST): the jail is sealed. */
void control_started(struct session *s);
/* control_methods.c: handles a request of a client. */
void control_dispatch(struct session *s, size_t client, struct rpc_message *m);
/* Accepts a connection. -1: none is pending, or no descriptor is free. */
int control_accept_from(int listener);

#endif
