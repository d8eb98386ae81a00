/*
 * l7_priv.h - what the files of this room share
 *
 * A client is a connection of the agent, a server one of ours to an origin, and a
 * call is one request between them. Each side knows HTTP/1 or HTTP/2 and nothing of
 * the other's; both see the request as struct http1_request and its answer as struct
 * http1_response, since all heads go through that one reader.
 *
 *   client1.c client2.c  ->  call.c  ->  origin.c  ->  server1.c server2.c
 *            ^                guard.c (what comes back)         |
 *            +--------------------------------------------------+
 *
 * No function here frees a link that is being worked on: links are woken, stepped by
 * loop.c one after the other, and buried when none of them runs.
 */
#ifndef WRIT_L7_PRIV_H
#define WRIT_L7_PRIV_H

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <string.h>

#include "egress/egress.h"
#include "egress/reader.h"
#include "l7/fifo.h"
#include "l7/settings.h"
#include "wire/http1.h"
#include "wire/scan.h"
#include "wire/target.h"

enum {
	L7_FIELDS = 100,
	L7_IN = 66 << 10,  /* a whole head fits */
	L7_OUT = 64 << 10, /* above it nobody adds more */
	L7_OUT_MAX = 192 << 10,
	L7_BODY = 64 << 10,    /* of one call and direction, on its way */
	L7_BODY_MAX = 1 << 20, /* with what HTTP/2 windows may let come at once */
	L7_CLIENTS_MAX = 1024,
	L7_ORIGINS_MAX = 4096,
	L7_SERVERS_MAX = 64, /* of one origin */
	L7_ASKS_MAX = 64,
	L7_SET_MAX = 12,       /* fields that we set in one request */
	L7_DISCARD = 64 << 10, /* of a refused request's body, to keep the connection */

	L7_HANDSHAKE_MS = 15000,
	L7_HEAD_MS = 10000,
	L7_IDLE_MS = 300000,
	L7_DIAL_MS = 45000,
	L7_POOL_MS = 30000,
	L7_LINGER_MS = 2000,
	L7_GONE_MS = 30000, /* for the rest of a request whose client is gone */
	L7_TICK_MS = 500,
};

struct l7;
struct call;
struct origin;

/* --- link.c: one connection, as plain bytes --- */

enum link_what { LINK_CLIENT = 0, LINK_SERVER };

struct link {
	struct l7 *l7;
	struct link *next, **at; /* of all */
	struct link *next_woken, *next_dead;
	enum link_what what;
	int fd; /* -1: bytes are put into @in and taken from @out by somebody else */
	SSL *ssl;
	struct fifo first; /* what was read before it became ours */
	struct fifo in, out;
	uint64_t deadline_ms; /* 0: none */
	uint32_t events;      /* that epoll knows */
	bool woken, dead;
	bool readable; /* there may be something to read */
	bool drained;  /* the last read took all there was */
	bool shaking;  /* TLS has not begun yet */
	bool eof, blocked;
	bool hung;    /* no event comes any more: what is there is read, then it ends */
	bool torn;    /* the end came without a word, inside TLS */
	bool closing; /* once @out is empty: no more from us */
	bool shut;    /* and that was said */
	bool mute;    /* nobody is there to hear: what it would be told is dropped */
};

void link_open(struct l7 *l, struct link *k, enum link_what what, int fd);
void link_close(struct link *k); /* frees what it holds, not the struct */
void link_wake(struct link *k);
void link_kill(struct link *k);
void link_finish(struct link *k);		    /* dies when @out is sent */
must_check bool link_tls(struct link *k, SSL *ssl); /* takes @ssl */
must_check BIO_METHOD *link_bio(void);
/* Runs the handshake: 1 it is done, 0 not yet, -1 it failed. */
must_check int link_shake(struct link *k);
void link_read(struct link *k);
void link_write(struct link *k);
void link_watch(struct link *k);
/* Appends to @out; kills the link if that cannot be. */
void link_put(struct link *k, struct sv bytes);

/* --- ca.c, tls.c --- */

struct ca {
	EVP_PKEY *key, *leaf_key;
	X509 *cert;
};

must_check int ca_new(struct ca *ret, int64_t now_s, uint64_t session_s, struct writ_err *err);
void ca_clear(struct ca *ca);
must_check int ca_pem(const struct ca *ca, struct buf *b, struct writ_err *err);
must_check X509 *ca_mint(const struct ca *ca, const char *host);

