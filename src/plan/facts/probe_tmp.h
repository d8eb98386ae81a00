/*
 * probe_tmp.h - the private temporary directory of the trials, and its removal
 *
 * Reads:  $TMPDIR
 * Writes: the directory that it made; removes the cgroups of the trials
 * Next:   probe.c
 *
 * The janitor is a separate process that makes the directory and removes it, together with the
 * trials' cgroups, when the prober is done or dead. Killing the prober therefore leaves nothing
 * behind, and no signal has to be blocked.
 */
#ifndef WRIT_FACTS_PROBE_TMP_H
#define WRIT_FACTS_PROBE_TMP_H

#include "facts/probe_priv.h"

struct janitor {
	pid_t pid; /* pid of the janitor; 0: not running */
	int fd;
};

/*
 * Starts the janitor. The janitor makes a directory below $TMPDIR, /var/tmp or /tmp: below the
 * first that is writable and on disk, otherwise below the first that is writable. p->dir is the
 * path of the directory, "" if none could be made.
 */
void facts_janitor_start(struct probe *p, struct janitor *ret_k);

/* Ends the janitor after all trials: the janitor removes the directory without following links. */
void facts_janitor_end(struct janitor *k);

#endif
