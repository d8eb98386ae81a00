/* client_priv.h - a connection of the agent, over HTTP/1 or HTTP/2 */
#ifndef WRIT_L7_CLIENT_PRIV_H
#define WRIT_L7_CLIENT_PRIV_H

#include <nghttp2/nghttp2.h>

#include "egress/reader.h"
#include "l7/call_priv.h"
#include "l7/link_priv.h"

struct client {
	struct link link; /* first member: loop.c converts the link to the client */
	uint32_t flow;
	struct sv host;
	char host_room[256];
	uint16_t port;
	bool proxy, tls, hello_h2, hello_h1;
	/* the reader closed the connection for a cause that is not a denial */
	bool cut;
	/* with TLS: the origin whose certificate the client gets; else NULL */
	struct origin *origin;
	struct client *next_unverified;
	bool is_unverified; /* the client waits until the server has proved its identity */
	struct cap_why why; /* reason for closing the connection, for the record */
	struct call *calls;
	uint64_t start_us, up, down;

	/* members for HTTP/1: */
	struct call *call;
	struct http1_find find;
	struct http1_body body;
	size_t discarded;
	bool last;    /* the reader reads no further request from this client */
	bool chunked; /* the response is sent with chunked framing */

	/* members for HTTP/2: */
	nghttp2_session *h2;
	uint64_t frames, resets, streams, moved;
	size_t block; /* bytes that arrived while a header block was incomplete */
	bool in_block;
};

struct client *client_new(struct l7 *l, const struct reader_message *m, int fd);
void client_step(struct client *c);
void client_free(struct client *c);
/* Continues a client that waited for a server. @cause CAUSE_NONE: the server is verified. */
void client_verified(struct client *c, enum cap_cause cause, const char *detail);
/* Sets the recorded reason for closing, unless one is set; does not close the connection. */
void client_close(struct client *c, enum cap_cause cause, const char *detail);
/* Continues sending the response of call @k, which has more bytes or has ended. */
void client_more(struct call *k);

void client_h1_step(struct client *c);
void client_h1_interim(struct call *k, const struct http1_response *r);
void client_h1_answer(struct call *k, const struct http1_response *r, const struct http1_send *how);
void client_h2_start(struct client *c);
void client_h2_step(struct client *c);
void client_h2_interim(struct call *k, const struct http1_response *r);
void client_h2_answer(struct call *k, const struct http1_response *r, const struct http1_send *how);
void client_h2_wake(struct call *k);
void client_h2_consume(struct call *k, size_t n);

#endif
