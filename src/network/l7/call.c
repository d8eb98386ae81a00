#include <stdio.h>
#include <stdlib.h>

#include "l7/l7_priv.h"

#include "base/banned.h"

/* Longest target about which the reader asks a person; it fits into egress_event.path. */
enum { ASKED_MAX = 500 };
enum { TEXT_MAX = 96 << 10, HEAD_MAX = 80 << 10, PAGE_MAX = 4096, TRAILERS_MAX = 16 << 10 };

struct call *call_new(struct client *c, int32_t stream)
{
	struct call *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->l7 = c->link.l7;
	k->client = c;
	k->stream = stream;
	k->tls = c->tls;
	k->start_us = k->l7->now_us;
	k->verdict = (struct reach_verdict){ .rule = RULE_NONE, .bill = { .entry = SIZE_MAX } };
	k->head.max = k->raw_head.lines.max = k->raw_head.path.max = HEAD_MAX;
	k->raw_head.cookie.max = k->raw_answer.lines.max = HEAD_MAX;
	k->raw_head.method.max = k->raw_head.authority.max = 512;
	k->text.max = k->inject.values.max = TEXT_MAX;
	k->req.bytes.max = k->resp.bytes.max = k->resp.raw.max = L7_BODY_MAX;
	k->req.trailers.max = k->resp.trailers.max = TRAILERS_MAX;
	k->q = (struct http1_request){ .method = SV(""), .target = SV(""), .websocket = SV("") };
	k->host = c->host;
	k->port = c->port;
	k->next = c->calls;
	k->link = &c->calls;
	if (c->calls)
		c->calls->link = &k->next;
	c->calls = k;
	return k;
}

static void detach(struct call *c)
{
	if (c->server)
		server_cancel(c);
	c->server = NULL;
	if (c->at == CALL_WAITING)
		origin_forget(c->origin, c);
	c->at = CALL_NEW;
}

void call_end(struct call *c)
{
	struct buf *bufs[] = { &c->head,	  &c->raw_head.lines,	  &c->raw_head.method,
			       &c->raw_head.path, &c->raw_head.authority, &c->raw_head.cookie,
			       &c->text,	  &c->raw_answer.lines,	  &c->req.trailers,
			       &c->resp.trailers };

	l7_event_request(c);
	c->client->up += c->log.bytes_up;
	c->client->down += c->log.bytes_down;
	detach(c);
	if (c->req.debt)
		client_h2_consume(c, c->req.debt);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	if (c->client->call == c)
		c->client->call = NULL;
	if (c->inject.values.p)
		explicit_bzero(c->inject.values.p, c->inject.values.room);
	buf_clear(&c->inject.values);
	for (size_t i = 0; i < ARRAY_LEN(bufs); i++)
		buf_clear(bufs[i]);
	fifo_clear(&c->req.bytes);
	fifo_clear(&c->resp.raw);
	fifo_clear(&c->resp.bytes);
	l7_guard_free(c->resp.guard);
	free(c->req.scan);
	free(c->req.frames);
	free(c);
}

/* --- responses of the reader itself --- */

void call_give(struct call *c, const struct http1_response *r, const struct http1_send *how)
{
	c->answered = true;
	c->status = r->status;
	if (c->client->h2)
		client_h2_answer(c, r, how);
	else
		client_h1_answer(c, r, how);
}

void call_refuse_detail(struct call *c, unsigned status, enum cap_cause cause, const char *detail)
{
	char text[CAP_WHY_TEXT];
	scoped_buf page = BUF_INIT(PAGE_MAX);
	struct http1_field fields[3] = {
		{ .name = SV("content-type"), .value = SV("text/plain; charset=utf-8") },
		{ .name = SV("x-writ-reason") },
		{ .name = SV("cache-control"), .value = SV("no-store") },
	};
	struct http1_response r = { .status = status,
				    .minor = 1,
				    .reason = SV("refused by writ"),
				    .fields = fields,
				    .fields_n = ARRAY_LEN(fields) };
	struct http1_send how = { .framing = HTTP1_LENGTH };

	if (c->answered || c->broken)
		return;
	c->why = l7_why(cause, detail);
	fields[1].value = sv_from(cap_why_print(cause, c->why.detail, text, sizeof(text)));
	detach(c);
	c->req.discard = true;
	fifo_drop(&c->req.bytes, c->req.bytes.n);
	l7_event_page(c, status, text, &page);
	how.length = page.n;
	if (!sv_is(c->q.method, "HEAD") && !fifo_add(&c->resp.bytes, buf_view(&page)))
		c->broken = true;
	c->resp.ended = true;
	call_give(c, &r, &how);
	client_more(c);
}

