/*
 * protect.h - protected names: files that stay read-only inside any `write` grant
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   lang/ (open NAME), plan/, jail/ and mediate/ (enforcement)
 *
 * SECURITY: a file that another program executes or obeys later (a git hook, an editor task) lets
 * an agent act outside the sandbox after the session, and no kernel boundary sees it. One table
 * lists these names; `open NAME` in a policy lifts the protection of one row.
 */
#ifndef WRIT_LANG_PROTECT_H
#define WRIT_LANG_PROTECT_H

#include "base/sv.h"

enum protect_where {
	PROTECT_DEPTH = 0, /* protected at any depth of a writable tree */
	PROTECT_TOP,	   /* protected only at the top of a writable tree */
};

struct protect_name {
	/*
	 * Relative path of the protected name. A "*" matches one segment, a "**" one or more. Names
	 * of PROTECT_DEPTH begin with a dot, which protect_match() relies on.
	 */
	const char *name;
	enum protect_where where;
	const char *why;
};

/* table of protected names; ends with a NULL name */
extern const struct protect_name protect_names[];

/* Unix sockets that give control over the machine or the user's session. */
struct protect_socket {
	const char *pattern; /* path of the socket; at most one "*" per segment, as in policies */
	const char *why;
};
/* table of protected sockets; ends with a NULL pattern */
extern const struct protect_socket protect_sockets[];

/* Does @pattern, in which one star matches any bytes (also none), match @name? */
bool protect_star(struct sv pattern, struct sv name);
const struct protect_name *protect_find(struct sv name);

/*
 * Relation of a path to a protected name. If several rows of protect_names match the path,
 * protect_match() returns the greatest value.
 */
enum protect_rel {
	PROTECT_CLEAR = 0,
	PROTECT_ABOVE, /* the path is a directory that may contain a protected name */
	PROTECT_AT,
	PROTECT_BELOW,
};

struct protect_hit {
	enum protect_rel rel;
	const struct protect_name *row; /* row that the path matches; NULL if the path is clear */
};

/* Names whose protection a policy lifts with `open`. */
struct protect_open {
	const struct sv *v;
	size_t n;
};

/*
 * Matches @path, relative to the top of a writable tree and without empty or dot segments, against
 * protect_names. With @fold, a name also matches if a case-insensitive directory could treat it as
 * a protected name.
 */
struct protect_hit protect_match(struct sv path, bool fold, const struct protect_open *open);
/* Can folding names (@fold of protect_match()) change the result for @path? */
bool protect_may_fold(struct sv path);
/* Returns the row of protect_sockets for the physical path @path, or NULL. */
const struct protect_socket *protect_socket_find(struct sv path);

#endif
