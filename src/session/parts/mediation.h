/*
 * mediation.h - the mediator: a process that decides trapped calls
 *
 * Reads:  seccomp listeners, events of the mediator
 * Writes: denials
 * Next:   mediate/ decides; denials.c records
 *
 * The mediator is a separate process: it opens files whose names the agent chooses, and has
 * neither a terminal nor the session's other descriptors. The supervisor starts the mediator when
 * the first call needs it. SECURITY: a mediator that has ended is not replaced; the session ends.
 */
#ifndef WRIT_PARTS_MEDIATION_H
#define WRIT_PARTS_MEDIATION_H

#include "loop/loop.h"

extern const struct session_initial mediation_initial;
void mediation_poll(struct session *s, struct session_poll *set);
void mediation_on_event(struct session *s, const struct pollfd *p, size_t n);
int mediation_deadline(struct session *s, int least);
void mediation_finish(struct session *s);
void mediation_clear(struct session *s);

/*
 * Answers calls of the seccomp listener @fd, of which it takes ownership. @first: the listener is
 * that of the command that the session was made for.
 */
must_check int mediation_listener(struct session *s, int fd, bool first, struct writ_err *err);
/* Keeps the listener @fd open and answers no call: its processes block until they are killed. */
void mediation_hold(struct session *s, int fd);
/* Adds or removes a capability of a live grant in the mediator. */
must_check int mediation_rule(struct session *s, bool grant, const char *cap, struct writ_err *err);
pid_t mediation_pid(const struct session *s); /* process id of the mediator; 0: not started yet */

#endif
