/*
 * limit_priv.h - one directory of cgroupfs, and one file of it
 *
 * Reads:  cgroupfs
 * Writes: cgroupfs
 * Next:   the files of this room, their test and their fuzzer
 *
 * The small functions return 0 or an errno; who knows what it means for the
 * session makes the report.
 */
#ifndef WRIT_LIMIT_LIMIT_PRIV_H
#define WRIT_LIMIT_LIMIT_PRIV_H

#include "base/sv.h"
#include "host/cgroup.h"
#include "limit/cgroup.h"

/* What a directory does for its session: bits of struct cgroup_dir's controls. */
enum {
	CTL_MEMORY = 1 << 0,
	CTL_PIDS = 1 << 1,
	CTL_CPU = 1 << 2,
	CTL_FREEZER = 1 << 3, /* version 1 only; in version 2 every directory can */
	CTL_V2 = 1 << 4,      /* cgroup.kill, cgroup.freeze, cgroup.events */
};

_Static_assert(CTL_FREEZER == 1 << V1_FREEZER && CTL_CPU == 1 << V1_CPU, "a bit is its number");

enum { CGROUP_WAIT_MS = 1000 }; /* for the kernel to do what was written */
enum { CGROUP_DEPTH = 8 };	/* of directories that somebody made below ours */

/* Names of directories that are ours; the probe's are its own. */
bool cgroup_name_ok(struct sv name);

/* At most @size - 1 bytes, NUL-terminated. */
must_check int file_get(int dir, const char *file, char *ret_text, size_t size);
bool file_exists(int dir, const char *file);
/* The number after "@key " at the start of a line; false if there is none. */
bool keyed_number(struct sv text, struct sv key, uint64_t *ret_v);
typedef void dir_fn(int above, const char *name, int dir, void *ctx);
/* Calls @fn for each directory below @dir, deepest first, at most @depth levels. */
void dirs_below(int dir, int depth, dir_fn *fn, void *ctx);

#endif
