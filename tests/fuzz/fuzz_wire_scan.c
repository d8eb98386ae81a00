/*
 * fuzz_wire_scan - the size of pieces, two values (each behind its length), and a text.
 * Pieces must not matter, no byte may be lost, and no value may get through.
 */
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"
#include "wire/scan.h"

/* Clean bytes go to @out with a mark for each hit, all bytes to @all. */
static void run(const struct scan_set *set, struct sv text, size_t piece, size_t room,
		struct buf *out, struct buf *all)
{
	char *window = malloc(room);
	struct scan s;

	must(window != NULL);
	scan_init(&s, set, window, room);
	do {
		struct sv in = sv_sub(text, 0, piece);
		enum scan_state state;
		struct scan_out o;

		text = sv_skip(text, in.n);
		while ((state = scan_next(&s, &in, text.n == 0, &o)) != SCAN_MORE) {
			must(o.bytes.n > 0);
			buf_sv(all, o.bytes);
			if (state == SCAN_CLEAN)
				buf_sv(out, o.bytes);
			else
				buf_fmt(out, "\n<%u %u>\n", o.id, o.form);
		}
		must(in.n == 0);
	} while (text.n);
	free(window);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_arena a = ARENA_INIT(16 << 20);
	scoped_buf x = BUF_INIT(1 << 24), y = BUF_INIT(1 << 24), all = BUF_INIT(1 << 24),
		   again = BUF_INIT(1 << 24);
	struct sv text = { (const char *)data, size };
	struct scan_value v[2] = { { .id = 1 }, { .id = 2 } };
	const struct scan_set *set;
	struct writ_err err = { 0 };
	size_t piece;

	if (size < 20)
		return 0;
	piece = 1u + data[0];
	text = sv_skip(text, 1);
	for (size_t i = 0; i < 2 && text.n; i++) {
		v[i].bytes = sv_sub(text, 1, 8 + (unsigned char)text.p[0] % 32);
		text = sv_skip(text, 1 + v[i].bytes.n);
	}
	if (v[0].bytes.n < 8 || v[1].bytes.n < 8)
		return 0;
	must(scan_set_new(&a, v, 2, &set, &err) == 0);
	run(set, text, SIZE_MAX, text.n + scan_room_min(set), &x, &all);
	run(set, text, piece, scan_room_min(set), &y, &again);
	must(sv_eq(buf_view(&all), text) && sv_eq(buf_view(&again), text));
	must(sv_eq(buf_view(&x), buf_view(&y)));
	for (size_t i = 0; i < 2; i++)
		must(memchr(v[i].bytes.p, '\n', v[i].bytes.n) || x.n == 0 ||
		     !memmem(x.p, x.n, v[i].bytes.p, v[i].bytes.n));
	return 0;
}
