/* origin_priv.h - origins, and the pool of connections to the servers of each */
#ifndef WRIT_L7_ORIGIN_PRIV_H
#define WRIT_L7_ORIGIN_PRIV_H

#include <nghttp2/nghttp2.h>

#include "egress/reader.h"
#include "l7/call_priv.h"
#include "l7/link_priv.h"
#include "l7/tls_priv.h"

/* A connection of the reader to an origin. */
struct server {
	struct link link; /* first member: loop.c converts the link to the server */
	struct origin *origin;
	struct server *next, **at; /* neighbours in origin.servers */
	uint32_t id;		   /* id of the dial request to egress */
	enum tls_offer offer;
	bool dialling, ready, used;
	char address[64];

	/* members for HTTP/1: */
	struct call *call;
	struct http1_find find;
	struct http1_body body;
	bool in_body, sent_end, keep;

	/* members for HTTP/2: */
	nghttp2_session *h2;
	size_t streams;
};

/* A host, port and scheme, with the connections to it and the calls that wait for a connection. */
struct origin {
	struct l7 *l7;
	struct origin *next;
	struct sv host;
	uint16_t port;
	bool tls;
	/* the origin speaks only HTTP/2, or no HTTP/2, as earlier connections showed */
	bool only_h2, no_h2;
	/* certificate that the agent sees; NULL until a server has proved its identity */
	X509 *leaf;
	struct server *servers;
	size_t servers_n;
	struct call *waiting, **waiting_end;
	struct client *unverified; /* clients that wait until a server has proved its identity */
};

must_check struct origin *origin_get(struct l7 *l, struct sv host, uint16_t port, bool tls);
void origin_clear(struct l7 *l);
void origin_wait(struct origin *o, struct call *c);
void origin_forget(struct origin *o, struct call *c);
/* Assigns connections to the calls that wait for the origin, and dials new connections. */
void origin_serve(struct origin *o);
void origin_verify(struct origin *o, struct client *c);
void origin_dialled(struct l7 *l, const struct reader_message *m, int fd);

void server_step(struct server *s);
void server_free(struct server *s);
void server_fail(struct server *s, enum cap_cause cause, const char *detail);
void server_send(struct server *s, struct call *c);
/* Continues a call whose request has more bytes or whose response has room. */
void server_wake(struct call *c);
void server_cancel(struct call *c);
void server_idle(struct server *s);

void server_h1_send(struct server *s, struct call *c);
void server_h1_step(struct server *s);
void server_h2_start(struct server *s);
must_check bool server_h2_room(const struct server *s);
void server_h2_send(struct server *s, struct call *c);
void server_h2_step(struct server *s);
void server_h2_wake(struct call *c);
void server_h2_cancel(struct call *c);
void server_h2_consume(struct call *c, size_t n);

#endif
