/*
 * protect.h - names that hold inside any `write`: what other tools would run
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   policy/ (open NAME), plan/ and later jail/ and mediate/ (enforcement)
 *
 * A file another program executes or obeys later is a way out of the sandbox
 * that no kernel boundary sees. One table; `open NAME` lifts one row.
 */
#ifndef WRIT_POLICY_PROTECT_H
#define WRIT_POLICY_PROTECT_H

#include "base/sv.h"

enum protect_where {
	PROTECT_DEPTH = 0, /* this name at any depth of a writable tree */
	PROTECT_TOP,	   /* at the top of a writable tree only */
};

struct protect_name {
	/*
	 * Relative path, "/" separated. A "*" alone stands for one segment, a "**"
	 * for one or more. What counts at any depth begins with a dot.
	 */
	const char *name;
	enum protect_where where;
	const char *why;
};

extern const struct protect_name protect_names[]; /* ends with a NULL name */

/* Unix sockets that hand out authority over the machine or the user's session. */
struct protect_socket {
	const char *pattern; /* a path; one "*" per segment as in policies */
	const char *why;
};
extern const struct protect_socket protect_sockets[]; /* ends with a NULL pattern */

const struct protect_name *protect_find(struct sv name);

/* How a path stands to the strongest row it meets; the order is the strength. */
enum protect_rel {
	PROTECT_CLEAR = 0,
	PROTECT_ABOVE, /* a directory that may hold a protected name */
	PROTECT_AT,
	PROTECT_BELOW,
};

struct protect_hit {
	enum protect_rel rel;
	const struct protect_name *row; /* NULL if clear */
};

/* Rows lifted by name. */
struct protect_open {
	const struct sv *v;
	size_t n;
};

/*
 * @path is relative to the top of a writable tree, without empty or dot segments.
 * With @fold, names count that a directory which ignores case might take for ours.
 */
struct protect_hit protect_match(struct sv path, bool fold, const struct protect_open *open);
/* False if @path means the same to every directory, so that @fold cannot matter. */
bool protect_may_fold(struct sv path);
/* NULL if @path (physical) is none of them. */
const struct protect_socket *protect_socket_find(struct sv path);

#endif
