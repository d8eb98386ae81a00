#include "l7/l7_priv.h"

#include "base/banned.h"

enum { STREAMS = 100, STREAM_WINDOW = 512 << 10, WINDOW = 768 << 10, ACKS_MAX = 200 };

/* --- sending --- */

static ssize_t on_read(nghttp2_session *s, int32_t stream, uint8_t *to, size_t room,
		       uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct call *c = h2_call(s, stream);
	size_t n;

	(void)source;
	(void)user;
	if (!c)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	n = c->req.bytes.n < room ? c->req.bytes.n : room;
	if (n) {
		if (!call_charge(c, true, n))
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
		memcpy(to, fifo_view(&c->req.bytes).p, n);
		call_up_drop(c, n);
	}
	if (c->req.bytes.n == 0 && c->req.ended) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		c->req.sent = true;
		if (c->req.trailers.n) {
			struct nvs *v = c->l7->nvs;

			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			h2_trailer_nvs(buf_view(&c->req.trailers), v);
			(void)nghttp2_submit_trailer(s, stream, v->v, v->n);
		}
		return (ssize_t)n;
	}
	return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
}

bool server_h2_room(const struct server *s)
{
	const uint32_t most =
		nghttp2_session_get_remote_settings(s->h2, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);

	return s->streams < STREAMS && s->streams < most &&
	       nghttp2_session_check_request_allowed(s->h2);
}

static size_t size_of(const struct nvs *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++)
		n += v->v[i].namelen + v->v[i].valuelen;
	return n;
}

void server_h2_send(struct server *s, struct call *c)
{
	static const struct http1_response carry_on = {
		.status = 100, .minor = 1, .reason = SV_INIT("Continue"), .interim = true
	};
	const nghttp2_data_provider from = { .read_callback = on_read };
	const bool body =
		c->q.framing == HTTP1_CHUNKED || (c->q.framing == HTTP1_LENGTH && c->q.length > 0);
	struct nvs *v = c->l7->nvs;

	h2_request_nvs(c, v);
	if (!c->retried && !call_charge(c, true, size_of(v)))
		return;
	c->server_stream =
		v->n ? nghttp2_submit_request(s->h2, NULL, v->v, v->n, body ? &from : NULL, c) : -1;
	buf_clear(&c->raw_answer.lines);
	if (c->server_stream < 0) {
		c->server = NULL;
		c->server_stream = 0;
		call_fail(c, CAUSE_UNSENT);
		return;
	}
	s->streams++;
	c->req.sent = !body;
	s->link.out.wipe |= c->log.credential[0] != 0;
	/*
	 * The HTTP/2 window limits the request body, so the client need not wait for
	 * the server's 100-continue.
	 */
	if (c->q.expect)
		call_interim(c, &carry_on);
	l7_link_wake(&s->link);
}

void server_h2_wake(struct call *c)
{
	if (c->server_stream > 0)
		(void)nghttp2_session_resume_data(c->server->h2, c->server_stream);
	l7_link_wake(&c->server->link);
}

void server_h2_consume(struct call *c, size_t n)
{
	struct server *s = c->server;

	c->resp.debt -= n;
	if (c->server_stream <= 0 || nghttp2_session_consume(s->h2, c->server_stream, n) != 0)
		(void)nghttp2_session_consume_connection(s->h2, n);
	/*
	 * The stream is closed already, and the call stayed attached only until its
	 * window debt was credited.
	 */
	if (c->server_stream == 0 && c->resp.debt == 0)
		c->server = NULL;
	l7_link_wake(&s->link);
}

void server_h2_cancel(struct call *c)
{
	struct server *s = c->server;

	if (c->resp.debt)
		server_h2_consume(c, c->resp.debt);
	if (c->server_stream > 0) {
		(void)nghttp2_session_set_stream_user_data(s->h2, c->server_stream, NULL);
		(void)nghttp2_submit_rst_stream(s->h2, NGHTTP2_FLAG_NONE, c->server_stream,
						NGHTTP2_CANCEL);
	}
	c->server_stream = 0;
	c->server = NULL;
	l7_link_wake(&s->link);
}

/* --- receiving --- */

static int on_begin_headers(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
	struct call *c = h2_call(s, f->hd.stream_id);

	(void)user;
	if (c) {
		c->raw_answer.lines.n = 0;
		c->raw_answer.status[0] = 0;
		c->raw_answer.has_length = false;
	}
	return 0;
}

