/*
 * advisory.h - known vulnerabilities of kernels and engines, and their mitigations
 *
 * Reads:  the table's text (built in, or a newer file that the caller read)
 * Writes: nothing
 * Next:   plan/ avoids a primitive (kernel feature) with an open advisory; cli/ (doctor) lists them
 *
 * The functions use no clock and no files. The text is
 *
 * 	writ-advisories 1
 * 	date 2026-11-15
 *
 * 	id CVE-2023-0386		starts a record
 * 	component kernel		program whose version decides
 * 	primitive overlayfs userns	features that expose the vulnerability, one to eight words
 * 	severity high			low medium high critical
 * 	since 5.11			first affected version; optional
 * 	fixed 5.15.91 6.1.9 6.2		first fixed version of each series, ascending
 * 	distro ubuntu			affects only this distribution; optional
 * 	range uncertain			the versions are not certain; optional
 * 	closes ...			configuration that mitigates the vulnerability
 * 	text ...			description, one line
 *
 * A version is fixed if it is at least the fixed version of its own series (the first two
 * numbers), or newer than the newest entry. A series without an entry that is older than the
 * newest entry never got the fix. `fixed none`: not fixed anywhere.
 */
#ifndef WRIT_FACTS_ADVISORY_H
#define WRIT_FACTS_ADVISORY_H

#include "base/arena.h"
#include "facts/facts.h"

enum { ADVISORY_FIXED_MAX = 16, ADVISORY_PRIMITIVES_MAX = 8 };

/* ADVISORY_OPEN is zero, so that code which forgets to set a verdict errs on the safe side. */
enum advisory_verdict {
	ADVISORY_OPEN = 0, /* the version is affected */
	/* Affected, but a backport may contain the fix, or the range of versions is uncertain. */
	ADVISORY_MAYBE,
	ADVISORY_CLEAR, /* the version is not affected, or the component is not installed */
};

enum advisory_severity { SEVERITY_CRITICAL = 0, SEVERITY_HIGH, SEVERITY_MEDIUM, SEVERITY_LOW };

struct advisory_version {
	uint32_t n[4];
	/* Number of the release candidate; UINT32_MAX for a release, which sorts last. */
	uint32_t rc;
};

struct advisory {
	struct sv id, component, distro, closes, text; /* views of the parsed text */
	struct sv primitive[ADVISORY_PRIMITIVES_MAX];
	size_t primitive_n;
	enum advisory_severity severity;
	struct advisory_version since, fixed[ADVISORY_FIXED_MAX];
	size_t fixed_n;
	bool uncertain;
};

struct advisory_db {
	uint32_t day; /* date of the table, in days since 1970-01-01 */
	struct sv date;
	const struct advisory *v; /* records, owned by the arena */
	size_t n;
};

/* Returns the table that is built into this program. */
struct sv advisory_builtin(void);

/* Parses a table. @text must outlive *@ret_db. Unknown, repeated and missing keys are errors. */
must_check int advisory_parse(struct sv text, struct arena *a, struct advisory_db *ret_db,
			      struct writ_err *err);

/* Decides whether the security advisory @adv affects the host that @f describes. */
enum advisory_verdict advisory_verdict(const struct advisory *adv, const struct host_facts *f);

/*
 * Returns the index of the first record at or after @from that is not clear on this host, or db->n.
 * `for (i = 0; (i = advisory_next(db, f, i, &v)) < db->n; i++)` lists all such records.
 */
size_t advisory_next(const struct advisory_db *db, const struct host_facts *f, size_t from,
		     enum advisory_verdict *ret_v);

/*
 * Returns the worst verdict of all records about @primitive ("overlayfs") and the record that
 * causes this verdict (NULL if clear). OPEN: do not use the primitive unless the operator allows
 * it.
 */
enum advisory_verdict advisory_primitive_open(const struct advisory_db *db,
					      const struct host_facts *f, struct sv primitive,
					      const struct advisory **ret_why);

/*
 * Checks whether @text may replace the table: @text must parse, be newer than the built-in table
 * and than @installed ("" if none), and not be dated after @today.
 */
must_check int advisory_check(struct sv text, struct sv installed, uint32_t today,
			      struct writ_err *err);

/*
 * Converts "2026-11-15" to days since 1970-01-01; returns false if @date is not a valid date up to
 * the year 9999.
 */
must_check bool advisory_day(struct sv date, uint32_t *ret_day);
/* Returns the days between the table's date and @today; 0 if @today is before the table's date. */
uint32_t advisory_age(const struct advisory_db *db, uint32_t today);

#endif
