/*
 * commands.h - commands of a session
 *
 * Reads:  requests of clients, messages of writ-init
 * Writes: the jail, clients
 * Next:   command_send.c puts a command together; screen.h holds its terminal
 *
 * Command 1 is the command that the session was made for; with `run` the session ends with command
 * 1. Clients start further commands. A command with a terminal has a screen, which clients join and
 * leave.
 */
#ifndef WRIT_PARTS_COMMANDS_H
#define WRIT_PARTS_COMMANDS_H

#include "loop/loop.h"

enum { COMMANDS_MAX = 256 };

struct command_ask {
	uint32_t id;
	bool last; /* the session ends with this command */
	char *const *argv, *const *environ;
	struct sv cwd, program;
	uint32_t pty, given, umask;
	const int *fds; /* three standard descriptors; those in the bits of @given are sent */
	uint16_t rows, cols;
};

extern const struct session_initial commands_initial;
must_check int commands_init(struct session *s, struct writ_err *err);
/* Starts the command that the session was made for; a detached session may have no such command. */
must_check int commands_start(struct session *s, struct writ_err *err);
void commands_poll(struct session *s, struct session_poll *set);
void commands_on_event(struct session *s, const struct pollfd *p, size_t n);
int commands_deadline(struct session *s, int least); /* enforces the limit `command` */
void commands_clear(struct session *s);

uint32_t commands_count(const struct session *s); /* number of the newest command */

/* Handlers of requests of clients. */
struct caller;
struct rpc_message;
void commands_exec(struct session *s, const struct caller *who, struct rpc_message *m);
void commands_attach(struct session *s, const struct caller *who, uint32_t number);
void commands_signal(struct session *s, const struct caller *who, uint32_t id, int number);
void commands_detach(struct session *s, const struct caller *who, uint32_t id);
void commands_wait(struct session *s, const struct caller *who, uint32_t id);
void commands_answer_exit(const struct caller *who, uint32_t id, int status);
/* Called before the connection of @client is closed: kills commands that must not outlive it. */
void commands_hang_up(struct session *s, size_t client);

/* Handlers of reports of writ-init. */
/* takes ownership of @fd, the master */
void commands_terminal(struct session *s, uint32_t id, int fd);
void commands_stopped(struct session *s, uint32_t id);
void commands_failed(struct session *s, uint32_t id, const struct writ_err *err);
/* Returns the status to record: that of the command, or SESSION_TIMEOUT if it hit its limit. */
int commands_exited(struct session *s, uint32_t id, int status);

/* Implemented in command_send.c. */
must_check int command_send(struct session *s, const struct command_ask *ask, struct writ_err *err);
/* Describes to people why a command did not run. */
void command_why(const struct session *s, const struct writ_err *err, struct writ_err *ret);

#endif
