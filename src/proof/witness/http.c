#include "witness/http.h"

#include "base/banned.h"

enum { FIELDS = 64 };

static const struct http1_limits limits = { .head = HTTP_HEAD_MAX, .line = 4096, .fields = FIELDS };

static enum wire_state bad(struct writ_err *err, const char *what)
{
	(void)!writ_fail_lit(err, WRIT_E_SYNTAX, 0, what);
	return WIRE_BAD;
}

static enum wire_state refuse(unsigned status, unsigned *ret_status, struct writ_err *err,
			      const char *what)
{
	*ret_status = status;
	return bad(err, what);
}

enum wire_state witness_http_request_take(struct sv bytes, struct sv *ret_body,
					  unsigned *ret_status, struct writ_err *err)
{
	struct http1_field fields[FIELDS];
	struct http1_find find = { 0 };
	struct http1_request q;
	size_t head;
	const enum wire_state s = http1_head_find(&find, bytes, &limits, &head, err);

	if (s == WIRE_BAD)
		return refuse(400, ret_status, err, "not a request");
	if (s != WIRE_DONE)
		return s;
	if (http1_request_parse(sv_sub(bytes, 0, head), 80, fields, FIELDS, &q, err) < 0)
		return refuse(400, ret_status, err, "not a request");
	if (q.form != HTTP1_ORIGIN || !sv_is(q.target, "/add-checkpoint"))
		return refuse(404, ret_status, err, "there is only /add-checkpoint");
	if (!sv_is(q.method, "POST"))
		return refuse(405, ret_status, err, "only POST");
	if (q.framing != HTTP1_LENGTH)
		return refuse(411, ret_status, err, "a body needs a length");
	if (q.length > WITNESS_REQUEST_MAX)
		return refuse(413, ret_status, err, "the body is too long");
	if (bytes.n - head < q.length)
		return WIRE_MORE;
	if (bytes.n - head > q.length)
		return refuse(400, ret_status, err, "more than one request");
	*ret_body = sv_skip(bytes, head);
	return WIRE_DONE;
}

static const char *reason_of(unsigned status)
{
	static const struct {
		unsigned status;
		const char *reason;
	} reasons[] = {
		{ 200, "OK" },		 { 403, "Forbidden" },	     { 404, "Not Found" },
		{ 405, "Not Allowed" },	 { 408, "Timeout" },	     { 409, "Conflict" },
		{ 411, "Need Length" },	 { 413, "Too Large" },	     { 422, "Inconsistent" },
		{ 500, "Server Error" }, { 503, "Try Again Later" },
	};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Bad Request";
}

void witness_http_answer_put(unsigned status, const char *type, struct sv body, struct buf *b)
{
	buf_fmt(b,
		"HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\n",
		status, reason_of(status), type, body.n);
	buf_sv(b, body);
}

int witness_http_url_parse(struct sv url, struct http_url *ret, struct writ_err *err)
{
	struct sv rest = sv_skip(url, 7);
	struct sv authority;
	int r;

	if (sv_starts(url, SV("https://")))
		return writ_fail(
			err, WRIT_E_SYNTAX, 0,
			"https is not spoken to witnesses: use http:// and a way of your own");
	if (!sv_starts(url, SV("http://")) || !sv_is_graph(url) || url.n > 1024)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a witness is http://ADDRESS:PORT");
	authority = sv_sub(rest, 0, sv_find(rest, '/'));
	ret->path = sv_skip(rest, authority.n);
	while (sv_ends(ret->path, SV("/")))
		ret->path.n--;
	for (size_t i = 0; i < ret->path.n; i++)
		if (ret->path.p[i] == '?' || ret->path.p[i] == '#')
			return writ_fail(err, WRIT_E_SYNTAX, 0, "a witness has no query");
	r = wire_authority_parse(sv_is(authority, "localhost") ? SV("127.0.0.1") : authority, 80,
				 &ret->at, err);
	if (r == 0 && ret->at.host.kind == WIRE_HOST_NAME)
		r = writ_fail(err, WRIT_E_SYNTAX, 0,
			      "names of witnesses are not looked up: write its address");
	return r;
}

void witness_http_request_put(const struct http_url *url, struct sv body, struct buf *b)
{
	buf_fmt(b, "POST " SV_FMT "/add-checkpoint HTTP/1.1\r\nHost: ", SV_ARG(url->path));
	wire_host_print(&url->at.host, b);
	buf_fmt(b,
		":%u\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\n",
		url->at.port, body.n);
	buf_sv(b, body);
}

enum wire_state witness_http_answer_take(struct sv bytes, bool ended, unsigned *ret_status,
					 struct sv *ret_body, struct writ_err *err)
{
	struct http1_field fields[FIELDS];
	struct http1_find find = { 0 };
	struct http1_response a;
	size_t head;
	enum wire_state s = http1_head_find(&find, bytes, &limits, &head, err);
	struct sv body;

	if (s == WIRE_MORE && ended)
		return bad(err, "the witness ended in the middle of its answer");
	if (s != WIRE_DONE)
		return s;
	if (http1_response_parse(sv_sub(bytes, 0, head), (struct http1_asked){ 0 }, fields, FIELDS,
				 &a, err) < 0)
		return WIRE_BAD;
	body = sv_skip(bytes, head);
	if (a.interim || a.framing == HTTP1_CHUNKED)
		return bad(err, "the witness answers in a way that is not understood");
	if (a.framing == HTTP1_LENGTH && a.length > HTTP_ANSWER_BODY)
		return bad(err, "the answer of the witness is too long");
	if (a.framing == HTTP1_UNTIL_CLOSE ? !ended : body.n < a.length)
		return ended ? bad(err, "the witness ended in the middle of its answer")
			     : WIRE_MORE;
	*ret_status = a.status;
	*ret_body = a.framing == HTTP1_LENGTH ? sv_sub(body, 0, a.length)
		    : a.framing == HTTP1_NONE ? SV("")
					      : body;
	return WIRE_DONE;
}
