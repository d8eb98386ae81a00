#include "l7/l7_priv.h"

#include "base/banned.h"

/*
 * Limits of one HTTP/2 client. SECURITY: without these limits a client could occupy the reader with
 * pings, resets or empty frames. The reader counts all frames except HEADERS and non-empty DATA. A
 * client may send FRAMES_FREE of the counted frames, FRAMES_PER_STREAM more for each request, and
 * one more for each BYTES_PER_FRAME bytes of bodies in either direction, because the receiver of a
 * body must send window updates.
 */
enum {
	STREAMS = 100,
	/* connection window: bytes of the client that may wait in the reader for servers */
	WINDOW = 256 << 10,
	FRAMES_FREE = 1000,
	FRAMES_PER_STREAM = 16,
	BYTES_PER_FRAME = 512,
	RESETS_FREE = 100,
	BLOCK_MAX = 128 << 10,
	ACKS_MAX = 200,
	SETTINGS_MAX = 32,
};

static void too_much(struct client *c, enum cap_cause why)
{
	if (c->last)
		return;
	c->last = true;
	client_close(c, why, NULL);
	(void)nghttp2_session_terminate_session(c->h2, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* --- receiving --- */

static int on_begin_headers(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
	struct client *c = user;
	struct call *k;

	c->in_block = true;
	c->block = 0;
	if (f->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	c->streams++;
	k = call_new(c, f->hd.stream_id);
	if (!k)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	return nghttp2_session_set_stream_user_data(s, f->hd.stream_id, k);
}

static int on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t name_n,
		     const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	struct call *k = h2_call(s, f->hd.stream_id);

	(void)flags;
	(void)user;
	if (k)
		h2_field(k, (struct sv){ (const char *)name, name_n },
			 (struct sv){ (const char *)value, value_n });
	return 0;
}

static int on_invalid_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name,
			     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags,
			     void *user)
{
	struct call *k = h2_call(s, f->hd.stream_id);

	(void)name;
	(void)name_n;
	(void)value;
	(void)value_n;
	(void)flags;
	(void)user;
	if (k && !k->raw_head.reset) {
		k->raw_head.reset = true;
		(void)nghttp2_submit_rst_stream(s, NGHTTP2_FLAG_NONE, f->hd.stream_id,
						NGHTTP2_PROTOCOL_ERROR);
	}
	return 0;
}

static void got_request(struct call *k, bool end)
{
	if (k->raw_head.reset)
		return;
	k->req.ended |= end;
	if (h2_request(k, end))
		call_begin(k);
}

static void got_end(struct call *k)
{
	if (k->raw_head.lines.n && !h2_trailers(buf_view(&k->raw_head.lines), &k->req.trailers)) {
		call_fail(k, CAUSE_TRAILERS);
		return;
	}
	call_up_end(k);
}

static void count(struct client *c, const nghttp2_frame *f)
{
	const bool paid =
		f->hd.type == NGHTTP2_HEADERS || (f->hd.type == NGHTTP2_DATA && f->hd.length > 0);

	if (f->hd.type == NGHTTP2_RST_STREAM)
		c->resets++;
	if (!paid)
		c->frames++;
	if (c->resets > RESETS_FREE && c->resets > c->streams / 2)
		too_much(c, CAUSE_H2_RESETS);
	if (c->frames > FRAMES_FREE + c->streams * FRAMES_PER_STREAM + c->moved / BYTES_PER_FRAME)
		too_much(c, CAUSE_H2_FRAMES);
}

static int on_frame(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
	struct client *c = user;
	struct call *k = h2_call(s, f->hd.stream_id);
	const bool end = f->hd.flags & NGHTTP2_FLAG_END_STREAM;

	count(c, f);
	if (f->hd.type == NGHTTP2_HEADERS)
		c->in_block = false;
	if (!k || c->last || (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA))
		return 0;
	if (f->hd.type == NGHTTP2_HEADERS && f->headers.cat == NGHTTP2_HCAT_REQUEST)
		got_request(k, end);
	else if (end)
		got_end(k);
	return 0;
}

static int on_data(nghttp2_session *s, uint8_t flags, int32_t stream, const uint8_t *p, size_t n,
		   void *user)
{
	struct call *k = h2_call(s, stream);

	(void)flags;
	(void)user;
	if (!k) {
		(void)nghttp2_session_consume(s, stream, n);
		return 0;
	}
	k->req.debt += n;
	k->client->moved += n;
	call_up_data(k, (struct sv){ (const char *)p, n });
	return 0;
}

static int on_close(nghttp2_session *s, int32_t stream, uint32_t code, void *user)
{
	struct call *k = h2_call(s, stream);

	(void)code;
	(void)user;
	if (!k)
		return 0;
	(void)nghttp2_session_set_stream_user_data(s, stream, NULL);
	call_end(k);
	return 0;
}

int client_h2_callbacks(nghttp2_session_callbacks **ret, struct writ_err *err)
{
	nghttp2_session_callbacks *c;

	if (nghttp2_session_callbacks_new(&c) != 0)
		return writ_nomem(err);
	nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(c, on_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(c, on_invalid_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(c, on_close);
	*ret = c;
	return 0;
}

/* --- sending --- */

static void send_trailers(nghttp2_session *s, struct call *k)
{
	struct nvs *v = k->l7->nvs;

	h2_trailer_nvs(buf_view(&k->resp.trailers), v);
	(void)nghttp2_submit_trailer(s, k->stream, v->v, v->n);
}

static ssize_t on_read(nghttp2_session *s, int32_t stream, uint8_t *to, size_t room,
		       uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct call *k = h2_call(s, stream);
	size_t n;

	(void)source;
	(void)user;
	if (!k || k->broken)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	n = k->resp.bytes.n < room ? k->resp.bytes.n : room;
	if (n) {
		memcpy(to, fifo_view(&k->resp.bytes).p, n);
		k->client->moved += n;
		call_down_drop(k, n);
	}
	if (k->broken)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (k->resp.bytes.n == 0 && k->resp.ended) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		k->finished = true;
		if (k->resp.trailers.n) {
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			send_trailers(s, k);
		} else if (!k->req.ended) {
			/*
			 * The response is complete, so the reader does not need
			 * the rest of the request.
			 */
			(void)nghttp2_submit_rst_stream(s, NGHTTP2_FLAG_NONE, stream,
							NGHTTP2_NO_ERROR);
		}
		return (ssize_t)n;
	}
	return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
}

void client_h2_answer(struct call *k, const struct http1_response *r, const struct http1_send *how)
{
	const nghttp2_data_provider from = { .read_callback = on_read };
	/* A gRPC client accepts a trailers-only response only with END_STREAM on the headers. */
	const bool bare =
		how->framing == HTTP1_NONE || (how->framing == HTTP1_LENGTH && how->length == 0);
	struct nvs *v = k->l7->nvs;
	char room[24];

	h2_response_nvs(r, how, v, room);
	if (v->n == 0 ||
	    nghttp2_submit_response(k->client->h2, k->stream, v->v, v->n, bare ? NULL : &from) != 0)
		k->broken = true;
	if (k->broken || (bare && !k->req.ended))
		(void)nghttp2_submit_rst_stream(k->client->h2, NGHTTP2_FLAG_NONE, k->stream,
						k->broken ? NGHTTP2_INTERNAL_ERROR
							  : NGHTTP2_NO_ERROR);
	l7_link_wake(&k->client->link);
}

void client_h2_interim(struct call *k, const struct http1_response *r)
{
	const struct http1_send how = { .framing = HTTP1_NONE };
	struct nvs *v = k->l7->nvs;
	char room[24];

	h2_response_nvs(r, &how, v, room);
	(void)nghttp2_submit_headers(k->client->h2, NGHTTP2_FLAG_NONE, k->stream, NULL, v->v, v->n,
				     NULL);
	l7_link_wake(&k->client->link);
}

void client_h2_wake(struct call *k)
{
	(void)nghttp2_session_resume_data(k->client->h2, k->stream);
	l7_link_wake(&k->client->link);
}

void client_h2_consume(struct call *k, size_t n)
{
	k->req.debt -= n;
	if (!k->client->h2)
		return;
	/* If the stream is closed already, credit only the window of the connection. */
	if (nghttp2_session_consume(k->client->h2, k->stream, n) != 0)
		(void)nghttp2_session_consume_connection(k->client->h2, n);
	l7_link_wake(&k->client->link);
}

/* --- the connection --- */

void client_h2_start(struct client *c)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, 64 << 10 },
	};
	nghttp2_option *o = NULL;

	if (nghttp2_option_new(&o) == 0) {
		nghttp2_option_set_no_auto_window_update(o, 1);
		nghttp2_option_set_max_outbound_ack(o, ACKS_MAX);
		nghttp2_option_set_max_settings(o, SETTINGS_MAX);
		nghttp2_option_set_no_closed_streams(o, 1);
		if (nghttp2_session_server_new2(&c->h2, c->link.l7->client_calls, c, o) != 0)
			c->h2 = NULL;
		nghttp2_option_del(o);
	}
	if (!c->h2 ||
	    nghttp2_submit_settings(c->h2, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings)) != 0 ||
	    nghttp2_session_set_local_window_size(c->h2, NGHTTP2_FLAG_NONE, 0, WINDOW) != 0)
		l7_link_kill(&c->link);
}

