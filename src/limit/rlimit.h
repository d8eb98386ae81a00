/*
 * rlimit.h - which resource limits a session's first process sets on itself
 *
 * Reads:  /proc, for rlimit_count()
 * Writes: nothing
 * Next:   jail/ sets them inside the user namespace, before it gives up its rights
 *
 * A pure function of what is asked for and who holds it already. Each value is
 * for the soft and the hard limit. One above the hard limit in force is already
 * kept by that: who sets it takes the lower of both.
 */
#ifndef WRIT_LIMIT_RLIMIT_H
#define WRIT_LIMIT_RLIMIT_H

#include <sys/types.h>

#include "host/facts.h"

struct rlimit_ask {
	uint64_t memory;	     /* bytes; 0: none */
	uint64_t files;		     /* open files of one process; 0: none */
	uint64_t pids;		     /* 0: none */
	bool memory_held, pids_held; /* a cgroup or scope holds it for the whole session */
	bool own_userns; /* the limits are set in a user namespace of the session's own */
	uint64_t others; /* if not: rlimit_count() of the user, all of which count as well */
};

struct rlimit_row {
	int resource; /* RLIMIT_* */
	uint64_t value;
};

enum { RLIMIT_ROWS = 4 };

/* Processes and threads of @uid that run now, as far as they can be seen. */
uint64_t rlimit_count(uid_t uid);
/* Fills the first rows and returns how many. */
size_t rlimit_make(const struct host_facts *f, const struct rlimit_ask *a,
		   struct rlimit_row ret_rows[static RLIMIT_ROWS]);

#endif
