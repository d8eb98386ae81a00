/*
 * fuzz_wire_body - a body: the first byte picks the framing, the second the size of the
 * pieces in which it comes. Pieces must not matter.
 */
#include "fuzz.h"
#include "wire/http1_body.h"

static enum wire_state decode(struct http1_body *b, struct sv all, size_t piece, struct buf *out,
			      size_t *ret_used)
{
	enum wire_state s = WIRE_MORE;
	struct writ_err err = { 0 };
	struct sv rest = all;

	while (rest.n && s == WIRE_MORE) {
		const struct sv part = sv_sub(rest, 0, piece);
		struct sv in = part, got;

		while (in.n && s == WIRE_MORE) {
			const size_t before = in.n;

			s = http1_body_next(b, &in, &got, &err);
			must(s == WIRE_BAD || (in.n < before || s == WIRE_DONE));
			if (s != WIRE_BAD)
				buf_sv(out, got);
		}
		rest = sv_skip(rest, part.n - in.n);
	}
	must(s != WIRE_BAD || err.what[0]);
	*ret_used = all.n - rest.n;
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const enum http1_framing framing = size ? data[0] % 4 : HTTP1_NONE;
	struct sv all = { (const char *)data + 2, size - 2 };
	scoped_buf x = BUF_INIT(1 << 24), y = BUF_INIT(1 << 24);
	scoped_buf tx = BUF_INIT(4096), ty = BUF_INIT(4096);
	struct http1_body a, b;
	enum wire_state s;
	size_t m, n;

	if (size < 2)
		return 0;
	http1_body_init(&a, framing, data[0] >> 2, &tx);
	http1_body_init(&b, framing, data[0] >> 2, &ty);
	s = decode(&a, all, SIZE_MAX, &x, &m);
	must(decode(&b, all, 1u + data[1], &y, &n) == s);
	if (s == WIRE_BAD)
		return 0;
	must(m == n && sv_eq(buf_view(&x), buf_view(&y)) && sv_eq(buf_view(&tx), buf_view(&ty)));
	must(http1_body_may_end(&a) ==
	     (s == WIRE_DONE || framing == HTTP1_UNTIL_CLOSE || a.at == HTTP1_AT_END));
	return 0;
}
