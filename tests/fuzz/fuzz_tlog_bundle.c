/* fuzz_tlog_bundle - entry bundles */
#include "fuzz.h"
#include "tlog/tile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv bytes = fuzz_bytes(data, size);
	struct writ_err err = { 0 };
	struct tile t = { .entries = true };
	struct sv rest = bytes, entry;
	scoped_buf b = BUF_INIT(size);
	size_t n = 0;
	int r;

	while ((r = tlog_bundle_next(&rest, &entry, &err)) > 0) {
		must(tlog_bundle_add(&b, entry, &err) == 0);
		n++;
	}
	/* What was read is the front of the bytes, and all of them if nothing was wrong. */
	must(sv_starts(bytes, buf_view(&b)) && (r == 0) == (b.n == size));
	for (t.width = n > 1 ? (uint16_t)(n - 1) : 1; t.width <= n + 1 && t.width <= TILE_WIDTH;
	     t.width++)
		must((tlog_bundle_check(bytes, &t, &err) == 0) == (r == 0 && n == t.width));
	return 0;
}
