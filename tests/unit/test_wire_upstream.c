#include "wire/upstream.h"

#include "tap.h"

static struct writ_err err;

static void test_urls(void)
{
	static const char *const bad[] = { "",
					   "proxy.test:3128",
					   "https://proxy.test:3128",
					   "http://proxy.test",
					   "http://proxy.test:0",
					   "http://proxy.test:99999",
					   "http://u:p@proxy.test:3128",
					   "http://proxy.test:3128/path",
					   "http://2130706433:3128",
					   "http://a b:1" };
	struct upstream u;

	ok(upstream_parse(SV("http://proxy.test:3128/"), &u, &err) == 0 && u.at.port == 3128 &&
		   sv_is(wire_host_name(&u.at.host), "proxy.test") && !u.login[0],
	   "a name");
	ok(upstream_parse(SV("http://10.0.0.1:8080"), &u, &err) == 0 &&
		   u.at.host.kind == WIRE_HOST_V4,
	   "an address");
	ok(upstream_parse(SV("http://[2600:aaaa::7]:8080"), &u, &err) == 0 &&
		   u.at.host.kind == WIRE_HOST_V6,
	   "an address of IPv6");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(upstream_parse(sv_from(bad[i]), &u, &err) < 0, "not \"%s\"", bad[i]);
}

static void test_requests(void)
{
	const struct cap_net_addr v4 = { { 1, 2, 3, 4 }, 32, false };
	const struct cap_net_addr v6 = { { 0x26, [15] = 7 }, 128, true };
	scoped_buf b = BUF_INIT(2048);
	struct upstream u;

	ok(upstream_parse(SV("http://proxy.test:3128"), &u, &err) == 0, "a proxy");
	upstream_put(&u, &v4, 443, &b);
	is_sv(buf_view(&b), SV("CONNECT 1.2.3.4:443 HTTP/1.1\r\nHost: 1.2.3.4:443\r\n\r\n"),
	      "asked for an address");
	buf_clear(&b);
	ok(upstream_login(&u, SV("Aladdin:open sesame\r\n"), &err) == 0, "a login");
	upstream_put(&u, &v6, 22, &b);
	is_sv(buf_view(&b),
	      SV("CONNECT [2600::7]:22 HTTP/1.1\r\nHost: [2600::7]:22\r\n"
		 "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"),
	      "with a login");
	ok(upstream_login(&u, SV("a:b"), &err) == 0 && strcmp(u.login, "YTpi") == 0, "short");
	ok(upstream_login(&u, SV("nobody"), &err) < 0, "no password");
	ok(upstream_login(&u, SV("a:b\nc"), &err) < 0, "two lines");
	ok(upstream_login(&u, SV(""), &err) < 0, "nothing");
}

static void test_answers(void)
{
	static const char *const bad[] = { "SSH-2.0-x",
					   "HTTP/2 200\r\n\r\n",
					   "HTTP/1.1 2x0 \r\n\r\n",
					   "HTTP/1.1 2000\r\n\r\n",
					   "HTTP/1.1\r\n\r\n",
					   "http/1.1 200 \r\n\r\n" };
	const struct sv all = SV("HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nrest");
	char long_one[UPSTREAM_HEAD_MAX];
	unsigned status = 0;
	size_t used = 0, n;

	for (n = 0; n < all.n - 4; n++)
		if (upstream_answer(sv_sub(all, 0, n), &used, &status, &err) != WIRE_MORE)
			break;
	ok(n == all.n - 4, "each part of it wants more");
	ok(upstream_answer(all, &used, &status, &err) == WIRE_DONE && used == all.n - 4 &&
		   status == 200,
	   "and what follows is not its own");
	ok(upstream_answer(SV("HTTP/1.0 407\r\n\r\n"), &used, &status, &err) == WIRE_DONE &&
		   status == 407,
	   "without a word");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(upstream_answer(sv_from(bad[i]), &used, &status, &err) == WIRE_BAD, "not %zu",
		   i);
	memset(long_one, 'x', sizeof(long_one));
	memcpy(long_one, "HTTP/1.1 200 ", 13);
	ok(upstream_answer((struct sv){ long_one, sizeof(long_one) }, &used, &status, &err) ==
		   WIRE_BAD,
	   "nor one without an end");
}

int main(void)
{
	test_urls();
	test_requests();
	test_answers();
	return tap_done();
}
