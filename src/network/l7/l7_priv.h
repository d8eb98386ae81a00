/* l7_priv.h - the state of the reader process, and the functions of its event loop */
#ifndef WRIT_L7_L7_PRIV_H
#define WRIT_L7_L7_PRIV_H

#include <string.h>

#include "egress/egress.h"
#include "l7/client_priv.h"
#include "l7/h2_priv.h"
#include "l7/origin_priv.h"

/* An open question to a person; calls without a body and with the same key share the question. */
struct ask {
	uint32_t id;
	/* host, port, method, path and query of the calls; empty: a call that shares no question */
	struct sv key;
	char key_room[1024];
};

/* State of finish.c, which delivers requests of clients that have left. */
struct finish {
	/* number of clients that have left and whose requests the reader still delivers */
	size_t leaving;
	bool begun;	   /* the session has ended */
	bool last;	   /* egress sends no more clients */
	bool done;	   /* the reader has told the supervisor that the delivery has ended */
	uint64_t limit_ms; /* monotonic time at which the reader gives up delivering */
	uint64_t moved_ms; /* monotonic time at which a server last acknowledged bytes */
	uint64_t acked;
};

struct l7 {
	int supervisor, egress, epoll;
	struct arena arena;
	struct l7_settings settings;
	struct reach reach;
	struct quota quota;
	struct vault vault;
	struct ca ca;
	SSL_CTX *accept, *connect;
	struct buf roots; /* root certificates in PEM, until the first TLS connection to a server */
	struct link *links, *woken, **woken_end, *dead;
	BIO_METHOD *bio;
	struct origin *origins;
	size_t clients_n, origins_n, asks_n;
	struct ask asks[L7_ASKS_MAX];
	uint32_t next_ask, next_dial;
	uint64_t now_us;
	struct buf scratch; /* buffer for a head or the end of a body that is being printed */
	struct nvs *nvs;
	nghttp2_session_callbacks *client_calls, *server_calls;
	struct finish finish;
	/* the reader must exit, for example because the supervisor has closed its socket */
	bool stop;
	bool offline; /* the reader sends no messages; for tests of the codecs */
};

/* loop.c */
must_check int l7_init(struct l7 *l, struct sv settings, struct sv roots, struct writ_err *err);
void l7_clear(struct l7 *l);
void l7_run_woken(struct l7 *l);
void l7_free_dead(struct l7 *l);
void l7_check_deadlines(struct l7 *l);
static inline uint64_t l7_now_ms(const struct l7 *l)
{
	return l->now_us / 1000;
}

/* Returns the scratch buffer, emptied. */
static inline struct buf *l7_scratch(struct l7 *l)
{
	l->scratch.n = 0;
	l->scratch.failed = false;
	return &l->scratch;
}

/* messages.c */
must_check bool l7_egress_dial(struct l7 *l, const struct origin *o, uint32_t id);
void l7_egress_receive(struct l7 *l);
void l7_supervisor_receive(struct l7 *l);

/* finish.c */
/* Handles a client that has left: ends the client, or keeps it until its requests are delivered. */
void l7_finish_client(struct client *c);
void l7_finish_sent(struct l7 *l);
void l7_finish_begin(struct l7 *l, uint32_t ms);
void l7_finish_check(struct l7 *l);

must_check int client_h2_callbacks(nghttp2_session_callbacks **ret, struct writ_err *err);
must_check int server_h2_callbacks(nghttp2_session_callbacks **ret, struct writ_err *err);

/* Tests whether two header names are equal, without regard to case. */
static inline bool same_name(struct sv a, struct sv b)
{
	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

#endif
