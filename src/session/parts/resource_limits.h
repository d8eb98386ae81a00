/*
 * resource_limits.h - limits of memory, processors, processes and time
 *
 * Reads:  the policy, counters of the engine
 * Writes: the record
 * Next:   ending.c reports the limit that ended a session
 */
#ifndef WRIT_PARTS_RESOURCE_LIMITS_H
#define WRIT_PARTS_RESOURCE_LIMITS_H

#include "loop/loop.h"

extern const struct session_initial limits_initial;
/* Enforces the limits `session`, `command` and `idle`. */
int limits_deadline(struct session *s, int least);
/* Reports how often the limits of memory and processes were reached. */
void limits_finish(struct session *s);

bool limits_out_of_memory(const struct session *s);

#endif
