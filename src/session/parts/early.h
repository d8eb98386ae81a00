/*
 * early.h - writ-init, started before the policy is known
 *
 * Reads:  facts about this machine
 * Writes: the program that every session begins with, to writ-init; a cgroup
 * Next:   launch/ starts writ-init and passes it on as session_options.early and .begun
 */
#ifndef WRIT_PARTS_EARLY_H
#define WRIT_PARTS_EARLY_H

#include "limit/cgroup.h"
#include "parts/session.h"

/*
 * Has the engine @e send writ-init, which @e has prepared in @run, the mounts that every session
 * has. The policy is no input, so session_early_close() may discard @run and @begun as long as
 * session_run() has not taken them over.
 */
must_check int session_early(struct arena *a, const struct engine *e,
			     const struct host_facts *facts, char *const *envp,
			     struct engine_run *run, struct session_begun *ret_begun,
			     struct writ_err *err);
/* Discards a prepared writ-init. @run may be NULL. */
void session_early_close(const struct engine *e, struct engine_run **run,
			 struct session_begun *begun);

#endif
