/* call_priv.h - one request, from its head to the end of the response */
#ifndef WRIT_L7_CALL_PRIV_H
#define WRIT_L7_CALL_PRIV_H

#include "l7/limits_priv.h"
#include "l7/secret_priv.h"
#include "reach/reach.h"
#include "wire/http1_body.h"
#include "wire/target.h"

struct client;
struct origin;
struct server;

enum call_at {
	CALL_NEW = 0, /* the call is not decided yet, was refused, or no longer needs a server */
	CALL_ASKING,  /* a person decides about the call */
	CALL_WAITING, /* the call waits for a connection to a server */
	CALL_SENT,
};

/* The header block of an HTTP/2 request while it arrives (h2.c). */
struct call_raw_head {
	struct buf lines, method, path, authority, cookie;
	bool has_length;
	bool other_host; /* the Host field differs from :authority */
	bool too_long, malformed;
	bool reset; /* the reader reset the stream because of an invalid field */
};

/* The header block of an HTTP/2 response while it arrives (server_h2.c). */
struct call_raw_answer {
	struct buf lines;
	char status[4];
	bool has_length;
};

/* Secret values, and fields with them, that the reader adds to the request (secret.c). */
struct call_inject {
	struct http1_field set[L7_SET_MAX];
	size_t set_n;
	/* the target to send to the server; its query contains a secret of the form query:NAME */
	struct sv target;
	/* memory for the values of @set and for @target; wiped when the call ends */
	struct buf values;
};

/* The body of the request on its way to the server (body.c). */
struct call_req {
	struct fifo bytes;
	struct buf trailers;
	struct scan *scan;     /* state of the search of the body for placeholders */
	struct frames *frames; /* state of the search of WebSocket frames for placeholders */
	/* bytes received but not yet credited to the client's HTTP/2 window */
	size_t debt;
	bool ended;	       /* the client has sent the whole body */
	bool sent;	       /* the whole body is queued for the server */
	bool discard;	       /* the reader reads and drops the rest of the body */
};

/* The body of the response on its way to the client (body.c). */
struct call_resp {
	struct fifo raw;   /* bytes from the server, not searched for secrets yet */
	struct fifo bytes; /* bytes ready for the client */
	struct buf trailers;
	struct guard *guard; /* state of the search of @raw for secrets; NULL: no search needed */
	size_t debt;	     /* bytes received but not yet credited to the server's HTTP/2 window */
	bool raw_ended;	     /* the server has sent the whole body */
	bool ended;	     /* the whole body is in @bytes */
	unsigned interims;   /* number of 1xx responses received */
};

/* Times, byte counts and secrets of a call, for the record. */
struct call_log {
	uint64_t asked_us, dialled_us, bytes_up, bytes_down;
	char credential[64]; /* names of the inserted secrets */
};

struct call {
	struct l7 *l7;
	struct client *client;
	int32_t stream;		   /* id of the client's HTTP/2 stream */
	struct call *next, **link; /* neighbours in client.calls */
	struct origin *origin;
	struct call *next_waiting; /* next call in origin.waiting */
	struct server *server;
	int32_t server_stream; /* id of the server's HTTP/2 stream; 0: none */
	enum call_at at;
	uint32_t ask; /* id of the question to a person */
	bool tls;

	struct call_raw_head raw_head;
	struct call_raw_answer raw_answer;
	struct buf head; /* the request head as received; @q points into this buffer */
	struct http1_field fields[L7_FIELDS];
	struct http1_request q;
	struct buf text; /* memory that @target points into */
	struct target target;
	struct sv host;
	uint16_t port;
	struct reach_verdict verdict;
	struct call_inject inject;
	struct call_req req;
	struct call_resp resp;

	bool charged;	 /* the call's bytes are charged to @verdict.bill */
	bool answered;	 /* the reader has sent the client the head of the final response */
	bool broken;	 /* the response was cut off; the reader sends the client no more bytes */
	bool retried;	 /* the request was sent before, on a connection that failed */
	bool has_secret; /* the reader inserted a secret into the request */
	/* the origin receives secrets, so the reader searches the response for them */
	bool guarded;
	bool tunnel;	 /* the call is a WebSocket: the server has answered 101 */
	bool finished;	 /* the reader has sent the client the whole response */

	unsigned status;
	uint64_t start_us;
	struct call_log log;
	struct cap_why why;
	char address[64];
};

must_check struct call *call_new(struct client *c, int32_t stream);
/* Decides about a parsed request, and forwards or refuses the request. */
void call_begin(struct call *c);
/* Answers a request with a response of the reader itself, which explains @cause. */
void call_refuse(struct call *c, unsigned status, enum cap_cause cause);
void call_refuse_detail(struct call *c, unsigned status, enum cap_cause cause, const char *detail);
/*
 * Stops a call that cannot be completed: answers with @status, or cuts off a
 * response that has begun.
 */
void call_stop(struct call *c, unsigned status, enum cap_cause cause, const char *detail);
void call_fail(struct call *c, enum cap_cause cause); /* calls call_stop() with status 502 */
/* Applies a person's answer to question @id to all calls that wait for it. */
void call_asked(struct l7 *l, uint32_t id, bool allowed);
/* Sends the head of a response to the client. */
void call_give(struct call *c, const struct http1_response *r, const struct http1_send *how);
/* Charges an allowed request, inserts secrets, and queues the request for a server. */
void call_send(struct call *c);
/* Records the end of a call and frees the call. */
void call_end(struct call *c);

/* Functions that the client side (client_h1.c, client_h2.c) calls. */
size_t call_up_room(const struct call *c);
void call_up_data(struct call *c, struct sv data);
void call_up_end(struct call *c);
void call_down_drop(struct call *c, size_t n);

/* Functions that the server side (server_h1.c, server_h2.c) calls. */
size_t call_down_room(const struct call *c);
void call_interim(struct call *c, const struct http1_response *r);
void call_answer(struct call *c, struct http1_response *r, struct sv head);
void call_down_data(struct call *c, struct sv data);
void call_down_end(struct call *c);
void call_up_drop(struct call *c, size_t n);
/*
 * Charges @n bytes to a call that has been charged for its request. Returns false if a limit is
 * reached; the call is then stopped.
 */
must_check bool call_charge(struct call *c, bool up, size_t n);

/* --- event.c: messages to the supervisor --- */

void l7_event_request(const struct call *c);
void l7_event_close(const struct client *c);
must_check bool l7_event_ask(const struct call *c, uint32_t id);
void l7_event_ready(struct l7 *l, struct sv pem);
void l7_event_finished(struct l7 *l);
/* Returns @cause with @detail; bytes of @detail that are not printable ASCII become '?'. */
struct cap_why l7_why(enum cap_cause cause, const char *detail);
/* Appends the body of a response that explains a refusal. */
void l7_event_page(const struct call *c, unsigned status, const char *why, struct buf *b);
void l7_copy_safe(char *to, size_t room, struct sv from);

#endif
