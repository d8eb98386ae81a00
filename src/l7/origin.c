#include <openssl/err.h>
#include <stdio.h>
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

/* --- who waits --- */

void origin_wait(struct origin *o, struct call *c)
{
	c->at = CALL_WAITING;
	c->next_waiting = NULL;
	*o->waiting_end = c;
	o->waiting_end = &c->next_waiting;
}

void origin_forget(struct origin *o, const struct call *c)
{
	struct call **p = &o->waiting;

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

/* Each protocol goes on as itself where the server speaks it. */
static bool may_take(const struct server *s, const struct call *c)
{
	if (s->link.dead || s->doomed || !s->ready)
		return false;
	if (!s->h2)
		return !s->call && !s->link.in.n && !s->link.eof &&
		       (!c->client->h2 || c->origin->no_h2 || c->q.websocket.n);
	return !c->q.websocket.n && (c->client->h2 || c->origin->only_h2) && server2_room(s);
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
	if (!egress_dial(o->l7, o, s->id)) {
		free(s);
		return false;
	}
	link_open(o->l7, &s->link, LINK_SERVER, -1);
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
	c->dialled_us = o->l7->now_us - c->start_us;
	memcpy(c->address, s->address, sizeof(c->address));
	server_send(s, c);
}

/* The pool is full of connections that this call cannot use. */
static void make_room(struct origin *o)
{
	for (struct server *s = o->servers; s; s = s->next) {
		if (!s->ready || s->link.dead || s->call || s->streams)
			continue;
		link_kill(&s->link);
		return;
	}
}

static bool may_dial(struct origin *o, enum tls_offer offer, size_t dialling, size_t unserved)
{
	/* One connection may be for all of them: see what it speaks first. */
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
			c->at = CALL_NEW;
			call_fail(c, "no connection to the server could be asked for");
		}
	}
}

void origin_shake(struct origin *o, struct client *c)
{
	if (c->is_shaking)
		return;
	c->is_shaking = true;
	c->next_shaking = o->shaking;
	o->shaking = c;
	if (count_dialling(o) == 0 && !dial(o, offer_for(o, c->hello_h2, false))) {
		o->shaking = c->next_shaking;
		client_verified(c, "no connection to the server could be asked for");
	}
}

/* --- what became of it --- */

static void tell_shaking(struct origin *o, const char *why)
{
	struct client *c = o->shaking;

	o->shaking = NULL;
	while (c) {
		struct client *next = c->next_shaking;

		client_verified(c, why);
		c = next;
	}
}

static void fail_waiting(struct origin *o, const char *why)
{
	struct call *c;

	while ((c = o->waiting)) {
		origin_forget(o, c);
		c->at = CALL_NEW;
		call_fail(c, why);
	}
}

void server_fail(struct server *s, const char *why)
{
	struct origin *o = s->origin;
	const bool was_new = s->dialling || s->link.shaking;

	s->dialling = false;
	link_kill(&s->link);
	if (!was_new || count_dialling(o))
		return;
	/* Nobody else is on the way: those who wait would wait for ever. */
	tell_shaking(o, why);
	fail_waiting(o, why);
}

/* The server has shown who it is: so may we, in its name. */
static void opened(struct server *s)
{
	struct origin *o = s->origin;
	struct l7 *l = o->l7;
	char host[256];

	if (o->tls && !o->leaf) {
		copy_safe(host, sizeof(host), o->host);
		o->leaf = ca_mint(&l->ca, host);
		if (!o->leaf) {
			server_fail(s, "no certificate could be made");
			return;
		}
	}
	s->ready = true;
	if (s->link.ssl && tls_is_h2(s->link.ssl)) {
		server2_start(s);
	} else if (s->offer == TLS_OFFER_BOTH) {
		o->no_h2 = true;
	} else if (s->offer == TLS_OFFER_H2) {
		o->only_h2 = false;
		server_fail(s, "the server speaks no protocol that we do");
		return;
	}
	server_idle(s);
	tell_shaking(o, NULL);
	origin_serve(o);
}

