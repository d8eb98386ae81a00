/* link_priv.h - a connection of the reader, as plain bytes, with or without TLS */
#ifndef WRIT_L7_LINK_PRIV_H
#define WRIT_L7_LINK_PRIV_H

#include <openssl/ssl.h>

#include "l7/fifo.h"

struct l7;

enum link_what { LINK_CLIENT = 0, LINK_SERVER };

struct link {
	struct l7 *l7;
	struct link *next, **at; /* neighbours in l7.links */
	struct link *next_woken, *next_dead;
	enum link_what what;
	int fd; /* -1: not connected yet; or a test, which fills @in and empties @out itself */
	SSL *ssl;
	struct fifo first; /* bytes that egress read before it handed the connection over */
	struct fifo in, out;
	uint64_t deadline_ms; /* when the link times out; 0: never */
	uint32_t events;      /* events that are registered with epoll */
	bool woken, dead;
	bool readable; /* a read may return bytes */
	bool drained;  /* the last read emptied the socket: skip recv() until the next event */
	bool shaking;  /* the TLS handshake is not complete */
	bool eof, blocked;
	bool hung_up;	/* the peer hung up: read the remaining bytes, then end */
	bool truncated; /* the peer's stream ended without close_notify, or with an error */
	bool closing;	/* the link shuts down once @out is empty */
	bool shut;	/* the sending side is shut down */
	bool peer_gone; /* the client has left: the reader drops all output to it */
};

void l7_link_open(struct l7 *l, struct link *k, enum link_what what, int fd);
void l7_link_close(struct link *k); /* frees the resources of @k, but not @k itself */
void l7_link_wake(struct link *k);
/* Marks @k for closing; l7_free_dead() closes and frees it later. */
void l7_link_kill(struct link *k);
void l7_link_finish(struct link *k);		       /* shuts @k down when all of @out is sent */
must_check bool l7_link_tls(struct link *k, SSL *ssl); /* starts TLS; @k owns @ssl afterwards */
must_check BIO_METHOD *l7_link_bio(void);
/*
 * Continues the TLS handshake. Returns 1 when the handshake is done, 0 if it needs more bytes, -1
 * if it failed.
 */
must_check int l7_link_handshake(struct link *k);
void l7_link_read(struct link *k);
void l7_link_write(struct link *k);
void l7_link_watch(struct link *k);
/* Appends @bytes to the output of the link; kills the link if its output has no room. */
void l7_link_put(struct link *k, struct sv bytes);
/* Append a part of an HTTP/1 body, and the end of a chunked body with its trailers. */
void l7_link_put_piece(struct link *k, struct sv data, bool chunked);
void l7_link_put_last_chunk(struct link *k, struct sv trailers);

#endif
