#include "l7/l7_priv.h"

#include "base/banned.h"

enum { FLUSH = 1 << 20 };

/* --- from HTTP/2 to the common parser --- */

bool h2_line(struct buf *b, struct sv name, struct sv value)
{
	if (!http1_field_check(name, value))
		return false;
	buf_sv(b, name);
	buf_str(b, ": ");
	buf_sv(b, value);
	buf_str(b, "\r\n");
	return !b->failed;
}

static void pseudo_put(struct call *c, struct buf *to, struct sv value)
{
	c->raw_head.malformed |= to->n > 0 || !sv_is_graph(value);
	buf_sv(to, value);
	c->raw_head.too_long |= to->failed;
}

static void pseudo(struct call *c, struct sv name, struct sv value)
{
	if (sv_is(name, ":method"))
		pseudo_put(c, &c->raw_head.method, value);
	else if (sv_is(name, ":path"))
		pseudo_put(c, &c->raw_head.path, value);
	else if (sv_is(name, ":authority"))
		pseudo_put(c, &c->raw_head.authority, value);
	else
		c->raw_head.malformed |= !sv_is(name, ":scheme");
}

/*
 * Records the host of a request. Both :authority and Host may name the
 * host, but the two must agree.
 */
static void host(struct call *c, struct sv value)
{
	if (c->raw_head.authority.n == 0)
		buf_sv(&c->raw_head.authority, value);
	else if (!same_name(buf_view(&c->raw_head.authority), value))
		c->raw_head.other_host = true;
}

void h2_field(struct call *c, struct sv name, struct sv value)
{
	if (name.n && name.p[0] == ':') {
		pseudo(c, name, value);
	} else if (sv_is(name, "host")) {
		host(c, value);
	} else if (sv_is(name, "cookie")) {
		/*
		 * Join the Cookie fields: HTTP/2 clients may split the field,
		 * but HTTP/1 has only one.
		 */
		if (c->raw_head.cookie.n)
			buf_str(&c->raw_head.cookie, "; ");
		buf_sv(&c->raw_head.cookie, value);
	} else {
		c->raw_head.has_length |= sv_is(name, "content-length");
		if (!h2_line(&c->raw_head.lines, name, value))
			*(c->raw_head.lines.failed ? &c->raw_head.too_long
						   : &c->raw_head.malformed) = true;
	}
	c->raw_head.too_long |= c->raw_head.cookie.failed;
}

bool h2_request(struct call *c, bool end)
{
	struct buf *b = &c->head;
	struct writ_err err = { 0 };

	if (c->raw_head.other_host) {
		call_refuse(c, 421, CAUSE_OTHER_AUTHORITY);
		return false;
	}
	buf_sv(b, buf_view(&c->raw_head.method));
	buf_ch(b, ' ');
	buf_sv(b, sv_is(buf_view(&c->raw_head.method), "CONNECT") ? buf_view(&c->raw_head.authority)
								  : buf_view(&c->raw_head.path));
	buf_str(b, " HTTP/1.1\r\nHost: ");
	buf_sv(b, buf_view(&c->raw_head.authority));
	buf_str(b, "\r\n");
	buf_sv(b, buf_view(&c->raw_head.lines));
	if (c->raw_head.cookie.n && !h2_line(b, SV("cookie"), buf_view(&c->raw_head.cookie)))
		c->raw_head.malformed = true;
	if (!end && !c->raw_head.has_length)
		buf_str(b, "Transfer-Encoding: chunked\r\n");
	buf_str(b, "\r\n");
	c->raw_head.lines.n = 0;
	if (c->raw_head.too_long || b->n > http1_limits_default.head) {
		call_refuse(c, 431, CAUSE_HTTP_LONG);
		return false;
	}
	if (c->raw_head.malformed || b->failed) {
		call_refuse(c, 400, CAUSE_REQUEST);
		return false;
	}
	if (http1_request_parse(buf_view(b), c->tls ? 443 : 80, c->fields, L7_FIELDS, &c->q,
				&err) == 0)
		return true;
	call_refuse_detail(c, err.code == WRIT_E_LIMIT ? 431 : 400, CAUSE_HTTP, err.what);
	return false;
}

bool h2_trailers(struct sv lines, struct buf *to)
{
	scoped_buf b = BUF_INIT(32 << 10);
	struct http1_body body;
	struct writ_err err;
	struct sv in, data;

	buf_str(&b, "0\r\n");
	buf_sv(&b, lines);
	buf_str(&b, "\r\n");
	http1_body_init(&body, HTTP1_CHUNKED, 0, to);
	in = buf_view(&b);
	return !b.failed && http1_body_next(&body, &in, &data, &err) == WIRE_DONE;
}

/* --- from the common form to HTTP/2 --- */

