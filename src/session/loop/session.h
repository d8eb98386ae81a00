/*
 * session.h - the options of a session, and the codes that it ends with
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   loop/loop.h runs a session; parts/session.h has the entry points for cli/ and lib/
 */
#ifndef WRIT_LOOP_SESSION_H
#define WRIT_LOOP_SESSION_H

#include "lang/policy.h"
#include "plan/plan.h"
#include "reach/quota.h"

/* Exit codes of a run, besides the command's own status. */
enum session_exit {
	SESSION_POLICY = 121,  /* the token of an agent's session is refused */
	SESSION_REFUSED = 122, /* a guarantee of the plan is not met */
	SESSION_TIMEOUT = 124,
	SESSION_FAILED = 125,
	SESSION_SIGNALLED = 128, /* plus the number of the signal that killed the command */
};

struct wallet;
struct wallet_level;
struct chain;
struct token_why;

/*
 * The tokens that open a session. The session ends when one of the tokens expires or is revoked.
 * The caller has verified the tokens; the session proves possession of them and uses them. If the
 * tokens are refused, @why has the reason.
 */
struct session_token {
	struct wallet *wallet;
	struct chain *chain;
	char *text; /* the encoded chain of tokens; wiped after its last use */
	size_t text_n;
	struct token_why *why;
};

enum { SESSION_ID = 8 }; /* length of a session id, in letters and digits */

/* Kinds of requests that the starter of a session keeps pending in the owner's connection. */
enum {
	/* The request that started the session; answered once the jail is sealed. */
	SESSION_CALL_FIRST = 1000,
	/* session.wait of the owner; answered by the starter after the session has ended */
	SESSION_CALL_END,
};

/* How a session ended. */
struct session_report {
	char id[SESSION_ID + 1];
	int exit;
	uint32_t denials;
	/*
	 * Reason why writ ended the session: a limit, a failure of writ, or a request from outside.
	 * Empty: the command ended by itself, a signal ended the session, or the start failed.
	 */
	char ended_by[64];
	char why[128]; /* why the command could not be run; empty: the command ran */
};

/* A session that another session starts for one of its agents. */
struct session_agent {
	struct sv name;     /* name of the agent */
	struct sv parent;   /* id of the session that starts the agent */
	const char *id;     /* id of the agent's session */
	struct policy *policy;
	const struct session_token *token; /* NULL: no token */
	/*
	 * Counters of the parent session: what an agent consumes counts against the limits of the
	 * agent and against those of its parent session.
	 */
	const struct wallet_level *level;
	int counters; /* descriptor of the counters' shared memory; not used under tokens */
	char *const *argv, *const *environ;
	struct sv cwd;
	const int *stdio;
	bool neutral;
};

struct rpc_conn;
struct session_options {
	const struct policy *policy;
	const struct plan *plan;
	struct sv realm;
	struct sv state;     /* directory of writ's own files */
	struct sv config;    /* directory of policies; may be empty */
	struct sv workspace; /* physical path of the workspace; empty: none */
	struct sv cwd;	     /* working directory, a physical path */
	struct sv home;	     /* home directory of the operator; may be empty */
	struct sv resolver;  /* name servers, "ADDRESS[:PORT],..."; empty: the host's */
	struct sv program; /* path of the program, if it differs from what PATH finds in the jail */
	struct sv profile; /* profile chosen for an agent without rules of its own; may be empty */
	char *const *argv; /* arguments of the command, ended by NULL */
	char *const *environ;
	/*
	 * A handle that may have been prepared early; NULL: the session opens one. The caller
	 * closes and releases @run if the session cannot be started.
	 */
	struct engine_run *run;
	const struct session_token *token; /* NULL: no token */
	const struct session_agent *agent; /* set in the session of an agent; NULL: not an agent */
	/* Three descriptors instead of 0, 1 and 2, never used as terminals; or NULL. */
	const int *stdio;
	int status_fd; /* -1, or a descriptor that receives one line of JSON about the end */
	bool quiet, verbose;
	bool leaves; /* this process exits after the session: it need not reap writ-init */
	/* `session start`: no client is attached, and the session goes on without one. */
	bool detach;
	int ready_fd; /* 0, or a descriptor that receives the session's id once the session runs */
	/*
	 * Connection of a client: the session ends when the client closes it. NULL: no such client.
	 * The caller keeps ownership.
	 */
	struct rpc_conn *owner;
	struct session_report *report; /* NULL, or filled when the session ends */
	int job; /* 0, or the descriptor that session_job() returned; the session leaves it open */
	bool named;	  /* open the control socket at once, because the session's id is printed */
	bool neutral;	  /* make escape sequences in the command's output harmless */
	bool durable;	  /* sync each entry of the record to disk before acting on it */
	bool explain;	  /* print every denial with all its details */
	uint32_t fail_at; /* fault to inject, for the fault suite */
	/*
	 * NULL, or a buffer for the session's id and a NUL. If the buffer is not empty, it has the
	 * id that the session must have.
	 */
	char *id;
	/*
	 * The session calls await() while the jail is being built, with a copy of these options.
	 * await() sets the options of the command that are known only then, such as @argv,
	 * @environ, @stdio and @detach. await() may block as long as necessary. NULL: these options
	 * are known from the start.
	 */
	int (*await)(void *ctx, struct session_options *opt, struct writ_err *err);
	/*
	 * Starts the session of an agent, in a process of its own, and returns after its end. NULL:
	 * agents cannot be started.
	 */
	int (*start_agent)(void *ctx, const struct session_agent *who, int *ret_exit,
			   struct writ_err *err);
	void *ctx; /* for await() and start_agent() */
};

#endif
