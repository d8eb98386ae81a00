#include "l7/l7_priv.h"

#include "base/banned.h"

/* --- requests --- */

static void refuse_head(struct client *c, const struct writ_err *err)
{
	c->last = c->call->req.ended = true;
	call_refuse_detail(c->call, err->code == WRIT_E_LIMIT ? 431 : 400, CAUSE_HTTP, err->what);
}

static bool parse(struct call *k, struct sv head, struct writ_err *err)
{
	buf_sv(&k->head, head);
	return buf_check(&k->head, err) == 0 &&
	       http1_request_parse(buf_view(&k->head), k->tls ? 443 : 80, k->fields, L7_FIELDS,
				   &k->q, err) == 0;
}

/* Parses the next request of a client if its head is complete. Returns true if a call began. */
static bool read_head(struct client *c)
{
	struct link *k = &c->link;
	struct writ_err err = { 0 };
	enum wire_state state;
	size_t n = 0;

	if (k->in.n == 0 || c->last)
		return false;
	if (c->find.seen == 0 && !k->peer_gone)
		k->deadline_ms = l7_now_ms(k->l7) + L7_HEAD_MS;
	state = http1_head_find(&c->find, fifo_view(&k->in), &http1_limits_default, &n, &err);
	if (state == WIRE_MORE)
		return false;
	c->call = call_new(c, 0);
	if (!c->call) {
		l7_link_kill(k);
		return false;
	}
	if (!k->peer_gone)
		k->deadline_ms = 0;
	c->find = (struct http1_find){ 0 };
	c->discarded = 0;
	if (state == WIRE_BAD || !parse(c->call, sv_sub(fifo_view(&k->in), 0, n), &err)) {
		refuse_head(c, &err);
		return true;
	}
	fifo_drop(&k->in, n);
	http1_body_init(&c->body, c->call->q.framing, c->call->q.length, &c->call->req.trailers);
	if (c->body.at == HTTP1_AT_END)
		call_up_end(c->call);
	call_begin(c->call);
	return true;
}

static void bad_body(struct client *c, const char *detail)
{
	c->last = true;
	call_stop(c->call, 400, CAUSE_HTTP, detail);
	c->call->req.ended = true;
}

static void pump_up(struct client *c)
{
	struct link *k = &c->link;
	struct call *q = c->call;

	while (!q->req.ended && k->in.n && call_up_room(q) && !c->last) {
		struct sv in = sv_sub(fifo_view(&k->in), 0, call_up_room(q)), data;
		const size_t before = in.n;
		struct writ_err err;
		const enum wire_state state = http1_body_next(&c->body, &in, &data, &err);

		if (state == WIRE_BAD) {
			bad_body(c, err.what);
			return;
		}
		if (data.n)
			call_up_data(q, data);
		if (q->req.discard)
			c->discarded += before - in.n;
		fifo_drop(&k->in, before - in.n);
		if (state == WIRE_DONE)
			call_up_end(q);
		if (c->discarded > L7_DISCARD)
			c->last = true;
	}
}

/* --- responses --- */

static void print(struct client *c, const struct http1_response *r, const struct http1_send *how)
{
	struct buf *b = l7_scratch(c->link.l7);
	struct writ_err err;

	if (http1_response_print(r, how, b, &err) < 0)
		l7_link_kill(&c->link);
	else
		l7_link_put(&c->link, buf_view(b));
}

void client_h1_interim(struct call *k, const struct http1_response *r)
{
	const struct http1_send how = { .framing = HTTP1_NONE };

	if (k->q.minor == 1)
		print(k->client, r, &how);
}