void call_refuse(struct call *c, unsigned status, enum cap_cause cause)
{
	call_refuse_detail(c, status, cause, NULL);
}

void call_stop(struct call *c, unsigned status, enum cap_cause cause, const char *detail)
{
	if (!c->answered) {
		call_refuse_detail(c, status, cause, detail);
		return;
	}
	if (c->broken || c->resp.ended)
		return;
	c->why = l7_why(cause, detail);
	c->broken = c->req.discard = true;
	fifo_drop(&c->resp.bytes, c->resp.bytes.n);
	detach(c);
	client_more(c);
}

void call_fail(struct call *c, enum cap_cause cause)
{
	call_stop(c, 502, cause, NULL);
}

/* --- checking the request --- */

static bool is_host(const struct call *c, struct sv host, uint16_t port)
{
	scoped_buf b = BUF_INIT(512);

	wire_host_print(&c->q.host.host, &b);
	return !b.failed && sv_eq(buf_view(&b), host) && c->q.host.port == port;
}

/* Refuses a request that does not pass a check, and returns false for the check. */
static bool refuse(struct call *c, unsigned status, enum cap_cause cause, const char *detail)
{
	call_refuse_detail(c, status, cause, detail);
	return false;
}

/*
 * Takes the host of a call from a request to the proxy port, which names the host in the target.
 * Like check_host() and check(), returns false after it has refused the request.
 */
static bool proxy_host(struct call *c)
{
	if (c->q.form != HTTP1_ABSOLUTE || c->q.tls)
		return refuse(c, 400, CAUSE_PROXY_TLS, NULL);
	c->raw_head.authority.n = 0;
	wire_host_print(&c->q.host.host, &c->raw_head.authority);
	c->host = buf_view(&c->raw_head.authority);
	c->port = c->q.host.port;
	if (!is_host(c, c->client->host, c->client->port) &&
	    reach_way(&c->l7->reach, c->host, c->port) != REACH_READ)
		return refuse(c, 421, CAUSE_PROXY_HOST, NULL);
	return true;
}

static bool check_host(struct call *c)
{
	struct writ_err err;

	if (c->client->proxy)
		return proxy_host(c);
	if (!c->q.has_host) {
		/*
		 * An HTTP/1.0 request needs no Host field; the destination of the connection
		 * determines the host.
		 */
		if (wire_host_parse(c->host, &c->q.host.host, &err) < 0)
			return refuse(c, 400, CAUSE_NO_HOST, NULL);
		c->q.host.port = c->port;
		c->q.host.has_port = c->port != (c->tls ? 443 : 80);
		c->q.has_host = true;
	}
	if (!is_host(c, c->host, c->port) || (c->q.form == HTTP1_ABSOLUTE && c->q.tls != c->tls))
		return refuse(c, 421, CAUSE_OTHER_HOST, NULL);
	return true;
}

static bool check(struct call *c)
{
	struct writ_err err;

	if (c->q.form == HTTP1_AUTHORITY || sv_is(c->q.method, "TRACE"))
		return refuse(c, 405, CAUSE_METHOD, NULL);
	if (!check_host(c))
		return false;
	if (target_parse(c->q.target, &c->text, &c->target, &err) != TARGET_OK)
		return refuse(c, 400, CAUSE_HTTP, err.what);
	c->inject.target = c->target.text;
	return true;
}

/* --- asking a person --- */

static bool ask_key(const struct call *c, struct sv *ret, char *room, size_t room_n)
{
	const int n = snprintf(room, room_n, SV_FMT ":%u " SV_FMT " " SV_FMT, SV_ARG(c->host),
			       c->port, SV_ARG(c->q.method), SV_ARG(c->target.text));

	*ret = (struct sv){ room, (size_t)n };
	return n > 0 && (size_t)n < room_n;
}

/*
 * Tests whether a call may share a question with equal calls. SECURITY: a request with a body, and
 * a WebSocket, say more than their head, and most of it arrives after the question. Each of them
 * has a question of its own, so that one yes is never for two bodies.
 */
static bool is_whole(const struct call *c)
{
	return c->req.ended && c->q.websocket.n == 0;
}

/*
 * Asks a person about a call. Calls without a body share a question if host, port, method, path and
 * query are the same.
 */
