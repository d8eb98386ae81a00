#include "wire/scan.h"

#include <stdlib.h>

#include "base/buf.h"
#include "tap.h"

#define SECRET "s3cr\xfft/key+\"\x01~9"

static const struct scan_set *set;
static struct arena arena = ARENA_INIT(64 << 20);
static struct writ_err err;

static void use(const struct scan_value *values, size_t n)
{
	if (scan_set_new(&arena, values, n, &set, &err) < 0)
		ok(false, "a set: %s", err.what);
}

/*
 * Runs @text through in pieces of @piece: clean bytes as they are, of a hit its id and
 * form. @room is the size of the window.
 */
static void run(struct sv text, size_t piece, size_t room, struct buf *out)
{
	char *window = malloc(room);
	struct scan_out o;
	struct scan s;

	scan_init(&s, set, window, room);
	do {
		struct sv in = sv_sub(text, 0, piece);
		enum scan_state state;

		text = sv_skip(text, in.n);
		do {
			state = scan_next(&s, &in, text.n == 0, &o);
			if (state == SCAN_CLEAN)
				buf_sv(out, o.bytes);
			else if (state == SCAN_HIT)
				buf_fmt(out, "<%u.%u>", o.id, o.form);
			if (state == SCAN_CLEAN && o.bytes.n == 0)
				ok(false, "clean and empty");
		} while (state != SCAN_MORE);
		if (in.n)
			ok(false, "not used up");
	} while (text.n);
	free(window);
}

static void is_found(struct sv text, const char *want, const char *name)
{
	static const size_t pieces[] = { 100000, 1, 2, 3, 7, 13 };

	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		scoped_buf out = BUF_INIT(1 << 20);

		run(text, pieces[i], scan_room_min(set), &out);
		is_sv(buf_view(&out), sv_from(want), name);
	}
}

