/*
 * cgroup.h - a cgroup per session: limits, their hits, freezing and killing
 *
 * Theory of operation
 *
 * A limit that must hold for a whole session (memory, processor time, number of processes) needs a
 * cgroup. The place of the session's cgroup depends on the host:
 *   - unified hierarchy (version 2): a directory next to the supervisor's own cgroup, if its parent
 *     was delegated to this user; or below the root, if the supervisor is in the root;
 *   - version 1: one directory per controller, and one more to freeze or kill the session;
 *   - on hosts where facts_scope() is true: a scope that the user's systemd creates (unit.c).
 * Limits that a cgroup cannot enforce here become resource limits of processes (rlimit.h).
 *
 * States: closed (all zero) -> begun (directories exist, no limits) -> open (limits are set) ->
 * joined (cgroup_add()) -> closed. Without cgroup_begin(), cgroup_go_on() does the first two steps.
 * systemd creates a scope, with its limits, only when the first process joins.
 *
 * Inputs are the facts about the host, the limits of the plan and the session's id. Outputs are
 * directories or a scope named writ-ID, and counters of how often limits were hit.
 *
 * Invariants
 *   - No limit is best effort: a limit that cannot be set is an error, and writ removes the
 *     directories that it created. Values that systemd sets are read back.
 *   - writ locks each directory that it creates (flock) while the session lives. So cgroup_sweep()
 *     of another session can tell directories of killed sessions and remove them.
 *   - A session in a directory that writ creates never has higher limits than the cgroup from which
 *     it was started. A scope does not inherit the limits of that cgroup.
 *
 * Common mistakes
 *   - The kernel refuses controllers for children of a cgroup that contains processes (version 2,
 *     except in the root). Do not create the session's directory below our own cgroup.
 *   - Moving a running process makes the kernel wait for all processors. Let the process start in
 *     the cgroup (cgroup_doors()).
 *   - The kernel may reuse a pid from cgroup.procs before writ kills the process. See kill_one().
 *
 * Reads:  /proc/self/cgroup, /sys/fs/cgroup
 * Writes: per session one directory (v2) or one per controller (v1), or a scope of the user's
 *         systemd
 * Next:   host/ opens and closes the cgroup of a session
 */
#ifndef WRIT_LIMIT_CGROUP_H
#define WRIT_LIMIT_CGROUP_H

#include <stdbool.h>

#include "base/err.h"
#include "facts/cgroup.h"
#include "facts/facts.h"

struct cgroup_limits {
	uint64_t memory; /* limit in bytes, swap included; 0: no limit */
	uint64_t cpu;	 /* limit in thousandths of one processor; 0: no limit */
	uint64_t pids;	 /* maximum number of processes; 0: no limit */
};

enum { CGROUP_DIRS = 4 };

/*
 * The cgroup of a session; all zero: closed. A cgroup of version 2 has one directory. A cgroup of
 * version 1 has at most one directory per controller, and one to freeze and kill the session.
 */
struct cgroup {
	uint32_t n;
	struct cgroup_dir {
		char path[CGROUP_PATH];
		int fd;		  /* descriptor of the directory; locked, except in a scope */
		uint8_t controls; /* CTL_* bits of limit_priv.h */
	} dir[CGROUP_DIRS];
	bool v2;
	char unit[80]; /* name of the systemd scope; "": writ itself created the directories */
	/* limits of the scope @unit, which systemd creates together with its first process */
	struct cgroup_limits limits;
};

struct cgroup_hits {
	uint64_t oom;  /* number of processes that the kernel killed at the limit */
	uint64_t pids; /* number of forks that the kernel refused because of the limit */
};

/*
 * cgroup_begin() and cgroup_go_on() create the cgroup "writ-@id" in two steps, so that a process
 * can start in the cgroup before its limits are known. cgroup_begin() creates the directories that
 * the session almost certainly needs, or none after an error. cgroup_go_on() creates the other
 * directories and sets the limits; @c may be all zero. If @l contains no limit, cgroup_go_on()
 * creates nothing. If it fails, it closes @c.
 */
void cgroup_begin(const struct host_facts *f, const char *id, struct cgroup *ret);
must_check int cgroup_go_on(const struct host_facts *f, const struct cgroup_limits *l,
			    const char *id, struct cgroup *c, struct writ_err *err);
static inline bool cgroup_used(const struct cgroup *c)
{
	return c->n || c->unit[0];
}
/*
 * Moves @pid into the cgroup, unless @pid is a member already. Future children of @pid follow. For
 * a scope, call only once, with the first process.
 */
must_check int cgroup_add(struct cgroup *c, int pid, struct writ_err *err);
/*
 * Stores the descriptors of the directories that a process must join to be in the cgroup; @c still
 * owns them. Returns the number of directories. The first *@ret_unified (0 or 1) of them are in the
 * unified hierarchy.
 */
size_t cgroup_doors(const struct cgroup *c, int ret_fds[static CGROUP_DIRS], size_t *ret_unified);
must_check int cgroup_hits(const struct cgroup *c, struct cgroup_hits *ret, struct writ_err *err);
/*
 * Freezes or thaws all processes in the cgroup, and waits a bounded time for the kernel to do so.
 */
must_check int cgroup_freeze(const struct cgroup *c, bool on, struct writ_err *err);
/* Kills all processes in the cgroup. Safe to call again. */
void cgroup_kill(const struct cgroup *c);
/*
 * Kills all processes in the cgroup, waits a bounded time until the cgroup is empty, and removes
 * the directories; systemd removes a scope.
 */
void cgroup_close(struct cgroup *c);
/* Removes the directories writ-ID of killed sessions, which are this user's and not locked. */
void cgroup_sweep(const struct host_facts *f);

#endif
