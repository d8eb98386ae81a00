#include "wire/http1_body.h"

#include <stdlib.h>

#include "tap.h"

static struct http1_field fields[100];
static struct http1_request q;
static struct http1_response r;
static struct writ_err err;

/* Finds the head at the start of @text; *@ret_head is in memory of just its size. */
static bool find_head(struct sv text, struct sv *ret_head)
{
	static char *exact;
	struct http1_find f = { 0 };
	size_t n = text.n;

	err = (struct writ_err){ 0 };
	if (http1_head_find(&f, text, &http1_limits_default, &n, &err) == WIRE_BAD)
		return false;
	free(exact);
	exact = malloc(n + 1);
	memcpy(exact, text.p, n);
	*ret_head = (struct sv){ exact, n };
	return true;
}

static int request(struct sv text, uint16_t port)
{
	struct sv head;

	if (!find_head(text, &head))
		return err.code;
	q = (struct http1_request){ .minor = 77 };
	return http1_request_parse(head, port, fields, ARRAY_LEN(fields), &q, &err);
}

static int response(struct sv text, bool head, bool websocket)
{
	struct sv found;

	if (!find_head(text, &found))
		return err.code;
	return http1_response_parse(found, (struct http1_asked){ head, websocket }, fields,
				    ARRAY_LEN(fields), &r, &err);
}

static void test_find(void)
{
	static const struct sv text = SV_INIT("GET / HTTP/1.1\r\nHost: a\r\n\r\nbody\n");
	static const struct http1_limits tight = { .head = 27, .line = 15, .fields = 1 };
	struct http1_limits l = tight;
	struct http1_find f = { 0 };
	bool more = true;
	size_t n = 0;

	for (size_t i = 0; i < 27; i++)
		more &= http1_head_find(&f, sv_sub(text, 0, i), &tight, &n, &err) == WIRE_MORE;
	ok(more, "byte by byte");
	ok(http1_head_find(&f, text, &tight, &n, &err) == WIRE_DONE && n == 27, "found");
	l.head = 26;
	f = (struct http1_find){ 0 };
	ok(http1_head_find(&f, text, &l, &n, &err) == WIRE_BAD && err.code == WRIT_E_LIMIT, "head");
	l = tight;
	l.line = 14;
	f = (struct http1_find){ 0 };
	ok(http1_head_find(&f, text, &l, &n, &err) == WIRE_BAD && err.code == WRIT_E_LIMIT, "line");
	f = (struct http1_find){ 0 };
	ok(http1_head_find(&f, sv_sub(text, 0, 15), &l, &n, &err) == WIRE_BAD,
	   "line without its end");
	l = tight;
	l.fields = 0;
	f = (struct http1_find){ 0 };
	ok(http1_head_find(&f, text, &l, &n, &err) == WIRE_BAD && err.code == WRIT_E_LIMIT,
	   "fields");
	f = (struct http1_find){ 0 };
	ok(http1_head_find(&f, SV("\r\nGET"), &tight, &n, &err) == WIRE_BAD, "an empty line first");
	f = (struct http1_find){ 0 };
	ok(http1_head_find(&f, SV("GET / HTTP/1.1\nHost"), &tight, &n, &err) == WIRE_BAD,
	   "bare LF");
	f = (struct http1_find){ 0 };
	ok(http1_head_find(&f, SV("\n"), &tight, &n, &err) == WIRE_BAD, "only LF");
	f = (struct http1_find){ 0 };
	ok(http1_head_find(&f, SV("GET / HTTP/1.1\r\n\n"), &tight, &n, &err) == WIRE_BAD, "LF LF");
}

static void test_many_fields(void)
{
	scoped_buf b = BUF_INIT(1 << 20);

	buf_str(&b, "GET / HTTP/1.1\r\nHost: a\r\n");
	for (int i = 0; i < 99; i++)
		buf_str(&b, "a: b\r\n");
	buf_str(&b, "\r\n");
	ok(request(buf_view(&b), 80) == 0 && q.fields_n == 100, "100 fields");
	b.n -= 2;
	buf_str(&b, "a: b\r\n\r\n");
	ok(request(buf_view(&b), 80) == WRIT_E_LIMIT, "101 fields");
	ok(http1_request_parse(buf_view(&b), 80, fields, 100, &q, &err) == WRIT_E_LIMIT,
	   "nor does the parser take them");
	b.n = 0;
	buf_str(&b, "GET / HTTP/1.1\r\nHost: a\r\nb: ");
	buf_fill(&b, 'x', 16385);
	buf_str(&b, "\r\n\r\n");
	ok(request(buf_view(&b), 80) == WRIT_E_LIMIT, "a long line");
}

