/*
 * limit_priv.h - directories and files of cgroupfs, for this module and its tests
 *
 * A function with an int result and without a struct writ_err returns 0 or a positive errno. Its
 * caller knows which operation failed, and fills a struct writ_err.
 */
#ifndef WRIT_LIMIT_LIMIT_PRIV_H
#define WRIT_LIMIT_LIMIT_PRIV_H

#include "base/sv.h"
#include "facts/cgroup.h"
#include "limit/cgroup.h"

/* Purposes of a directory: bits of cgroup_dir.controls. */
enum {
	CTL_MEMORY = 1 << 0,
	CTL_PIDS = 1 << 1,
	CTL_CPU = 1 << 2,
	CTL_FREEZER = 1 << 3, /* version 1 only: the kernel can freeze every cgroup of version 2 */
	/*
	 * The directory is in the unified hierarchy, where a cgroup has cgroup.freeze and
	 * cgroup.events, and since Linux 5.14 cgroup.kill.
	 */
	CTL_V2 = 1 << 4,
};

_Static_assert(CTL_FREEZER == 1 << V1_FREEZER && CTL_CPU == 1 << V1_CPU, "a bit is its number");

enum { CGROUP_WAIT_MS = 1000 }; /* time that the kernel gets to freeze, thaw or empty a cgroup */
/* maximum depth of the directories that a session may have created below its own cgroup */
enum { CGROUP_DEPTH = 8 };

/* Returns the controllers that @l needs: CTL_* bits. */
uint8_t limit_asked(const struct cgroup_limits *l);
bool limit_no_swap(void); /* true if this machine has no swap */
/* Writes each limit into the directory that has the controller for this limit. */
must_check int limit_set(const struct cgroup *c, const struct cgroup_limits *l,
			 struct writ_err *err);

/* Functions of unit.c, for a cgroup that systemd creates. */
must_check int unit_check_facts(const struct host_facts *f, const struct cgroup_limits *l,
				struct writ_err *err);
must_check int unit_add(struct cgroup *c, int pid, struct writ_err *err);
must_check int unit_verify(int dir, const struct cgroup_limits *l, struct writ_err *err);
void unit_close(struct cgroup *c);

/* True for names of sessions' directories, false for those of the probe in facts/. */
bool cgroup_name_ok(struct sv name);

/* Reads at most @size - 1 bytes of @file and appends a NUL. */
must_check int limit_file_get(int dir, const char *file, char *ret_text, size_t size);
bool limit_file_exists(int dir, const char *file);
/* Reads a file that contains one number. Returns false without a file or a number ("max"). */
bool limit_number_get(int dir, const char *file, uint64_t *ret_v);
/* Reads quota and period, in microseconds, from cpu.max. Returns false if there is no limit. */
bool limit_cpu_get(int dir, uint64_t *ret_quota, uint64_t *ret_period);
/* Parses the number after "@key " at the start of a line of @text; false without such a line. */
bool limit_keyed_number(struct sv text, struct sv key, uint64_t *ret_v);
typedef void dir_fn(int above, const char *name, int dir, void *ctx);
/* Calls @fn for each directory below @dir, the deepest first, down to @depth levels. */
void limit_dirs_below(int dir, int depth, dir_fn *fn, void *ctx);

#endif
