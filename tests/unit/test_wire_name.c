#include "wire/name.h"

#include "tap.h"

static void test_names(void)
{
	static const struct {
		const char *text, *want;
	} good[] = {
		{ "api.example.test", "api.example.test" },
		{ "API.Example.TEST", "api.example.test" },
		{ "api.example.test.", "api.example.test" },
		{ "localhost", "localhost" },
		{ "xn--bcher-kva.test", "xn--bcher-kva.test" },
		{ "_dmarc.example.test", "_dmarc.example.test" },
		{ "r3---sn.example.test", "r3---sn.example.test" },
		{ "1.2.3.4.test", "1.2.3.4.test" },
		{ "0x7f.test", "0x7f.test" },
		{ "4.3.2.1.in-addr.arpa", "4.3.2.1.in-addr.arpa" },
		{ "127.1a", "127.1a" },
		{ "0xg", "0xg" },
		{ "a", "a" },
	};
	struct wire_host h;
	struct writ_err err = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		if (!ok(wire_host_parse(sv_from(good[i].text), &h, &err) == 0 &&
				h.kind == WIRE_HOST_NAME,
			"name %s", good[i].text))
			continue;
		is_sv(wire_host_name(&h), sv_from(good[i].want), "its canonical form");
		ok(h.name[h.n] == 0, "ends in a NUL");
	}
}

/* Neither a name nor an address. */
static void test_refused(void)
{
	static const struct sv bad[] = {
		SV_INIT(""),
		SV_INIT("."),
		SV_INIT(".."),
		SV_INIT("a.."),
		SV_INIT(".a"),
		SV_INIT("a..b"),
		SV_INIT("evil.test\0.pkg.test"),
		SV_INIT("a\0"),
		SV_INIT("\0"),
		SV_INIT("a%00b"),
		SV_INIT("a b"),
		SV_INIT(" a"),
		SV_INIT("a "),
		SV_INIT("a\tb"),
		SV_INIT("a\r\nb"),
		SV_INIT("a\nb"),
		SV_INIT("\xc3\xa9.test"),
		SV_INIT("a\x80"),
		SV_INIT("a:80"),
		SV_INIT("user@a.test"),
		SV_INIT("a#b"),
		SV_INIT("a/b"),
		SV_INIT("a?b"),
		SV_INIT("*.a.test"),
		SV_INIT("-a.test"),
		SV_INIT("a-.test"),
		SV_INIT("a.-"),
		/* spellings of 127.0.0.1 and others that inet_aton() takes */
		SV_INIT("2130706433"),
		SV_INIT("0x7f000001"),
		SV_INIT("0x7f.1"),
		SV_INIT("127.1"),
		SV_INIT("127.0.1"),
		SV_INIT("0177.0.0.1"),
		SV_INIT("127.0.0.01"),
		SV_INIT("00.0.0.0"),
		SV_INIT("0x7f.0.0.1"),
		SV_INIT("0X7F.1"),
		SV_INIT("127.0.0.0x1"),
		SV_INIT("0x"),
		SV_INIT("1.2.3.4."),
		SV_INIT("127.0.0.1."),
		SV_INIT("1.2.3.256"),
		SV_INIT("1.2.3.4.5"),
		SV_INIT("+1.2.3.4"),
		SV_INIT("1.2.3"),
		SV_INIT("0"),
		SV_INIT("a.0x1f"),
		SV_INIT("1.2.3.4/32"),
		SV_INIT("10.0.0.0/8"),
		SV_INIT("[::]/0"),
		/* IPv6 that is not RFC 5952, has a zone, or hides IPv4 */
		SV_INIT("::1"),
		SV_INIT("[]"),
		SV_INIT("["),
		SV_INIT("[::1"),
		SV_INIT("::1]"),
		SV_INIT("[::1]x"),
		SV_INIT("[::1]."),
		SV_INIT("[fe80::1%eth0]"),
		SV_INIT("[fe80::1%25eth0]"),
		SV_INIT("[0:0:0:0:0:0:0:1]"),
		SV_INIT("[::0001]"),
		SV_INIT("[1::2::3]"),
		SV_INIT("[::127.0.0.1]"),
		SV_INIT("[::ffff:127.0.0.1]"),
		SV_INIT("[::ffff:7f00:1]"),
		SV_INIT("[::ffff:a9fe:a9fe]"),
		SV_INIT("[::FFFF:A9FE:A9FE]"),
		SV_INIT("[12345::]"),
		SV_INIT("[1:2:3:4:5:6:7]"),
		SV_INIT("[1:2:3:4:5:6:7:8:9]"),
		SV_INIT("[:1]"),
		SV_INIT("[1.2.3.4]"),
		SV_INIT("[a.test]"),
		SV_INIT("::ffff:1.2.3.4%x.pkg.test"),
	};
	struct writ_err err;
	struct wire_host h = { .n = 77 };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		err = (struct writ_err){ 0 };
		ok(wire_host_parse(bad[i], &h, &err) == WRIT_E_SYNTAX && err.what[0] &&
			   err.code == WRIT_E_SYNTAX && h.n == 77,
		   "refused %zu: %s", i, err.what);
	}
}

