#include <stdlib.h>
#include <unistd.h>

#include "l7/l7_priv.h"

#include "base/banned.h"

struct origin *origin_get(struct l7 *l, struct sv host, uint16_t port, bool tls)
{
	struct origin *o;

	for (o = l->origins; o; o = o->next)
		if (o->port == port && o->tls == tls && sv_eq(o->host, host))
			return o;
	o = l->origins_n < L7_ORIGINS_MAX ? arena_new(&l->arena, struct origin) : NULL;
	if (!o || !arena_sv(&l->arena, host, &o->host))
		return NULL;
	o->l7 = l;
	o->port = port;
	o->tls = tls;
	o->no_h2 = !tls;
	o->waiting_end = &o->waiting;
	o->next = l->origins;
	l->origins = o;
	l->origins_n++;
	return o;
}

void origin_clear(struct l7 *l)
{
	for (struct origin *o = l->origins; o; o = o->next)
		X509_free(o->leaf);
	l->origins = NULL;
}

/* --- calls that wait for a server --- */

void origin_wait(struct origin *o, struct call *c)
{
	c->at = CALL_WAITING;
	c->next_waiting = NULL;
	*o->waiting_end = c;
	o->waiting_end = &c->next_waiting;
}

void origin_forget(struct origin *o, struct call *c)
{
	struct call **p = &o->waiting;

	c->at = CALL_NEW;
	while (*p && *p != c)
		p = &(*p)->next_waiting;
	if (!*p)
		return;
	*p = c->next_waiting;
	if (o->waiting_end == &c->next_waiting)
		o->waiting_end = p;
}

static enum tls_offer offer_for(const struct origin *o, bool h2, bool websocket)
{
	if (websocket)
		return TLS_OFFER_H1;
	if (o->only_h2)
		return TLS_OFFER_H2;
	return h2 && !o->no_h2 ? TLS_OFFER_BOTH : TLS_OFFER_H1;
}

/*
 * Tests whether a connection to a server can take the call. A call keeps the protocol of its
 * client, HTTP/2 or HTTP/1, if the server speaks it.
 */
static bool may_take(const struct server *s, const struct call *c)
{
	if (s->link.dead || !s->ready)
		return false;
	if (!s->h2)
		return !s->call && !s->link.in.n && !s->link.eof &&
		       (!c->client->h2 || c->origin->no_h2 || c->q.websocket.n);
	return !c->q.websocket.n && (c->client->h2 || c->origin->only_h2) && server_h2_room(s);
}

static struct server *find_server(const struct origin *o, const struct call *c)
{
	for (struct server *s = o->servers; s; s = s->next)
		if (may_take(s, c))
			return s;
	return NULL;
}

/* --- dialling --- */

static size_t count_dialling(const struct origin *o)
{
	size_t n = 0;

	for (const struct server *s = o->servers; s; s = s->next)
		n += !s->link.dead && (s->dialling || s->link.shaking);
	return n;
}

static bool dial(struct origin *o, enum tls_offer offer)
{
	struct server *s = o->servers_n < L7_SERVERS_MAX ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return false;
	s->id = ++o->l7->next_dial;
	if (!l7_egress_dial(o->l7, o, s->id)) {
		free(s);
		return false;
	}
	l7_link_open(o->l7, &s->link, LINK_SERVER, -1);
	s->link.deadline_ms = l7_now_ms(o->l7) + L7_DIAL_MS;
	s->origin = o;
	s->offer = offer;
	s->dialling = true;
	s->next = o->servers;
	s->at = &o->servers;
	if (o->servers)
		o->servers->at = &s->next;
	o->servers = s;
	o->servers_n++;
	return true;
}

static void take(struct origin *o, struct call *c, struct server *s)
{
	origin_forget(o, c);
	c->at = CALL_SENT;
	c->log.dialled_us = o->l7->now_us - c->start_us;
	memcpy(c->address, s->address, sizeof(c->address));
	server_send(s, c);
}

/*
 * Closes an idle connection to make room in the pool, which is full of connections that the waiting
 * call cannot use.
 */
static void make_room(struct origin *o)
{
	for (struct server *s = o->servers; s; s = s->next) {
		if (!s->ready || s->link.dead || s->call || s->streams)
			continue;
		l7_link_kill(&s->link);
		return;
	}
}

