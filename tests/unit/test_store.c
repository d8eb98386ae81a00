#include "tap.h"

#include "base/buf.h"
#include "codec/store.h"

#define BEGIN "-----BEGIN CERTIFICATE-----\n"
#define END "-----END CERTIFICATE-----\n"

static void test_pem(void)
{
	struct sv pem = SV("# said before\n" BEGIN "AQ\nID\r\n" END "between\n" BEGIN
			   "AQ==\n" END BEGIN "A\n" END BEGIN "AQ=D\n" END BEGIN "AQI\n" END BEGIN
			   "AR==\n" END BEGIN "!!!!\n" END BEGIN END BEGIN "AQI=" END BEGIN "AQID");
	static const char *const want[] = { "\x01\x02\x03", "\x01", "\x01\x02" };
	struct buf b = BUF_INIT(64);

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		ok(store_next(&pem, &b), "certificate %zu is found", i);
		is_sv(buf_view(&b), sv_from(want[i]), "and decoded");
		b.n = 0;
	}
	ok(!store_next(&pem, &b) && b.n == 0, "what is not whole, or not base64, is none");
	buf_clear(&b);
}

/* Written by hand from the standard: one certificate of three bytes. */
static void test_java(void)
{
	const struct sv want = SV("\x30\x69\x02\x01\x03\x30\x64\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01"
				  "\x07\x01\xa0\x57\x04\x55\x30\x53\x30\x51\x06\x09\x2a\x86\x48\x86"
				  "\xf7\x0d\x01\x07\x01\xa0\x44\x04\x42\x30\x40\x30\x3e\x06\x0b\x2a"
				  "\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x03\xa0\x15\x30\x13\x06\x0a"
				  "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01\xa0\x05\x04\x03\x01\x02"
				  "\x03\x31\x18\x30\x16\x06\x0c\x60\x86\x48\x01\x86\xf9\x66\xad\xca"
				  "\x7b\x01\x01\x31\x06\x06\x04\x55\x1d\x25\x00");
	struct buf b = BUF_INIT(4096), pem = BUF_INIT(4096);
	struct writ_err err = { 0 };

	ok(store_java(SV(BEGIN "AQID\n" END), &b, &err) == 0, "a trust store is made");
	is_sv(buf_view(&b), want, "byte for byte");
	b.n = 0;
	/* 512 bytes and one: the lengths around them take two bytes each. */
	buf_str(&pem, BEGIN);
	buf_fill(&pem, 'A', 684);
	buf_str(&pem, "\n" END BEGIN "AQ==\n" END);
	ok(store_java(buf_view(&pem), &b, &err) == 0 && b.n == 707, "longer ones, too (%zu)", b.n);
	ok(memcmp(b.p, "\x30\x82\x02\xbf\x02\x01\x03\x30\x82\x02\xb8", 11) == 0,
	   "with lengths that say so");
	buf_clear(&pem);
	buf_clear(&b);
	b = (struct buf)BUF_INIT(64);
	ok(store_java(SV(BEGIN "AQID\n" END), &b, &err) < 0, "no room is a failure");
	buf_clear(&b);
}

static void test_browser(void)
{
	struct buf b = BUF_INIT(4096);
	struct writ_err err = { 0 };

	ok(store_browser(SV(BEGIN "AQ\nID\n" END BEGIN "\"]}\n" END BEGIN "AQ==\n" END), &b,
			 &err) == 0,
	   "a policy is made");
	is_sv(buf_view(&b), SV("{\"CACertificates\":[\"AQID\",\"AQ==\"]}\n"),
	      "of what is base64 and nothing else");
	b.n = 0;
	ok(store_browser(SV(""), &b, &err) == 0, "of nothing, too");
	is_sv(buf_view(&b), SV("{\"CACertificates\":[]}\n"), "an empty one");
	buf_clear(&b);
}

int main(void)
{
	test_pem();
	test_java();
	test_browser();
	return tap_done();
}
