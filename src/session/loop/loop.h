/*
 * loop.h - the loop of a session, and the interface between the loop and its parts
 *
 * Reads:  a const table of parts
 * Writes: the state of the session: phase, exit code, times
 * Next:   parts/ has the parts and their table (parts/table.c)
 *
 * Theory of operation
 *
 * A session is one sandbox from start to end, supervised by one process with one thread. The loop
 * knows nothing about jails, networks or records: it runs a const table of parts. Each row of the
 * table is a struct session_part, and every callback of a row may be NULL.
 *
 *   init      every row, top to bottom: the part completes its state, a copy of .initial
 *   start     every row, top to bottom, until one fails or marks the session as failed
 *   poll      before each wait: the descriptors that the part waits for now
 *   on_event  after each wait, top to bottom: the part acts on its own descriptors
 *   deadline  before each wait: acts on timers that are due, and returns the time to the next one
 *   finish    every row, top to bottom, once, when no process in the jail runs any more
 *   clear     every row, bottom to top: releases the part's state, even if its start did not run
 *   report    every row, top to bottom: messages for people after everything is released
 *
 * The order of rows is therefore the order of starting, of handling events and of finishing, and no
 * second place states that order. Rows near the top serve rows below them. A row may have only some
 * callbacks, so that a part can have two rows: one for its start, and one elsewhere for its end.
 *
 * Phases. STARTING: the jail is being built. RUNNING: writ-init has reported that the jail is
 * sealed. ENDING: all processes in the jail are being killed, for at most SESSION_GRACE_MS. ENDED:
 * the loop leaves, finish and clear follow. A phase never goes back.
 *
 * Invariants
 * - A part's state is reached only by its own files, through session_state(). Other parts use the
 *   functions in the part's header.
 * - Events of one round are handled in table order even if they arrived in another order. Messages
 *   of writ-init are the last row: a denial or a connection that preceded the end of a command is
 *   recorded before the end of that command.
 * - The first exit code counts. session_exit_spoil() is the only change after that, and only from
 *   success to failure.
 * - A descriptor in the slice of on_event may have been closed by a handler above it in the same
 *   round: where that matters, compare the descriptor with the part's current one before use.
 */
#ifndef WRIT_LOOP_LOOP_H
#define WRIT_LOOP_LOOP_H

#include <poll.h>

#include "base/clock.h"
#include "loop/session.h"

enum session_phase {
	SESSION_STARTING = 0, /* the jail is being built */
	SESSION_RUNNING,
	SESSION_ENDING, /* pid 1 of the jail is killing all other processes in the jail */
	SESSION_ENDED,
};

enum {
	SESSION_GRACE_MS = 2000, /* grace period for a process to end, or for a peer to answer */
	SESSION_PARTS_MAX = 64,	 /* most rows of a table of parts */
	SESSION_POLLS_MAX = 160, /* most descriptors of all rows together */
};

struct session_core;

/* The context that every part receives. Parts read it; only the loop changes it. */
struct session {
	struct arena *a;
	const struct session_options *opt;
	char id[SESSION_ID + 1];
	struct session_core *core; /* state that only the loop uses */
};

/* The state of the session as parts may read it. */
struct session_status {
	enum session_phase phase;
	int exit_code; /* exit code of the session; valid if @has_exit */
	bool has_exit;
	/*
	 * Reason why writ ended the session: a limit, a failure of writ, or a request from outside.
	 * NULL: the command ended by itself, a signal ended the session, or the start failed.
	 */
	const char *ended_by;
	bool failed; /* the start failed: see @err, @failed_at and @failed_step */
	struct writ_err err;
	enum engine_stage failed_at;
	const char *failed_step; /* name of the failed step in records */
	bool emptied;	     /* writ-init reported that it is the only process left in the jail */
	bool stop_requested; /* a person or a limit ended the session: wait for no delivery */
	uint64_t started_ms, active_ms, killed_ms;
};

/* Descriptors that the parts wait for; at most SESSION_POLLS_MAX in all. */
struct session_poll {
	struct pollfd p[SESSION_POLLS_MAX];
	size_t n;
};

