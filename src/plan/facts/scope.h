/*
 * scope.h - ask the user's systemd to put a process into a scope with limits
 *
 * Reads:  replies of the user manager on its private socket
 * Writes: one transient unit, which ends with its last process
 * Next:   probe_scope.c tries it, limit/ uses it where no cgroup was delegated
 *
 * A requested limit is not necessarily applied: systemd silently omits limits whose controller it
 * does not have. The caller must read the limits back from the cgroup.
 */
#ifndef WRIT_FACTS_SCOPE_H
#define WRIT_FACTS_SCOPE_H

#include <stdbool.h>

#include "base/err.h"

enum { SCOPE_PATH = 108 }; /* maximum size of a socket path in bytes, with its NUL */

struct scope_ask {
	const char *socket; /* path of the private socket of the user's systemd */
	const char *name;   /* name of the scope: "writ-ID.scope" */
	int pid;	    /* process to move, with all its future children */
	uint64_t memory;    /* memory limit in bytes, without swap; 0: no limit */
	uint64_t cpu;	    /* limit on CPU time in thousandths of one processor; 0: no limit */
	uint64_t pids;	    /* limit on the number of processes; 0: no limit */
	int timeout_ms;
};

/*
 * Returns the path of the socket of the user's systemd: in $XDG_RUNTIME_DIR, else in /run/user/UID.
 * Returns false if the path is too long.
 */
must_check bool scope_socket(unsigned uid, char ret_path[static SCOPE_PATH]);

/*
 * Connects to the socket and authenticates. The socket and the peer must belong to the user of this
 * process.
 */
must_check int scope_connect(const char *path, int timeout_ms, int *ret_fd, struct writ_err *err);

/* Starts the scope and returns when systemd reports that the process is in the scope. */
must_check int scope_start(const struct scope_ask *ask, struct writ_err *err);

#endif
