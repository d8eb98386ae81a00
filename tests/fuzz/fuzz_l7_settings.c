/*
 * fuzz_l7_settings.c - settings of the reader of requests
 *
 * What decodes must encode, and decode again to the same bytes.
 */
#include "fuzz.h"
#include "l7/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_arena a = ARENA_INIT(16 << 20);
	scoped_buf first = BUF_INIT(4 << 20);
	scoped_buf second = BUF_INIT(4 << 20);
	struct l7_settings s, t;
	struct writ_err err;

	if (l7_settings_decode(&a, fuzz_bytes(data, size), &s, &err) < 0)
		return 0;
	if (l7_settings_encode(&s, &first, &err) < 0)
		return 0;
	if (l7_settings_decode(&a, buf_view(&first), &t, &err) < 0 ||
	    l7_settings_encode(&t, &second, &err) < 0 ||
	    !sv_eq(buf_view(&first), buf_view(&second)))
		abort();
	return 0;
}
