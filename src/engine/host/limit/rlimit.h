/*
 * rlimit.h - the resource limits that a session's first process sets on itself
 *
 * rlimit_make() is a pure function of the facts, the limits in the plan and those that a cgroup
 * already enforces. Each value is for the soft and the hard limit. writ-init never raises a limit:
 * a lower hard limit in force stays.
 *
 * Reads:  /proc, for rlimit_count()
 * Writes: nothing
 * Next:   init/ sets them inside the user namespace, before it drops its capabilities
 */
#ifndef WRIT_LIMIT_RLIMIT_H
#define WRIT_LIMIT_RLIMIT_H

#include <sys/types.h>

#include "facts/facts.h"

struct rlimit_ask {
	uint64_t memory; /* limit in bytes; 0: no limit */
	uint64_t files;	 /* maximum number of open files of one process; 0: no limit */
	uint64_t pids;	 /* maximum number of processes; 0: no limit */
	/*
	 * Each is true if a cgroup already enforces the limit of this name for the whole session.
	 */
	bool memory_held, pids_held;
	bool own_userns; /* the session has a user namespace of its own */
	/*
	 * Without @own_userns: rlimit_count() of the user, whose processes the kernel counts too.
	 */
	uint64_t others;
	uint64_t own_signals; /* the user's own hard limit of queued signals; 0: not known */
};

struct rlimit_row {
	int resource; /* RLIMIT_* constant */
	uint64_t value;
};

enum { RLIMIT_ROWS = 5 };

/*
 * Returns the most open files that one process of a session may have, given the hard limit @own of
 * writ's processes.
 */
uint64_t rlimit_files_of(uint64_t own);

/* Returns the number of threads of all processes of @uid that run now and are visible in /proc. */
uint64_t rlimit_count(uid_t uid);
/* Fills the first rows of @ret_rows and returns their number. */
size_t rlimit_make(const struct host_facts *f, const struct rlimit_ask *a,
		   struct rlimit_row ret_rows[static RLIMIT_ROWS]);

#endif
