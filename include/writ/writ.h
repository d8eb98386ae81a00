/*
 * writ.h - run programs under a writ policy, or confine this one
 *
 * Link with `pkg-config --libs writ`. Calls return 0 or a negative enum
 * writ_error_code; what they hand out is not touched on failure. `err` may be
 * NULL. The library prints nothing, ends nothing, installs no signal handlers and
 * keeps no global state. Different objects may be used by different threads at
 * the same time. One struct writ, writ_policy or writ_pool may be shared by
 * threads; one session or event stream belongs to one thread at a time.
 *
 * Structs that begin with `size` grow at their end: set size to sizeof(the
 * struct) and everything else to zero, as WRIT_INIT(struct x) does.
 */
#ifndef WRIT_WRIT_H
#define WRIT_WRIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WRIT_API __attribute__((visibility("default")))
#define WRIT_INIT(type)                                                                            \
	{                                                                                          \
		.size = sizeof(type)                                                               \
	}

enum writ_error_code {
	WRIT_ERROR_NONE = 0,
	WRIT_ERROR_SYSTEM = -1, /* a system call failed; sys is its errno */
	WRIT_ERROR_MEMORY = -2,
	WRIT_ERROR_SYNTAX = -3,	       /* the policy is wrong: see the diagnostics */
	WRIT_ERROR_LIMIT = -4,	       /* larger or more than is accepted */
	WRIT_ERROR_DENIED = -5,	       /* the session, or what it runs as, says no */
	WRIT_ERROR_UNENFORCEABLE = -6, /* the policy asks for what cannot be held here */
	WRIT_ERROR_BUG = -7,
	WRIT_ERROR_ARGUMENT = -8, /* the call itself makes no sense */
};

struct writ_error {
	int32_t code;	/* enum writ_error_code */
	int32_t sys;	/* errno, or 0 */
	char text[248]; /* one line for people */
};

struct writ;
struct writ_policy;
struct writ_session;
struct writ_pool;
struct writ_events;

/* "0.1.0": of the library that runs, not of this header. */
WRIT_API const char *writ_version(void);

/* Texts that calls hand out are freed with this; NULL is fine. */
WRIT_API void writ_text_free(char *text);

/* --- a handle --- */

struct writ_options {
	size_t size;
	const char *home;	    /* the user's own; NULL: $HOME, then the account's */
	const char *config_dir;	    /* NULL: $XDG_CONFIG_HOME/writ, then ~/.config/writ */
	const char *state_dir;	    /* NULL: $XDG_STATE_HOME/writ, then ~/.local/state/writ */
	const char *const *environ; /* ends with NULL; NULL: the one of this process */
};

/* @opt may be NULL. The environment is read here and not again. */
WRIT_API int writ_new(const struct writ_options *opt, struct writ **ret, struct writ_error *err);
/* After everything made with it. */
WRIT_API void writ_free(struct writ *w);

/* --- policies --- */

enum writ_rule_kind {
	WRIT_RULE_ALLOW = 0, /* "read:/data", "write:.", as --allow takes it */
	WRIT_RULE_ASK,
	WRIT_RULE_DENY,
	WRIT_RULE_LIMIT, /* "memory=2G" */
	WRIT_RULE_SECRET,
	WRIT_RULE_ENV, /* "NAME" or "NAME=VALUE" */
	WRIT_RULE_USE, /* "node" */
};

struct writ_rule {
	int32_t kind; /* enum writ_rule_kind */
	const char *text;
};

enum writ_diagnostic_level {
	WRIT_DIAGNOSTIC_ERROR = 0,
	WRIT_DIAGNOSTIC_WARNING,
	WRIT_DIAGNOSTIC_NOTE
};

/* Lives as long as the call it is given to. Texts may hold any character but NUL. */
struct writ_diagnostic {
	size_t size;
	int32_t level;		       /* enum writ_diagnostic_level */
	const char *source;	       /* file name, or what the text was called */
	uint32_t line, column, length; /* from 1, in bytes; line 0: no place */
	const char *text;
	const char *hint; /* what to write instead, or "" */
};