static void add(struct nvs *v, struct sv name, struct sv value, bool secret)
{
	if (v->n == ARRAY_LEN(v->v))
		return;
	v->name_at[v->n].at = v->names.n;
	v->name_at[v->n].n = name.n;
	for (size_t i = 0; i < name.n; i++)
		buf_ch(&v->names, sv_lower(name.p[i]));
	v->v[v->n++] = (nghttp2_nv){ .value = (uint8_t *)(uintptr_t)value.p,
				     .valuelen = value.n,
				     .flags = secret ? NGHTTP2_NV_FLAG_NO_INDEX : 0 };
}

static void begin(struct nvs *v)
{
	v->n = 0;
	v->names.n = 0;
	v->names.max = 64 << 10;
	v->names.failed = false;
}

/*
 * Sets the name pointers of the header list after the last add(), which may move the buffer @names.
 * Empties the list if the names are too long.
 */
static void seal(struct nvs *v)
{
	for (size_t i = 0; i < v->n; i++) {
		v->v[i].name = (uint8_t *)v->names.p + v->name_at[i].at;
		v->v[i].namelen = v->name_at[i].n;
	}
	if (v->names.failed)
		v->n = 0;
}

static bool is_set(struct sv name, const struct http1_field *set, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (same_name(name, set[i].name))
			return true;
	return false;
}

void h2_request_nvs(struct call *c, struct nvs *v)
{
	struct http1_request *q = &c->q;

	begin(v);
	c->raw_head.authority.n = 0;
	wire_host_print(&q->host.host, &c->raw_head.authority);
	if (q->host.has_port)
		buf_fmt(&c->raw_head.authority, ":%u", q->host.port);
	add(v, SV(":method"), q->method, false);
	add(v, SV(":scheme"), SV("https"), false);
	add(v, SV(":authority"), buf_view(&c->raw_head.authority), false);
	add(v, SV(":path"), c->inject.target, c->inject.target.p != c->target.text.p);
	for (size_t i = 0; i < q->fields_n; i++) {
		const struct http1_field *f = &q->fields[i];

		/* Forward "te: trailers"; gRPC servers require it. */
		if (same_name(f->name, SV("te")) && same_name(f->value, SV("trailers")))
			add(v, SV("te"), SV("trailers"), false);
		else if (!f->drop && !is_set(f->name, c->inject.set, c->inject.set_n))
			add(v, f->name, f->value, false);
	}
	for (size_t i = 0; i < c->inject.set_n; i++)
		add(v, c->inject.set[i].name, c->inject.set[i].value, true);
	if (q->framing == HTTP1_LENGTH) {
		buf_clear(&c->raw_answer.lines);
		buf_fmt(&c->raw_answer.lines, "%llu", (unsigned long long)q->length);
		add(v, SV("content-length"), buf_view(&c->raw_answer.lines), false);
	}
	seal(v);
}

void h2_response_nvs(const struct http1_response *r, const struct http1_send *how, struct nvs *v,
		     char room[static 24])
{
	begin(v);
	for (unsigned i = 0, n = r->status; i < 3; i++, n /= 10)
		room[2 - i] = (char)('0' + n % 10);
	add(v, SV(":status"), (struct sv){ room, 3 }, false);
	for (size_t i = 0; i < r->fields_n; i++)
		if (!r->fields[i].drop)
			add(v, r->fields[i].name, r->fields[i].value, false);
	if (how->framing == HTTP1_LENGTH || (r->framing == HTTP1_NONE && r->has_length)) {
		uint64_t n = how->framing == HTTP1_LENGTH ? how->length : r->length;
		size_t at = 24;

		do {
			room[--at] = (char)('0' + n % 10);
		} while ((n /= 10));
		add(v, SV("content-length"), (struct sv){ room + at, 24 - at }, false);
	}
	seal(v);
}

void h2_trailer_nvs(struct sv lines, struct nvs *v)
{
	begin(v);
	while (lines.n) {
		struct sv line = sv_cut(&lines, '\n');
		struct sv name;

		line = sv_sub(line, 0, line.n ? line.n - 1 : 0);
		name = sv_cut(&line, ':');
		if (name.n)
			add(v, name, sv_trim(line), false);
	}
	seal(v);
}

void h2_flush(nghttp2_session *s, struct link *k)
{
	for (size_t sum = 0; sum < FLUSH && !k->dead;) {
		const uint8_t *p;
		ssize_t n;

		if (k->out.n >= L7_OUT) {
			l7_link_write(k);
			if (k->out.n >= L7_OUT)
				return;
		}
		n = nghttp2_session_mem_send(s, &p);
		if (n < 0)
			l7_link_kill(k);
		if (n <= 0)
			return;
		l7_link_put(k, (struct sv){ (const char *)p, (size_t)n });
		sum += (size_t)n;
	}
	l7_link_wake(k);
}
