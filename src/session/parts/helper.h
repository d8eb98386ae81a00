/*
 * helper.h - processes of writ that exchange messages with the supervisor over a socket
 *
 * Reads:  nothing
 * Writes: processes
 * Next:   mediation.c, network.c, look.c and git_transport.c start helpers
 */
#ifndef WRIT_PARTS_HELPER_H
#define WRIT_PARTS_HELPER_H

#include "loop/loop.h"

/*
 * The main function of a helper process. The function does not return. The process inherits @socket
 * and all other open descriptors of the supervisor.
 */
typedef void helper_main(struct session *s, int socket);
must_check int helper_start(struct session *s, helper_main *run, const char *name, pid_t *ret_pid,
			    int *ret_socket, struct writ_err *err);
must_check int helper_pair(int ret_ends[static 2], struct writ_err *err);
/*
 * Prepares the child process: the child dies with @parent, has no terminal, and blocks no signal.
 */
void helper_begin(pid_t parent);
/* Kills and reaps the helper *@pid, unless *@pid is 0, and sets *@pid to 0. */
void helper_kill(pid_t *pid);
/* Kills a helper, and waits at most @ms for its end, which a dead file system may delay. */
void helper_end(pid_t pid, int ms);

#endif