enum writ_policy_flag {
	/*
	 * As `writ run` in cwd would: the workspace is found from there, and if neither
	 * text nor files nor rules say anything, the user's own policies and the
	 * workspace's agent.writ are read, and `write .` holds if there are none.
	 */
	WRIT_POLICY_DISCOVER = 1u << 0,
	/* A path that does not exist is a warning: for looking, not for running. */
	WRIT_POLICY_MISSING_OK = 1u << 1,
};

enum writ_tier { WRIT_TIER_BEST = 0, WRIT_TIER_A, WRIT_TIER_B };

struct writ_policy_options {
	size_t size;
	uint32_t flags;		  /* enum writ_policy_flag */
	int32_t tier;		  /* enum writ_tier */
	const char *cwd;	  /* NULL: the current directory */
	const char *workspace;	  /* what `.` means; NULL: none, or found (WRIT_POLICY_DISCOVER) */
	const char *text;	  /* a whole policy; NULL: none */
	const char *text_name;	  /* what diagnostics call it; NULL: "policy" */
	const char *const *files; /* more whole policies; ends with NULL; may be NULL */
	const struct writ_rule *rules;
	size_t rules_n;
	const char *program; /* its own files become readable, as for `writ run PROGRAM`; or NULL */
	const char *const *vars; /* "NAME=VALUE" for $NAME in paths; ends with NULL; may be NULL */
	void (*diagnostic)(void *ctx, const struct writ_diagnostic *d); /* once each; may be NULL */
	void *diagnostic_ctx;
};

/*
 * Reads and checks a policy. *@ret_diagnostics (may be NULL) becomes all that is
 * wrong with it as text for people, or NULL; it is set on success and with
 * WRIT_ERROR_SYNTAX, and freed by writ_text_free(). Files are read here and not
 * again: what was checked is what runs.
 */
WRIT_API int writ_policy_load(struct writ *w, const struct writ_policy_options *opt,
			      struct writ_policy **ret, char **ret_diagnostics,
			      struct writ_error *err);
/* After the sessions and pools made with it. */
WRIT_API void writ_policy_free(struct writ_policy *p);

enum writ_explain_flag { WRIT_EXPLAIN_ALL = 1u << 0, WRIT_EXPLAIN_VERBOSE = 1u << 1 };

/* What enforces each line on this machine, as `writ explain` prints it. */
WRIT_API int writ_explain(struct writ_policy *p, uint32_t flags, char **ret_text,
			  struct writ_error *err);
/* The effective guarantees as one line of JSON, as `writ explain --json` prints them. */
WRIT_API int writ_guarantees(struct writ_policy *p, char **ret_json, struct writ_error *err);

/* --- running --- */

/* Codes are those of `writ run`: the command's own, 128 + signal, 124, 125, 126, 127. */
struct writ_exit {
	size_t size;
	int32_t code;
	uint32_t denials;
	char session[16];  /* id: names its record */
	char ended_by[64]; /* a limit, or who stopped it; "" if it ended by itself */
	char why[128];	   /* why the command could not be run; "" if it was */
};

enum writ_run_flag {
	WRIT_RUN_NEUTRAL = 1u << 0, /* make escape sequences of the output harmless */
};

struct writ_run_options {
	size_t size;
	uint32_t flags;		    /* enum writ_run_flag */
	const char *const *argv;    /* ends with NULL */
	const char *const *environ; /* the policy chooses from it; NULL: the handle's */
	const char *cwd;	    /* NULL: the policy's */
	const int *stdio; /* three descriptors, -1: /dev/null; NULL: /dev/null or what follows */
	/* Instead of stdio, only with writ_run(), in the thread that calls it: */
	const void *input;
	size_t input_n;
	void (*output)(void *ctx, int stream, const void *bytes, size_t n); /* stream 1 or 2 */
	void *output_ctx;
	struct writ_pool *pool; /* take a warm sandbox from here; may be NULL */
};

/* Runs argv to its end. Errors are those of starting; what it does is no error. */
WRIT_API int writ_run(struct writ_policy *p, const struct writ_run_options *opt,
		      struct writ_exit *ret, struct writ_error *err);

/* --- sessions --- */

/*
 * Starts argv and returns once the sandbox is closed around it. Without argv (no
 * first argument) the session only waits for writ_session_exec(). It ends with its
 * command, with writ_session_stop(), or with this process.
 */
WRIT_API int writ_session_start(struct writ_policy *p, const struct writ_run_options *opt,
				struct writ_session **ret, struct writ_error *err);
