/*
 * session.h - one sandbox from start to end, and whoever supervises it
 *
 * Reads:  a plan, what writ-init and the mediator say, a person's terminal
 * Writes: the session's record, its own directories, the terminal
 * Next:   cli/ starts sessions; `writ allow`, `ps` and `stop` speak to running ones
 */
#ifndef WRIT_SESSION_SESSION_H
#define WRIT_SESSION_SESSION_H

#include "jail/jail.h"
#include "plan/plan.h"
#include "policy/policy.h"

/* What a run ends with, besides the command's own status. */
enum session_exit {
	SESSION_REFUSED = 122, /* a guarantee is not met */
	SESSION_TIMEOUT = 124,
	SESSION_FAILED = 125,
	SESSION_SIGNALLED = 128, /* + the number */
};

enum { SESSION_ID = 8 }; /* letters and digits of an id */

struct session_options {
	const struct policy *policy;
	const struct plan *plan;
	struct sv realm;
	struct sv state;     /* where writ keeps its own files */
	struct sv config;    /* and its policies; may be empty */
	struct sv workspace; /* physical; empty: none */
	struct sv cwd;	     /* physical */
	struct sv home;	     /* the operator's own; may be empty */
	struct sv program;   /* where the command lies, if not where PATH would find it inside */
	char *const *argv;   /* ends with NULL */
	char *const *environ;
	struct jail *early; /* started while the policy was read; taken over. May be NULL */
	const int *stdio;   /* three descriptors instead of our own, never terminals; or NULL */
	int status_fd;	    /* -1, or where to write what happened as one line of JSON */
	bool quiet, verbose;
	bool leaves;	  /* our process ends with the session: nobody waits for what is dead */
	bool detach;	  /* `session start`: nobody is attached, it goes on by itself */
	int ready_fd;	  /* 0, or where its id is written once it runs */
	bool named;	  /* who is told its id may use it at once */
	bool neutral;	  /* make escape sequences harmless */
	bool explain;	  /* every open is looked at, so that each denial is seen */
	uint32_t fail_at; /* for the fault suite */
	/*
	 * What is run may be said later: called while the jail is being built, with a
	 * copy of these options, to set @argv to @program, @stdio, @detach and the like.
	 * Waits as long as it takes. May be NULL.
	 */
	int (*await)(void *ctx, struct session_options *opt, struct writ_err *err);
	void *await_ctx;
};

/*
 * A jail that is being made while the policy is read: for session_options.early.
 * Nothing of the policy is in it, so it may be thrown away (jail_close).
 */
must_check int session_early(struct arena *a, const struct host_facts *facts, char *const *envp,
			     struct jail *j, struct writ_err *err);

/*
 * Runs the command to its end. *@ret_exit is the code to end with. Errors are
 * those of starting; what the command does is no error.
 */
must_check int session_run(struct arena *a, const struct session_options *opt, int *ret_exit,
			   struct writ_err *err);

/* --- client.c: speaking to running sessions --- */

struct session_info {
	char id[SESSION_ID + 1];
	int64_t pid;	  /* of the supervisor */
	uint64_t started; /* seconds since the epoch */
	char state[16];
	char command[256];
	char workspace[1024];
	uint32_t denials;
};

/* Removes what sessions that died hard have left below @state. */
void session_sweep(struct sv state);

/* Calls @each for every running session below @state; @each returns false to stop. */
must_check int session_list(struct sv state, struct arena *a,
			    bool (*each)(void *ctx, const struct session_info *info), void *ctx,
			    struct writ_err *err);

/*
 * One request to the session that @id is the beginning of. Request and answer are
 * one line each: "allow read /x", "revoke 3", "stop", "status".
 */
must_check int session_ask(struct sv state, struct sv id, struct sv request, struct buf *ret_answer,
			   struct writ_err *err);

/*
 * Runs one more command in a running session, with our own standard descriptors.
 * If it could not be run, @err says why and *@ret_exit is 126 or 127.
 */
must_check int session_exec(struct sv state, struct sv id, char *const *argv, char *const *environ,
			    struct sv cwd, int *ret_exit, struct writ_err *err);

#endif