static size_t base64(struct sv s, bool url, char *out)
{
	static const char std[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	static const char alt[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	size_t n = 0;

	for (size_t i = 0; i < s.n; i += 3) {
		unsigned v = 0;

		for (size_t j = 0; j < 3; j++)
			v = v << 8 | (i + j < s.n ? (unsigned char)s.p[i + j] : 0);
		for (int shift = 18; shift >= 0; shift -= 6)
			out[n++] = (url ? alt : std)[v >> shift & 63];
	}
	return n;
}

static void test_forms(void)
{
	static const struct scan_value v = { SV_INIT(SECRET), 7 };

	use(&v, 1);
	is_found(SV("a" SECRET "b"), "a<7.0>b", "as it is");
	is_found(SV(SECRET SECRET), "<7.0><7.0>", "twice");
	is_found(SV("73336372ff742f6b65792b22017e39"), "<7.3>", "hexadecimal");
	is_found(SV("x73336372FF742F6B65792B22017E39x"), "x<7.3>x", "in upper case");
	is_found(SV("a=s3cr%FFt%2Fkey%2B%22%01~9&"), "a=<7.4>&", "percent");
	is_found(SV("a=s3cr%fft%2fkey%2b%22%01~9&"), "a=<7.4>&", "in lower case");
	is_found(SV("%73%33%63%72%FF%74%2F%6B%65%79%2B%22%01%7E%39"), "<7.4>", "every byte");
	is_found(SV("%73%33%63%72%ff%74%2f%6b%65%79%2b%22%01%7e%39"), "<7.4>", "in lower case");
	is_found(SV("\"s3cr\xfft\\/key+\\\"\x01~9\""), "\"<7.5>\"", "JSON");
	is_found(SV("s3cr\xfft/key+\"\x01~"), "s3cr\xfft/key+\"\x01~", "all but the last byte");
	is_found(SV("3cr\xfft/key+\"\x01~9"), "3cr\xfft/key+\"\x01~9", "all but the first");
	is_found(SV("s3cr\xff" SECRET), "s3cr\xff<7.0>", "after a false start");
	is_found(SV(""), "", "nothing");
}

/* Wherever it stands among other bytes, before and behind. */
static void test_base64(void)
{
	static const struct scan_value v = { SV_INIT(SECRET), 1 };
	unsigned found[2] = { 0 };

	use(&v, 1);
	for (unsigned i = 0; i < 32; i++) {
		scoped_buf in = BUF_INIT(100), out = BUF_INIT(1000);
		char text[200];

		buf_fill(&in, 'x', i % 4);
		buf_sv(&in, v.bytes);
		buf_fill(&in, 'y', i / 4 % 4);
		run((struct sv){ text, base64(buf_view(&in), i / 16, text) }, 5, scan_room_min(set),
		    &out);
		buf_ch(&out, 0);
		found[i / 16] += strstr(out.p, i / 16 ? "<1.2>" : "<1.1>") != NULL ||
				 strstr(out.p, "<1.1>") != NULL;
	}
	ok(found[0] == 16, "base64 at every place: %u", found[0]);
	ok(found[1] == 16, "and of the other alphabet: %u", found[1]);
}

static void test_order(void)
{
	static const struct scan_value v[] = {
		{ SV_INIT("abcdefgh"), 1 },
		{ SV_INIT("abcdefghijkl"), 2 },
		{ SV_INIT("cdefghij"), 3 },
		{ SV_INIT("abcdefgh"), 4 },
	};

	use(v, 4);
	is_found(SV("abcdefghijkl"), "<2.0>", "the longest");
	is_found(SV("abcdefghijk"), "<1.0>ijk", "or the shorter one");
	is_found(SV("xbcdefghijkl"), "xb<3.0>kl", "or one that begins later");
	is_found(SV("abcdefgabcdefgh"), "abcdefg<1.0>", "a false start");
}

static void test_limits(void)
{
	static char big[SCAN_VALUE_MAX + 1];
	static struct scan_value many[SCAN_VALUES_MAX + 1];
	const struct scan_set *none = NULL;
	struct scan_value v = { { big, 7 }, 0 };

	memset(big, 'k', sizeof(big));
	ok(scan_set_new(&arena, &v, 1, &none, &err) == WRIT_E_LIMIT && !none, "7 bytes");
	v.bytes.n = 8;
	ok(scan_set_new(&arena, &v, 1, &none, &err) == 0, "8 bytes");
	v.bytes.n = sizeof(big);
	ok(scan_set_new(&arena, &v, 1, &none, &err) == WRIT_E_LIMIT, "4097 bytes");
	v.bytes.n = sizeof(big) - 1;
	ok(scan_set_new(&arena, &v, 1, &none, &err) == 0 && scan_room_min(none) == 2 * 3 * 4096,
	   "4096 bytes");
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = (struct scan_value){ { big, 8 + i }, (uint32_t)i };
	ok(scan_set_new(&arena, many, SCAN_VALUES_MAX, &set, &err) == 0, "256 values");
	is_found(SV("kkkkkkkkk!"), "<1.0>!", "the longest of them");
	ok(scan_set_new(&arena, many, SCAN_VALUES_MAX + 1, &set, &err) == WRIT_E_LIMIT,
	   "257 values");
	ok(scan_set_new(&arena, NULL, 0, &set, &err) == 0, "no values");
	is_found(SV("anything at all"), "anything at all", "find nothing");
}

/* Nothing that could not be the beginning of a value waits. */
static void test_hold(void)
{
	static const struct scan_value v = { SV_INIT("abcdefghijkl"), 1 };
	char window[200];
	struct scan_out o;
	struct scan s;
	struct sv in = SV("data: hello\n\n");

	use(&v, 1);
	scan_init(&s, set, window, sizeof(window));
	ok(scan_next(&s, &in, false, &o) == SCAN_CLEAN && sv_is(o.bytes, "data: hello\n\n") &&
		   scan_next(&s, &in, false, &o) == SCAN_MORE,
	   "an event goes on at once");
	in = SV("xabcdefghij");
	ok(scan_next(&s, &in, false, &o) == SCAN_CLEAN && sv_is(o.bytes, "x") &&
		   scan_next(&s, &in, false, &o) == SCAN_MORE,
	   "a beginning waits");
	in = SV("k?");
	ok(scan_next(&s, &in, false, &o) == SCAN_CLEAN && sv_is(o.bytes, "abcdefghijk?"),
	   "until it is none");
	in = SV("abc");
	ok(scan_next(&s, &in, false, &o) == SCAN_MORE, "three bytes wait too");
	in = SV("");
	ok(scan_next(&s, &in, true, &o) == SCAN_CLEAN && sv_is(o.bytes, "abc") &&
		   scan_next(&s, &in, true, &o) == SCAN_MORE,
	   "until the end");
}

/* Against the plain way of looking, over texts made of pieces of the patterns. */
static void test_random(void)
{
	static const struct scan_value v[] = {
		{ SV_INIT("aabaabaa"), 1 },	{ SV_INIT("abaabaabab"), 2 },
		{ SV_INIT("bbbbbbbb"), 3 },	{ SV_INIT("aabaabaabaabaabb"), 4 },
		{ SV_INIT("babababababa"), 5 },
	};
	unsigned seed = 12345;
	bool same = true;

	use(v, ARRAY_LEN(v));
	for (int round = 0; round < 3000; round++) {
		scoped_buf want = BUF_INIT(4096), got = BUF_INIT(4096);
		char text[64];
		struct sv t = { text, sizeof(text) };

		for (size_t i = 0; i < sizeof(text); i++) {
			seed = seed * 1103515245 + 12345;
			text[i] = "aaab"[seed >> 16 & 3];
		}
		while (t.n) {
			const struct scan_value *best = NULL;

			for (size_t i = 0; i < ARRAY_LEN(v); i++)
				if (sv_starts(t, v[i].bytes) &&
				    (!best || v[i].bytes.n > best->bytes.n))
					best = &v[i];
			if (best)
				buf_fmt(&want, "<%u.0>", best->id);
			else
				buf_ch(&want, t.p[0]);
			t = sv_skip(t, best ? best->bytes.n : 1);
		}
		run((struct sv){ text, sizeof(text) }, 1 + seed % 20, scan_room_min(set), &got);
		same &= sv_eq(buf_view(&want), buf_view(&got));
	}
	ok(same, "3000 random texts");
}

/* How much of a value is held back, in each of its spellings alike. */
static void test_held(void)
{
	static const struct {
		const char *text;
		unsigned want;
	} cases[] = { { "nothing", 0 },
		      { "...twen", 200 },
		      { "...twenty-letters-lon", 900 },
		      { "...7477656e", 200 },
		      { "...%74%77%65%6e%74", 250 },
		      { "twenty-lettersX", 0 } };
	const struct scan_value v = { SV("twenty-letters-long!"), 0 };
	char window[256];

	use(&v, 1);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct sv in = sv_from(cases[i].text);
		struct scan_out o;
		struct scan s;

		scan_init(&s, set, window, sizeof(window));
		while (scan_next(&s, &in, false, &o) == SCAN_CLEAN)
			;
		ok(scan_held(&s) == cases[i].want, "%s: %u", cases[i].text, scan_held(&s));
	}
}

int main(void)
{
	test_forms();
	test_base64();
	test_order();
	test_limits();
	test_hold();
	test_held();
	test_random();
	arena_clear(&arena);
	return tap_done();
}
