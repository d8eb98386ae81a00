#include <stdio.h>

#include "wire/http1_priv.h"

#include "base/banned.h"

static bool is_set(struct sv name, const struct http1_send *how)
{
	for (size_t i = 0; i < how->set_n; i++)
		if (same_field(name, how->set[i].name))
			return true;
	return false;
}

static void field_put(struct buf *b, struct sv name, struct sv value)
{
	buf_sv(b, name);
	buf_str(b, ": ");
	buf_sv(b, value);
	buf_str(b, "\r\n");
}

static int fields_put(struct buf *b, const struct http1_field *fields, size_t n,
		      const struct http1_send *how, struct writ_err *err)
{
	for (size_t i = 0; i < n; i++)
		if (!fields[i].drop && !is_set(fields[i].name, how))
			field_put(b, fields[i].name, fields[i].value);
	for (size_t i = 0; i < how->set_n; i++) {
		/* SECURITY: a value with a line break would inject another field. */
		if (!http1_field_check(how->set[i].name, how->set[i].value) ||
		    http1_rules[http1_id_of(how->set[i].name)].ours)
			return writ_fail_lit(err, WRIT_E_BUG, 0, "HTTP field that cannot be sent");
		field_put(b, how->set[i].name, how->set[i].value);
	}
	return 0;
}

static void framing_put(struct buf *b, const struct http1_send *how)
{
	if (how->framing == HTTP1_LENGTH)
		buf_fmt(b, "Content-Length: %llu\r\n", (unsigned long long)how->length);
	else if (how->framing == HTTP1_CHUNKED)
		buf_str(b, "Transfer-Encoding: chunked\r\n");
}

static void connection_put(struct buf *b, bool websocket, bool close)
{
	if (websocket)
		buf_str(b, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	else if (close)
		buf_str(b, "Connection: close\r\n");
}

int http1_request_print(const struct http1_request *q, const struct http1_send *how, struct buf *b,
			struct writ_err *err)
{
	int r;

	if (!q->has_host || how->target.n == 0 || how->framing == HTTP1_UNTIL_CLOSE ||
	    !http1_all(how->target, HTTP1_IN_TARGET) || !http1_all(q->method, HTTP1_IN_TOKEN))
		return writ_fail_lit(err, WRIT_E_BUG, 0, "HTTP request that cannot be sent");
	buf_sv(b, q->method);
	buf_ch(b, ' ');
	buf_sv(b, how->target);
	buf_str(b, " HTTP/1.1\r\nHost: ");
	wire_host_print(&q->host.host, b);
	if (q->host.has_port)
		buf_fmt(b, ":%u", q->host.port);
	buf_str(b, "\r\n");
	r = fields_put(b, q->fields, q->fields_n, how, err);
	if (r < 0)
		return r;
	framing_put(b, how);
	if (q->expect)
		buf_str(b, "Expect: 100-continue\r\n");
	connection_put(b, q->websocket.n > 0, how->close);
	buf_str(b, "\r\n");
	return buf_check(b, err);
}

int http1_response_print(const struct http1_response *r, const struct http1_send *how,
			 struct buf *b, struct writ_err *err)
{
	int ret;

	if (r->status < 100 || r->status > 999 || !http1_all(r->reason, HTTP1_IN_VALUE) ||
	    (how->framing == HTTP1_UNTIL_CLOSE && !how->close))
		return writ_fail_lit(err, WRIT_E_BUG, 0, "HTTP response that cannot be sent");
	buf_fmt(b, "HTTP/1.1 %u ", r->status);
	buf_sv(b, r->reason);
	buf_str(b, "\r\n");
	ret = fields_put(b, r->fields, r->fields_n, how, err);
	if (ret < 0)
		return ret;
	framing_put(b, how);
	if (how->framing == HTTP1_NONE && r->framing == HTTP1_NONE && r->has_length)
		buf_fmt(b, "Content-Length: %llu\r\n", (unsigned long long)r->length);
	connection_put(b, r->websocket, how->close);
	buf_str(b, "\r\n");
	return buf_check(b, err);
}

size_t http1_chunk_head(uint64_t n, char out[static HTTP1_CHUNK_HEAD_MAX])
{
	return (size_t)snprintf(out, HTTP1_CHUNK_HEAD_MAX, "%llx\r\n", (unsigned long long)n);
}

void http1_chunk_end(struct sv trailers, struct buf *b)
{
	buf_str(b, "0\r\n");
	buf_sv(b, trailers);
	buf_str(b, "\r\n");
}
