/*
 * signals.h - signals that writ receives
 *
 * Reads:  signals
 * Writes: the command
 * Next:   terminal.h stops and continues the command
 */
#ifndef WRIT_PARTS_SIGNALS_H
#define WRIT_PARTS_SIGNALS_H

#include "loop/loop.h"
#include <signal.h>

extern const struct session_initial signals_initial;
must_check int signals_start(struct session *s, struct writ_err *err);
void signals_poll(struct session *s, struct session_poll *set);
void signals_on_event(struct session *s, const struct pollfd *p, size_t n);
/* Ends the session if it still runs SESSION_GRACE_MS after SIGTERM or SIGHUP. */
int signals_deadline(struct session *s, int least);
void signals_clear(struct session *s);

void signals_forwarded(sigset_t *ret);		  /* signals that writ forwards to the command */
void signals_send(struct session *s, int number); /* sends a signal to the first command */
/* Returns the time when SIGTERM or SIGHUP first came; 0: never. */
uint64_t signals_asked_ms(const struct session *s);

#endif
