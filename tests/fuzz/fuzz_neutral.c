/*
 * fuzz_neutral - output of an untrusted program on its way to a terminal
 *
 * The first byte says how the rest is cut into chunks.
 */
#include <string.h>

#include "fuzz.h"
#include "term/relay.h"

enum { OUT_MAX = 32 << 20 };

/* What may follow ESC, written down a second time and in another way. */
static size_t sequence(struct sv s)
{
	size_t n = 2;

	must(s.n >= 2);
	if (strchr("78DEM", s.p[1]))
		return n;
	if (s.p[1] == '(') {
		must(s.n >= 3 && s.p[2] == 'B');
		return 3;
	}
	must(s.p[1] == '[');
	if (sv_starts(s, SV("\033[?25h")) || sv_starts(s, SV("\033[?25l")))
		return 6;
	while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == ';' || s.p[n] == ':'))
		n++;
	must(n < s.n && n <= 66);
	must(strchr("ABCDEFGHIJKLMPSTXZ@`abdefmsu", s.p[n]) != NULL);
	return n + 1;
}

static void judge(struct sv out)
{
	static const char *const bidi[] = { "\xe2\x80\xaa", "\xe2\x80\xab", "\xe2\x80\xac",
					    "\xe2\x80\xad", "\xe2\x80\xae", "\xe2\x81\xa6",
					    "\xe2\x81\xa7", "\xe2\x81\xa8", "\xe2\x81\xa9" };

	must(sv_is_utf8(out));
	for (size_t i = 0; i < ARRAY_LEN(bidi); i++)
		must(!out.n || !memmem(out.p, out.n, bidi[i], 3));
	while (out.n) {
		const unsigned char c = (unsigned char)out.p[0];

		must(c != 0x7f && (c >= 0x20 || strchr("\t\n\r\b\033", c)) && c != 0);
		must(c != 0xc2 || (unsigned char)out.p[1] >= 0xa0);
		out = sv_skip(out, c == 0x1b ? sequence(out) : 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct neutral a = { 0 }, b = { 0 }, c = { 0 };
	scoped_buf whole = BUF_INIT(OUT_MAX), cut = BUF_INIT(OUT_MAX), twice = BUF_INIT(OUT_MAX);
	const struct sv in = { size ? (const char *)data + 1 : "", size ? size - 1 : 0 };
	const size_t step = size ? 1 + data[0] % 67U : 1;

	neutral_step(&a, in, &whole);
	must(!whole.failed && whole.n <= 4 * in.n + 64);
	judge(buf_view(&whole));
	for (size_t at = 0; at < in.n; at += step)
		neutral_step(&b, sv_sub(in, at, step), &cut);
	must(sv_eq(buf_view(&whole), buf_view(&cut)));
	neutral_step(&c, buf_view(&whole), &twice);
	must(sv_eq(buf_view(&whole), buf_view(&twice)));
	return 0;
}
