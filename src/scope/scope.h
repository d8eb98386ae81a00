/*
 * scope.h - asks the user's systemd to put a process into a scope with limits
 *
 * Reads:  what the user manager answers on its private socket
 * Writes: one transient unit, which ends with its last process
 * Next:   host/ tries it, limit/ uses it where no cgroup is ours to divide
 *
 * What was asked for is not what holds: a manager leaves out, without a word, a limit
 * whose controller it was not given. Who asks looks at the cgroup afterwards.
 */
#ifndef WRIT_SCOPE_SCOPE_H
#define WRIT_SCOPE_SCOPE_H

#include <stdbool.h>

#include "base/err.h"

enum { SCOPE_PATH = 108 }; /* of a socket */

struct scope_ask {
	const char *socket; /* of the manager */
	const char *name;   /* "writ-ID.scope" */
	int pid;	    /* to be moved, with all it will start */
	uint64_t memory;    /* bytes, without swap; 0: none */
	uint64_t cpu;	    /* thousandths of one processor; 0: none */
	uint64_t pids;	    /* 0: none */
	int timeout_ms;
};

/* Where the manager of @uid listens: $XDG_RUNTIME_DIR, else the usual place. False: too long. */
must_check bool scope_socket(unsigned uid, char ret_path[static SCOPE_PATH]);

/* Connects and proves who we are. The socket must be our own user's, and so must who answers. */
must_check int scope_connect(const char *path, int timeout_ms, int *ret_fd, struct writ_err *err);

/* Returns when the manager says that the process is there. */
must_check int scope_start(const struct scope_ask *ask, struct writ_err *err);

#endif