static void test_requests(void)
{
	ok(request(SV("GET /a?b=c HTTP/1.1\r\nHost: Api.Example.Test.:8080\r\nX:\t y \r\n\r\nrest"),
		   80) == 0,
	   "GET");
	ok(sv_is(q.method, "GET") && sv_is(q.target, "/a?b=c") && q.form == HTTP1_ORIGIN &&
		   q.minor == 1 && q.framing == HTTP1_NONE && q.keep_alive && !q.expect &&
		   q.websocket.n == 0,
	   "its line");
	ok(q.has_host && q.host.port == 8080 &&
		   sv_is(wire_host_name(&q.host.host), "api.example.test"),
	   "its host");
	ok(q.fields_n == 2 && sv_is(fields[1].name, "X") && sv_is(fields[1].value, "y") &&
		   !fields[1].drop && fields[0].drop,
	   "its fields");
	ok(request(SV("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 12\r\n\r\n"), 443) == 0 &&
		   q.framing == HTTP1_LENGTH && q.length == 12 && q.host.port == 443 &&
		   !q.host.has_port,
	   "POST");
	ok(request(SV("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n"
		      "Expect: 100-continue\r\nConnection: close\r\n\r\n"),
		   80) == 0 &&
		   q.framing == HTTP1_CHUNKED && q.expect && !q.keep_alive,
	   "PUT, chunked");
	ok(request(SV("GET http://A.test:81/x HTTP/1.1\r\nHost: a.test:81\r\n\r\n"), 443) == 0 &&
		   q.form == HTTP1_ABSOLUTE && !q.tls && q.host.port == 81 && sv_is(q.target, "/x"),
	   "absolute");
	ok(request(SV("GET HTTPS://a.test HTTP/1.1\r\nHost: a.test:443\r\n\r\n"), 80) == 0 &&
		   q.tls && q.host.port == 443 && sv_is(q.target, "/"),
	   "absolute, https, no path");
	ok(request(SV("OPTIONS http://a.test HTTP/1.1\r\nHost: a.test\r\n\r\n"), 80) == 0 &&
		   sv_is(q.target, "*"),
	   "absolute OPTIONS");
	ok(request(SV("OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n"), 80) == 0 &&
		   q.form == HTTP1_ASTERISK && sv_is(q.target, "*"),
	   "asterisk");
	ok(request(SV("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n"), 80) == 0 &&
		   q.form == HTTP1_AUTHORITY && q.host.port == 443 && q.target.n == 0,
	   "CONNECT");
	ok(request(SV("CONNECT a.test:8443 HTTP/1.1\r\nHost: a.test\r\nProxy-Connection: "
		      "x\r\n\r\n"),
		   80) == 0 &&
		   q.host.port == 8443,
	   "CONNECT, Host without the port");
	ok(request(SV("CONNECT [::1]:22 HTTP/1.0\r\n\r\n"), 80) == 0 &&
		   q.host.host.kind == WIRE_HOST_V6 && q.minor == 0 && !q.keep_alive,
	   "CONNECT, HTTP/1.0, no Host");
	ok(request(SV("GET / HTTP/1.0\r\n\r\n"), 80) == 0 && !q.has_host, "HTTP/1.0 without Host");
	ok(request(SV("GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n"), 80) == 0 &&
		   q.keep_alive,
	   "HTTP/1.0 that goes on");
	ok(request(SV("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: "
		      "0\r\n\r\n"),
		   80) == 0 &&
		   !q.expect,
	   "nothing to expect");
	ok(request(SV("GET / HTTP/1.1\r\nHost: a\r\nX: \x80\xff\r\n\r\n"), 80) == 0,
	   "opaque bytes");
	ok(request(SV("GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n"), 80) == 0 &&
		   fields[1].value.n == 0,
	   "an empty value");
}

#define H "Host: a\r\n"
#define G "GET / HTTP/1.1\r\n" H