/* Eight letters and digits; lives as long as @s. */
WRIT_API const char *writ_session_id(const struct writ_session *s);
/*
 * Waits at most @timeout_ms (-1: for ever). Returns 1 and fills *@ret once it has
 * ended, 0 if it still runs.
 */
WRIT_API int writ_session_wait(struct writ_session *s, int timeout_ms, struct writ_exit *ret,
			       struct writ_error *err);
/* Readable (for poll) once writ_session_wait() will not wait. */
WRIT_API int writ_session_fd(const struct writ_session *s);
/* Ends everything in it if it still runs. */
WRIT_API void writ_session_free(struct writ_session *s);

/* What follows works on any session of this user, by its id or the beginning of it. */

/* One more command: argv, environ, cwd, stdio or input and output of @opt count. */
WRIT_API int writ_session_exec(struct writ *w, const char *id, const struct writ_run_options *opt,
			       struct writ_exit *ret, struct writ_error *err);
WRIT_API int writ_session_stop(struct writ *w, const char *id, struct writ_error *err);
/* @rule is "read /path" or "write /path"; *@ret_grant names it for writ_session_revoke(). */
WRIT_API int writ_session_allow(struct writ *w, const char *id, const char *rule,
				uint32_t *ret_grant, struct writ_error *err);
WRIT_API int writ_session_revoke(struct writ *w, const char *id, uint32_t grant,
				 struct writ_error *err);

/* --- events --- */

enum writ_event_kind {
	WRIT_EVENT_OTHER = 0, /* of a later version */
	WRIT_EVENT_START,
	WRIT_EVENT_SEALED, /* the sandbox is closed; the command starts */
	WRIT_EVENT_EXEC,
	WRIT_EVENT_DENIED,
	WRIT_EVENT_ALLOW, /* a live grant */
	WRIT_EVENT_REVOKE,
	WRIT_EVENT_LIMIT,
	WRIT_EVENT_EXITED, /* one command */
	WRIT_EVENT_FAILED,
	WRIT_EVENT_END, /* the session; the last one */
};

struct writ_event {
	size_t size;
	int32_t kind;	  /* enum writ_event_kind */
	const char *json; /* one line without its end; lives until the next call */
	size_t json_n;
};

/* The record of a session, running or ended, from its beginning. @id is whole. */
WRIT_API int writ_events_open(struct writ *w, const char *id, struct writ_events **ret,
			      struct writ_error *err);
/*
 * The next one; waits at most @timeout_ms (-1: for ever). Returns 1, or 0 if there
 * was none in time or the last one has been given.
 */
WRIT_API int writ_events_next(struct writ_events *e, int timeout_ms, struct writ_event *ret,
			      struct writ_error *err);
WRIT_API void writ_events_close(struct writ_events *e);

/* --- warm sandboxes --- */

/* @n sandboxes (at most 64) that are built for @p and wait for a command; each is used once. */
WRIT_API int writ_pool_new(struct writ_policy *p, uint32_t n, struct writ_pool **ret,
			   struct writ_error *err);
/* Waits until @n of them are ready, or @timeout_ms are over; returns how many are. */
WRIT_API int writ_pool_wait(struct writ_pool *pool, uint32_t n, int timeout_ms,
			    struct writ_error *err);
WRIT_API void writ_pool_free(struct writ_pool *pool);

/* --- this process --- */

enum writ_restrict_flag {
	/* Sockets that are open already stay, also those that reach the network. */
	WRIT_RESTRICT_KEEP_SOCKETS = 1u << 0,
};

/*
 * Confines this process, and all it starts, for good: no new privileges, no
 * capabilities, the policy's file rules (Landlock), no network or UNIX connections,
 * the system calls a sandbox has. Nothing outside watches: a policy that needs that
 * is refused with WRIT_ERROR_UNENFORCEABLE unless it accepts less. The process must
 * have one thread.
 *
 * On failure before the first step nothing has changed. If a later step fails, *@ret_partial
 * (may be NULL) is not 0 and what was done stays done: the caller should end.
 */
WRIT_API int writ_restrict_self(struct writ_policy *p, uint32_t flags, int *ret_partial,
				struct writ_error *err);

#ifdef __cplusplus
}
#endif

#endif
