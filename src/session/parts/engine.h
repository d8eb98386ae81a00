/*
 * engine.h - the jail: its program, writ-init, and the keeper of its mounts
 *
 * Reads:  the plan, messages of writ-init and the keeper
 * Writes: the jail
 * Next:   init_messages.c handles the messages of writ-init
 *
 * The engine compiles the plan into a jail program, starts writ-init (or takes over a writ-init
 * that was started early), and has writ-init build the jail while the supervisor prepares the rest.
 * writ-init reports on one socket. The keeper, a second process that stays in the jail's mount
 * namespace, attaches and detaches live grants.
 *
 * Messages of writ-init are handled by a table of phase and message type; any other message ends
 * the session.
 */
#ifndef WRIT_PARTS_ENGINE_H
#define WRIT_PARTS_ENGINE_H

#include "loop/loop.h"
#include "plan/engine.h"
#include "vcs/repo.h"

extern const struct session_initial engine_initial;
must_check int engine_init(struct session *s, struct writ_err *err);
/* Sets the limits of the whole session. */
must_check int engine_limit(struct session *s, struct writ_err *err);
/* Start the jail step by step; other parts start between these steps. */
must_check int engine_compile(struct session *s, struct writ_err *err);
must_check int engine_start(struct session *s, struct writ_err *err);
must_check int engine_build(struct session *s, struct writ_err *err);
must_check int engine_await(struct session *s, struct writ_err *err);
must_check int engine_hello(struct session *s, struct writ_err *err);
bool engine_recover(struct session *s, struct writ_err *err);
must_check int engine_kill(struct session *s);
void engine_poll(struct session *s, struct session_poll *set);
void engine_on_event(struct session *s, const struct pollfd *p, size_t n);
void engine_close_inside(struct session *s);
void engine_clear(struct session *s);
void engine_release(struct session *s);

/*
 * Returns whether the supervisor may exit without reaping writ-init: writ-init is the only process
 * left in the jail, and the supervisor's process exits with the session.
 */
bool engine_may_leave(const struct session *s);

/* Returns what other parts may know of the jail. */
const struct engine_view *engine_view(const struct session *s);
pid_t engine_init_pid(const struct session *s);
/* Returns whether live grants can be attached. */
bool engine_attaches(const struct session *s);
/* Returns the jail as the functions of the engine take it (plan/engine.h). */
struct engine_run *engine_run(const struct session *s);
/* Sends a signal to a command. A command that has ended gets no signal; that is no error. */
void engine_signal(struct session *s, uint32_t id, int number);
/* Returns name and address of the author of commits, from the person's git configuration. */
const struct repo_identity *engine_identity(const struct session *s);
/* Reads pending changes of the jail's mounts, before the keeper's answer is handled. */
void engine_check_mounts(struct session *s);

/* init_messages.c: receives messages of writ-init from its socket. */
void init_messages_poll(struct session *s, struct session_poll *set);
void init_messages_on_event(struct session *s, const struct pollfd *p, size_t n);

#endif