static bool may_dial(struct origin *o, enum tls_offer offer, size_t dialling, size_t unserved)
{
	/*
	 * An HTTP/2 connection may serve all waiting calls. Wait until the pending connection has
	 * negotiated its protocol.
	 */
	if (offer != TLS_OFFER_H1 && dialling)
		return false;
	if (dialling >= unserved)
		return false;
	if (o->servers_n < L7_SERVERS_MAX)
		return true;
	make_room(o);
	return false;
}

void origin_serve(struct origin *o)
{
	size_t unserved = 0, dialling = count_dialling(o);
	struct call *next;

	for (struct call *c = o->waiting; c; c = next) {
		struct server *s = find_server(o, c);
		const enum tls_offer offer = offer_for(o, c->client->h2, c->q.websocket.n > 0);

		next = c->next_waiting;
		if (s) {
			take(o, c, s);
			continue;
		}
		unserved++;
		if (!may_dial(o, offer, dialling, unserved))
			continue;
		if (dial(o, offer)) {
			dialling++;
		} else {
			origin_forget(o, c);
			call_fail(c, CAUSE_SERVER_DIAL);
		}
	}
}

void origin_verify(struct origin *o, struct client *c)
{
	if (c->is_unverified)
		return;
	c->is_unverified = true;
	c->next_unverified = o->unverified;
	o->unverified = c;
	if (count_dialling(o) == 0 && !dial(o, offer_for(o, c->hello_h2, false))) {
		o->unverified = c->next_unverified;
		client_verified(c, CAUSE_SERVER_DIAL, NULL);
	}
}

/* --- results of dialling --- */

static void report_verified(struct origin *o, enum cap_cause cause, const char *detail)
{
	struct client *c = o->unverified;

	o->unverified = NULL;
	while (c) {
		struct client *next = c->next_unverified;

		client_verified(c, cause, detail);
		c = next;
	}
}

static void fail_waiting(struct origin *o, enum cap_cause cause, const char *detail)
{
	struct call *c;

	while ((c = o->waiting)) {
		origin_forget(o, c);
		call_stop(c, 502, cause, detail);
	}
}

void server_fail(struct server *s, enum cap_cause cause, const char *detail)
{
	struct origin *o = s->origin;
	const bool was_new = s->dialling || s->link.shaking;

	s->dialling = false;
	l7_link_kill(&s->link);
	if (!was_new || count_dialling(o))
		return;
	/*
	 * No other connection to the origin is pending, so fail every client and
	 * call that waits for one.
	 */
	report_verified(o, cause, detail);
	fail_waiting(o, cause, detail);
}

/*
 * Handles a new connection to a server; if it uses TLS, the server has proved its identity. For
 * TLS, issues the certificate that the agent sees, once per origin. Then serves the clients and
 * calls that wait for the origin.
 */
static void opened(struct server *s)
{
	struct origin *o = s->origin;
	struct l7 *l = o->l7;
	char host[256];

	if (o->tls && !o->leaf) {
		l7_copy_safe(host, sizeof(host), o->host);
		o->leaf = ca_mint(&l->ca, host);
		if (!o->leaf) {
			server_fail(s, CAUSE_NO_CERTIFICATE, NULL);
			return;
		}
	}
	s->ready = true;
	if (s->link.ssl && tls_is_h2(s->link.ssl)) {
		server_h2_start(s);
	} else if (s->offer == TLS_OFFER_BOTH) {
		o->no_h2 = true;
	} else if (s->offer == TLS_OFFER_H2) {
		o->only_h2 = false;
		server_fail(s, CAUSE_SERVER_PROTOCOL, NULL);
		return;
	}
	server_idle(s);
	report_verified(o, CAUSE_NONE, NULL);
	origin_serve(o);
}

static void handshake(struct server *s)
{
	struct origin *o = s->origin;
	const int r = l7_link_handshake(&s->link);
	const char *detail;
	enum cap_cause cause;

	if (r == 0)
		return;
	if (r == 1) {
		s->link.readable = true;
		opened(s);
		return;
	}
	cause = tls_why(s->link.ssl, &detail);
	if (s->offer == TLS_OFFER_H1 && !o->only_h2 && tls_no_protocol()) {
		o->only_h2 = true;
		if (dial(o, TLS_OFFER_H2)) {
			l7_link_kill(&s->link);
			return;
		}
	}
	server_fail(s, cause, detail);
}

