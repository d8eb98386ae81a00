#include "l7/l7_priv.h"

#include "base/banned.h"

static void give_up(struct server *s, enum cap_cause cause, const char *detail)
{
	struct call *c = s->call;

	s->call = NULL;
	l7_link_kill(&s->link);
	if (c) {
		c->server = NULL;
		call_stop(c, 502, cause, detail);
	}
}

/* --- the request --- */

/*
 * Tests for a request whose body the server might take for the next request, because it expects no
 * body with this method. SECURITY: such a request asks the server to close the connection after the
 * response, so that the server does not act on what follows the head, and release() uses the
 * connection for no other request.
 */
static bool is_last(const struct call *c)
{
	const bool body = c->q.framing == HTTP1_CHUNKED || c->q.length > 0;

	return body && !sv_is(c->q.method, "POST") && !sv_is(c->q.method, "PUT") &&
	       !sv_is(c->q.method, "PATCH");
}

void server_h1_send(struct server *s, struct call *c)
{
	struct buf *b = l7_scratch(s->link.l7);
	const struct http1_send how = { .target = c->inject.target,
					.framing = c->q.framing,
					.length = c->q.length,
					.close = is_last(c),
					.set = c->inject.set,
					.set_n = c->inject.set_n };
	struct writ_err err;

	s->call = c;
	s->find = (struct http1_find){ 0 };
	s->in_body = s->sent_end = s->keep = false;
	if (http1_request_print(&c->q, &how, b, &err) < 0) {
		give_up(s, CAUSE_HTTP, err.what);
		return;
	}
	if (!c->retried && !call_charge(c, true, b->n))
		return;
	s->link.out.wipe |= c->log.credential[0] != 0;
	l7_link_put(&s->link, buf_view(b));
	if (c->log.credential[0])
		explicit_bzero(b->p, b->n);
}

static void push(struct server *s)
{
	struct call *c = s->call;
	const bool chunked = c->q.framing == HTTP1_CHUNKED;

	while (c->req.bytes.n && s->link.out.n < L7_OUT) {
		const struct sv data = sv_sub(fifo_view(&c->req.bytes), 0, L7_OUT / 2);

		if (!call_charge(c, true, data.n))
			return;
		l7_link_put_piece(&s->link, data, chunked);
		call_up_drop(c, data.n);
	}
	if (!c->req.ended || c->req.bytes.n || s->sent_end)
		return;
	s->sent_end = c->req.sent = true;
	if (chunked)
		l7_link_put_last_chunk(&s->link, buf_view(&c->req.trailers));
}

/* --- the response --- */

/*
 * Tests whether the server may speak only HTTP/2: the server selected no protocol in TLS, and its
 * response is not HTTP/1. If so, sets origin.only_h2, and the caller retries with HTTP/2. If that
 * fails too, opened() resets only_h2.
 */
static bool wants_h2(const struct server *s)
{
	const unsigned char *p = NULL;
	unsigned n = 0;

	if (!s->link.ssl || s->used || s->offer != TLS_OFFER_H1 || s->origin->only_h2 ||
	    s->call->q.websocket.n)
		return false;
	SSL_get0_alpn_selected(s->link.ssl, &p, &n);
	s->origin->only_h2 = n == 0;
	return n == 0;
}

static bool is_safe(struct sv method)
{
	static const char *const safe[] = { "GET", "HEAD", "OPTIONS", "PUT", "DELETE" };

	for (size_t i = 0; i < ARRAY_LEN(safe); i++)
		if (sv_is(method, safe[i]))
			return true;
	return false;
}

/*
 * Retries a request without a body, once, on another connection. Either the server may speak only
 * HTTP/2, or the server may have closed a pooled connection just when the reader reused it.
 */
