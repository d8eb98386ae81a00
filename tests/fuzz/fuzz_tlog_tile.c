/* fuzz_tlog_tile - names of tiles */
#include "fuzz.h"
#include "tlog/tile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv bytes = fuzz_bytes(data, size);
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(TILE_NAME_MAX);
	struct tile t, found;
	uint64_t end;

	if (tile_name_parse(bytes, &t, &err) < 0) {
		must(err.what[0] != 0);
		return 0;
	}
	tile_name_print(&t, &b);
	must(sv_eq(buf_view(&b), bytes));
	/* The smallest tree that has this tile has it with just this width. */
	end = (t.index * TILE_WIDTH + t.width) << (8 * t.level);
	must(t.width >= 1 && t.width <= TILE_WIDTH && end <= TREE_SIZE_MAX);
	must(tile_find(t.entries, t.level, t.index, end, &found) && found.width == t.width);
	return 0;
}