static void ask(struct call *c)
{
	struct l7 *l = c->l7;
	struct ask *a = &l->asks[l->asks_n];
	char room[sizeof(a->key_room)];
	struct sv key;

	/*
	 * SECURITY: refuse a path and query that are too long to be shown completely. A person
	 * must not approve text whose end is hidden.
	 */
	if (c->target.text.n > ASKED_MAX || !ask_key(c, &key, room, sizeof(room))) {
		call_refuse(c, 403, CAUSE_ASK_LONG);
		return;
	}
	c->at = CALL_ASKING;
	for (size_t i = 0; is_whole(c) && i < l->asks_n; i++)
		if (sv_eq(l->asks[i].key, key)) {
			c->ask = l->asks[i].id;
			return;
		}
	c->ask = ++l->next_ask;
	if (l->asks_n == L7_ASKS_MAX || !l7_event_ask(c, c->ask)) {
		call_refuse(c, 403, CAUSE_ASK_MANY);
		return;
	}
	memcpy(a->key_room, room, key.n);
	a->key = (struct sv){ a->key_room, is_whole(c) ? key.n : 0 };
	a->id = c->ask;
	l->asks_n++;
}

static struct call *next_asking(struct l7 *l, uint32_t id)
{
	for (struct link *k = l->links; k; k = k->next) {
		struct client *c = (struct client *)k;

		for (struct call *q = k->what == LINK_CLIENT ? c->calls : NULL; q; q = q->next)
			if (q->at == CALL_ASKING && q->ask == id)
				return q;
	}
	return NULL;
}

static void ask_forget(struct l7 *l, uint32_t id)
{
	for (size_t i = 0; i < l->asks_n; i++) {
		if (l->asks[i].id != id)
			continue;
		l->asks_n--;
		l->asks[i] = l->asks[l->asks_n];
		l->asks[i].key.p = l->asks[i].key_room;
		return;
	}
}

void call_asked(struct l7 *l, uint32_t id, bool allowed)
{
	struct call *c;

	ask_forget(l, id);
	while ((c = next_asking(l, id))) {
		c->at = CALL_NEW;
		c->log.asked_us = l->now_us - c->start_us;
		if (allowed)
			call_send(c);
		else
			call_refuse(c, 403, CAUSE_PERSON_OR_NONE);
	}
}

/* --- the decision --- */

void call_begin(struct call *c)
{
	struct reach_key key = { .proto = c->tls ? REACH_HTTPS : REACH_HTTP };

	if (!check(c))
		return;
	key.host = c->host;
	key.port = c->port;
	key.method = c->q.method;
	key.path = c->target.path;
	key.query = c->target.query.n > 0;
	c->verdict = reach_decide(&c->l7->reach, &key);
	switch (c->verdict.answer) {
	case CAP_DENY:
		call_refuse_detail(c, 403, c->verdict.cause, c->verdict.detail);
		break;
	case CAP_ASK:
		ask(c);
		break;
	case CAP_ALLOW:
		call_send(c);
		break;
	}
}

void call_send(struct call *c)
{
	struct l7 *l = c->l7;
	enum cap_cause why = CAUSE_UNPAID;

	if (c->verdict.bill.entry < l->settings.set.caps.n)
		why = quota_use(&l->quota, &c->verdict.bill, l7_now_ms(l));
	if (why != CAUSE_NONE) {
		call_refuse(c, 403, why);
		return;
	}
	c->charged = true;
	c->guarded = l7_secret_bound(l, c->host, c->port);
	why = l7_secret_apply(c);
	if (why != CAUSE_NONE) {
		c->charged = false;
		call_refuse(c, 403, why);
		return;
	}
	c->origin = origin_get(l, c->host, c->port, c->tls);
	if (!c->origin) {
		call_refuse(c, 502, CAUSE_HOSTS);
		return;
	}
	origin_wait(c->origin, c);
	origin_serve(c->origin);
}

bool call_charge(struct call *c, bool up, size_t n)
{
	if (!c->charged)
		return true;
	if (n > quota_left(&c->l7->quota, &c->verdict.bill, up)) {
		call_stop(c, 403, up ? CAUSE_USED_UP : CAUSE_USED_DOWN, NULL);
		return false;
	}
	quota_pass(&c->l7->quota, &c->verdict.bill, up, n);
	*(up ? &c->log.bytes_up : &c->log.bytes_down) += n;
	return true;
}
