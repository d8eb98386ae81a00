/* fuzz_attest_entries - entries as others get them */
#include "attest/attest.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv in = fuzz_bytes(data, size);
	scoped_arena a = ARENA_INIT(16 << 20);
	scoped_buf b = BUF_INIT(4 << 20);
	struct writ_err err = { 0 };
	struct attest_facts f = { .of = { .id = SV("abcdefgh") }, .executable = SV("") };
	struct sv rest = in;

	/* Two entries of a realm's log, then a session's. */
	if (attest_read_start(&a, sv_cut(&rest, '\n'), &f, &err) == 0)
		must(attest_is_word(f.of.id) && f.of.custody != CUSTODY_NONE);
	if (attest_read_end(&a, sv_cut(&rest, '\n'), &f, &err) < 0)
		return 0;
	if (attest_read_entries(&a, rest, true, &f, NULL, &err) == 0)
		must(attest_public_entries(rest, &b, &err) < 0 || !f.whole ||
		     sv_eq(buf_view(&b), rest));
	return 0;
}
