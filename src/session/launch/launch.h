/*
 * launch.h - start a session: the only way in
 *
 * Reads:  the request, the environment, policy files, facts about this machine
 * Writes: what a session writes; the realm and the facts, kept for the next start
 * Next:   front/ fills a request and maps the result to exit codes or answers
 *
 * Theory of operation
 *
 * Every front end (`writ run`, `writ session start`, the library's supervisor) fills one struct
 * launch_request and calls launch_run(), which returns after the session has ended. A session that
 * starts an agent (`writ spawn`) comes back to launch_run() through session_options.start_agent;
 * the agent's policy exists by then, so that step 5 does nothing. The steps:
 *
 *   1. Start writ-init. writ-init creates its namespaces while this process goes on; the two take
 *      about as long. A request with a token, for an agent or for tier B starts writ-init later.
 *   2. Locate the directories (state, configuration, working directory, workspace).
 *   3. Get the facts about this machine: kept from an earlier start, or probed.
 *   4. Send writ-init the mounts that every session has (session_early()).
 *   5. Read the policy (launch_load()). A token replaces the policies of the user; rules then only
 *      narrow the token.
 *   6. Plan the session, and stop if a rule cannot be enforced on this machine.
 *   7. Run the session (session_run()). The session takes over writ-init. The command may arrive as
 *      late as this step, through launch_events.await.
 *
 * Invariants
 *   - The policy is not changed after step 5. The rule that lets a session with `allow agent` reach
 *     the socket of `writ spawn` is an input of the policy (find_input.agent_socket).
 *   - writ-init knows nothing about the policy until step 7. If a step fails, writ-init is
 *     discarded, and no command has run.
 *   - launch_run() prints nothing and reports through launch_events and struct launch_result; in
 *     step 7 the session writes to the terminal as its options allow.
 *
 * Common mistakes
 *   - launch_run() changes the working directory to launch_where.cwd.
 *   - The arena must outlive the session, and so must everything the request points to.
 *   - launch_background() and session_job() fork: call them first, with one thread.
 */
#ifndef WRIT_LAUNCH_LAUNCH_H
#define WRIT_LAUNCH_LAUNCH_H

#include "locate/locate.h"
#include "parts/session.h"
#include "plan/plan.h"
#include "token/refusal.h"

/* --- the request --- */

/* The directories and the environment of a start. */
struct launch_where {
	char *const *environ;  /* environment of this process: HOME, XDG_*, PATH, USER */
	const char *cwd;       /* working directory to change to first; NULL: do not change it */
	const char *workspace; /* path of the workspace; NULL: search upwards from @cwd */
	const char *home, *config, *state; /* paths of directories; NULL: from @environ */
};

/*
 * The sources of the policy. If none is given, launch_load() reads the policies that
 * locate_policies() finds.
 */
struct launch_policy {
	const char *const *files; /* paths of policy files; "-" is standard input */
	size_t files_n;
	const struct policy_arg *args; /* rules of the command line */
	size_t args_n;
	const struct policy_var *vars;
	size_t vars_n;
	const char *workspace_mode; /* "direct" or "cow"; NULL: from the policy */
	const char *token; /* file with a chain of tokens, "-" is standard input; or NULL */
	bool missing_ok;   /* a path that is missing is a warning, because no command will run */
	bool unheld_ok; /* accept a token with lines that no session on this machine can enforce */
	/*
	 * Texts that the caller has read and checked, with their directories. They replace all
	 * members above. No file is read again. The policy must have the digest @checked_digest.
	 */
	struct find_input *checked;
	const struct digest *checked_digest;
};

/* Facts about this machine, the engine and the tier to use. */
struct launch_host {
	/* facts to use; NULL: those of an earlier start, or probed */
	const struct host_facts *facts;
	/* File that keeps the facts, below the state directory; NULL: "facts". */
	const char *facts_file;
	/* engine to use, from launch_engine(); NULL: the host engine */
	const struct engine *engine;
	enum plan_tier tier;	     /* tier to use; TIER_NONE: choose a tier */
};

/* The command and its descriptors. */
struct launch_command {
	/* Arguments, ended by NULL; NULL or empty: no command yet (needs @detach). */
	char *const *argv;
	char *const *environ;
	struct sv cwd; /* working directory, a physical path; empty: that of the session */
	/* Three descriptors instead of 0, 1 and 2, never used as terminals; or NULL. */
	const int *stdio;
	bool detach;  /* start with no client attached; the session outlives its command */
	bool named;   /* the session accepts requests by its id before ready_fd reports the id */
	bool neutral; /* make escape sequences in the command's output harmless */
};

struct launch_options {
	int status_fd; /* -1, or a descriptor that receives one line of JSON about the end */
	int ready_fd;  /* 0, or a descriptor that receives the session's id once the session runs */
	int job;       /* 0, or the descriptor that session_job() returned */
	/*
	 * NULL, or the connection of a client: the session ends when the client closes it. The
	 * caller keeps ownership.
	 */
	struct rpc_conn *owner;
	struct session_report *report; /* NULL, or filled when the session ends */
	bool quiet, verbose;
	bool explain; /* report every denial in full */
	bool durable; /* sync each entry of the record to disk before acting on it */
};