static void feed(struct client *c)
{
	struct link *k = &c->link;
	const struct sv in = fifo_view(&k->in);
	const ssize_t n = in.n ? nghttp2_session_mem_recv(c->h2, (const uint8_t *)in.p, in.n) : 0;

	if (c->in_block)
		c->block += in.n;
	fifo_drop(&k->in, in.n);
	if (n < 0) {
		client_close(c, CAUSE_H2, nghttp2_strerror((int)n));
		c->last = true;
		(void)nghttp2_session_terminate_session(c->h2, NGHTTP2_PROTOCOL_ERROR);
	}
	if (c->block > BLOCK_MAX)
		too_much(c, CAUSE_H2_HEADERS);
}

static void set_deadline(struct client *c)
{
	const uint64_t now = l7_now_ms(c->link.l7);

	/* Do not extend the deadline of a client that has left. */
	if (c->link.peer_gone)
		return;
	if (c->in_block) {
		if (c->link.deadline_ms == 0 || c->link.deadline_ms > now + L7_HEAD_MS)
			c->link.deadline_ms = now + L7_HEAD_MS;
	} else {
		c->link.deadline_ms = c->calls ? 0 : now + L7_IDLE_MS;
	}
}

void client_h2_step(struct client *c)
{
	struct link *k = &c->link;

	l7_link_read(k);
	if (!c->last)
		feed(c);
	h2_flush(c->h2, k);
	if (k->dead)
		return;
	set_deadline(c);
	if (k->eof)
		l7_finish_client(c);
	else if (c->last || (!nghttp2_session_want_read(c->h2) &&
			     !nghttp2_session_want_write(c->h2) && k->out.n == 0))
		l7_link_finish(k);
}