static const struct sv bad_requests[] = {
	/* request line */
	SV_INIT("GET / HTTP/1.1\r\n\r\n"),
	SV_INIT("GET  / HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET /  HTTP/1.1\r\n" H "\r\n"),
	SV_INIT(" GET / HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET\t/ HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET /\r\n" H "\r\n"),
	SV_INIT("GET / HTTP/1.1 \r\n" H "\r\n"),
	SV_INIT("GET / HTTP/1.2\r\n" H "\r\n"),
	SV_INIT("GET / HTTP/2.0\r\n" H "\r\n"),
	SV_INIT("GET / HTTP/0.9\r\n" H "\r\n"),
	SV_INIT("GET / http/1.1\r\n" H "\r\n"),
	SV_INIT("GET / HTTP/1.10\r\n" H "\r\n"),
	SV_INIT("PRI * HTTP/2.0\r\n\r\n"),
	SV_INIT("get / HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("G@T / HTTP/1.1\r\n" H "\r\n"),
	SV_INIT(" / HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET a HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET a:80 HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET * HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET /a#b HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET /\x01 HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET /\xc3 HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET /\0 HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET /\r HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET ftp://a/ HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET http:///x HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET http://a?b HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET http://u@a/ HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET http://u:p@a/ HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET http://127.1/ HTTP/1.1\r\nHost: 127.1\r\n\r\n"),
	SV_INIT("CONNECT / HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("CONNECT a HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("CONNECT http://a:80/ HTTP/1.1\r\nHost: a:80\r\n\r\n"),
	SV_INIT("CONNECT a:443:80 HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("CONNECT a%00:443 HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("CONNECT 2130706433:80 HTTP/1.1\r\nHost: 2130706433:80\r\n\r\n"),
	/* Host */
	SV_INIT(G H "\r\n"),
	SV_INIT(G "HOST: b\r\n\r\n"),
	SV_INIT("GET / HTTP/1.1\r\nHost:\r\n\r\n"),
	SV_INIT("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
	SV_INIT("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n"),
	SV_INIT("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
	SV_INIT("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
	SV_INIT("GET / HTTP/1.1\r\nHost: a:\r\n\r\n"),
	SV_INIT("GET / HTTP/1.1\r\nHost: \xc3\xa9\r\n\r\n"),
	SV_INIT("GET http://b/ HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET http://a:81/ HTTP/1.1\r\n" H "\r\n"),
	SV_INIT("GET https://a/ HTTP/1.1\r\nHost: a:80\r\n\r\n"),
	SV_INIT("CONNECT a:443 HTTP/1.1\r\nHost: b\r\n\r\n"),
	SV_INIT("CONNECT a:443 HTTP/1.1\r\nHost: a:80\r\n\r\n"),
	/* fields */
	SV_INIT(G "X : y\r\n\r\n"),
	SV_INIT(G "X\t: y\r\n\r\n"),
	SV_INIT(G " X: y\r\n\r\n"),
	SV_INIT(G "X: y\r\n z\r\n\r\n"),
	SV_INIT(G "X: y\r\n\tz\r\n\r\n"),
	SV_INIT(G ": y\r\n\r\n"),
	SV_INIT(G "X\r\n\r\n"),
	SV_INIT(G "X y: z\r\n\r\n"),
	SV_INIT(G "X(: z\r\n\r\n"),
	SV_INIT(G "X\xc3: z\r\n\r\n"),
	SV_INIT(G "X\0: z\r\n\r\n"),
	SV_INIT(G "X: a\0b\r\n\r\n"),
	SV_INIT(G "X: a\x0b"
		  "b\r\n\r\n"),
	SV_INIT(G "X: a\x7f\r\n\r\n"),
	SV_INIT(G "X: a\rb\r\n\r\n"),
	SV_INIT(G "X: a\r\r\n\r\n"),
	SV_INIT(G "X: a\nY: b\r\n\r\n"),
	SV_INIT(G "X: a\r\n\n"),
	SV_INIT(G "X: a\r\n\r"),
	SV_INIT(G),
	/* framing */
	SV_INIT(G "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
	SV_INIT(G "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"),
	SV_INIT(G "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"),
	SV_INIT(G "Content-Length: 5, 5\r\n\r\n"),
	SV_INIT(G "Content-Length: +5\r\n\r\n"),
	SV_INIT(G "Content-Length: -5\r\n\r\n"),
	SV_INIT(G "Content-Length: 0x5\r\n\r\n"),
	SV_INIT(G "Content-Length: 05\r\n\r\n"),
	SV_INIT(G "Content-Length: 5 5\r\n\r\n"),
	SV_INIT(G "Content-Length: 5.\r\n\r\n"),
	SV_INIT(G "Content-Length:\r\n\r\n"),
	SV_INIT(G "Content-Length: 9223372036854775808\r\n\r\n"),
	SV_INIT(G "Content-Length: 18446744073709551616\r\n\r\n"),
	SV_INIT(G "Transfer-Encoding: xchunked\r\n\r\n"),
	SV_INIT(G "Transfer-Encoding: chunked, identity\r\n\r\n"),
	SV_INIT(G "Transfer-Encoding: identity\r\n\r\n"),
	SV_INIT(G "Transfer-Encoding: gzip, chunked\r\n\r\n"),
	SV_INIT(G "Transfer-Encoding: chunked, chunked\r\n\r\n"),
	SV_INIT(G "Transfer-Encoding: chunked;x=y\r\n\r\n"),
	SV_INIT(G "Transfer-Encoding: \"chunked\"\r\n\r\n"),
	SV_INIT(G "Transfer-Encoding: \x0b"
		  "chunked\r\n\r\n"),
	SV_INIT(G "Transfer-Encoding:\r\n\r\n"),
	SV_INIT(G "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
	SV_INIT(G "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"),
	SV_INIT(G "Transfer-Encoding : chunked\r\n\r\n"),
	SV_INIT("POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n"),
	SV_INIT("CONNECT a:1 HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n"),
	SV_INIT("CONNECT a:1 HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"),
	SV_INIT("TRACE / HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\n"),
	SV_INIT(G "Content_Length: 5\r\n\r\n"),
	SV_INIT(G "Transfer_Encoding: chunked\r\n\r\n"),
	SV_INIT(G "Keep_Alive: 5\r\n\r\n"),
	/* Connection, Expect */
	SV_INIT(G "Connection:\r\n\r\n"),
	SV_INIT(G "Connection: a b\r\n\r\n"),
	SV_INIT(G "Connection: close,,x\r\n\r\n"),
	SV_INIT(G "Connection: \"close\"\r\n\r\n"),
	SV_INIT(G "Connection: host\r\n\r\n"),
	SV_INIT(G "Content-Length: 1\r\nConnection: Content-Length\r\n\r\n"),
	SV_INIT(G "Connection: transfer-encoding\r\n\r\n"),
	SV_INIT(G "Connection: close, authorization\r\n\r\n"),
	SV_INIT(G "Connection: cookie\r\n\r\n"),
	SV_INIT(G "Connection: connection\r\n\r\n"),
	SV_INIT(G "Connection: x-http-method-override\r\n\r\n"),
	SV_INIT(G "Expect: 200-ok\r\n\r\n"),
	SV_INIT(G "Expect:\r\n\r\n"),
	SV_INIT("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n"),
};

static void test_bad_requests(void)
{
	for (size_t i = 0; i < ARRAY_LEN(bad_requests); i++)
		ok(request(bad_requests[i], 80) == WRIT_E_SYNTAX && err.what[0],
		   "refused request %zu: %s", i, err.what);
	ok(request(SV(G "\r\nX"), 80) == 0 &&
		   http1_request_parse(SV(G "\r\nX"), 80, fields, 100, &q, &err) < 0,
	   "bytes behind the head");
	ok(request(SV(G "Connection: "
			"a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a\r\n"
			"\r\n"),
		   80) == 0,
	   "32 words");
	ok(request(SV(G "Connection: "
			"a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a\r\n"
			"\r\n"),
		   80) < 0,
	   "33 words");
}

/* Every name that does not go on, and some that look like them and do. */
static void test_hops(void)
{
	static const char *const hops[] = {
		"TE",
		"Trailer",
		"Keep-Alive",
		"Alt-Used",
		"HTTP2-Settings",
		"Proxy-Connection",
		"Proxy-Authenticate",
		"Proxy-Authorization",
		"Proxy-Authentication-Info",
		"Upgrade",
		"X-HTTP-Method",
		"X-Forwarded-Host",
	};
	static const char *const ends[] = { "T",
					    "TE2",
					    "Trailers",
					    "Proxy",
					    "Via",
					    "Cookie",
					    "Sec-WebSocket-Protocol",
					    "X-Forwarded-For" };

	for (size_t i = 0; i < ARRAY_LEN(hops) + ARRAY_LEN(ends); i++) {
		const bool hop = i < ARRAY_LEN(hops);
		const char *name = hop ? hops[i] : ends[i - ARRAY_LEN(hops)];
		scoped_buf b = BUF_INIT(200);

		buf_fmt(&b, "GET / HTTP/1.1\r\nHost: a\r\n%s: x\r\n\r\n", name);
		ok(request(buf_view(&b), 80) == 0 && fields[1].drop == hop, "%s %s", name,
		   hop ? "stays here" : "goes on");
	}
}

static void test_websocket(void)
{
#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define UP G "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
	static const struct sv bad[] = {
		SV_INIT(UP "Sec-WebSocket-Version: 13\r\n\r\n"),
		SV_INIT(UP "Sec-WebSocket-Key: " KEY "\r\n\r\n"),
		SV_INIT(UP "Sec-WebSocket-Key: " KEY "\r\nSec-WebSocket-Version: 8\r\n\r\n"),
		SV_INIT(UP "Sec-WebSocket-Key: short==\r\nSec-WebSocket-Version: 13\r\n\r\n"),
		SV_INIT(UP "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ-=\r\nSec-WebSocket-Version: "
			   "13\r\n\r\n"),
		SV_INIT(UP "Sec-WebSocket-Key: dGhlIHNhbXBsZS!ub25jZQ==\r\nSec-WebSocket-Version: "
			   "13\r\n\r\n"),
		SV_INIT(UP "Sec-WebSocket-Key: " KEY "\r\nSec-WebSocket-Key: " KEY
			   "\r\nSec-WebSocket-Version: 13\r\n\r\n"),
		SV_INIT(UP "Content-Length: 1\r\nSec-WebSocket-Key: " KEY
			   "\r\nSec-WebSocket-Version: 13\r\n\r\n"),
		SV_INIT("POST / HTTP/1.1\r\n" H "Connection: upgrade\r\nUpgrade: websocket\r\n"
			"Sec-WebSocket-Key: " KEY "\r\nSec-WebSocket-Version: 13\r\n\r\n"),
		SV_INIT("GET / HTTP/1.0\r\n" H "Connection: upgrade\r\nUpgrade: websocket\r\n"
			"Sec-WebSocket-Key: " KEY "\r\nSec-WebSocket-Version: 13\r\n\r\n"),
	};

	ok(request(SV(UP "Sec-WebSocket-Key: " KEY "\r\nSec-WebSocket-Version: 13\r\n\r\n"), 80) ==
			   0 &&
		   sv_is(q.websocket, KEY),
	   "an upgrade");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(request(bad[i], 80) == WRIT_E_SYNTAX, "malformed upgrade %zu", i);
	ok(request(SV(G "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: "
			"x\r\n\r\n"),
		   80) == 0 &&
		   q.websocket.n == 0 && fields[1].drop && fields[2].drop && fields[3].drop,
	   "h2c is not asked for");
	ok(request(SV(G "Upgrade: websocket\r\n\r\n"), 80) == 0 && q.websocket.n == 0 &&
		   fields[1].drop,
	   "nor what Connection does not name");
	ok(request(SV(G "Connection: upgrade\r\nUpgrade: websocket, h2c\r\n\r\n"), 80) == 0 &&
		   q.websocket.n == 0,
	   "nor a choice");
}

static void test_responses(void)
{
	ok(response(SV("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nAlt-Svc: h3\r\n\r\n"), false,
		    false) == 0 &&
		   r.status == 200 && sv_is(r.reason, "OK") && r.framing == HTTP1_LENGTH &&
		   r.length == 5 && r.keep_alive && fields[1].drop,
	   "200");
	ok(response(SV("HTTP/1.1 200\r\n\r\n"), false, false) == 0 &&
		   r.framing == HTTP1_UNTIL_CLOSE && !r.keep_alive,
	   "until close, no reason");
	ok(response(SV("HTTP/1.1 404 Not  Found\t\xc3\xa9\r\nTransfer-Encoding: chunked\r\n\r\n"),
		    false, false) == 0 &&
		   r.framing == HTTP1_CHUNKED && r.keep_alive,
	   "404, chunked");
	ok(response(SV("HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n"),
		    false, false) == 0 &&
		   !r.keep_alive && r.framing == HTTP1_LENGTH,
	   "HTTP/1.0");
	ok(response(SV("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), true, false) == 0 &&
		   r.framing == HTTP1_NONE && r.has_length && r.length == 5 && r.keep_alive,
	   "to HEAD");
	ok(response(SV("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), true, false) ==
			   0 &&
		   r.framing == HTTP1_NONE,
	   "to HEAD, chunked");
	ok(response(SV("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"), false, false) ==
			   0 &&
		   r.framing == HTTP1_NONE && r.has_length,
	   "304");
	ok(response(SV("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"), false, false) ==
			   0 &&
		   r.framing == HTTP1_NONE && !r.has_length,
	   "204");
	ok(response(SV("HTTP/1.1 100 Continue\r\n\r\n"), false, false) == 0 && r.interim, "100");
	ok(response(SV("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"), false, false) == 0 &&
		   r.interim,
	   "103");
	ok(response(SV("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: "
		       "WebSocket\r\n"
		       "Sec-WebSocket-Accept: x\r\n\r\n"),
		    false, true) == 0 &&
		   r.websocket && !r.interim,
	   "101");
	ok(response(SV("HTTP/1.1 200 OK\r\nConnection: Transfer-Encoding\r\n"
		       "Transfer-Encoding: chunked\r\n\r\n"),
		    false, false) == 0 &&
		   r.framing == HTTP1_CHUNKED,
	   "a coding that Connection names");
	ok(response(SV("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n"), false,
		    false) == 0 &&
		   !r.keep_alive,
	   "close");
}

static void test_bad_responses(void)
{
	static const struct sv bad[] = {
		SV_INIT("HTTP/1.1 099 X\r\n\r\n"),
		SV_INIT("HTTP/1.1 1000 X\r\n\r\n"),
		SV_INIT("HTTP/1.1 20 X\r\n\r\n"),
		SV_INIT("HTTP/1.1 +20 X\r\n\r\n"),
		SV_INIT("HTTP/1.1 2x0 X\r\n\r\n"),
		SV_INIT("HTTP/1.1  200 X\r\n\r\n"),
		SV_INIT("HTTP/1.1\r\n\r\n"),
		SV_INIT("HTTP/2 200 X\r\n\r\n"),
		SV_INIT("ICY 200 OK\r\n\r\n"),
		SV_INIT("HTTP/1.1 200 a\x01\r\n\r\n"),
		SV_INIT("HTTP/1.1 200 a\rb\r\n\r\n"),
		SV_INIT("HTTP/1.1 200 OK\nX: y\r\n\r\n"),
		SV_INIT("HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n"),
		SV_INIT("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"),
		SV_INIT("HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n"),
		SV_INIT("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: "
			"chunked\r\n\r\n"),
		SV_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
		SV_INIT("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
		SV_INIT("HTTP/1.1 204 X\r\nContent-Length: 1\r\n\r\n"),
		SV_INIT("HTTP/1.1 204 X\r\nTransfer-Encoding: chunked\r\n\r\n"),
		SV_INIT("HTTP/1.1 100 X\r\nContent-Length: 1\r\n\r\n"),
		SV_INIT("HTTP/1.1 200 X\r\nHost: a\r\n\r\n"),
		SV_INIT("HTTP/1.1 200 X\r\nConnection: content-length\r\nContent-Length: "
			"1\r\n\r\n"),
		SV_INIT("HTTP/1.1 200 X\r\nConnection: set-cookie\r\n\r\n"),
		SV_INIT("HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
			"Sec-WebSocket-Accept: x\r\n\r\n"),
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(response(bad[i], false, false) == WRIT_E_SYNTAX && err.what[0],
		   "refused response %zu: %s", i, err.what);
	ok(response(SV("HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: h2c\r\n"
		       "Sec-WebSocket-Accept: x\r\n\r\n"),
		    false, true) < 0,
	   "another protocol");
	ok(response(SV("HTTP/1.1 101 X\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n"),
		    false, true) < 0,
	   "101 without Connection");
	ok(response(SV("HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
		    false, true) < 0,
	   "101 without an accept");
}

static void is_printed(struct http1_send how, const char *want, const char *name)
{
	scoped_buf b = BUF_INIT(4096);

	if (ok(http1_request_print(&q, &how, &b, &err) == 0, "%s", name))
		is_sv(buf_view(&b), sv_from(want), "as it is sent");
}

static void test_print(void)
{
	static const struct http1_field set = { .name = SV_INIT("authorization"),
						.value = SV_INIT("Bearer real") };
	static const struct http1_field key = { .name = SV_INIT("X-Api-Key"),
						.value = SV_INIT("real") };
	static const struct http1_field split = { .name = SV_INIT("X"),
						  .value = SV_INIT("a\r\nb: c") };
	static const struct http1_field ours = { .name = SV_INIT("content-length"),
						 .value = SV_INIT("1") };
	static const struct http1_field odd = { .name = SV_INIT("a b"), .value = SV_INIT("") };
	const struct http1_field *const wrong[] = { &split, &ours, &odd };
	scoped_buf b = BUF_INIT(4096);
	struct http1_send how = { .target = SV("/x") };

	ok(request(SV("GET http://A.test.:81/x HTTP/1.0\r\nHost: a.test:81\r\nAuthorization: "
		      "fake\r\n"
		      "AUTHORIZATION: fake\r\nX-Http-Method-Override: PUT\r\nX_Original_Url: /y\r\n"
		      "Keep-Alive: 1\r\nTE: trailers\r\nProxy-Authorization: z\r\nConnection: "
		      "X-Drop\r\n"
		      "X-Drop: 1\r\nx-drop: 2\r\nX-Keep:  b \r\n\r\n"),
		   80) == 0,
	   "a request");
	is_printed(
		(struct http1_send){ .target = SV("/x"), .set = &set, .set_n = 1, .close = true },
		"GET /x HTTP/1.1\r\nHost: a.test:81\r\nX-Keep: b\r\nauthorization: Bearer real\r\n"
		"Connection: close\r\n\r\n",
		"with a secret set");
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		how.set = wrong[i];
		how.set_n = 1;
		ok(http1_request_print(&q, &how, &b, &err) == WRIT_E_BUG, "cannot be set: %zu", i);
	}
	ok(request(SV(G "X_Api_Key: fake\r\nx-api-key: fake\r\nConnection: x_y\r\nX-Y: 1\r\n\r\n"),
		   80) == 0,
	   "with underscores");
	is_printed((struct http1_send){ .target = SV("/x"), .set = &key, .set_n = 1 },
		   "GET /x HTTP/1.1\r\nHost: a\r\nX-Api-Key: real\r\n\r\n",
		   "replaced all the same");
	ok(request(SV("POST /y HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		      "Expect: 100-continue\r\n\r\n"),
		   80) == 0,
	   "another");
	is_printed((struct http1_send){ .target = SV("/y"), .framing = HTTP1_CHUNKED },
		   "POST /y HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		   "Expect: 100-continue\r\n\r\n",
		   "chunked");
	is_printed(
		(struct http1_send){ .target = SV("/y"), .framing = HTTP1_LENGTH, .length = 7 },
		"POST /y HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\nExpect: 100-continue\r\n\r\n",
		"with a length");
	how = (struct http1_send){ .target = SV("/a b") };
	ok(http1_request_print(&q, &how, &b, &err) == WRIT_E_BUG, "a target with a blank");
	how.target = SV("");
	ok(http1_request_print(&q, &how, &b, &err) == WRIT_E_BUG, "no target");
	ok(request(SV(UP "Sec-WebSocket-Key: " KEY "\r\nSec-WebSocket-Version: 13\r\n\r\n"), 80) ==
		   0,
	   "ws");
	is_printed((struct http1_send){ .target = SV("/") },
		   "GET / HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: " KEY
		   "\r\nSec-WebSocket-Version: 13\r\n"
		   "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		   "an upgrade");
}

static void test_print_response(void)
{
	scoped_buf b = BUF_INIT(4096);
	struct http1_send how = { .framing = HTTP1_CHUNKED };

	ok(response(SV("HTTP/1.0 200 Fine\r\nSet-Cookie: a\r\nAlt-Svc: h3\r\nSet-Cookie: b\r\n"
		       "Content-Length: 9\r\nKeep-Alive: x\r\n\r\n"),
		    false, false) == 0 &&
		   http1_response_print(&r, &how, &b, &err) == 0,
	   "a response");
	is_sv(buf_view(&b),
	      SV("HTTP/1.1 200 Fine\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
		 "Transfer-Encoding: chunked\r\n\r\n"),
	      "framed anew");
	b.n = 0;
	how = (struct http1_send){ .close = true };
	ok(response(SV("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), true, false) == 0 &&
		   http1_response_print(&r, &how, &b, &err) == 0,
	   "to HEAD");
	is_sv(buf_view(&b), SV("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n"),
	      "keeps the length");
	how = (struct http1_send){ .framing = HTTP1_UNTIL_CLOSE };
	ok(http1_response_print(&r, &how, &b, &err) == WRIT_E_BUG, "until close, but not closed");
}

/* Decodes @text in pieces of @piece; the data is in @out. */
static enum wire_state body(struct sv text, size_t piece, struct http1_body *b, struct buf *out,
			    size_t *ret_left)
{
	enum wire_state s = WIRE_MORE;

	err = (struct writ_err){ 0 };
	while (text.n && s == WIRE_MORE) {
		struct sv in = sv_sub(text, 0, piece), data;

		text = sv_skip(text, in.n);
		while (in.n && s == WIRE_MORE) {
			s = http1_body_next(b, &in, &data, &err);
			if (s != WIRE_BAD)
				buf_sv(out, data);
		}
		*ret_left = in.n + text.n;
	}
	return s;
}

static void test_bodies(void)
{
	static const struct sv chunked = SV_INIT("5\r\nhello\r\n00A ;x\r\n");
	static const struct sv good =
		SV_INIT("5\r\nhello\r\n00a;x=\"y\"\r\n0123456789\r\n0;z\r\n"
			"X-Sum:  1 \r\nContent-Length: 5\r\ngrpc-status: 0\r\n\r\nnext");
	static const size_t pieces[] = { 1, 2, 3, 5, 1000 };
	struct http1_body b;
	size_t left;

	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		scoped_buf out = BUF_INIT(4096), trailers = BUF_INIT(4096);

		http1_body_init(&b, HTTP1_CHUNKED, 0, &trailers);
		ok(!http1_body_may_end(&b) && body(good, pieces[i], &b, &out, &left) == WIRE_DONE &&
			   left == 4 && http1_body_may_end(&b),
		   "chunked, pieces of %zu", pieces[i]);
		is_sv(buf_view(&out), SV("hello0123456789"), "its data");
		is_sv(buf_view(&trailers), SV("X-Sum:  1 \r\ngrpc-status: 0\r\n"), "its trailers");
		out.n = 0;
		http1_body_init(&b, HTTP1_CHUNKED, 0, NULL);
		ok(body(good, pieces[i], &b, &out, &left) == WIRE_DONE && left == 4,
		   "without trailers");
		out.n = 0;
		http1_body_init(&b, HTTP1_LENGTH, 7, NULL);
		ok(body(good, pieces[i], &b, &out, &left) == WIRE_DONE && left == good.n - 7 &&
			   out.n == 7,
		   "by length");
		out.n = 0;
		http1_body_init(&b, HTTP1_UNTIL_CLOSE, 0, NULL);
		ok(body(good, pieces[i], &b, &out, &left) == WIRE_MORE && http1_body_may_end(&b) &&
			   sv_eq(buf_view(&out), good),
		   "until close");
		out.n = 0;
		http1_body_init(&b, HTTP1_CHUNKED, 0, NULL);
		ok(body(chunked, pieces[i], &b, &out, &left) == WIRE_BAD,
		   "a blank behind the length");
	}
	http1_body_init(&b, HTTP1_LENGTH, 0, NULL);
	ok(http1_body_may_end(&b), "no byte to come");
	http1_body_init(&b, HTTP1_LENGTH, 1, NULL);
	ok(!http1_body_may_end(&b), "one byte to come");
	http1_body_init(&b, HTTP1_NONE, 0, NULL);
	ok(http1_body_may_end(&b), "no body");
}

static void test_bad_bodies(void)
{
	static const struct sv bad[] = {
		SV_INIT("\r\n"),
		SV_INIT(";x\r\n"),
		SV_INIT("g\r\n"),
		SV_INIT("-1\r\n"),
		SV_INIT("+1\r\n"),
		SV_INIT("0x1\r\n"),
		SV_INIT(" 1\r\n"),
		SV_INIT("1 \r\n"),
		SV_INIT("1\n"),
		SV_INIT("1\r\r"),
		SV_INIT("1;a\nb\r\n"),
		SV_INIT("1;a\0b\r\n"),
		SV_INIT("1;a\rb\r\n"),
		SV_INIT("1234567890abcdef\r\n"),
		SV_INIT("0000000000000001\r\n"),
		SV_INIT("1\r\na\n"),
		SV_INIT("1\r\nab\r\n"),
		SV_INIT("1\r\na\rb"),
		SV_INIT("1\r\na\r\n\r\n"),
		SV_INIT("0\r\nX : y\r\n"),
		SV_INIT("0\r\n X: y\r\n"),
		SV_INIT("0\r\n: y\r\n"),
		SV_INIT("0\r\nX\r\n"),
		SV_INIT("0\r\nX: a\nb"),
		SV_INIT("0\r\nX: a\0"),
		SV_INIT("0\r\nX: a\r\n b\r\n"),
		SV_INIT("0\r\nX: a\rb"),
		SV_INIT("0\r\n\n"),
		SV_INIT("0\r\n\rX"),
	};
	scoped_buf long_ext = BUF_INIT(1 << 20), tiny = BUF_INIT(8), out = BUF_INIT(1 << 20);
	struct http1_body b;
	size_t left;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		scoped_buf trailers = BUF_INIT(4096);

		http1_body_init(&b, HTTP1_CHUNKED, 0, &trailers);
		ok(body(bad[i], 1000, &b, &out, &left) == WIRE_BAD && err.what[0], "bad body %zu",
		   i);
	}
	buf_str(&long_ext, "1;");
	buf_fill(&long_ext, 'x', 1025);
	http1_body_init(&b, HTTP1_CHUNKED, 0, NULL);
	ok(body(buf_view(&long_ext), 1000, &b, &out, &left) == WIRE_BAD, "a long extension");
	long_ext.n = 0;
	for (int i = 0; i < 17; i++) {
		buf_str(&long_ext, "1;");
		buf_fill(&long_ext, 'x', 1000);
		buf_str(&long_ext, "\r\na\r\n");
	}
	http1_body_init(&b, HTTP1_CHUNKED, 0, NULL);
	ok(body(buf_view(&long_ext), 1000, &b, &out, &left) == WIRE_BAD, "many extensions");
	long_ext.n = 0;
	buf_str(&long_ext, "0\r\nX: ");
	buf_fill(&long_ext, 'x', 8192);
	http1_body_init(&b, HTTP1_CHUNKED, 0, NULL);
	ok(body(buf_view(&long_ext), 1000, &b, &out, &left) == WIRE_BAD, "a long trailer");
	http1_body_init(&b, HTTP1_CHUNKED, 0, &tiny);
	ok(body(SV("0\r\nX: 12345678\r\n\r\n"), 1000, &b, &out, &left) == WIRE_BAD &&
		   err.code == WRIT_E_LIMIT,
	   "a trailer without room");
}

static void test_chunks(void)
{
	char head[HTTP1_CHUNK_HEAD_MAX];
	scoped_buf b = BUF_INIT(100);

	is_sv(((struct sv){ head, http1_chunk_head(1, head) }), SV("1\r\n"), "a chunk of 1");
	is_sv(((struct sv){ head, http1_chunk_head(0xabc0, head) }), SV("abc0\r\n"), "of 0xabc0");
	is_sv(((struct sv){ head, http1_chunk_head(UINT64_MAX, head) }), SV("ffffffffffffffff\r\n"),
	      "of the most");
	http1_chunk_end(SV("a: b\r\n"), &b);
	is_sv(buf_view(&b), SV("0\r\na: b\r\n\r\n"), "the end");
	ok(http1_field_check(SV("x-y"), SV("a b\t\xff")) && !http1_field_check(SV(""), SV("")) &&
		   !http1_field_check(SV("a:"), SV("")) && !http1_field_check(SV("a"), SV("b\n")),
	   "fields");
}

int main(void)
{
	test_find();
	test_many_fields();
	test_requests();
	test_bad_requests();
	test_hops();
	test_websocket();
	test_responses();
	test_bad_responses();
	test_print();
	test_print_response();
	test_bodies();
	test_bad_bodies();
	test_chunks();
	return tap_done();
}
