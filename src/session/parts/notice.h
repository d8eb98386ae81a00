/*
 * notice.h - lines of writ on the terminal
 *
 * Reads:  nothing
 * Writes: standard error
 * Next:   docs/ lists the messages
 */
#ifndef WRIT_PARTS_NOTICE_H
#define WRIT_PARTS_NOTICE_H

#include "loop/loop.h"

/* Prints a line without blocking. Names in the line come from the agent and are made harmless. */
void notice_print(const struct session *s, const char *fmt, ...) printf_like(2, 3);
/* Prints @text after the session has ended; waits for a reader within the session's limits. */
void notice_last(const struct session *s, struct sv text);

#endif
