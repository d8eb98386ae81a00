#include "tap.h"

#include "base/buf.h"
#include "codec/base64.h"

/* RFC 4648 section 10, and bytes that use the letters in which the alphabets differ. */
static const struct {
	struct sv bytes;
	const char *padded, *url;
} same[] = {
	{ SV_INIT(""), "", "" },
	{ SV_INIT("f"), "Zg==", "Zg" },
	{ SV_INIT("fo"), "Zm8=", "Zm8" },
	{ SV_INIT("foo"), "Zm9v", "Zm9v" },
	{ SV_INIT("foob"), "Zm9vYg==", "Zm9vYg" },
	{ SV_INIT("fooba"), "Zm9vYmE=", "Zm9vYmE" },
	{ SV_INIT("foobar"), "Zm9vYmFy", "Zm9vYmFy" },
	{ SV_INIT("\xfb\xff\xbf\0"), "+/+/AA==", "-_-_AA" },
};

static void test_same(void)
{
	for (size_t i = 0; i < ARRAY_LEN(same); i++) {
		const char *const text[] = {
			[BASE64_PADDED] = same[i].padded, [BASE64_URL] = same[i].url
		};

		for (unsigned f = BASE64_PADDED; f <= BASE64_URL; f++) {
			scoped_buf b = BUF_INIT(64), c = BUF_INIT(64);
			char bytes[8];

			base64_encode(f, same[i].bytes, &b);
			is_sv(buf_view(&b), sv_from(text[f]), "encodes");
			ok(base64_length(f, same[i].bytes.n) == b.n, "and the length is known");
			ok(base64_decode(f, buf_view(&b), bytes, same[i].bytes.n) &&
				   memcmp(bytes, same[i].bytes.p, same[i].bytes.n) == 0,
			   "%s decodes", text[f]);
			ok(base64_decode_to(f, buf_view(&b), &c) &&
				   sv_eq(buf_view(&c), same[i].bytes),
			   "%s decodes to a buffer", text[f]);
			ok(!base64_decode(f, buf_view(&b), bytes, same[i].bytes.n + 1),
			   "%s is not one byte more", text[f]);
		}
	}
}

static void test_refused(void)
{
	static const char *const padded[] = { "Zg",	 "Zg=",	     "Zg===", "Zg====",	  "Zh==",
					      "Zm9=",	 "Zm8",	     "Zm9v=", "Zm9v====", "=",
					      "====",	 "Zg==Zg==", " Zg==", "Zg== ",	  "Zg==\n",
					      "Z g==",	 "Zm\n9v",   "Z===",  "-_-_AA==", "Zm9-",
					      "Zm9\xc3", "Z",	     "A=A=",  "AA=A" };
	static const char *const url[] = { "Zg==", "Zh",     "Zm9",  "Z",   "Zm9vY", "+/+/AA",
					   "Zm9 ", "Zm9v\n", "Zm.v", "Zg=", "Zm8=" };
	char bytes[16] = "untouched";
	size_t n = 77;

	for (size_t i = 0; i < ARRAY_LEN(padded); i++)
		ok(!base64_check(BASE64_PADDED, sv_from(padded[i]), &n), "padded[%zu] refused", i);
	for (size_t i = 0; i < ARRAY_LEN(url); i++)
		ok(!base64_check(BASE64_URL, sv_from(url[i]), &n), "url[%zu] refused", i);
	ok(n == 77, "what is refused leaves the length alone");
	ok(!base64_decode(BASE64_PADDED, SV("Zm9v!"), bytes, 3) && bytes[0] == 'u',
	   "and the bytes");
	ok(!base64_check(BASE64_URL, (struct sv){ "Zg\0", 3 }, &n), "a zero byte refused");
}

/* Every text of up to four letters: it is read if and only if it is what its bytes give. */
static void test_all(enum base64_form form)
{
	static const char set[] = "AQgBCw/_+-=8";
	unsigned wrong = 0, read = 0;

	for (unsigned at = 0; at < 12 * 12 * 12 * 12; at++) {
		const char text[] = { set[at % 12], set[at / 12 % 12], set[at / 144 % 12],
				      set[at / 1728] };

		for (size_t n = 1; n <= 4; n++) {
			scoped_buf bytes = BUF_INIT(8), again = BUF_INIT(8);
			const struct sv s = { text, n };

			if (!base64_decode_to(form, s, &bytes))
				continue;
			read++;
			base64_encode(form, buf_view(&bytes), &again);
			wrong += !sv_eq(buf_view(&again), s);
		}
	}
	ok(read > 1000 && wrong == 0, "%u texts read, %u of them a second spelling", read, wrong);
}

int main(void)
{
	test_same();
	test_refused();
	test_all(BASE64_PADDED);
	test_all(BASE64_URL);
	return tap_done();
}