static int on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name_p,
		     size_t name_n, const uint8_t *value_p, size_t value_n, uint8_t flags,
		     void *user)
{
	const struct sv name = { (const char *)name_p, name_n };
	const struct sv value = { (const char *)value_p, value_n };
	struct call *c = h2_call(s, f->hd.stream_id);

	(void)flags;
	(void)user;
	if (!c)
		return 0;
	if (sv_is(name, ":status")) {
		if (value.n != 3)
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
		memcpy(c->raw_answer.status, value.p, 3);
		return 0;
	}
	c->raw_answer.has_length |= sv_is(name, "content-length");
	return h2_line(&c->raw_answer.lines, name, value) ? 0
							  : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_invalid_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name,
			     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags,
			     void *user)
{
	(void)s;
	(void)f;
	(void)name;
	(void)name_n;
	(void)value;
	(void)value_n;
	(void)flags;
	(void)user;
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

/* Parses the head of an HTTP/2 response with the parser of HTTP/1. */
static void got_head(struct call *c, bool end)
{
	const struct http1_asked asked = { .head = sv_is(c->q.method, "HEAD") };
	const char *st = c->raw_answer.status;
	const bool bare = end || asked.head || st[0] == '1' || sv_is(sv_from(st), "204") ||
			  sv_is(sv_from(st), "304");
	struct http1_field fields[L7_FIELDS];
	struct http1_response r;
	struct writ_err err;
	scoped_buf b = BUF_INIT(96 << 10);

	buf_fmt(&b, "HTTP/1.1 %s \r\n", st);
	buf_sv(&b, buf_view(&c->raw_answer.lines));
	if (!bare && !c->raw_answer.has_length)
		buf_str(&b, "Transfer-Encoding: chunked\r\n");
	else if (end && !c->raw_answer.has_length && st[0] != '1' && !sv_is(sv_from(st), "204"))
		buf_str(&b, "Content-Length: 0\r\n");
	buf_str(&b, "\r\n");
	if (b.failed || http1_response_parse(buf_view(&b), asked, fields, L7_FIELDS, &r, &err) < 0)
		call_stop(c, 502, b.failed ? CAUSE_HTTP_LONG : CAUSE_HTTP, err.what);
	else if (r.interim)
		call_interim(c, &r);
	else
		call_answer(c, &r, buf_view(&b));
}

static int on_frame(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
	struct call *c = h2_call(s, f->hd.stream_id);
	const bool end = f->hd.flags & NGHTTP2_FLAG_END_STREAM;

	(void)user;
	if (!c || (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA))
		return 0;
	if (f->hd.type == NGHTTP2_HEADERS) {
		if (c->raw_answer.status[0])
			got_head(c, end);
		else if (!h2_trailers(buf_view(&c->raw_answer.lines), &c->resp.trailers))
			call_fail(c, CAUSE_TRAILERS);
	}
	if (end && h2_call(s, f->hd.stream_id) == c)
		call_down_end(c);
	return 0;
}

static int on_data(nghttp2_session *s, uint8_t flags, int32_t stream, const uint8_t *p, size_t n,
		   void *user)
{
	struct call *c = h2_call(s, stream);

	(void)flags;
	(void)user;
	if (!c) {
		(void)nghttp2_session_consume(s, stream, n);
		return 0;
	}
	c->resp.debt += n;
	call_down_data(c, (struct sv){ (const char *)p, n });
	return 0;
}

static int on_close(nghttp2_session *s, int32_t stream, uint32_t code, void *user)
{
	struct server *v = user;
	struct call *c = h2_call(s, stream);

	v->streams--;
	server_idle(v);
	if (c) {
		c->server_stream = 0;
		if (c->resp.debt == 0 || !c->resp.raw_ended)
			server_h2_cancel(c);
		if (!c->resp.raw_ended && code == NGHTTP2_REFUSED_STREAM && !c->retried &&
		    !c->answered && c->q.framing == HTTP1_NONE) {
			c->retried = true;
			origin_wait(v->origin, c);
		} else if (!c->resp.raw_ended) {
			call_fail(c, CAUSE_SERVER_RESET);
		}
	}
	if (v->origin->waiting)
		origin_serve(v->origin);
	return 0;
}

int server_h2_callbacks(nghttp2_session_callbacks **ret, struct writ_err *err)
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

/* --- the connection --- */

void server_h2_start(struct server *s)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, 64 << 10 },
	};
	nghttp2_option *o = NULL;

	if (nghttp2_option_new(&o) == 0) {
		nghttp2_option_set_no_auto_window_update(o, 1);
		nghttp2_option_set_max_outbound_ack(o, ACKS_MAX);
		nghttp2_option_set_no_closed_streams(o, 1);
		if (nghttp2_session_client_new2(&s->h2, s->link.l7->server_calls, s, o) != 0)
			s->h2 = NULL;
		nghttp2_option_del(o);
	}
	if (!s->h2 ||
	    nghttp2_submit_settings(s->h2, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings)) != 0 ||
	    nghttp2_session_set_local_window_size(s->h2, NGHTTP2_FLAG_NONE, 0, WINDOW) != 0)
		l7_link_kill(&s->link);
	l7_link_wake(&s->link);
}

void server_h2_step(struct server *s)
{
	struct link *k = &s->link;
	struct sv in;

	l7_link_read(k);
	in = fifo_view(&k->in);
	if (in.n && nghttp2_session_mem_recv(s->h2, (const uint8_t *)in.p, in.n) < 0) {
		l7_link_kill(k);
		return;
	}
	fifo_drop(&k->in, in.n);
	h2_flush(s->h2, k);
	if (k->eof || (!nghttp2_session_want_read(s->h2) && !nghttp2_session_want_write(s->h2)))
		l7_link_kill(k);
}
