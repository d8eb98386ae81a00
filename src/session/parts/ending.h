/*
 * ending.h - the last entry of the record, and the reason for people
 *
 * Reads:  all parts
 * Writes: the record, session_options.status_fd
 * Next:   table.c calls ending_finish() as the last finish callback
 */
#ifndef WRIT_PARTS_ENDING_H
#define WRIT_PARTS_ENDING_H

#include "loop/loop.h"

void ending_notice(struct session *s); /* prints the limit or the failure that ended the session */
void ending_finish(struct session *s);

/* Describes how the session ended, or its current state. */
struct session_report ending_report(const struct session *s);

#endif