void client_h1_answer(struct call *k, const struct http1_response *r, const struct http1_send *how)
{
	struct client *c = k->client;
	struct http1_send h = *how;

	/*
	 * Do not wait for the body of a refused request, unless the body is
	 * short and already on its way.
	 */
	if (!k->req.ended && k->req.discard &&
	    (k->q.expect || k->q.framing == HTTP1_CHUNKED || k->q.length > L7_DISCARD))
		c->last = true;
	if (k->q.minor == 0) {
		c->last = true;
		if (h.framing == HTTP1_CHUNKED)
			h.framing = HTTP1_UNTIL_CLOSE;
	}
	c->last |= !k->q.keep_alive;
	h.close = c->last && !r->websocket;
	c->chunked = h.framing == HTTP1_CHUNKED;
	k->tunnel = r->websocket;
	print(c, r, &h);
	l7_link_wake(&c->link);
}

static void pump_down(struct client *c)
{
	struct call *q = c->call;

	if (!q->answered || q->finished)
		return;
	while (q->resp.bytes.n && c->link.out.n < L7_OUT && !q->broken && !c->link.dead) {
		const struct sv data = sv_sub(fifo_view(&q->resp.bytes), 0, L7_OUT / 2);

		l7_link_put_piece(&c->link, data, c->chunked);
		call_down_drop(q, data.n);
	}
	if (!q->resp.ended || q->resp.bytes.n || q->broken)
		return;
	q->finished = true;
	if (c->chunked)
		l7_link_put_last_chunk(&c->link, buf_view(&q->resp.trailers));
}

/* Ends the call if it is finished. Returns true if the client may then send another request. */
static bool finish(struct client *c)
{
	struct call *q = c->call;

	if (q->broken) {
		/*
		 * Close the connection without the promised end of the body; the client
		 * can detect the truncation.
		 */
		l7_link_write(&c->link);
		if (c->link.out.n == 0)
			l7_link_kill(&c->link);
		return false;
	}
	if (!q->finished)
		return false;
	if (!q->req.ended && !c->last && !q->tunnel) {
		q->req.discard = true;
		fifo_drop(&q->req.bytes, q->req.bytes.n);
		if (q->q.framing != HTTP1_LENGTH || q->q.length > L7_DISCARD)
			c->last = true;
		else
			return false;
	}
	c->last |= q->tunnel;
	call_end(q);
	if (c->last)
		l7_link_finish(&c->link);
	else if (!c->link.peer_gone)
		c->link.deadline_ms = l7_now_ms(c->link.l7) + L7_IDLE_MS;
	return !c->last;
}

/* Searches WebSocket frames for placeholders. Returns false if the search ended the call. */
static bool frames_clean(struct call *q, struct sv data)
{
	enum cap_cause why;

	if (!l7_secret_searched(q))
		return true;
	if (!q->req.frames)
		q->req.frames = l7_frames_new(q->l7);
	why = q->req.frames ? l7_frames_search(q->l7, q->req.frames, data) : CAUSE_MEMORY;
	if (why != CAUSE_NONE)
		call_fail(q, why);
	return why == CAUSE_NONE;
}

/*
 * Relays bytes of a WebSocket client to the server after 101 Switching Protocols. The bytes are
 * counted, and searched like a request body.
 */
static void tunnel(struct client *c)
{
	struct link *k = &c->link;
	struct call *q = c->call;

	while (k->in.n && q->server && q->server->link.out.n < L7_OUT) {
		const struct sv data = sv_sub(fifo_view(&k->in), 0, L7_OUT / 2);

		if (!call_charge(q, true, data.n) || !frames_clean(q, data))
			return;
		l7_link_put(&q->server->link, data);
		fifo_drop(&k->in, data.n);
	}
}

void client_h1_step(struct client *c)
{
	struct link *k = &c->link;
	bool more = true;

	l7_link_read(k);
	while (more && !k->dead && !k->closing) {
		more = !c->call && read_head(c);
		if (!c->call)
			continue;
		if (c->call->tunnel)
			tunnel(c);
		else
			pump_up(c);
		pump_down(c);
		more = finish(c) || more;
	}
	if (k->eof && !k->closing)
		l7_finish_client(c);
}
