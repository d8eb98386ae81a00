/*
 * probe_tmp.h - one private directory for trials, and its complete removal
 *
 * Reads:  $TMPDIR
 * Writes: the directory it made, and nothing outside it
 * Next:   probe.c
 *
 * A process of its own makes the directory and removes it, together with the
 * trial's cgroups, once the one that probes is done or dead: who is killed
 * leaves nothing, and so no signal needs to be held.
 */
#ifndef WRIT_HOST_PROBE_TMP_H
#define WRIT_HOST_PROBE_TMP_H

#include <sys/types.h>

#include "host/probe_priv.h"

struct keeper {
	pid_t pid; /* 0: none */
	int fd;
};

/*
 * Makes a directory below @wanted (may be NULL), $TMPDIR, /var/tmp or /tmp, the
 * first that is writable and not in memory, else the first that is writable, and
 * puts its name into p->dir; "" if none could be made.
 */
void keeper_start(const char *wanted, struct probe *p, struct keeper *ret_k);

/* When no trial runs: removes it with all below it, following no link. */
void keeper_end(struct keeper *k);

#endif
