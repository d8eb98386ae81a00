/*
 * fuzz_facts.c - records and advisory tables from outside
 *
 * Both are line-based texts with a first line of their own, so one target takes
 * either. What parses must print and parse again to the same.
 */
#include <string.h>

#include "fuzz.h"
#include "facts/advisory.h"
#include "facts/facts.h"

static void try_facts(struct sv text)
{
	scoped_buf first = BUF_INIT(1 << 16);
	scoped_buf second = BUF_INIT(1 << 16);
	scoped_buf json = BUF_INIT(1 << 16);
	struct writ_err err;
	struct host_facts f, g;

	if (facts_parse(text, &f, &err) < 0)
		return;
	facts_print(&f, &first);
	facts_json(&f, &json);
	if (facts_parse(buf_view(&first), &g, &err) < 0)
		abort();
	facts_print(&g, &second);
	if (!sv_eq(buf_view(&first), buf_view(&second)) || json.failed)
		abort();
}

static void try_advisories(struct sv text)
{
	static const struct host_facts host = { .kernel = "6.1.0-18-amd64", .kernel_base = "6.1.76",
						.distro = "debian 12", .runc = "1.1.5+ds1" };
	scoped_arena a = ARENA_INIT(16 << 20);
	struct advisory_db db;
	enum advisory_verdict v;
	struct writ_err err;
	const struct advisory *why;

	if (advisory_parse(text, &a, &db, &err) < 0)
		return;
	for (size_t i = 0; (i = advisory_next(&db, &host, i, &v)) < db.n; i++)
		if (v == ADVISORY_CLEAR || db.v[i].primitive_n == 0)
			abort();
	if (advisory_primitive_open(&db, &host, SV("overlayfs"), &why) != ADVISORY_CLEAR && !why)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv text = fuzz_bytes(data, size);

	try_facts(text);
	try_advisories(text);
	return 0;
}