/*
 * The state with which a part begins every session: a copy of the @size bytes at @value, or zeros
 * if @value is NULL. The address of this struct names the part in session_state().
 */
struct session_initial {
	size_t size;
	const void *value;
};
#define SESSION_INITIAL(type, ...) { sizeof(type), &(const type){ __VA_ARGS__ } }

struct session_part {
	const char *name;
	/* first state of the part; NULL: this row has no state */
	const struct session_initial *initial;
	must_check int (*init)(struct session *s, struct writ_err *err);
	must_check int (*start)(struct session *s, struct writ_err *err);
	/*
	 * Called after the start failed with *@err. Returns true if so much of the session exists
	 * that it must finish in the ordinary way. The part may replace *@err by a more precise
	 * reason.
	 */
	bool (*recover)(struct session *s, struct writ_err *err);
	void (*poll)(struct session *s, struct session_poll *set);
	/* @p are the @n descriptors that the poll callback added, in the same order. */
	void (*on_event)(struct session *s, const struct pollfd *p, size_t n);
	bool late; /* session_step_late() also calls poll and on_event of this row */
	/*
	 * Acts on timers that are due. Returns the milliseconds until the next one, at most @least.
	 */
	int (*deadline)(struct session *s, int least);
	/* Asks pid 1 to kill all processes in the jail. Negative: pid 1 cannot be reached. */
	must_check int (*kill)(struct session *s);
	void (*finish)(struct session *s);
	void (*clear)(struct session *s);
	void (*report)(struct session *s);
};

/*
 * Runs a session of the @n parts to its end. Returns an error only if the start failed; a command
 * that fails is no error. *@ret_exit is the exit code for the caller.
 */
must_check int session_loop(struct arena *a, const struct session_options *opt,
			    const struct session_part *parts, size_t n, int *ret_exit,
			    struct writ_err *err);

/* Returns the state of the part whose row in the table has this @initial. */
void *session_state(const struct session *s, const struct session_initial *initial);

/*
 * Adds a descriptor to wait for. A negative descriptor takes a place in the slice of the part, but
 * is not polled.
 */
void session_poll_add(struct session_poll *set, int fd, short events);

/* --- state of the session --- */

const struct session_status *session_status(const struct session *s);
enum session_phase session_phase(const struct session *s);

/* The jail is sealed: the session enters SESSION_RUNNING, and its time limits begin. */
void session_running(struct session *s);
/* Enters SESSION_ENDING without killing processes: only pid 1 of the jail is left. */
void session_ending(struct session *s);
void session_ended(struct session *s);
/* Ends the session because writ-init has reported that no other process is left in the jail. */
void session_emptied(struct session *s);
/* Kills all processes in the jail. @why is shown to people and recorded; NULL: no reason. */
void session_end(struct session *s, const char *why, int exit_code);
/* Marks the start of the session as failed. The caller ends the session. */
void session_fail(struct session *s, const struct writ_err *err, enum engine_stage at,
		  const char *step);
/* Sets the exit code of the session if none is set yet. */
void session_exit(struct session *s, int code);
/* Changes the exit code of a session from success to SESSION_FAILED. */
void session_exit_spoil(struct session *s);
void session_set_ended_by(struct session *s, const char *why);
void session_stop_request(struct session *s);
/* Reports activity (bytes, calls or requests): the idle limit of the session begins again. */
void session_touch(struct session *s);

/* Chooses a random id for a session. */
must_check int session_make_id(char ret_id[static SESSION_ID + 1], struct writ_err *err);
must_check int session_set_id(struct session *s, struct writ_err *err);

/* Calls session_options.await(); from then on the session uses the options that await() has set. */
void session_await(struct session *s, struct writ_err *err);

/* Runs one round of the parts with .late, at most @ms long: for finish callbacks that wait. */
void session_step_late(struct session *s, int ms);

/* Gives memory back to the kernel that only the start needed. */
void session_trim_memory(void);

#endif
