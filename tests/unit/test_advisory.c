#include "tap.h"

#include "base/arena.h"
#include "facts/advisory.h"

#define HEAD "writ-advisories 1\ndate 2026-11-16\n"
#define RECORD(id, component, rest) \
	"id " id "\ncomponent " component "\nprimitive overlayfs userns\nseverity high\n" rest \
	"closes c\ntext t\n"

static struct host_facts host(const char *kernel, const char *base, const char *distro)
{
	struct host_facts f = { 0 };

	facts_set_text(f.kernel, sv_from(kernel));
	facts_set_text(f.kernel_base, sv_from(base));
	facts_set_text(f.distro, sv_from(distro));
	return f;
}

static const char *verdict_name(enum advisory_verdict v)
{
	switch (v) {
	case ADVISORY_OPEN:
		return "open";
	case ADVISORY_MAYBE:
		return "maybe";
	case ADVISORY_CLEAR:
		return "clear";
	}
	return "?";
}

static const struct advisory *by_id(const struct advisory_db *db, const char *id)
{
	for (size_t i = 0; i < db->n; i++)
		if (sv_is(db->v[i].id, id))
			return &db->v[i];
	return NULL;
}

/* Series, mainline and vendor rules on the kernel, with the built-in table. */
static void test_kernels(void)
{
	static const struct {
		const char *id, *kernel, *base, *distro, *want;
	} cases[] = {
		{ "CVE-2023-0386", "5.15.90", "5.15.90", "x", "open" },
		{ "CVE-2023-0386", "5.15.91", "5.15.91", "x", "clear" },
		{ "CVE-2023-0386", "6.0.19", "6.0.19", "x", "open" }, /* never got it */
		{ "CVE-2023-0386", "6.1.8", "6.1.8", "x", "open" },
		{ "CVE-2023-0386", "6.1.9", "6.1.9", "x", "clear" },
		{ "CVE-2023-0386", "6.2.0", "6.2.0", "x", "clear" },
		{ "CVE-2023-0386", "6.18.44-fc-v445", "6.18.44", "debian 12", "clear" },
		{ "CVE-2023-0386", "5.10.3", "5.10.3", "x", "clear" }, /* before it came in */
		{ "CVE-2023-0386", "6.1.0-7-amd64", "6.1.20", "debian 12", "clear" },
		{ "CVE-2023-0386", "6.1.0-7-amd64", "6.1.0", "debian 12", "maybe" },
		{ "CVE-2023-0386", "5.14.0-427.el9", "5.14.0", "rhel 9.4", "maybe" },
		{ "CVE-2023-0386", "5.15.90", "", "x", "open" }, /* no base: the release decides */
		{ "CVE-2023-0386", "", "", "x", "clear" },
		{ "CVE-2023-0386", "odd", "odd", "x", "maybe" },
		{ "CVE-2023-2640", "6.2.0-20-generic", "6.2.6", "ubuntu 23.04", "maybe" },
		{ "CVE-2023-2640", "6.2.6", "6.2.6", "debian 12", "clear" },
		{ "CVE-2021-3493", "5.4.0", "5.4.0", "ubuntu 20.04", "maybe" }, /* uncertain */
		{ "CVE-2022-34918", "5.15.3", "5.15.3", "x", "open" },
		{ "CVE-2022-34918", "4.19.284", "4.19.284", "x", "clear" },
		{ "CVE-2026-31431", "6.18.21", "6.18.21", "x", "open" },
		{ "CVE-2026-31431", "6.18.22", "6.18.22", "x", "clear" },
		{ "CVE-2026-31431", "6.17.1", "6.17.1", "x", "open" },
		{ "CVE-2026-31431", "7.0-rc6", "7.0-rc6", "x", "open" },
		{ "CVE-2026-31431", "7.0.1", "7.0.1", "x", "clear" },
	};
	scoped_arena a = ARENA_INIT(8 << 20);
	struct advisory_db db = { 0 };
	struct writ_err err = { 0 };

	if (!ok(advisory_parse(advisory_builtin(), &a, &db, &err) == 0, "built-in: %s", err.what))
		return;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct host_facts f = host(cases[i].kernel, cases[i].base, cases[i].distro);
		const struct advisory *adv = by_id(&db, cases[i].id);

		if (!adv) {
			ok(false, "%s is in the table", cases[i].id);
			continue;
		}
		is_str(verdict_name(advisory_verdict(adv, &f)), cases[i].want, cases[i].kernel);
	}
}

