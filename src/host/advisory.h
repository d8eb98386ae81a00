/*
 * advisory.h - known holes in kernels and engines, and what closes each
 *
 * Reads:  the table's text (built in, or a newer file the caller read)
 * Writes: nothing
 * Next:   plan/ leaves out a primitive with an open advisory; cli/ (doctor) lists them
 *
 * Pure: no clock, no files. The text is
 *
 *	writ-advisories 1
 *	date 2026-11-15
 *
 *	id CVE-2023-0386		starts a record
 *	component kernel		whose version decides
 *	primitive overlayfs userns	what it is reached through, one to eight words
 *	severity high			low medium high critical
 *	since 5.11			first affected version; may be left out
 *	fixed 5.15.91 6.1.9 6.2		first good version of each series, ascending
 *	distro ubuntu			only there; may be left out
 *	range uncertain			the versions are not certain; may be left out
 *	closes ...			the configuration that closes it
 *	text ...			what it is, one line
 *
 * A version is good if it is at least the fixed one of its own series (the
 * first two numbers), or newer than the newest. A series without an entry that
 * is older than the newest never got the fix. `fixed none`: not fixed anywhere.
 */
#ifndef WRIT_HOST_ADVISORY_H
#define WRIT_HOST_ADVISORY_H

#include "base/arena.h"
#include "host/facts.h"

enum { ADVISORY_FIXED_MAX = 16, ADVISORY_PRIMITIVES_MAX = 8 };

/* OPEN is zero: who forgets to look must not believe it is closed. */
enum advisory_verdict {
	ADVISORY_OPEN = 0, /* the version is affected */
	ADVISORY_MAYBE,	   /* it is, but the fix may be backported, or the range is unsure */
	ADVISORY_CLEAR,	   /* not affected, or not installed */
};

enum advisory_severity { SEVERITY_CRITICAL = 0, SEVERITY_HIGH, SEVERITY_MEDIUM, SEVERITY_LOW };

struct advisory_version {
	uint32_t n[4];
	uint32_t rc; /* UINT32_MAX: a release, after every candidate */
};

struct advisory {
	struct sv id, component, distro, closes, text; /* tied to the text parsed */
	struct sv primitive[ADVISORY_PRIMITIVES_MAX];
	size_t primitive_n;
	enum advisory_severity severity;
	struct advisory_version since, fixed[ADVISORY_FIXED_MAX];
	size_t fixed_n;
	bool uncertain;
};

struct advisory_db {
	uint32_t day; /* of its date, since 1970-01-01 */
	struct sv date;
	const struct advisory *v; /* owned by the arena */
	size_t n;
};

/* The table in this binary. */
struct sv advisory_builtin(void);

/* @text must outlive *@ret_db. Strict: unknown, repeated and missing keys are errors. */
must_check int advisory_parse(struct sv text, struct arena *a, struct advisory_db *ret_db,
			      struct writ_err *err);

/* What @adv means on the host described by @f. */
enum advisory_verdict advisory_verdict(const struct advisory *adv, const struct host_facts *f);

/*
 * The first record at or after @from that is not clear on this host, or db->n.
 * `for (i = 0; (i = advisory_next(db, f, i, &v)) < db->n; i++)` lists them.
 */
size_t advisory_next(const struct advisory_db *db, const struct host_facts *f, size_t from,
		     enum advisory_verdict *ret_v);

/*
 * The worst verdict of all records on @primitive ("overlayfs"), and which one
 * says so (NULL if clear). OPEN: do not use it unless the operator says so.
 */
enum advisory_verdict advisory_primitive_open(const struct advisory_db *db,
					      const struct host_facts *f, struct sv primitive,
					      const struct advisory **ret_why);

/*
 * May @text replace the table? It must parse, be newer than the built-in one
 * and than @installed ("" if none), and not be dated after @today.
 */
must_check int advisory_check(struct sv text, struct sv installed, uint32_t today,
			      struct writ_err *err);

/* "2026-11-15" -> days since 1970-01-01; false for anything but a real date until 9999. */
must_check bool advisory_day(struct sv date, uint32_t *ret_day);
/* Days between the table's date and @today; 0 if @today is earlier. */
uint32_t advisory_age(const struct advisory_db *db, uint32_t today);

const char *advisory_severity_name(enum advisory_severity s);

#endif
