/*
 * fuzz_wire_http1 - a head: a request, or a response if the first byte is odd. What is
 * taken is printed, and what is printed must be taken and mean the same.
 */
#include <string.h>

#include "fuzz.h"
#include "wire/http1_body.h"
#include "wire/target.h"

enum { FIELDS = 100 };

static size_t kept(const struct http1_field *f, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		k += !f[i].drop;
		must(f[i].name.n > 0 && !memchr(f[i].name.p, ':', f[i].name.n));
		must(f[i].value.n == 0 || !memchr(f[i].value.p, '\n', f[i].value.n));
	}
	return k;
}

static void request(struct sv head)
{
	struct http1_field fields[FIELDS], again[FIELDS];
	scoped_buf b = BUF_INIT(1 << 20), t = BUF_INIT(1 << 20);
	struct http1_request q, p;
	struct writ_err err = { 0 };
	struct http1_send how;
	struct target target;

	if (http1_request_parse(head, 80, fields, FIELDS, &q, &err) < 0) {
		must(err.what[0] != 0);
		return;
	}
	if (!q.has_host || q.form == HTTP1_AUTHORITY || q.target.p[0] != '/' ||
	    target_parse(q.target, &t, &target, &err) != TARGET_OK)
		return;
	how = (struct http1_send){ .target = target.text,
				   .framing = q.framing,
				   .length = q.length,
				   .close = !q.keep_alive };
	must(http1_request_print(&q, &how, &b, &err) == 0);
	must(http1_request_parse(buf_view(&b), q.host.port, again, FIELDS, &p, &err) == 0);
	must(sv_eq(p.method, q.method) && sv_eq(p.target, target.text) && p.framing == q.framing &&
	     p.length == q.length && p.expect == q.expect && p.host.port == q.host.port &&
	     wire_host_eq(&p.host.host, &q.host.host) && sv_eq(p.websocket, q.websocket));
	must(q.websocket.n || p.keep_alive == q.keep_alive);
	must(kept(again, p.fields_n) == kept(fields, q.fields_n));
}

static void response(struct sv head, struct http1_asked asked)
{
	struct http1_field fields[FIELDS], again[FIELDS];
	scoped_buf b = BUF_INIT(1 << 20);
	struct http1_response r, p;
	struct writ_err err = { 0 };
	struct http1_send how;

	if (http1_response_parse(head, asked, fields, FIELDS, &r, &err) < 0) {
		must(err.what[0] != 0);
		return;
	}
	how = (struct http1_send){ .framing = r.framing,
				   .length = r.length,
				   .close = !r.keep_alive };
	must(http1_response_print(&r, &how, &b, &err) == 0);
	must(http1_response_parse(buf_view(&b), asked, again, FIELDS, &p, &err) == 0);
	must(p.status == r.status && p.framing == r.framing && p.length == r.length &&
	     p.has_length == r.has_length && p.interim == r.interim && p.websocket == r.websocket);
	must(kept(again, p.fields_n) == kept(fields, r.fields_n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sv all = { (const char *)data + 1, size - 1 };
	struct http1_find f = { 0 }, g = { 0 };
	struct writ_err err = { 0 };
	enum wire_state s, t = WIRE_MORE;
	size_t n = 0, m = 0;

	if (size == 0)
		return 0;
	s = http1_head_find(&f, all, &http1_limits_default, &n, &err);
	for (size_t i = 0; i <= all.n && t == WIRE_MORE && all.n < 4096; i++)
		t = http1_head_find(&g, sv_sub(all, 0, i), &http1_limits_default, &m, &err);
	must(all.n >= 4096 || (s == t && m == n));
	if (s == WIRE_DONE && !(data[0] & 1))
		request(sv_sub(all, 0, n));
	else if (s == WIRE_DONE)
		response(sv_sub(all, 0, n), (struct http1_asked){ data[0] & 2, data[0] & 4 });
	else if (s == WIRE_MORE) /* a parser that is called too early says no */
		request(all);
	return 0;
}
