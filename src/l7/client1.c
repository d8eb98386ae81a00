#include "l7/l7_priv.h"

#include "base/banned.h"

/* --- requests --- */

static void refuse_head(struct client *c, const struct writ_err *err)
{
	c->last = c->call->up_end = true;
	call_refuse(c->call, err->code == WRIT_E_LIMIT ? 431 : 400, err->what);
}

static bool parse(struct call *k, struct sv head, struct writ_err *err)
{
	buf_sv(&k->head, head);
	return buf_check(&k->head, err) == 0 &&
	       http1_request_parse(buf_view(&k->head), k->tls ? 443 : 80, k->fields, L7_FIELDS,
				   &k->q, err) == 0;
}

/* The next request, if its head is there. */
static bool read_head(struct client *c)
{
	struct link *k = &c->link;
	struct writ_err err = { 0 };
	enum wire_state state;
	size_t n = 0;

	if (k->in.n == 0 || c->last)
		return false;
	if (c->find.seen == 0 && !k->mute)
		k->deadline_ms = l7_now_ms(k->l7) + L7_HEAD_MS;
	state = http1_head_find(&c->find, fifo_view(&k->in), &http1_limits_default, &n, &err);
	if (state == WIRE_MORE)
		return false;
	c->call = call_new(c, 0);
	if (!c->call) {
		link_kill(k);
		return false;
	}
	if (!k->mute)
		k->deadline_ms = 0;
	c->find = (struct http1_find){ 0 };
	c->discarded = 0;
	if (state == WIRE_BAD || !parse(c->call, sv_sub(fifo_view(&k->in), 0, n), &err)) {
		refuse_head(c, &err);
		return true;
	}
	fifo_drop(&k->in, n);
	http1_body_init(&c->body, c->call->q.framing, c->call->q.length, &c->call->up_trailers);
	if (c->body.at == HTTP1_AT_END)
		call_up_end(c->call);
	call_begin(c->call);
	return true;
}

static void bad_body(struct client *c, const char *why)
{
	c->last = true;
	if (c->call->answered)
		call_fail(c->call, why);
	else
		call_refuse(c->call, 400, why);
	c->call->up_end = true;
}

static void pump_up(struct client *c)
{
	struct link *k = &c->link;
	struct call *q = c->call;

	while (!q->up_end && k->in.n && call_up_room(q) && !c->last) {
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
		if (q->up_discard)
			c->discarded += before - in.n;
		fifo_drop(&k->in, before - in.n);
		if (state == WIRE_DONE)
			call_up_end(q);
		if (c->discarded > L7_DISCARD)
			c->last = true;
	}
}

/* --- answers --- */

static void print(struct client *c, const struct http1_response *r, const struct http1_send *how)
{
	struct buf *b = &c->link.l7->scratch;
	struct writ_err err;

	b->n = 0;
	b->failed = false;
	if (http1_response_print(r, how, b, &err) < 0)
		link_kill(&c->link);
	else
		link_put(&c->link, buf_view(b));
}

void client1_interim(struct call *k, const struct http1_response *r)
{
	const struct http1_send how = { .framing = HTTP1_NONE };

	if (k->q.minor == 1)
		print(k->client, r, &how);
}

void client1_answer(struct call *k, const struct http1_response *r, const struct http1_send *how)
{
	struct client *c = k->client;
	struct http1_send h = *how;

	/* A body that was refused is not waited for, unless it is short and on its way. */
	if (!k->up_end && k->up_discard &&
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
	link_wake(&c->link);
}

static void put_piece(struct client *c, struct sv data)
{
	char head[HTTP1_CHUNK_HEAD_MAX];

	if (!c->chunked) {
		link_put(&c->link, data);
		return;
	}
	link_put(&c->link, (struct sv){ head, http1_chunk_head(data.n, head) });
	link_put(&c->link, data);
	link_put(&c->link, SV("\r\n"));
}

static void put_end(struct client *c)
{
	struct buf *b = &c->link.l7->scratch;

	c->call->finished = true;
	if (!c->chunked)
		return;
	b->n = 0;
	b->failed = false;
	http1_chunk_end(buf_view(&c->call->down_trailers), b);
	if (b->failed)
		link_kill(&c->link);
	else
		link_put(&c->link, buf_view(b));
}

static void pump_down(struct client *c)
{
	struct call *q = c->call;

	if (!q->answered || q->finished)
		return;
	while (q->down.n && c->link.out.n < L7_OUT && !q->broken && !c->link.dead) {
		const struct sv data = sv_sub(fifo_view(&q->down), 0, L7_OUT / 2);

		put_piece(c, data);
		call_down_drop(q, data.n);
	}
	if (q->down_end && q->down.n == 0 && !q->broken)
		put_end(c);
}

/* True: the next request may be read. */
static bool finish(struct client *c)
{
	struct call *q = c->call;

	if (q->broken) {
		/* The end that the head promised does not come: that is how it is seen. */
		link_write(&c->link);
		if (c->link.out.n == 0)
			link_kill(&c->link);
		return false;
	}
	if (!q->finished)
		return false;
	if (!q->up_end && !c->last && !q->tunnel) {
		q->up_discard = true;
		fifo_drop(&q->up, q->up.n);
		if (q->q.framing != HTTP1_LENGTH || q->q.length > L7_DISCARD)
			c->last = true;
		else
			return false;
	}
	c->last |= q->tunnel;
	call_end(q);
	if (c->last)
		link_finish(&c->link);
	else if (!c->link.mute)
		c->link.deadline_ms = l7_now_ms(c->link.l7) + L7_IDLE_MS;
	return !c->last;
}

/* False: the call was ended for what was found. */
static bool frames_clean(struct call *q, struct sv data)
{
	const char *why;

	if (!secret_searched(q))
		return true;
	if (!q->frames)
		q->frames = frames_new(q->l7);
	why = q->frames ? frames_look(q->l7, q->frames, data) : "memory";
	if (why)
		call_fail(q, why);
	return !why;
}

/* After 101 the bytes are nobody's business, but they are counted, and looked through as bodies
 * are. */
static void tunnel(struct client *c)
{
	struct link *k = &c->link;
	struct call *q = c->call;

	while (k->in.n && q->server && q->server->link.out.n < L7_OUT) {
		const struct sv data = sv_sub(fifo_view(&k->in), 0, L7_OUT / 2);

		if (!call_pay(q, true, data.n) || !frames_clean(q, data))
			return;
		link_put(&q->server->link, data);
		fifo_drop(&k->in, data.n);
	}
}

void client1_step(struct client *c)
{
	struct link *k = &c->link;
	bool more = true;

	link_read(k);
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
		finish_client(c);
}