static void shake(struct server *s)
{
	struct origin *o = s->origin;
	const int r = link_shake(&s->link);
	char why[96];

	if (r == 0)
		return;
	if (r == 1) {
		s->link.readable = true;
		opened(s);
		return;
	}
	tls_why(s->link.ssl, why, sizeof(why));
	if (s->offer == TLS_OFFER_H1 && !o->only_h2 && tls_no_protocol()) {
		o->only_h2 = true;
		if (dial(o, TLS_OFFER_H2)) {
			link_kill(&s->link);
			return;
		}
	}
	server_fail(s, why);
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
	char why[96];

	if (!s || fd < 0) {
		(void)snprintf(why, sizeof(why), "%.95s", m->why[0] ? m->why : "cannot be reached");
		if (s)
			server_fail(s, why);
		if (fd >= 0)
			close(fd);
		return;
	}
	s->dialling = false;
	copy_safe(s->address, sizeof(s->address),
		  (struct sv){ m->host, strnlen(m->host, sizeof(m->host)) });
	link_close(&s->link);
	link_open(l, &s->link, LINK_SERVER, fd);
	s->link.deadline_ms = l7_now_ms(l) + L7_HANDSHAKE_MS;
	if (s->origin->tls && !link_tls(&s->link, tls_connect(l, s->origin, s->offer)))
		server_fail(s, "TLS could not be set up");
	link_wake(&s->link);
}

/* --- servers, whatever they speak --- */

void server_step(struct server *s)
{
	struct link *k = &s->link;

	if (s->dialling)
		return;
	if (k->shaking)
		shake(s);
	else if (!s->ready && !k->dead)
		opened(s);
	if (k->shaking || k->dead)
		return;
	if (k->closing)
		link_read(k);
	else if (s->h2)
		server2_step(s);
	else
		server1_step(s);
	if (k->dead)
		return;
	link_write(k);
	/* What full buffers kept back may go on now. */
	if ((k->readable && fifo_left(&k->in) >= L7_IN / 2 && !k->eof) ||
	    (s->call && s->call->up.n && k->out.n < L7_OUT))
		link_wake(k);
	if (s->call && s->call->tunnel && k->out.n < L7_OUT)
		link_wake(&s->call->client->link);
	if (k->out.n == 0)
		finish_sent(k->l7);
}

/* Those of HTTP/2 are only known from the other side. */
static void drop_calls(struct server *s)
{
	for (struct link *k = s->h2 ? s->link.l7->links : NULL; k; k = k->next) {
		struct client *c = (struct client *)k;

		for (struct call *q = k->what == LINK_CLIENT ? c->calls : NULL; q; q = q->next) {
			if (q->server != s)
				continue;
			q->server = NULL;
			if (!q->raw_end)
				call_fail(q, "the server hung up");
		}
	}
	if (s->call) {
		struct call *c = s->call;

		s->call = NULL;
		c->server = NULL;
		call_fail(c, "the server hung up");
	}
}

void server_bury(struct server *s)
{
	struct origin *o = s->origin;

	*s->at = s->next;
	if (s->next)
		s->next->at = s->at;
	o->servers_n--;
	drop_calls(s);
	nghttp2_session_del(s->h2);
	link_close(&s->link);
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
		server2_send(s, c);
	else
		server1_send(s, c);
}

void server_wake(struct call *c)
{
	if (c->server->h2)
		server2_wake(c);
	else
		link_wake(&c->server->link);
}

void server_cancel(struct call *c)
{
	struct server *s = c->server;

	if (s->h2)
		server2_cancel(c);
	c->server = NULL;
	if (s->h2)
		return;
	s->call = NULL;
	/* Who did not wait for the answer has still asked: a reset could overtake that. */
	if (c->tunnel || (c->client->link.mute && c->up_sent && !c->up_discard && !c->answered))
		link_finish(&s->link);
	else
		link_kill(&s->link);
}
