/*
 * cgroup.h - a session's own cgroup: limits, what they hit, and killing it whole
 *
 * Reads:  /proc/self/cgroup, /sys/fs/cgroup
 * Writes: one directory per session below our own cgroup (v2) or per controller (v1);
 *         or a scope of the user's systemd
 * Next:   session/ makes one when the plan says a limit is held by a cgroup
 *
 * Never best effort: what was asked for and cannot be set is an error, and
 * nothing is left behind.
 */
#ifndef WRIT_LIMIT_CGROUP_H
#define WRIT_LIMIT_CGROUP_H

#include <stdbool.h>

#include "base/err.h"
#include "host/cgroup.h"
#include "host/facts.h"

struct cgroup_limits {
	uint64_t memory; /* bytes; 0: none. Swap is counted with it */
	uint64_t cpu;	 /* thousandths of one processor; 0: none */
	uint64_t pids;	 /* 0: none */
};

enum { CGROUP_DIRS = 4 };

/* Closed when zero. At most one directory per v1 controller, or one for v2. */
struct cgroup {
	uint32_t n;
	struct cgroup_dir {
		char path[CGROUP_PATH];
		int fd;		  /* of the directory */
		uint8_t controls; /* what it limits, bits of cgroup.c's own */
	} dir[CGROUP_DIRS];
	bool v2;
	char unit[80];		     /* of systemd; "": the directories are ours */
	struct cgroup_limits limits; /* of the unit, which exists with its first process */
};

struct cgroup_hits {
	uint64_t oom;  /* processes killed for memory so far */
	uint64_t pids; /* forks refused so far */
};

/* @id names the directory ("writ-ID"). Makes nothing if @l asks for nothing. */
must_check int cgroup_open(const struct host_facts *f, const struct cgroup_limits *l,
			   const char *id, struct cgroup *ret, struct writ_err *err);
/*
 * The same in two steps, for who wants a process to begin in it before the limits are
 * known: first the directories that there will be in any case, or nothing at all; then the
 * rest. A second step that fails closes @c.
 */
void cgroup_begin(const struct host_facts *f, const char *id, struct cgroup *ret);
must_check int cgroup_go_on(const struct host_facts *f, const struct cgroup_limits *l,
			    const char *id, struct cgroup *c, struct writ_err *err);
static inline bool cgroup_used(const struct cgroup *c)
{
	return c->n || c->unit[0];
}
/*
 * Moves @pid, if it is not there already, and all it will start. Who is in a unit cannot be
 * joined by another.
 */
must_check int cgroup_add(struct cgroup *c, int pid, struct writ_err *err);
/*
 * The directories, for a process that joins by itself: the caller's to read, not to close.
 * Returns their number; the first *@ret_unified (0 or 1) are of the unified hierarchy.
 */
size_t cgroup_doors(const struct cgroup *c, int ret_fds[static CGROUP_DIRS], size_t *ret_unified);
must_check int cgroup_hits(const struct cgroup *c, struct cgroup_hits *ret, struct writ_err *err);
/* Stops everything in it, or lets it go on. */
must_check int cgroup_freeze(const struct cgroup *c, bool on, struct writ_err *err);
/* Kills everything in it; safe to call again. */
void cgroup_kill(const struct cgroup *c);
/* Kills, waits until it is empty (bounded), removes. */
void cgroup_close(struct cgroup *c);
/* Removes what sessions that died hard left: writ-ID directories of ours without a process. */
void cgroup_sweep(const struct host_facts *f);

#endif
