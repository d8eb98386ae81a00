/*
 * orphans.h - processes of tier B that outlive writ-init
 *
 * Reads:  children of the supervisor
 * Writes: kills these children
 * Next:   ending.c records how many are left
 *
 * Without a pid namespace the children of writ-init do not end with writ-init. The supervisor is
 * their subreaper and kills them.
 */
#ifndef WRIT_PARTS_ORPHANS_H
#define WRIT_PARTS_ORPHANS_H

#include "loop/loop.h"

extern const struct session_initial orphans_initial;
/* Makes the supervisor of tier B a subreaper. Call before any process of the jail runs. */
must_check int orphans_start(struct session *s, struct writ_err *err);
void orphans_finish(struct session *s);
int64_t orphans_left(const struct session *s); /* number of processes not killed; -1: unknown */

#endif