must_check int tls_start(struct l7 *l, struct writ_err *err);
void tls_clear(struct l7 *l);
must_check SSL *tls_accept(struct l7 *l);
enum tls_offer { TLS_OFFER_H1 = 0, TLS_OFFER_BOTH, TLS_OFFER_H2 };
must_check SSL *tls_connect(struct l7 *l, const struct origin *o, enum tls_offer offer);
bool tls_is_h2(const SSL *ssl);
/* Why the handshake with a server did not work, for records. */
void tls_why(const SSL *ssl, char *to, size_t room);
bool tls_no_protocol(void); /* the last failure: no protocol in common */

/* --- secret.c --- */

enum secret_as { AS_BEARER = 0, AS_BASIC, AS_HEADER, AS_QUERY };

struct secret {
	struct sv name, value, placeholder;
	enum secret_as as;
	struct sv key; /* of AS_HEADER and AS_QUERY */
	struct cap to; /* as a grant of requests */
};

struct vault {
	char *bytes; /* locked, not dumped */
	size_t size;
	struct secret *v;
	size_t n;
	const struct scan_set *values, *placeholders;
	char *window; /* to look through a whole text */
	size_t window_n;
	unsigned near, nearer; /* how much of a value, of 1000, an answer had, and how often more */
	bool guessed;	       /* it was too often: none is used any more */
};

must_check int vault_fill(struct l7 *l, const struct l7_settings *s, struct writ_err *err);
void vault_clear(struct vault *v);

/* Does any secret go to @host and @port at all? Then what comes back is looked through. */
bool secret_bound(const struct l7 *l, struct sv host, uint16_t port);
/*
 * Puts values where they belong. NULL, or why the request must not be sent: a
 * placeholder stands somewhere it has no business.
 */
const char *secret_apply(struct call *c);
/* Is what the client sends behind the head looked through for placeholders? */
bool secret_searched(const struct call *c);
/* The first hit in a whole text; false: there is none. */
bool secret_found(struct l7 *l, const struct scan_set *set, struct sv text);

/* --- frames.c: what a client says over a WebSocket --- */

struct frames;

must_check struct frames *frames_new(const struct l7 *l); /* free() frees it */
/* The next bytes. NULL, or why they must not be sent on. */
must_check const char *frames_look(struct l7 *l, struct frames *f, struct sv data);

/* --- guard.c: what comes back from where a secret goes --- */

struct guard;

/* Takes from the request what would make its answer one that cannot be looked through. */
void guard_request(struct call *c);
/* False: the answer is one of these all the same. */
must_check bool guard_sees(const struct http1_response *r);
/* NULL and @why if answers in this coding cannot be looked through. */
must_check struct guard *guard_new(struct l7 *l, struct sv coding, const char **why);
void guard_free(struct guard *g);
bool guard_decodes(const struct guard *g);
/* Takes from the front of @in while @out has room; false: a value was found, or bad bytes. */
must_check bool guard_run(struct guard *g, struct fifo *in, bool last, struct fifo *out,
			  const char **why);

/* --- call.c --- */

enum call_at {
	CALL_NEW = 0, /* its head is still coming, or it was refused */
	CALL_ASKING,
	CALL_WAITING, /* for a server */
	CALL_SENT,
};

struct call {
	struct l7 *l7;
	struct client *client;
	int32_t stream;		   /* HTTP/2 */
	struct call *next, **link; /* of the client */
	struct origin *origin;
	struct call *next_waiting;
	struct server *server;
	int32_t server_stream;
	enum call_at at;
	uint32_t ask;
	bool tls;

	struct buf head;			   /* of the request; @q is tied to it */
	struct buf lines, method, path, authority; /* HTTP/2: as they come */
	struct buf cookie;
	bool h2_length, h2_other_host, h2_big, h2_bad, h2_reset; /* what was seen of the request */
	struct buf answer; /* lines of the block that is coming from the server */
	char answer_status[4];
	bool answer_length;
	struct http1_field fields[L7_FIELDS];
	struct http1_request q;
	struct buf text; /* @target is tied to it */
	struct target target;
	struct sv send_target; /* what the server gets: with a secret in it, perhaps */
	struct sv host;
	uint16_t port;
	struct reach_verdict verdict;
	bool charged; /* @verdict.bill pays for its bytes */

	struct http1_field set[L7_SET_MAX];
	size_t set_n;
	struct buf values; /* @set and @send_target are tied to it; wiped */

	struct fifo up;
	struct buf up_trailers;
	struct scan *up_scan;
	struct frames *frames; /* of a WebSocket */
	size_t up_debt;	       /* bytes that HTTP/2 was not yet told to be gone */
	bool up_end, up_sent, up_discard;

	struct fifo raw, down;
	struct buf down_trailers;
	struct guard *guard;
	size_t down_debt;
	bool raw_end, down_end;
	bool answered; /* the client has a head */
	bool broken;   /* and will get no more: the answer is cut off */
	bool again;    /* it was sent once before */
	bool bears;    /* a secret goes with it */
	bool guarded, tunnel, finished;
	unsigned interims;