static struct server *dialled(struct l7 *l, uint32_t id)
{
	for (struct link *k = l->links; k; k = k->next) {
		struct server *s = (struct server *)k;

		if (k->what == LINK_SERVER && s->dialling && s->id == id && !k->dead)
			return s;
	}
	return NULL;
}

void origin_dialled(struct l7 *l, const struct reader_message *m, int fd)
{
	struct server *s = dialled(l, m->id);

	if (!s || fd < 0) {
		if (s)
			server_fail(s, m->why.cause ? m->why.cause : CAUSE_SERVER_UNREACHED,
				    m->why.detail);
		if (fd >= 0)
			close(fd);
		return;
	}
	s->dialling = false;
	l7_copy_safe(s->address, sizeof(s->address),
		     (struct sv){ m->host, strnlen(m->host, sizeof(m->host)) });
	l7_link_close(&s->link);
	l7_link_open(l, &s->link, LINK_SERVER, fd);
	s->link.deadline_ms = l7_now_ms(l) + L7_HANDSHAKE_MS;
	if (s->origin->tls && !l7_link_tls(&s->link, tls_connect(l, s->origin, s->offer)))
		server_fail(s, CAUSE_TLS_SETUP, NULL);
	l7_link_wake(&s->link);
}

/* --- servers, for both protocols --- */

void server_step(struct server *s)
{
	struct link *k = &s->link;

	if (s->dialling)
		return;
	if (k->shaking)
		handshake(s);
	else if (!s->ready && !k->dead)
		opened(s);
	if (k->shaking || k->dead)
		return;
	if (k->closing)
		l7_link_read(k);
	else if (s->h2)
		server_h2_step(s);
	else
		server_h1_step(s);
	if (k->dead)
		return;
	l7_link_write(k);
	/*
	 * Run the link again if a full buffer stopped reading or writing and
	 * the buffer has room now.
	 */
	if ((k->readable && fifo_left(&k->in) >= L7_IN / 2 && !k->eof) ||
	    (s->call && s->call->req.bytes.n && k->out.n < L7_OUT))
		l7_link_wake(k);
	if (s->call && s->call->tunnel && k->out.n < L7_OUT)
		l7_link_wake(&s->call->client->link);
	if (k->out.n == 0)
		l7_finish_sent(k->l7);
}

/*
 * Detaches all calls from a server and fails those without a complete response. Calls over HTTP/2
 * are listed only at their clients.
 */
static void drop_calls(struct server *s)
{
	for (struct link *k = s->h2 ? s->link.l7->links : NULL; k; k = k->next) {
		struct client *c = (struct client *)k;

		for (struct call *q = k->what == LINK_CLIENT ? c->calls : NULL; q; q = q->next) {
			if (q->server != s)
				continue;
			q->server = NULL;
			if (!q->resp.raw_ended)
				call_fail(q, CAUSE_SERVER_GONE);
		}
	}
	if (s->call) {
		struct call *c = s->call;

		s->call = NULL;
		c->server = NULL;
		call_fail(c, CAUSE_SERVER_GONE);
	}
}

void server_free(struct server *s)
{
	struct origin *o = s->origin;

	*s->at = s->next;
	if (s->next)
		s->next->at = s->at;
	o->servers_n--;
	drop_calls(s);
	nghttp2_session_del(s->h2);
	l7_link_close(&s->link);
	free(s);
	if (o->waiting)
		origin_serve(o);
}

void server_idle(struct server *s)
{
	if (!s->h2 || s->streams == 0)
		s->link.deadline_ms = l7_now_ms(s->link.l7) + L7_POOL_MS;
}

void server_send(struct server *s, struct call *c)
{
	c->server = s;
	s->link.deadline_ms = 0;
	if (s->h2)
		server_h2_send(s, c);
	else
		server_h1_send(s, c);
}

void server_wake(struct call *c)
{
	if (c->server->h2)
		server_h2_wake(c);
	else
		l7_link_wake(&c->server->link);
}

void server_cancel(struct call *c)
{
	struct server *s = c->server;

	if (s->h2)
		server_h2_cancel(c);
	c->server = NULL;
	if (s->h2)
		return;
	s->call = NULL;
	/*
	 * Close gracefully after a WebSocket, or if the client has left but its request must
	 * arrive: a reset could overtake bytes that are on their way.
	 */
	if (c->tunnel ||
	    (c->client->link.peer_gone && c->req.sent && !c->req.discard && !c->answered))
		l7_link_finish(&s->link);
	else
		l7_link_kill(&s->link);
}
