/*
 * cgroup.h - which cgroups this process is in, and where their directories are
 *
 * Reads:  /proc/self/mountinfo, /proc/self/cgroup
 * Writes: nothing
 * Next:   probe_cgroup.c tries them, limit/ uses them
 */
#ifndef WRIT_HOST_CGROUP_H
#define WRIT_HOST_CGROUP_H

#include "base/err.h"
#include "base/sv.h"

enum { CGROUP_PATH = 512 };
enum { V1_MEMORY = 0, V1_PIDS, V1_CPU, V1_FREEZER, V1_COUNT };

/* Directories of the cgroups this process is in; "" where there is none in sight. */
struct cgroup_places {
	uint64_t version;	  /* enum fact_cgroup: what is mounted, in sight or not */
	char own[CGROUP_PATH];	  /* version 2 */
	char parent[CGROUP_PATH]; /* of @own, "" at the top of what is mounted */
	char v1[V1_COUNT][CGROUP_PATH];
};

/* From the texts of /proc/self/mountinfo and /proc/self/cgroup. */
void cgroup_places_parse(struct sv mountinfo, struct sv self, struct cgroup_places *ret_p);
must_check int cgroup_places_read(struct cgroup_places *ret_p, struct writ_err *err);

#endif
