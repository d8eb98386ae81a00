/*
 * probe.h - finds the facts by trying
 *
 * Reads:  the kernel, /proc, /sys, /etc/os-release, $TMPDIR, $XDG_RUNTIME_DIR, $PATH
 * Writes: one private temporary directory and one child cgroup, both gone on return
 * Next:   plan/ decides from the facts; cli/ prints them
 *
 * What a fact promises was done a moment ago by a child of ours, as this user,
 * in the way a jail does it. A sysctl is read only where the sysctl itself is
 * the fact. A trial that hangs is killed and counts as "cannot".
 */
#ifndef WRIT_HOST_PROBE_H
#define WRIT_HOST_PROBE_H

#include "host/facts.h"

/*
 * Fills *@ret_f, all but the versions of other engines, which stay "". Fails
 * only if nothing can be tried at all: no fork or no pipe. Must be called
 * before the process restricts itself, else it reports the restrictions.
 */
must_check int host_probe(struct host_facts *ret_f, struct writ_err *err);

/*
 * The same; overlay and reflink are tried below @dir, where copy-on-write
 * workspaces will be, instead of below $TMPDIR or /tmp.
 */
must_check int host_probe_at(const char *dir, struct host_facts *ret_f, struct writ_err *err);

/*
 * Adds the versions of other engines to *@f by running each `NAME --version`,
 * all at once, at most two seconds; one that is there but does not say its
 * version is "unknown".
 */
must_check int host_probe_tools(struct host_facts *f, struct writ_err *err);

#endif
