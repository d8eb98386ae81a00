/* limit/rlimit.c: the resource limits of a session, from facts and limits. */
#include "tap.h"

#include <sys/resource.h>

#include "base/attr.h"
#include "limit/rlimit.h"

static bool has(const struct rlimit_row *rows, size_t n, int resource, uint64_t value)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].resource == resource)
			return rows[i].value == value;
	return value == 0 && resource != RLIMIT_CORE;
}

static void test_rlimits(void)
{
	static const struct {
		struct rlimit_ask ask;
		bool userns, root;
		uint64_t as, nofile, nproc, signals;
	} cases[] = {
		{ { 0 }, true, false, 0, 0, 0 },
		{ { .memory = 5, .files = 6, .pids = 7, .own_userns = true },
		  true,
		  false,
		  5,
		  6,
		  7 },
		{ { .memory = 5, .memory_held = true, .own_userns = true }, true, false, 0, 0, 0 },
		{ { .pids = 7, .pids_held = true, .own_userns = true }, true, false, 0, 0, 0 },
		{ { .pids = 7, .others = 100 }, true, false, 0, 0, 115 },
		{ { .pids = 7, .others = 100 }, false, false, 0, 0, 115 },
		{ { .pids = 7, .others = 100 }, true, true, 0, 0, 0 },
		{ { .others = 100 }, true, false, 0, 0, 0 },
		{ { .pids = 7, .others = 100, .pids_held = true }, true, false, 0, 0, 0 },
		{ { .pids = 7, .own_userns = true }, false, false, 0, 0, 0 },
		{ { .pids = 7, .files = 6, .own_userns = true }, true, true, 0, 6, 0 },
		{ { .own_signals = 4000 }, true, false, 0, 0, 0, 500 },
		{ { .own_signals = UINT64_MAX }, true, true, 0, 0, 0, 1024 },
	};
	struct rlimit_row rows[RLIMIT_ROWS];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct host_facts f = { .rlimit_nproc_userns = cases[i].userns,
					      .root = cases[i].root };
		const size_t n = rlimit_make(&f, &cases[i].ask, rows);

		ok(rows[0].resource == RLIMIT_CORE && has(rows, n, RLIMIT_CORE, 0),
		   "rlimits %zu: no core", i);
		ok(has(rows, n, RLIMIT_DATA, cases[i].as) &&
			   has(rows, n, RLIMIT_NOFILE, cases[i].nofile) &&
			   has(rows, n, RLIMIT_NPROC, cases[i].nproc) &&
			   has(rows, n, RLIMIT_SIGPENDING, cases[i].signals),
		   "rlimits %zu: the others", i);
	}
}

static void test_open_files(void)
{
	ok(rlimit_files_of(1024) == 512 && rlimit_files_of(20000) == 15000,
	   "a session may open fewer files than writ");
	ok(rlimit_files_of(0) == 0, "unless the limit is not known");
}

int main(void)
{
	test_rlimits();
	test_open_files();
	return tap_done();
}
