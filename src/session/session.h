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
#include "limit/cgroup.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "reach/quota.h"

/* What a run ends with, besides the command's own status. */
enum session_exit {
	SESSION_POLICY = 121, /* of an agent: its token is refused */
	SESSION_REFUSED = 122, /* a guarantee is not met */
	SESSION_TIMEOUT = 124,
	SESSION_FAILED = 125,
	SESSION_SIGNALLED = 128, /* + the number */
};

struct wallet;
struct wallet_level;
struct chain;
struct token_why;

/*
 * The tokens that a session is opened with: it ends when one of them does. They were
 * verified; the session proves and uses them. If they are refused, @why says so.
 */
struct session_token {
	struct wallet *wallet;
	struct chain *chain;
	char *text; /* of the chain; wiped once it is not needed any more */
	size_t text_n;
	struct token_why *why;
};

/* What an agent uses is used of its session as well. */
struct session_above {
	const struct wallet_level *level;
	int fd; /* what it is counted in; not used under tokens */
};

enum { SESSION_ID = 8 }; /* letters and digits of an id */

/* What a jail that is made early begins in. Nothing when zero. */
struct session_begun {
	char id[SESSION_ID + 1]; /* of the session to come */
	struct cgroup cgroup;
};

struct session_options {
	const struct policy *policy;
	const struct plan *plan;
	struct sv realm;
	struct sv state;     /* where writ keeps its own files */
	struct sv config;    /* and its policies; may be empty */
	struct sv workspace; /* physical; empty: none */
	struct sv cwd;	     /* physical */
	struct sv home;	     /* the operator's own; may be empty */
	struct sv resolver;  /* name servers, "ADDRESS[:PORT],..."; empty: the host's */
	struct sv program;   /* where the command lies, if not where PATH would find it inside */
	struct sv profile;   /* chosen for an agent because nobody wrote a rule; may be empty */
	char *const *argv;   /* ends with NULL */
	char *const *environ;
	struct jail *early; /* started while the policy was read; taken over. May be NULL */
	struct session_begun *begun; /* with it, and taken over, too. May be NULL */
	const struct session_token *token; /* NULL: none */
	const struct session_above *above; /* of an agent; NULL: none */
	struct sv parent, agent; /* the session that started this one, as which agent; or empty */
	const int *stdio;   /* three descriptors instead of our own, never terminals; or NULL */
	int status_fd;	    /* -1, or where to write what happened as one line of JSON */
	bool quiet, verbose;
	bool leaves;	  /* our process ends with the session: nobody waits for what is dead */
	bool detach;	  /* `session start`: nobody is attached, it goes on by itself */
	int ready_fd;	  /* 0, or where its id is written once it runs */
	int job;	  /* 0, or what session_job() made; stays open */
	bool named;	  /* who is told its id may use it at once */
	bool neutral;	  /* make escape sequences harmless */
	bool durable;	  /* what is on record is on the disk before it takes effect */
	bool explain;	  /* say every denial, with all that is known about it */
	uint32_t fail_at; /* for the fault suite */
	char *ret_id;	  /* NULL, or room for its id and a NUL */
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
 * Nothing of the policy is in it, so it may be thrown away (session_early_close).
 */
must_check int session_early(struct arena *a, const struct host_facts *facts, char *const *envp,
			     struct jail *j, struct session_begun *ret_begun, struct writ_err *err);
void session_early_close(struct jail *j, struct session_begun *begun);

/*
 * Where there is job control: a process that the shell sees, and stops and continues, while
 * the session is run by its child. Before anything else. Returns 1 in the former at the end,
 * with the code to end with, and 0 in who is to run the session; there, and if there is no
 * terminal, *@ret_job is for session_options.job.
 */
must_check int session_job(int *ret_job, int *ret_exit, struct writ_err *err);

/*
 * Runs the command to its end. *@ret_exit is the code to end with. Errors are
 * those of starting; what the command does is no error.
 */
must_check int session_run(struct arena *a, const struct session_options *opt, int *ret_exit,
			   struct writ_err *err);

/* --- spawn.c: agents of a policy --- */

#define SPAWN_SOCKET "/run/writ/spawn"

/* Before it is planned: lets a policy with `allow agent` reach who starts them. */
must_check int session_open_spawn(struct arena *a, struct policy *p, struct sv realm,
				  struct writ_err *err);
/* Inside a session: starts agent @name, with our own standard descriptors, and waits for it. */
must_check int session_spawn(struct sv name, char *const *argv, struct sv cwd, int *ret_exit,
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

/* Something that was refused. Texts are borrowed, and may hold anything. */
struct session_denial {
	struct sv session; /* whose */
	uint32_t number;   /* in it, for `writ allow`; 0: it came too late to have one */
	uint32_t count;	   /* 0: not known */
	bool running;	   /* the session is: it can be granted */
	bool named;	   /* nobody saw it fail: a program was given the name */
	bool defaults;	   /* no rule was written: a first one must say `allow write .` as well */
	struct sv profile; /* the same for an agent, whose profile was chosen: `use` it */
	struct sv op, object, program, why;
	struct sv rule, where;		/* the line that denies it; empty: none does */
	struct sv guarantee, level, by; /* what held it; may be empty */
};

/* told.c: for people, several lines made harmless; and as one JSON object. */
void session_denial_text(const struct session_denial *d, struct buf *b);
void session_denial_json(const struct session_denial *d, struct buf *b);

/*
 * past.c: the record of the session that @id is the beginning of, or with an empty one of that
 * which was written to last: its descriptor, to be closed, and its whole name.
 */
must_check int session_record(struct sv state, struct sv id, char ret_id[static SESSION_ID + 1],
			      struct writ_err *err);

/*
 * past.c: calls @each for every line of the record of the session that @id is the
 * beginning of; @follow: also those that are still to come. @each returns false to stop.
 */
must_check int session_lines(struct sv state, struct sv id, bool follow,
			     bool (*each)(void *ctx, struct sv line), void *ctx,
			     struct writ_err *err);

/*
 * past.c: calls @each for everything that was refused in the session that @id is the
 * beginning of, whether it runs or has ended; @each returns false to stop.
 */
must_check int session_denials(struct sv state, struct sv id,
			       bool (*each)(void *ctx, const struct session_denial *d), void *ctx,
			       struct writ_err *err);

enum { SESSION_KEEP_DAYS = 30, SESSION_KEEP = 500 }; /* records */

/*
 * Removes records of sessions that have ended: those older than @seconds, and all but the
 * newest @keep. *@ret_n says how many.
 */
must_check int session_prune(struct sv state, uint64_t seconds, size_t keep, size_t *ret_n,
			     struct writ_err *err);

/* How somebody looks at a command, and what became of that. */
struct session_look {
	bool neutral;		 /* make escape sequences harmless; the session may say so itself */
	bool detach;		 /* exec: it has a terminal of its own and goes on by itself */
	uint32_t number;	 /* attach: of the command, 0: the one there is. Set to it */
	char id[SESSION_ID + 1]; /* set: the session's whole name */
	bool left;		 /* set: it goes on without us */
	bool taken;		 /* set: because somebody else has joined it */
};

/*
 * Runs one more command in a running session, with our own standard descriptors.
 * If it could not be run, @err says why and *@ret_exit is 126 or 127. @look may be NULL.
 */
must_check int session_exec(struct sv state, struct sv id, char *const *argv, char *const *environ,
			    struct sv cwd, struct session_look *look, int *ret_exit,
			    struct writ_err *err);

/*
 * Joins the terminal of a command: what it showed last, what it shows, our keys. Ends
 * with the command, whose status is *@ret_exit, or by the escape of term/relay.h.
 */
must_check int session_attach(struct sv state, struct sv id, struct session_look *look,
			      int *ret_exit, struct writ_err *err);

#endif
