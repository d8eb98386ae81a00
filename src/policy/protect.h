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
	const char *name; /* relative path, "/" separated */
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
/* NULL if @path (physical) is none of them. */
const struct protect_socket *protect_socket_find(struct sv path);

#endif
