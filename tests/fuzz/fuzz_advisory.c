#include "fuzz.h"
#include "facts/advisory.h"

/* An advisory table, as doctor --update reads it; what parses must give verdicts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv text = { (const char *)data, size };
	struct host_facts f = { .kernel = "6.1.0-54-amd64",
				.kernel_base = "6.1.190",
				.runc = "1.1.5" };
	struct arena a = ARENA_INIT((size_t)16 << 20);
	struct writ_err err = { 0 };
	struct advisory_db db;
	enum advisory_verdict v;
	const struct advisory *why;

	if (advisory_parse(text, &a, &db, &err) == 0) {
		for (size_t i = 0; (i = advisory_next(&db, &f, i, &v)) < db.n; i++)
			if (v == ADVISORY_CLEAR)
				__builtin_trap();
		(void)advisory_primitive_open(&db, &f, SV("overlayfs"), &why);
	}
	(void)!advisory_check(text, SV(""), 30000, &err);
	arena_clear(&a);
	return 0;
}
