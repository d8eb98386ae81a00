/*
 * early.h - writ-init, started before the policy is known
 *
 * Reads:  facts about this machine
 * Writes: the program that every session begins with, to writ-init
 * Next:   launch/ starts writ-init and passes it on as session_options.run and .id
 */
#ifndef WRIT_PARTS_EARLY_H
#define WRIT_PARTS_EARLY_H

#include "parts/session.h"

/*
 * Has the engine @e send writ-init, which @e has prepared in @run, the mounts that every session
 * has. Chooses the id of the session if writ-init is to start within limits. The policy is no
 * input, so the caller may discard @run before session_run().
 */
must_check int session_early(struct arena *a, const struct engine *e,
			     const struct host_facts *facts, char *const *envp,
			     struct engine_run *run, char ret_id[static SESSION_ID + 1],
			     struct writ_err *err);

#endif
