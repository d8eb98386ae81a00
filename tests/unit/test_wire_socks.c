#include "wire/socks.h"

#include "tap.h"

static struct writ_err err;

/* All shorter parts of a message must ask for more; never decide early, never read on. */
static void test_greeting(void)
{
	const struct sv all = SV("\5\2\2\0rest");
	bool none = false;
	size_t used = 0;
	uint8_t out[SOCKS_GREETING_SIZE];

	for (size_t n = 0; n < 4; n++)
		ok(socks5_greeting_parse(sv_sub(all, 0, n), &none, &used, &err) == WIRE_MORE,
		   "greeting: %zu bytes", n);
	ok(socks5_greeting_parse(all, &none, &used, &err) == WIRE_DONE && none && used == 4,
	   "greeting");
	ok(socks5_greeting_parse(SV("\5\1\2"), &none, &used, &err) == WIRE_DONE && !none,
	   "only with a password");
	ok(socks5_greeting_parse(SV("\5\0"), &none, &used, &err) == WIRE_BAD, "no method");
	ok(socks5_greeting_parse(SV("\4"), &none, &used, &err) == WIRE_BAD, "version 4");
	ok(socks5_greeting_parse(SV("GET"), &none, &used, &err) == WIRE_BAD, "HTTP");
	socks5_greeting_reply(true, out);
	ok(memcmp(out, "\5\0", 2) == 0, "without authentication");
	socks5_greeting_reply(false, out);
	ok(memcmp(out, "\5\xff", 2) == 0, "no acceptable method");
}

static void test_requests(void)
{
	static const struct {
		struct sv bytes;
		enum socks_command command;
		const char *host;
		unsigned port;
		enum socks_reply reply;
	} good[] = {
		{ SV_INIT("\5\1\0\3\x08"
			  "API.test\1\xbb"),
		  SOCKS_CONNECT, "api.test", 443, SOCKS_OK },
		{ SV_INIT("\5\1\0\3\2a.\1\xbb"), SOCKS_CONNECT, "a", 443, SOCKS_OK },
		{ SV_INIT("\5\1\0\1\xc6\x12\0\2\0\x16"), SOCKS_CONNECT, "198.18.0.2", 22,
		  SOCKS_OK },
		{ SV_INIT("\5\1\0\3\7"
			  "1.2.3.4\0\x50"),
		  SOCKS_CONNECT, "1.2.3.4", 80, SOCKS_OK },
		{ SV_INIT("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1\0\x50"), SOCKS_CONNECT,
		  "[::ffff:7f00:1]", 80, SOCKS_OK },
		{ SV_INIT("\5\2\0\1\1\2\3\4\0\x50"), SOCKS_BIND, "1.2.3.4", 80, SOCKS_BAD_COMMAND },
		{ SV_INIT("\5\3\0\1\0\0\0\0\0\0"), SOCKS_UDP, "0.0.0.0", 0, SOCKS_BAD_COMMAND },
		{ SV_INIT("\5\xf0\0\3\1a\0\1"), SOCKS_OTHER, "a", 1, SOCKS_BAD_COMMAND },
	};
	enum socks_reply reply;
	struct socks_request q;
	size_t used;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		scoped_buf b = BUF_INIT(300);
		bool more = true;

		for (size_t n = 0; n < good[i].bytes.n; n++)
			more &= socks5_request_parse(sv_sub(good[i].bytes, 0, n), &q, &used, &reply,
						     &err) == WIRE_MORE;
		ok(more, "request %zu in parts", i);
		ok(socks5_request_parse(good[i].bytes, &q, &used, &reply, &err) == WIRE_DONE &&
			   used == good[i].bytes.n && q.command == good[i].command &&
			   q.port == good[i].port && reply == good[i].reply,
		   "request %zu", i);
		wire_host_print(&q.host, &b);
		is_sv(buf_view(&b), sv_from(good[i].host), "its host");
	}
}

