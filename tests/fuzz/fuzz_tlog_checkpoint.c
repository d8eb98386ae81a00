/* fuzz_tlog_checkpoint - the text of a checkpoint */
#include "fuzz.h"
#include "tlog/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv bytes = fuzz_bytes(data, size);
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(size);
	struct checkpoint c;

	if (checkpoint_parse(bytes, &c, &err) < 0) {
		must(err.what[0] != 0);
		return 0;
	}
	must(c.size <= TREE_SIZE_MAX && checkpoint_origin_check(c.origin, &err) == 0);
	must(checkpoint_print(&c, &b, &err) == 0 && sv_eq(buf_view(&b), bytes));
	must(note_text_check(bytes, &err) == 0);
	return 0;
}
