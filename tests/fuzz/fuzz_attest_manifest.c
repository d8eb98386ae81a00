/* fuzz_attest_manifest - what a statement is about */
#include "attest/statement.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv in = fuzz_bytes(data, size);
	scoped_arena a = ARENA_INIT(16 << 20);
	scoped_buf b = BUF_INIT(4 << 20);
	struct writ_err err = { 0 };
	struct attest_facts f;

	if (manifest_parse(&a, in, &f, &err) < 0)
		return 0;
	must(attest_is_word(f.of.id) && attest_is_word(f.of.realm));
	must(manifest_print(&f, &b, &err) == 0 && sv_eq(buf_view(&b), in));
	must(manifest_differs(&f, &f) == NULL);
	return 0;
}
