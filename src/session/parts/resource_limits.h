/*
 * resource_limits.h - limits of memory, processors, processes and time
 *
 * Reads:  the policy, the cgroup
 * Writes: the cgroup
 * Next:   ending.c reports the limit that ended a session
 */
#ifndef WRIT_PARTS_RESOURCE_LIMITS_H
#define WRIT_PARTS_RESOURCE_LIMITS_H

#include "loop/loop.h"

must_check int limits_init(struct session *s, struct writ_err *err);
must_check int limits_start(struct session *s, struct writ_err *err);
/* Enforces the limits `session`, `command` and `idle`. */
int limits_deadline(struct session *s, int least);
/* Reports how often each limit was reached. */
void limits_finish(struct session *s);
void limits_clear(struct session *s);

struct cgroup *limits_cgroup(const struct session *s);
/* Has the engine start writ-init in the cgroup. */
void limits_join(const struct cgroup *c, const struct engine *e, struct engine_run *run);
bool limits_out_of_memory(const struct session *s);

#endif
