/*
 * cgroup.h - a cgroup per session: limits, their hits, freezing and killing
 *
 * Theory of operation
 *
 * A limit that must hold for a whole session (memory, processor time, number of processes) needs a
 * cgroup. Where it lives depends on the host:
 *   - unified hierarchy (version 2): a directory next to our own cgroup, if the parent was
 *     delegated to us, or below the root of the hierarchy;
 *   - version 1: one directory per controller, and one more to freeze or kill the session;
 *   - otherwise a scope that the user's systemd creates (unit.c).
 * Limits that a cgroup cannot enforce here become resource limits of processes (rlimit.h).
 *
 * States: closed (all zero) -> begun (directories exist, no limits) -> open (limits are set) ->
 * joined (cgroup_add()) -> closed. cgroup_go_on() does the first two at once if cgroup_begin() was
 * not called.
 *
 * Inputs are the facts about the host, the limits of the plan and the session's id. Outputs are
 * directories named writ-ID, and counters of what the limits hit.
 *
 * Invariants
 *   - Nothing is best effort: a limit that cannot be set is an error, and what was created is
 *     removed again. Values that systemd sets are read back.
 *   - A directory is locked (flock) while its session lives, so that cgroup_sweep() of another
 *     session can remove what a killed one left.
 *   - The session never has higher limits than the cgroup it was started from.
 *
 * Common mistakes
 *   - The kernel refuses controllers for children of a cgroup that contains processes (version 2,
 *     except in the root). Do not create the session's directory below our own cgroup.
 *   - Moving a running process makes the kernel wait for all processors; let it start in the
 *     cgroup (cgroup_doors()).
 *   - A pid from cgroup.procs may be reused before it is killed.
 *
 * Reads:  /proc/self/cgroup, /sys/fs/cgroup
 * Writes: one directory per session below our own cgroup (v2) or per controller (v1);
 *         or a scope of the user's systemd
 * Next:   session/ makes one when the plan says a limit is held by a cgroup
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
 * The cgroup of a session; all zero: closed. Has at most one directory per controller of version 1,
 * or one directory for version 2.
 */
struct cgroup {
	uint32_t n;
	struct cgroup_dir {
		char path[CGROUP_PATH];
		int fd;		  /* descriptor of the directory, which is locked */
		uint8_t controls; /* CTL_* bits of limit_priv.h */
	} dir[CGROUP_DIRS];
	bool v2;
	char unit[80]; /* name of a systemd scope; "": writ itself created the directories */
	/* limits of the scope @unit, which systemd creates together with its first process */
	struct cgroup_limits limits;
};

struct cgroup_hits {
	uint64_t oom;  /* number of processes that the kernel killed for lack of memory */
	uint64_t pids; /* number of forks that the kernel refused */
};

/*
 * Creates the cgroup "writ-@id" in two steps, so that a process can start in the cgroup before its
 * limits are known. cgroup_begin() creates the directories that are needed in any case, or none.
 * cgroup_go_on() creates the other directories and sets the limits; @c may be all zero. If @l
 * contains no limit, cgroup_go_on() creates nothing; if cgroup_go_on() fails, it closes @c.
 */
void cgroup_begin(const struct host_facts *f, const char *id, struct cgroup *ret);
must_check int cgroup_go_on(const struct host_facts *f, const struct cgroup_limits *l,
			    const char *id, struct cgroup *c, struct writ_err *err);
static inline bool cgroup_used(const struct cgroup *c)
{
	return c->n || c->unit[0];
}
/*
 * Moves @pid into the cgroup, unless @pid started in the cgroup. Future children of @pid follow. A
 * systemd scope accepts only the first process.
 */
must_check int cgroup_add(struct cgroup *c, int pid, struct writ_err *err);
/*
 * Returns the directories for a process that joins the cgroup by itself. @c keeps the descriptors.
 * Returns the number of directories; the first *@ret_unified (0 or 1) belong to the unified
 * hierarchy.
 */
size_t cgroup_doors(const struct cgroup *c, int ret_fds[static CGROUP_DIRS], size_t *ret_unified);
must_check int cgroup_hits(const struct cgroup *c, struct cgroup_hits *ret, struct writ_err *err);
/* Freezes or thaws all processes in the cgroup. */
must_check int cgroup_freeze(const struct cgroup *c, bool on, struct writ_err *err);
/* Kills all processes in the cgroup. Safe to call again. */
void cgroup_kill(const struct cgroup *c);
/*
 * Kills all processes in the cgroup, waits a bounded time until the cgroup is empty, and removes
 * the cgroup.
 */
void cgroup_close(struct cgroup *c);
/*
 * Removes cgroup directories that killed sessions left: directories writ-ID of this user that no
 * process has locked.
 */
void cgroup_sweep(const struct host_facts *f);

#endif
