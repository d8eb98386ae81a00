/*
 * probe.h - determine the facts by trying
 *
 * Reads:  the kernel, /proc, /sys, /etc/os-release, $TMPDIR, $XDG_RUNTIME_DIR, $PATH
 * Writes: one private temporary directory and one child cgroup, both removed on return
 * Next:   plan/ decides from the facts; cli/ prints them
 *
 * A fact that promises a feature was established moments ago by a child process, as this user and
 * in the way a jail uses the feature. A sysctl is read only where the sysctl itself is the fact. A
 * trial that hangs is killed and counts as "cannot".
 */
#ifndef WRIT_FACTS_PROBE_H
#define WRIT_FACTS_PROBE_H

#include "facts/facts.h"

/*
 * Fills *@ret_f with the facts about this machine, except the versions of other engines, which stay
 * "". Fails only if no child process can be started at all. Call this function before the process
 * restricts itself; otherwise the record describes these restrictions.
 */
must_check int facts_probe(struct host_facts *ret_f, struct writ_err *err);

/* Adds the versions of other engines to *@f by running `NAME --version` for each, all at once, for
 * at most two seconds. An engine that prints no version is "unknown". */
must_check int facts_probe_tools(struct host_facts *f, struct writ_err *err);

#endif