struct launch_loaded;

/*
 * Callbacks made during a start, in this order, except note(), which may come at any time. Each
 * callback may be NULL.
 */
struct launch_events {
	void *ctx;
	/* The policy was read; @d holds warnings, or the errors that stop the start. */
	void (*diagnosed)(void *ctx, const struct diags *d);
	/* Print @text, one line for a person. */
	void (*note)(void *ctx, const char *text);
	/* The plan is made; if !plan_runs(@p) the start ends after this callback. */
	void (*planned)(void *ctx, const struct launch_loaded *l, const struct plan *p);
	/*
	 * The session is ready and lacks its command. The callback fills *@command, which holds the
	 * command of the request, and returns 0; it may block as long as necessary. An error ends
	 * the session before a command ran.
	 */
	int (*await)(void *ctx, struct launch_command *command, struct writ_err *err);
};

struct launch_request {
	struct launch_where where;
	struct launch_policy policy;
	struct launch_host host;
	struct launch_command command;
	struct launch_options opt;
	struct launch_events events;
	/*
	 * Set by launch itself for an agent that a session starts: the policy comes from @agent,
	 * and the directories from @policy.checked.
	 */
	const struct session_agent *agent;
};

/* --- the result --- */

/* The step at which a start ended. */
enum launch_end {
	LAUNCH_NOT_STARTED = 0, /* the start failed; struct writ_err has the reason */
	LAUNCH_NO_FACTS,	/* this machine could not be probed */
	LAUNCH_BAD_POLICY,	/* the policy has errors, passed to launch_events.diagnosed */
	LAUNCH_TOKEN_REFUSED,	/* a token is refused; launch_result.why has the reason */
	/* launch_events.note names a line of the token that no session here can enforce. */
	LAUNCH_TOKEN_UNHELD,
	LAUNCH_PLAN_REFUSED,   /* a rule cannot be enforced; see launch_events.planned */
	LAUNCH_SESSION_FAILED, /* the session could not be built */
	LAUNCH_RAN,
};

struct launch_result {
	enum launch_end end;
	int exit;		 /* exit code for the caller, if LAUNCH_RAN */
	char id[SESSION_ID + 1]; /* id of the session; empty: no session was begun */
	struct token_why why;
	bool no_state; /* the state directory cannot be made or written */
};

/*
 * Runs one session to its end. Returns 0 if the session ran, with @err filled if its command could
 * not be executed; otherwise an error, and @ret->end names the step that failed.
 */
must_check int launch_run(struct arena *a, const struct launch_request *req,
			  struct launch_result *ret, struct writ_err *err);

/*
 * Forks a supervisor that survives its caller. Returns 0 in the new process, whose standard input
 * and output are /dev/null: the new process must call launch_run() with *@ret_ready_fd as ready_fd,
 * and _exit(). Returns 1 in the caller once the session runs (@ret_id), or once the supervisor has
 * ended without running a session (empty @ret_id, *@ret_exit).
 */
must_check int launch_background(int *ret_ready_fd, char ret_id[static SESSION_ID + 1],
				 int *ret_exit, struct writ_err *err);

/* --- the steps that `writ explain`, `writ why` and `writ check` share with a start --- */

struct launch_token; /* defined in launch/token.h */

/* A policy with the inputs that it was compiled from. */
struct launch_loaded {
	struct find_input in;
	struct find_world world; /* points to @in: neither @in nor @world may move */
	struct diags diags;
	struct policy *policy;	    /* the policy; NULL: the diagnostics hold errors */
	struct launch_token *token; /* tokens that the policy comes from; NULL: none */
};

/* launch_locate() is step 2, launch_load() step 5. @program is the name of the command, or NULL. */
must_check int launch_locate(struct arena *a, const struct launch_where *w, bool make_realm,
			     struct find_where *ret, struct writ_err *err);
must_check int launch_load(struct arena *a, const struct launch_request *req,
			   const struct find_where *where, const char *program,
			   struct launch_loaded *l, struct launch_result *ret,
			   struct writ_err *err);
/* Compiles the policy from the texts in @l->in, and reports its diagnostics. */
must_check int launch_read_policy(struct arena *a, const struct launch_events *events,
				  struct launch_loaded *l, struct launch_result *ret,
				  struct writ_err *err);
/* Returns the engine named @name, or NULL. */
const struct engine *launch_engine(struct sv name);
/* Performs step 6 for the capability set @set, which is that of the policy or of one agent. */
must_check int launch_plan(struct arena *a, const struct launch_request *req,
			   const struct find_where *where, const struct cap_set *set,
			   const struct host_facts *facts, struct plan **ret, struct writ_err *err);

#endif
