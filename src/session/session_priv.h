/*
 * session_priv.h - what the files of a session share
 *
 * Reads:  session/session.h
 * Writes: nothing
 * Next:   session.c owns the loop
 */
#ifndef WRIT_SESSION_SESSION_PRIV_H
#define WRIT_SESSION_SESSION_PRIV_H

#include "adapter/host.h"
#include "base/fd.h"
#include "codec/json.h"
#include "limit/cgroup.h"
#include "mediate/mediate.h"
#include "session/front.h"
#include "session/packet.h"
#include "session/session.h"
#include "term/relay.h"

enum session_state {
	SESSION_STARTING = 0, /* the jail is being built */
	SESSION_RUNNING,
	SESSION_ENDING, /* everything inside is being killed */
	SESSION_ENDED,
};

enum { DENIALS_MAX = 512, CLIENTS_MAX = 32, GRANTS_MAX = 256 };

/* Something that was refused, and may be granted by its number. */
struct denial {
	enum mediate_op op;
	uint32_t rule;
	uint32_t count;
	int32_t pid;
	char comm[16];
	char object[MEDIATE_TEXT];
	char why[128];
};

/* A live grant; zero is an empty place. */
struct grant {
	uint32_t number;
	bool write;
	bool attached; /* a mount was made for it */
	char path[JAIL_PATH];
	char rule[JAIL_PATH + 16];
};

struct paths {
	struct sv home, tmp, run, info, state, record; /* on the host */
	struct sv rules;			       /* what the agent may do, as text */
	int run_fd;				       /* of the run directory; -1: not made yet */
};

struct session {
	struct arena *a;
	const struct session_options *opt;
	struct session_options late; /* with what await() has said */
	enum session_state state;
	char id[SESSION_ID + 1];
	struct paths paths;
	struct sv guarantees;	    /* the plan as JSON */
	uint64_t recorded, dropped; /* bytes written; events that were too many */
	int record;		    /* events, one line of JSON each */
	int feed;		    /* denials.jsonl inside */
	struct jail jail;
	struct host_view view;
	struct cgroup cgroup;
	struct cgroup_hits hits;
	pid_t mediator_pid;
	int mediator; /* socket; -1: there is none yet, or nothing is mediated */
	int listener; /* of the first command, while there is no mediator; else -1 */
	bool first;   /* its first program was let through */
	int signals, control;
	int mounts; /* the jail's mountinfo, where something is covered up; else -1 */
	struct client {
		int fd;
		uint32_t grant;	  /* waiting for the keeper about this one; 0: none */
		uint32_t command; /* waiting for this command's end; 0: none */
	} clients[CLIENTS_MAX];
	uint32_t commands; /* ids given so far */
	struct relay *relay;
	struct front front;
	bool relay_done;
	int exit_code; /* once known */
	bool has_exit;
	bool reported;	      /* a start failure has been shown */
	const char *ended_by; /* a limit, or NULL */
	uint64_t started_ms, active_ms, killed_ms;
	uint64_t activity;
	VEC(struct denial) denials;
	VEC(struct grant) grants;
	bool interactive;    /* standard input is a terminal */
	struct writ_err err; /* why it could not start */
	bool seen_exec;
	bool failed;
	bool emptied; /* nothing but pid 1 was left */
	enum jail_step failed_step;
	uint64_t asked_ms; /* when somebody asked it to end */
};

/* place.c */
must_check int session_place_make(struct session *s, struct writ_err *err);
/* Gives back memory that was needed to start: from now on it mostly waits. */
void session_rest(void);
must_check int session_place_record(struct session *s, struct writ_err *err);
/* The directory of the control socket; made when it is first asked for. */
must_check int session_place_run(struct session *s, struct writ_err *err);
void session_place_clear(struct session *s);

/* record.c: one event. Members are written between begin and end. */
void record_begin(struct session *s, struct buf *b, const char *event);
void record_str(struct buf *b, const char *key, struct sv value);
void record_num(struct buf *b, const char *key, int64_t value);
void record_end(struct session *s, struct buf *b);
uint64_t clock_ms(void);

/* command.c */
struct command_ask {
	uint32_t id;
	bool last; /* the session ends with it */
	char *const *argv, *const *environ;
	struct sv cwd, program;
	uint32_t pty, given, umask;
	const int *fds; /* three; those of @given are sent along */
	uint16_t rows, cols;
};
must_check int command_send(struct session *s, const struct command_ask *ask, struct writ_err *err);
struct sv environ_get(char *const *envp, struct sv name);

/* watch.c: the mediator's process */
/* Takes @fd. @first: of the command that the session was made for. */
must_check int watch_listener(struct session *s, int fd, bool first, struct writ_err *err);
must_check int watch_rule(struct session *s, bool grant, const char *cap, struct writ_err *err);
void watch_event(struct session *s);
void watch_call(struct session *s, short revents); /* something at session.listener */

/* denial.c */
void denial_note(struct session *s, const struct mediate_event *e);
void denial_show_all(struct session *s);
void say(const struct session *s, const char *fmt, ...) printf_like(2, 3);

/* control.c */
must_check int control_open(struct session *s, struct writ_err *err);
void control_accept(struct session *s);
void control_serve(struct session *s, size_t client);
void control_keeper(struct session *s);
/* News of a command that some client waits for. */
void control_terminal(struct session *s, uint32_t id, int fd);
void control_exited(struct session *s, uint32_t id, int status);
void control_failed(struct session *s, uint32_t id, const struct writ_err *err);
void control_close(struct session *s);

/* session.c */
void session_reach(struct session *s); /* from now on others can speak to it */
void session_end(struct session *s, const char *why, int exit_code);

#endif