static void test_bad_requests(void)
{
	static const struct {
		struct sv bytes;
		enum socks_reply reply;
	} bad[] = {
		{ SV_INIT("\4\1\0\1"), SOCKS_FAILED },
		{ SV_INIT("\5\1\1"), SOCKS_FAILED },
		{ SV_INIT("\5\1\0\2"), SOCKS_BAD_ADDRESS },
		{ SV_INIT("\5\1\0\0"), SOCKS_BAD_ADDRESS },
		{ SV_INIT("\5\1\0\3\0"), SOCKS_BAD_ADDRESS },
		{ SV_INIT("\5\1\0\3\x12"
			  "evil.test\0.pkg.tes\1\xbb"),
		  SOCKS_BAD_ADDRESS },
		{ SV_INIT("\5\1\0\3\3a b\1\xbb"), SOCKS_BAD_ADDRESS },
		{ SV_INIT("\5\1\0\3\3a\r\n\1\xbb"), SOCKS_BAD_ADDRESS },
		{ SV_INIT("\5\1\0\3\3a#b\1\xbb"), SOCKS_BAD_ADDRESS },
		{ SV_INIT("\5\1\0\3\3a@b\1\xbb"), SOCKS_BAD_ADDRESS },
		{ SV_INIT("\5\1\0\3\4a%00\1\xbb"), SOCKS_BAD_ADDRESS },
		{ SV_INIT("\5\1\0\3\5"
			  "127.1\1\xbb"),
		  SOCKS_BAD_ADDRESS },
		{ SV_INIT("\5\1\0\3\x0a"
			  "2130706433\1\xbb"),
		  SOCKS_BAD_ADDRESS },
		{ SV_INIT("\5\1\0\3\1a\0\0"), SOCKS_BAD_ADDRESS },
	};
	enum socks_reply reply;
	struct socks_request q = { .port = 7 };
	size_t used = 7;
	uint8_t out[SOCKS5_REPLY_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		err = (struct writ_err){ 0 };
		ok(socks5_request_parse(bad[i].bytes, &q, &used, &reply, &err) == WIRE_BAD &&
			   reply == bad[i].reply && err.what[0] && used == 7 && q.port == 7,
		   "refused request %zu", i);
	}
	socks5_reply(SOCKS_NOT_ALLOWED, out);
	ok(memcmp(out, "\5\2\0\1\0\0\0\0\0\0", 10) == 0, "a reply");
}

static void test_socks4(void)
{
	static const struct {
		struct sv bytes;
		const char *host;
		unsigned port;
	} good[] = {
		{ SV_INIT("\4\1\1\xbb\xc6\x12\0\2me\0"), "198.18.0.2", 443 },
		{ SV_INIT("\4\1\1\xbb\0\0\0\1\0Api.Test\0"), "api.test", 443 },
		{ SV_INIT("\4\1\0\1\0\0\0\0\0"), "0.0.0.0", 1 },
	};
	static const struct sv bad[] = {
		SV_INIT("\5"),
		SV_INIT("\4\1\0\0\1\2\3\4\0"),
		SV_INIT("\4\1\1\xbb\0\0\0\1\0\0"),
		SV_INIT("\4\1\1\xbb\0\0\0\1\0a b\0"),
		SV_INIT("\4\1\1\xbb\0\0\0\1\0"
			"127.1\0"),
	};
	struct socks_request q;
	char text[400] = "\4\1\1\xbb\1\2\3\4";
	uint8_t out[SOCKS4_REPLY_SIZE];
	size_t used;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		scoped_buf b = BUF_INIT(300);
		bool more = true;

		for (size_t n = 0; n < good[i].bytes.n; n++)
			more &= socks4_request_parse(sv_sub(good[i].bytes, 0, n), &q, &used,
						     &err) == WIRE_MORE;
		ok(more, "SOCKS 4 request %zu in parts", i);
		ok(socks4_request_parse(good[i].bytes, &q, &used, &err) == WIRE_DONE &&
			   used == good[i].bytes.n && q.port == good[i].port &&
			   q.command == SOCKS_CONNECT,
		   "SOCKS 4 request %zu", i);
		wire_host_print(&q.host, &b);
		is_sv(buf_view(&b), sv_from(good[i].host), "its host");
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(socks4_request_parse(bad[i], &q, &used, &err) == WIRE_BAD, "SOCKS 4 refused %zu",
		   i);
	ok(socks4_request_parse(SV("\4\2\0\1\1\2\3\4\0"), &q, &used, &err) == WIRE_DONE &&
		   q.command == SOCKS_BIND,
	   "SOCKS 4 bind");
	memset(text + 8, 'u', sizeof(text) - 8);
	ok(socks4_request_parse((struct sv){ text, 8 + 255 }, &q, &used, &err) == WIRE_MORE,
	   "a user of 255");
	ok(socks4_request_parse((struct sv){ text, 8 + 256 }, &q, &used, &err) == WIRE_BAD &&
		   err.code == WRIT_E_LIMIT,
	   "a user of 256");
	socks4_reply(true, out);
	ok(out[0] == 0 && out[1] == 90, "granted");
	socks4_reply(false, out);
	ok(out[0] == 0 && out[1] == 91, "refused");
}

static void test_first_byte(void)
{
	ok(wire_protocol_of(5) == WIRE_SOCKS5 && wire_protocol_of(4) == WIRE_SOCKS4 &&
		   wire_protocol_of(0x16) == WIRE_TLS && wire_protocol_of('G') == WIRE_HTTP &&
		   wire_protocol_of('C') == WIRE_HTTP,
	   "known protocols");
	ok(wire_protocol_of('g') == WIRE_UNKNOWN && wire_protocol_of(0) == WIRE_UNKNOWN &&
		   wire_protocol_of(0x80) == WIRE_UNKNOWN && wire_protocol_of('\r') == WIRE_UNKNOWN,
	   "unknown ones");
}

int main(void)
{
	test_greeting();
	test_requests();
	test_bad_requests();
	test_socks4();
	test_first_byte();
	return tap_done();
}