static bool try_again(struct server *s)
{
	struct call *c = s->call;
	const bool other = wants_h2(s);

	if (c->retried || c->answered || c->q.framing == HTTP1_CHUNKED || c->q.length)
		return false;
	if (!other && (!s->used || s->link.in.n || !is_safe(c->q.method)))
		return false;
	s->call = NULL;
	c->server = NULL;
	c->retried = true;
	l7_link_kill(&s->link);
	origin_wait(s->origin, c);
	origin_serve(s->origin);
	return true;
}

/* Detaches a call after its response, and returns the connection to the pool or closes it. */
static void release(struct server *s)
{
	struct call *c = s->call;

	s->call = NULL;
	c->server = NULL;
	c->at = CALL_NEW;
	s->used = true;
	if (!s->keep || is_last(c) || !s->sent_end || s->link.in.n || s->link.eof || c->tunnel) {
		l7_link_kill(&s->link);
	} else {
		server_idle(s);
		origin_serve(s->origin);
	}
}

static bool read_head(struct server *s)
{
	struct call *c = s->call;
	struct http1_field fields[L7_FIELDS];
	const struct http1_asked asked = { .head = sv_is(c->q.method, "HEAD"),
					   .websocket = c->q.websocket.n > 0 };
	struct http1_response r;
	struct writ_err err;
	size_t n = 0;
	const enum wire_state state =
		http1_head_find(&s->find, fifo_view(&s->link.in), &http1_limits_default, &n, &err);

	if (state == WIRE_MORE)
		return false;
	if (state == WIRE_BAD || http1_response_parse(sv_sub(fifo_view(&s->link.in), 0, n), asked,
						      fields, L7_FIELDS, &r, &err) < 0) {
		if (!try_again(s))
			give_up(s, CAUSE_HTTP, err.what);
		return false;
	}
	s->find = (struct http1_find){ 0 };
	if (r.interim) {
		call_interim(c, &r);
	} else {
		s->in_body = true;
		s->keep = r.keep_alive;
		http1_body_init(&s->body, r.websocket ? HTTP1_UNTIL_CLOSE : r.framing, r.length,
				&c->resp.trailers);
		call_answer(c, &r, sv_sub(fifo_view(&s->link.in), 0, n));
	}
	fifo_drop(&s->link.in, n);
	return true;
}

static bool read_body(struct server *s)
{
	struct call *c = s->call;
	struct sv in = sv_sub(fifo_view(&s->link.in), 0, call_down_room(c)), data;
	const size_t before = in.n;
	struct writ_err err;
	enum wire_state state;

	if (in.n == 0 && s->body.at != HTTP1_AT_END)
		return false;
	state = http1_body_next(&s->body, &in, &data, &err);
	if (state == WIRE_BAD) {
		give_up(s, CAUSE_HTTP, err.what);
		return false;
	}
	if (data.n)
		call_down_data(c, data);
	fifo_drop(&s->link.in, before - in.n);
	if (s->call && state == WIRE_DONE) {
		release(s);
		call_down_end(c);
		return false;
	}
	return s->call;
}

static void ended(struct server *s)
{
	struct call *c = s->call;

	if (!s->in_body) {
		if (!try_again(s))
			give_up(s, CAUSE_SERVER_SILENT, NULL);
	} else if (s->link.in.n == 0) {
		if (http1_body_may_end(&s->body) && (!s->link.truncated || c->tunnel)) {
			release(s);
			call_down_end(c);
		} else {
			give_up(s, CAUSE_SERVER_SHORT, NULL);
		}
	}
}

void server_h1_step(struct server *s)
{
	l7_link_read(&s->link);
	if (!s->call) {
		/* Bytes that arrive without a request are not a response; close the connection. */
		if (s->link.in.n || s->link.eof)
			l7_link_kill(&s->link);
		return;
	}
	if (!s->call->tunnel)
		push(s);
	while (s->call && !s->link.dead && (s->in_body ? read_body(s) : read_head(s)))
		;
	if (s->call && s->link.eof && !s->link.dead)
		ended(s);
}
