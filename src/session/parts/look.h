/*
 * look.h - arguments that name files which are not visible in the jail
 *
 * Reads:  execs
 * Writes: hints
 * Next:   hints.h keeps and shows them
 *
 * Tier A cannot observe reads of files that are not visible in the jail. A helper process checks
 * the arguments of each exec instead, and reports names that exist on the host and not in the jail.
 */
#ifndef WRIT_PARTS_LOOK_H
#define WRIT_PARTS_LOOK_H

#include "loop/loop.h"
#include "plan/event.h"

extern const struct session_initial look_initial;
void look_poll(struct session *s, struct session_poll *set);
void look_on_event(struct session *s, const struct pollfd *p, size_t n);
int look_deadline(struct session *s, int least);
void look_finish(struct session *s);
void look_clear(struct session *s);

/* Checks the arguments of an exec. */
void look_at(struct session *s, const struct mediate_event *e);

#endif
