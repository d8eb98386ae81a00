/*
 * terminal.h - the terminal of the command that the session was made for
 *
 * Reads:  standard descriptors of writ
 * Writes: standard descriptors of writ
 * Next:   std_fds.h opens descriptors; term/relay.h moves the bytes
 */
#ifndef WRIT_PARTS_TERMINAL_H
#define WRIT_PARTS_TERMINAL_H

#include "loop/loop.h"

struct command_ask;

extern const struct session_initial terminal_initial;
void terminal_poll(struct session *s, struct session_poll *set);
void terminal_on_event(struct session *s, const struct pollfd *p, size_t n);
int terminal_deadline(struct session *s, int least);
/* Delivers the rest of the command's output. */
void terminal_finish(struct session *s);
/* Restores the modes of the terminal, so that Ctrl-C can end the deliveries that are left. */
void terminal_release(struct session *s);
void terminal_clear(struct session *s);

/* Opens descriptors for the first command, and stores them in @ask. */
must_check int terminal_open(struct session *s, struct command_ask *ask, struct writ_err *err);
void terminal_sent(struct session *s); /* closes descriptors that the command has received */
/* Starts the relay to the terminal that the jail has made. Takes ownership of @pty. */
must_check int terminal_attach(struct session *s, int pty, struct writ_err *err);
/*
 * The command was suspended (SIGTSTP, SIGSTOP): returns the terminal to the shell that started
 * writ, and suspends the job process, so that the shell sees a stopped job.
 */
void terminal_stop(struct session *s);
void terminal_suspend(struct session *s); /* gives the terminal back until terminal_resume() */
void terminal_resume(struct session *s);
void terminal_resize(struct session *s);
/* Pauses (@hold) or resumes the relay, so that a question can be shown and keys answer it. */
void terminal_hold(struct session *s, bool hold);
bool terminal_is_stopped(const struct session *s);
bool terminal_is_interactive(const struct session *s); /* standard input is a terminal */

/* job.c: the job process, which the shell started. */
bool job_stop(const struct session *s); /* stops the job process; false: there is none */
/* Continues the job process, so that it sees the supervisor's end. */
void job_wake(const struct session *s);
/* Returns 1 if the job process was continued, 0 without a message, -1 if it has ended. */
int job_recv(const struct session *s);

#endif