	unsigned status;
	uint64_t start_us, asked_us, dialled_us, bytes_up, bytes_down;
	char why[96], address[64], credential[64];
};

must_check struct call *call_new(struct client *c, int32_t stream);
/* The head is whole and read: decides, and sends it or answers. */
void call_begin(struct call *c);
/* Answers by ourselves. */
void call_refuse(struct call *c, unsigned status, const char *why);
/* Nothing more will come: 502, or the answer is cut off. */
void call_fail(struct call *c, const char *why);
void call_asked(struct l7 *l, uint32_t id, bool allowed);
/* Goes on with what was decided; quota and secrets. */
void call_send(struct call *c);
/* The client has all of it, or is gone. */
void call_end(struct call *c);

/* From the client's side. */
size_t call_up_room(const struct call *c);
void call_up_data(struct call *c, struct sv data);
void call_up_end(struct call *c);
void call_down_drop(struct call *c, size_t n);

/* From the server's side. */
size_t call_down_room(const struct call *c);
void call_interim(struct call *c, const struct http1_response *r);
void call_answer(struct call *c, struct http1_response *r, struct sv head);
void call_down_data(struct call *c, struct sv data);
void call_down_end(struct call *c);
void call_up_drop(struct call *c, size_t n);
/* Counts; false: a limit is reached, and the call was ended for it. */
must_check bool call_pay(struct call *c, bool up, size_t n);

/* --- event.c --- */

void event_request(const struct call *c);
void event_close(const struct client *c);
must_check bool event_ask(const struct call *c, uint32_t id);
void event_ready(struct l7 *l, struct sv pem);
void event_finished(struct l7 *l);
/* Appends the page that a refused request gets. */
void event_page(const struct call *c, unsigned status, const char *why, struct buf *b);
void copy_safe(char *to, size_t room, struct sv from);

/* --- client.c, client1.c, client2.c --- */

struct client {
	struct link link; /* first */
	uint32_t flow;
	struct sv host;
	char host_room[256];
	uint16_t port;
	bool proxy, tls, hello_h2, hello_h1, opened;
	bool told;	       /* the record has an event that says why it was closed */
	bool cut;	       /* nobody denied it */
	struct origin *origin; /* of TLS */
	struct client *next_shaking;
	bool is_shaking; /* in the origin's list */
	const char *why;
	char why_room[96];
	struct call *calls;
	uint64_t start_us, up, down;

	/* HTTP/1 */
	struct call *call;
	struct http1_find find;
	struct http1_body body;
	size_t discarded;
	bool last;    /* no request after this one */
	bool chunked; /* how the answer is sent */

	/* HTTP/2 */
	nghttp2_session *h2;
	uint64_t frames, resets, streams, moved;
	size_t block; /* bytes of a block of headers that has not ended */
	bool in_block;
};

struct client *client_new(struct l7 *l, const struct reader_message *m, int fd);
void client_step(struct client *c);
void client_bury(struct client *c);
void client_verified(struct client *c, const char *why); /* NULL: it is */
void client_close(struct client *c, const char *why);	 /* for the record; ends nothing */
/* There is more in @k->down, or it has ended. */
void client_more(struct call *k);

void client1_step(struct client *c);
void client1_interim(struct call *k, const struct http1_response *r);
void client1_answer(struct call *k, const struct http1_response *r, const struct http1_send *how);
void client2_start(struct client *c);
void client2_step(struct client *c);
void client2_interim(struct call *k, const struct http1_response *r);
void client2_answer(struct call *k, const struct http1_response *r, const struct http1_send *how);
void client2_wake(struct call *k);
void client2_consume(struct call *k, size_t n);

/* --- origin.c, server1.c, server2.c --- */

struct server {
	struct link link; /* first */
	struct origin *origin;
	struct server *next, **at; /* of the origin */
	uint32_t id;		   /* of the dialling */
	enum tls_offer offer;
	bool dialling, ready, used, doomed;
	char address[64];

	/* HTTP/1 */
	struct call *call;
	struct http1_find find;
	struct http1_body body;
	bool in_body, sent_end, keep;

	/* HTTP/2 */
	nghttp2_session *h2;
	size_t streams;
};

struct origin {
	struct l7 *l7;
	struct origin *next;
	struct sv host;
	uint16_t port;
	bool tls;
	bool only_h2, no_h2;
	X509 *leaf; /* there is one once a server has shown who it is */
	struct server *servers;
	size_t servers_n;
	struct call *waiting, **waiting_end;
	struct client *shaking;
};

