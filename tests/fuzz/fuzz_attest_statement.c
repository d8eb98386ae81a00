/* fuzz_attest_statement - what was signed */
#include "attest/statement.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv in = fuzz_bytes(data, size);
	scoped_arena a = ARENA_INIT(16 << 20);
	scoped_buf b = BUF_INIT(4 << 20);
	struct writ_err err = { 0 };
	struct statement s;

	if (statement_parse(&a, in, &s, &err) < 0)
		return 0;
	must(s.log.start < s.log.end && s.log.end < s.log.size);
	must(statement_print(&s, &b, &err) == 0 && sv_eq(buf_view(&b), in));
	return 0;
}