static void test_lengths(void)
{
	char text[300];
	struct writ_err err = { 0 };
	struct wire_host h;

	memset(text, 'a', sizeof(text));
	ok(wire_host_parse((struct sv){ text, 63 }, &h, &err) == 0, "a label of 63");
	ok(wire_host_parse((struct sv){ text, 64 }, &h, &err) < 0, "a label of 64");
	for (size_t i = 63; i < sizeof(text); i += 64)
		text[i] = '.';
	ok(wire_host_parse((struct sv){ text, 253 }, &h, &err) == 0 && h.n == 253, "a name of 253");
	ok(wire_host_parse((struct sv){ text, 254 }, &h, &err) < 0, "a name of 254");
	text[253] = '.';
	ok(wire_host_parse((struct sv){ text, 254 }, &h, &err) == 0 && h.n == 253,
	   "of 253 and a dot");
	ok(wire_host_parse((struct sv){ text, 300 }, &h, &err) < 0, "a name of 300");
}

static void test_addresses(void)
{
	static const char *const good[] = {
		"1.2.3.4",
		"0.0.0.0",
		"255.255.255.255",
		"127.0.0.1",
		"[::1]",
		"[::]",
		"[2001:db8::1]",
		"[1:2:3:4:5:6:7:8]",
		"[64:ff9b::7f00:1]",
		"[fe80::1]",
		"[1:0:0:2::3]",
	};
	struct writ_err err = { 0 };
	struct wire_host h, again;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		scoped_buf b = BUF_INIT(64);

		if (!ok(wire_host_parse(sv_from(good[i]), &h, &err) == 0 && h.n == 0 &&
				h.kind == (good[i][0] == '[' ? WIRE_HOST_V6 : WIRE_HOST_V4),
			"address %s", good[i]))
			continue;
		wire_host_print(&h, &b);
		is_sv(buf_view(&b), sv_from(good[i]), "printed again");
		again = h.addr.v6 ? wire_host_v6(h.addr.b) : wire_host_v4(h.addr.b);
		ok(wire_host_eq(&h, &again), "the same from its bytes");
		ok(wire_name_parse(sv_from(good[i]), &h, &err) < 0, "no name");
	}
	ok(wire_host_parse(SV("[2001:DB8::A]"), &h, &err) == 0 && h.addr.b[15] == 10, "upper case");
	ok(wire_host_parse(SV("0.0.0.1"), &h, &err) == 0 &&
		   wire_host_parse(SV("[1::]"), &again, &err) == 0 && !wire_host_eq(&h, &again),
	   "families differ");
}

static void test_authorities(void)
{
	static const struct {
		const char *text, *host;
		unsigned port, otherwise;
	} cases[] = {
		{ "a.test:443", "a.test", 443, 0 },
		{ "a.test", "a.test", 80, 80 },
		{ "A.test.:8080", "a.test", 8080, 80 },
		{ "1.2.3.4:1", "1.2.3.4", 1, 0 },
		{ "[::1]:65535", "[::1]", 65535, 0 },
		{ "[::1]", "[::1]", 443, 443 },
		{ "a.test", NULL, 0, 0 },
		{ "a.test:", NULL, 0, 80 },
		{ "a.test:0", NULL, 0, 80 },
		{ "a.test:65536", NULL, 0, 80 },
		{ "a.test:0443", NULL, 0, 80 },
		{ "a.test:+1", NULL, 0, 80 },
		{ "a.test: 1", NULL, 0, 80 },
		{ "a.test:1 ", NULL, 0, 80 },
		{ "a.test:443:80", NULL, 0, 80 },
		{ ":443", NULL, 0, 80 },
		{ "::1:443", NULL, 0, 80 },
		{ "[::1]443", NULL, 0, 80 },
		{ "[::1]x:443", NULL, 0, 80 },
		{ "[::1:443", NULL, 0, 80 },
		{ "user@a.test:443", NULL, 0, 80 },
		{ "a.test#@evil.test:1", NULL, 0, 80 },
		{ "", NULL, 0, 80 },
	};
	struct writ_err err = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct wire_authority a = { 0 };
		scoped_buf b = BUF_INIT(300);
		const int r = wire_authority_parse(sv_from(cases[i].text),
						   (uint16_t)cases[i].otherwise, &a, &err);

		ok((r == 0) == (cases[i].host != NULL) && a.port == cases[i].port,
		   "authority \"%s\" %s", cases[i].text, cases[i].host ? "taken" : "refused");
		wire_host_print(&a.host, &b);
		if (cases[i].host)
			is_sv(buf_view(&b), sv_from(cases[i].host), "its host");
	}
}

int main(void)
{
	test_names();
	test_refused();
	test_lengths();
	test_addresses();
	test_authorities();
	return tap_done();
}
