/*
 * cgroup.h - the cgroups of a process, and their directories
 *
 * Reads:  /proc/self/mountinfo, the file "cgroup" of the process in /proc
 * Writes: nothing
 * Next:   probe_cgroup.c tries them, limit/ uses them
 */
#ifndef WRIT_FACTS_CGROUP_H
#define WRIT_FACTS_CGROUP_H

#include "base/err.h"
#include "base/sv.h"

enum { CGROUP_PATH = 512 };
enum { V1_MEMORY = 0, V1_PIDS, V1_CPU, V1_FREEZER, V1_COUNT };

/* Directories of the cgroups of a process; "" for a cgroup that no mount visible here shows. */
struct cgroup_places {
	uint64_t version;	  /* enum fact_cgroup: the mounted hierarchies, visible or not */
	char own[CGROUP_PATH];	  /* directory of the cgroup in the version 2 hierarchy */
	char parent[CGROUP_PATH]; /* parent of @own; "" if @own is the top of the mount */
	char v1[V1_COUNT][CGROUP_PATH];
};

/* Finds the cgroups in the texts of /proc/self/mountinfo and of a process's /proc file "cgroup". */
void facts_cgroup_places_parse(struct sv mountinfo, struct sv self, struct cgroup_places *ret_p);
/* Finds the cgroups of the process whose /proc file "cgroup" is @path. */
must_check int facts_cgroup_places_of(const char *path, struct cgroup_places *ret_p,
				      struct writ_err *err);
must_check int facts_cgroup_places_read(struct cgroup_places *ret_p, struct writ_err *err);

#endif