static void test_engines(void)
{
	static const struct {
		const char *id, *version, *want;
	} cases[] = {
		{ "CVE-2024-21626", "1.1.11", "open" },
		{ "CVE-2024-21626", "1.1.12", "clear" },
		{ "CVE-2024-21626", "1.1.5+ds1", "maybe" },
		{ "CVE-2024-21626", "1.0.0-rc92", "clear" },
		{ "CVE-2024-21626", "1.0.0-rc93", "open" },
		{ "CVE-2024-21626", "1.0.0~rc93", "open" },
		{ "CVE-2024-21626", "1.2.0", "clear" },
		{ "CVE-2024-21626", "unknown", "maybe" },
		{ "CVE-2024-21626", "", "clear" },
		{ "CVE-2025-31133", "1.1.15", "open" },
		{ "CVE-2025-31133", "1.2.7", "open" },
		{ "CVE-2025-31133", "1.2.8", "clear" },
		{ "CVE-2025-31133", "1.4.0-rc.2", "open" },
		{ "CVE-2025-31133", "1.4.0-rc.3", "clear" },
		{ "CVE-2025-31133", "1.4.0", "clear" },
		{ "CVE-2019-5736", "1.0.0-rc6", "open" },
		{ "CVE-2019-5736", "1.0.0", "clear" },
	};
	scoped_arena a = ARENA_INIT(8 << 20);
	struct advisory_db db = { 0 };
	struct writ_err err = { 0 };

	if (advisory_parse(advisory_builtin(), &a, &db, &err) < 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct host_facts f = host("6.18.44", "6.18.44", "x");
		const struct advisory *adv = by_id(&db, cases[i].id);

		facts_set_text(f.runc, sv_from(cases[i].version));
		if (adv)
			is_str(verdict_name(advisory_verdict(adv, &f)), cases[i].want,
			       cases[i].version);
		else
			ok(false, "%s is in the table", cases[i].id);
	}
}

static void test_primitive(void)
{
	scoped_arena a = ARENA_INIT(8 << 20);
	const struct host_facts old = host("6.1.1", "6.1.1", "debian 12");
	const struct host_facts new = host("7.2", "7.2", "debian 12");
	const struct advisory *why = NULL;
	struct advisory_db db = { 0 };
	struct writ_err err = { 0 };
	enum advisory_verdict v = ADVISORY_CLEAR;
	size_t n = 0;

	if (advisory_parse(advisory_builtin(), &a, &db, &err) < 0)
		return;
	ok(advisory_primitive_open(&db, &old, SV("overlayfs"), &why) == ADVISORY_OPEN && why &&
	   sv_is(why->id, "CVE-2023-0386"), "overlayfs is open on 6.1.1, and why");
	ok(advisory_primitive_open(&db, &new, SV("overlayfs"), &why) == ADVISORY_CLEAR && !why,
	   "and clear on 7.2");
	ok(advisory_primitive_open(&db, &old, SV("io_uring"), &why) == ADVISORY_CLEAR,
	   "io_uring's entries are about other versions");
	for (size_t i = 0; (i = advisory_next(&db, &old, i, &v)) < db.n; i++)
		n++;
	ok(n > 5, "%zu entries on an early 6.1", n);
	n = 0;
	for (size_t i = 0; (i = advisory_next(&db, &new, i, &v)) < db.n; i++)
		n++;
	ok(n == 0, "none on a kernel newer than the table with nothing installed");
}

static void refused(const char *text, const char *want)
{
	scoped_arena a = ARENA_INIT(8 << 20);
	struct advisory_db db = { .day = 5 };
	struct writ_err err = { 0 };
	const int r = advisory_parse(sv_from(text), &a, &db, &err);

	if (!ok(r < 0 && strstr(err.what, want) && db.day == 5, "refused: %s", want))
		tap_note("got %d '%s'", r, err.what);
}