must_check struct origin *origin_get(struct l7 *l, struct sv host, uint16_t port, bool tls);
void origin_clear(struct l7 *l);
void origin_wait(struct origin *o, struct call *c);
void origin_forget(struct origin *o, const struct call *c);
/* Gives servers to those who wait, and dials. */
void origin_serve(struct origin *o);
void origin_shake(struct origin *o, struct client *c);
void origin_dialled(struct l7 *l, const struct reader_message *m, int fd);

void server_step(struct server *s);
void server_bury(struct server *s);
void server_fail(struct server *s, const char *why);
void server_send(struct server *s, struct call *c);
void server_wake(struct call *c); /* there is more in @up, or room in @down */
void server_cancel(struct call *c);
void server_idle(struct server *s);

void server1_send(struct server *s, struct call *c);
void server1_step(struct server *s);
void server2_start(struct server *s);
must_check bool server2_room(const struct server *s);
void server2_send(struct server *s, struct call *c);
void server2_step(struct server *s);
void server2_wake(struct call *c);
void server2_cancel(struct call *c);
void server2_consume(struct call *c, size_t n);

/* --- h2.c: heads between HTTP/2 and the one reader --- */

struct nvs {
	nghttp2_nv v[L7_FIELDS + L7_SET_MAX + 8];
	size_t n;
	struct buf names; /* in small letters */
	struct {
		size_t at, n;
	} name_at[L7_FIELDS + L7_SET_MAX + 8];
};

/* One field of a block of the request. */
void h2_field(struct call *c, struct sv name, struct sv value);
/* Appends it as a line; false: it cannot be one. */
must_check bool h2_line(struct buf *b, struct sv name, struct sv value);
/* Reads what came as a request. An HTTP status, or 0; @why is then set. */
unsigned h2_request(struct call *c, bool end, const char **why);
void h2_request_nvs(struct call *c, struct nvs *v);
void h2_response_nvs(const struct http1_response *r, const struct http1_send *how, struct nvs *v,
		     char room[24]);
void h2_nvs_clear(struct nvs *v);
/* Lines as http1_body_next() collects them. */
void h2_trailer_nvs(struct sv lines, struct nvs *v);
/* Lines of a block after the body, checked as those of HTTP/1 are. */
must_check bool h2_trailers(struct sv lines, struct buf *to);
/* Moves what is to be sent into the link. */
void h2_flush(nghttp2_session *s, struct link *k);

/* --- finish.c --- */

/* Its client is gone: it dies, or stays until what it asked for is on its way. */
void finish_client(struct client *c);
void finish_sent(struct l7 *l);
void finish_begin(struct l7 *l, uint32_t ms);
void finish_look(struct l7 *l);

/* --- the whole --- */

struct ask {
	uint32_t id;
	struct sv key; /* host, port, method and path */
	char key_room[1024];
};

struct l7 {
	int boss, egress, epoll;
	struct arena arena;
	struct l7_settings settings;
	struct reach reach;
	struct quota quota;
	struct vault vault;
	struct ca ca;
	SSL_CTX *accept, *connect;
	struct buf roots; /* PEM, until the first server is to be verified */
	struct link *links, *woken, **woken_end, *dead;
	BIO_METHOD *bio;
	struct origin *origins;
	size_t clients_n, origins_n, asks_n;
	struct ask asks[L7_ASKS_MAX];
	uint32_t next_ask, next_dial;
	uint64_t now_us;
	struct buf scratch; /* a head before it is sent */
	struct nvs *nvs;
	nghttp2_session_callbacks *client_calls, *server_calls;
	bool gone;			/* the supervisor */
	size_t leaving;			/* clients that are gone, with something on its way */
	bool finishing, last, finished; /* the session is over; nobody more comes */
	uint64_t finish_ms, still_ms, acked;
	bool deaf; /* nobody to tell: in tests of the codecs */
};

must_check int l7_init(struct l7 *l, struct sv settings, struct sv roots, struct writ_err *err);
void l7_clear(struct l7 *l);
void l7_run_woken(struct l7 *l);
void l7_bury(struct l7 *l);
void l7_tick(struct l7 *l); /* what has taken too long */
static inline uint64_t l7_now_ms(const struct l7 *l)
{
	return l->now_us / 1000;
}

must_check bool egress_dial(struct l7 *l, const struct origin *o, uint32_t id);
void egress_heard(struct l7 *l);
void boss_heard(struct l7 *l);

must_check int client2_calls(nghttp2_session_callbacks **ret, struct writ_err *err);
must_check int server2_calls(nghttp2_session_callbacks **ret, struct writ_err *err);

static inline bool same_name(struct sv a, struct sv b)
{
	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

#endif
