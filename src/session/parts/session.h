/*
 * session.h - entry points of a session for cli/, lib/ and tests
 *
 * Reads:  options (loop/session.h)
 * Writes: everything a session writes
 * Next:   table.c lists the parts in their order
 *
 * Theory of operation
 *
 * A session consists of parts that the loop runs (loop/loop.h). Each part has a header with its
 * callbacks and the functions that other parts may call, and a struct that only its own files see.
 * table.c lists the parts in the order in which they start, handle events and finish. To find the
 * code of a feature, look for its row in table.c: denials.h, grants.h, network.h, inspection.h,
 * mediation.h, engine.h, commands.h, terminal.h, tokens.h, agents.h, probe.h, record.h, control.h.
 *
 * Three headers are also used by other processes: client.h (requests to a running session),
 * records.h (records of sessions that run or have ended) and spawn.h (messages of `writ spawn`,
 * which runs in the jail).
 */
#ifndef WRIT_PARTS_SESSION_H
#define WRIT_PARTS_SESSION_H

#include "parts/client.h"
#include "parts/records.h"

/*
 * Under job control, forks: the parent is the job process, which the shell stops and continues; the
 * child runs the session. Call this before anything else. Returns 1 in the job process after the
 * session, with the exit code in *@ret_exit. Returns 0 in the child, with *@ret_job for
 * session_options.job; and 0 without a fork if there is no terminal.
 */
must_check int session_job(int *ret_job, int *ret_exit, struct writ_err *err);

/*
 * Runs a session to its end. *@ret_exit is the exit code for the caller. Returns an error only if
 * the start failed; a command that fails is no error.
 */
must_check int session_run(struct arena *a, const struct session_options *opt, int *ret_exit,
			   struct writ_err *err);

/*
 * Sends the mounts that every session has to writ-init, which the engine @e has prepared in @run.
 * If writ-init waits for its limits, also chooses the id of the session, which names the cgroup.
 * The policy is no input, so the caller may still discard @run. To use @run, the caller passes @run
 * and the id to session_run() in session_options.
 */
must_check int session_early(struct arena *a, const struct engine *e,
			     const struct host_facts *facts, char *const *envp,
			     struct engine_run *run, char ret_id[static SESSION_ID + 1],
			     struct writ_err *err);

/* --- agents of a policy --- */

#define SPAWN_SOCKET "/run/writ/spawn"

/*
 * Called by a process in a session: starts agent @name with the caller's standard descriptors, and
 * waits for its end.
 */
must_check int session_spawn(struct sv name, char *const *argv, struct sv cwd, int *ret_exit,
			     struct writ_err *err);

#endif