static void test_refused(void)
{
	refused("", "no 'writ-advisories 1'");
	refused("writ-advisories 2\n", "line 1: expected 'writ-advisories 1'");
	refused("writ-advisories 1\nid X\n", "line 2: expected 'date YYYY-MM-DD'");
	refused("writ-advisories 1\ndate 2026-02-29\n", "expected 'date");
	refused("writ-advisories 1\ndate 2026-1-01\n", "expected 'date");
	refused("writ-advisories 1\ndate 1969-12-31\n", "expected 'date");
	refused(HEAD "component kernel\n", "unexpected 'component'");
	refused(HEAD "id A\nid B\n", "line 4: record before it has no component");
	refused(HEAD "id A\n", "has no component");
	refused(HEAD "id A\ncomponent kernel\ncomponent kernel\n", "line 5: component again");
	refused(HEAD "id A\ncolour red\n", "unexpected 'colour'");
	refused(HEAD "id A B\n", "bad id");
	refused(HEAD "id A\ncomponent Kernel\n", "bad component");
	refused(HEAD "id A\nprimitive a  b\n", "bad primitive");
	refused(HEAD "id A\nprimitive a b c d e f g h i\n", "bad primitive");
	refused(HEAD "id A\nseverity bad\n", "bad severity");
	refused(HEAD "id A\nsince x\n", "bad since");
	refused(HEAD "id A\nsince 1.2.3.4.5\n", "bad since");
	refused(HEAD "id A\nfixed \n", "bad fixed");
	refused(HEAD "id A\nfixed 6.2 6.1.9\n", "bad fixed");
	refused(HEAD "id A\nfixed 6.1.8 6.1.9\n", "bad fixed");
	refused(HEAD "id A\nfixed 6.1.8x\n", "bad fixed");
	refused(HEAD "id A\nfixed 1.1 1.2 1.3 1.4 1.5 1.6 1.7 1.8 1.9 1.10 1.11 1.12 1.13 1.14 "
		     "1.15 1.16 1.17\n", "bad fixed");
	refused(HEAD "id A\nrange sure\n", "bad range");
	refused(HEAD "id A\ntext  x\n", "bad text");
	refused(HEAD "id A\ntext a\x1b[31mb\n", "not printable");
	refused(HEAD RECORD("A", "kernel", "fixed 1.2\n") RECORD("A", "kernel", "fixed 1.2\n"),
		"A again");
}

static void test_check(void)
{
	struct writ_err err = { 0 };
	uint32_t built_in = 0, today = 0;

	ok(advisory_day(SV("2026-11-15"), &built_in) && advisory_day(SV("2027-01-10"), &today),
	   "dates");
	ok(advisory_check(SV(HEAD), SV(""), today, &err) == 0, "a newer table is taken");
	ok(err.code == 0, "and the error is left alone");
	ok(advisory_check(advisory_builtin(), SV(""), today, &err) == WRIT_E_DENIED,
	   "the same date as the built-in one is refused: %s", err.what);
	ok(advisory_check(SV(HEAD), SV("writ-advisories 1\ndate 2026-11-16\n"), today, &err) ==
	   WRIT_E_DENIED, "not newer than the installed one: %s", err.what);
	ok(advisory_check(SV(HEAD), SV("writ-advisories 1\ndate 2026-01-01\n"), today, &err) == 0,
	   "newer than an old installed one");
	ok(advisory_check(SV(HEAD), SV("rubbish"), today, &err) == 0,
	   "a broken installed table does not stand in the way");
	ok(advisory_check(SV(HEAD), SV(""), built_in, &err) == WRIT_E_DENIED,
	   "from the future: %s", err.what);
	ok(advisory_check(SV("rubbish\n"), SV(""), today, &err) == WRIT_E_SYNTAX, "not a table");
}

static void test_day(void)
{
	struct advisory_db db = { .day = 100 };
	uint32_t d = 7;

	ok(advisory_day(SV("1970-01-01"), &d) && d == 0, "the first day");
	ok(advisory_day(SV("1970-03-01"), &d) && d == 59, "no leap day in 1970");
	ok(advisory_day(SV("2000-03-01"), &d) && d == 11017, "2000 was a leap year");
	ok(advisory_day(SV("2026-11-15"), &d) && d == 20772, "2026-11-15");
	d = 7;
	ok(!advisory_day(SV("2100-02-29"), &d) && !advisory_day(SV("2026-13-01"), &d) &&
	   !advisory_day(SV("2026-00-01"), &d) && !advisory_day(SV("2026-11-00"), &d) &&
	   !advisory_day(SV("2026-11-15 "), &d) && d == 7, "no such days");
	ok(advisory_age(&db, 130) == 30 && advisory_age(&db, 90) == 0, "age, never negative");
}

/* The built-in table names only what we can look at and what a plan asks for. */
static void test_builtin(void)
{
	static const char *const known[] = { "kernel", "runc", "crun", "gvisor", "podman", "docker",
					     "containerd", "bubblewrap", "qemu", "firecracker",
					     "wasmtime" };
	scoped_arena a = ARENA_INIT(8 << 20);
	struct advisory_db db = { 0 };
	struct writ_err err = { 0 };

	if (advisory_parse(advisory_builtin(), &a, &db, &err) < 0)
		return;
	ok(db.n >= 40, "%zu records", db.n);
	for (size_t i = 0; i < db.n; i++) {
		bool found = false;

		for (size_t k = 0; k < ARRAY_LEN(known); k++)
			found = found || sv_is(db.v[i].component, known[k]);
		if (!found)
			ok(false, SV_FMT " has an unknown component", SV_ARG(db.v[i].id));
	}
}

int main(void)
{
	test_builtin();
	test_kernels();
	test_engines();
	test_primitive();
	test_refused();
	test_check();
	test_day();
	return tap_done();
}
