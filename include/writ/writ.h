/*
 * writ.h - run programs under a writ policy, or confine the calling process
 *
 * Link with `pkg-config --libs writ`. Functions return 0 or a negative enum
 * writ_error_code and leave their output arguments unchanged on failure. `err` may be
 * NULL. The library does not print, exit, install signal handlers or keep global
 * state. Different objects may be used by different threads at the same time. Threads may
 * share a struct writ, writ_policy or writ_pool; a session or event stream
 * belongs to one thread at a time.
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
	WRIT_ERROR_SYNTAX = -3,	       /* the policy has errors: see the diagnostics */
	WRIT_ERROR_LIMIT = -4,	       /* a size or count is above its limit */
	WRIT_ERROR_DENIED = -5,	       /* the session, or a missing permission, refused the call */
	WRIT_ERROR_UNENFORCEABLE = -6, /* this machine cannot enforce the policy */
	WRIT_ERROR_BUG = -7,
	WRIT_ERROR_ARGUMENT = -8, /* invalid arguments of the call */
};

struct writ_error {
	int32_t code;	/* enum writ_error_code */
	int32_t sys;	/* errno, or 0 */
	char text[248]; /* message for users, a single line */
};

struct writ;
struct writ_policy;
struct writ_session;
struct writ_pool;
struct writ_events;

/* Version of the library that is running ("0.1.0"), not of this header. */
WRIT_API const char *writ_version(void);

/* Frees a text that a function returned; NULL is allowed. */
WRIT_API void writ_text_free(char *text);

/* --- a handle --- */

struct writ_options {
	size_t size;
	/* home directory of the user; NULL: $HOME, then that of the account */
	const char *home;
	/* directory of policies; NULL: $XDG_CONFIG_HOME/writ, then ~/.config/writ */
	const char *config_dir;
	/* directory of records and keys; NULL: $XDG_STATE_HOME/writ, then ~/.local/state/writ */
	const char *state_dir;
	const char *const *environ; /* environment, ends with NULL; NULL: that of this process */
	/* path of the writ program that runs sessions; NULL: the installed one */
	const char *program;
};

/* Creates a handle. @opt may be NULL. Reads the environment once, here. */
WRIT_API int writ_new(const struct writ_options *opt, struct writ **ret, struct writ_error *err);
/* Frees the handle @w. First free everything that was made with @w. */
WRIT_API void writ_free(struct writ *w);

/* --- policies --- */

enum writ_rule_kind {
	WRIT_RULE_ALLOW = 0, /* "read:/data", "write:.": the syntax of --allow */
	WRIT_RULE_ASK,
	WRIT_RULE_DENY,
	WRIT_RULE_LIMIT, /* a limit, such as "memory=2G" */
	WRIT_RULE_SECRET,
	WRIT_RULE_ENV, /* "NAME" or "NAME=VALUE" */
	WRIT_RULE_USE, /* a profile, such as "node" */
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

/*
 * A diagnostic about a policy, valid during the callback. Texts may contain any character but NUL.
 */
struct writ_diagnostic {
	size_t size;
	int32_t level;		       /* enum writ_diagnostic_level */
	const char *source;	       /* file name, or text_name of the options */
	uint32_t line, column, length; /* 1-based, in bytes; line 0: no position */
	const char *text;
	const char *hint; /* suggested correction, or "" */
};

enum writ_policy_flag {
	/*
	 * Behave like `writ run` in cwd: find the workspace from there. If there is no text, file
	 * or rule, read the user's own policies and the workspace's agent.writ; if there are none
	 * either, use the single rule `allow write .`.
	 */
	WRIT_POLICY_DISCOVER = 1u << 0,
	/* Report a missing path as a warning, to inspect a policy without running it. */
	WRIT_POLICY_MISSING_OK = 1u << 1,
};

enum writ_tier { WRIT_TIER_BEST = 0, WRIT_TIER_A, WRIT_TIER_B };

struct writ_policy_options {
	size_t size;
	uint32_t flags;		  /* enum writ_policy_flag */
	int32_t tier;		  /* enum writ_tier */
	const char *cwd;	  /* working directory; NULL: the current directory */
	/* directory that `.` means in rules; NULL: none, or found (WRIT_POLICY_DISCOVER) */
	const char *workspace;
	const char *text;	  /* text of a complete policy; NULL: none */
	const char *text_name;	  /* name of text in diagnostics; NULL: "policy" */
	/* names of files with further complete policies; NULL-terminated; may be NULL */
	const char *const *files;
	const struct writ_rule *rules;
	size_t rules_n;
	/* program whose own files become readable, as with `writ run PROGRAM`; may be NULL */
	const char *program;
	/* "NAME=VALUE" values of $NAME in paths; NULL-terminated; may be NULL */
	const char *const *vars;
	/* called once per diagnostic; may be NULL */
	void (*diagnostic)(void *ctx, const struct writ_diagnostic *d);
	void *diagnostic_ctx;
};

/*
 * Reads and checks a policy. Files are read only here, so the policy that was checked is the policy
 * that runs. *@ret_diagnostics (may be NULL) receives the diagnostics as text for users, or NULL if
 * there are none; it is set on success and for WRIT_ERROR_SYNTAX, and freed with writ_text_free().
 */
WRIT_API int writ_policy_load(struct writ *w, const struct writ_policy_options *opt,
			      struct writ_policy **ret, char **ret_diagnostics,
			      struct writ_error *err);
/* Frees the policy @p. First free the sessions and pools made with @p. */
WRIT_API void writ_policy_free(struct writ_policy *p);

enum writ_explain_flag { WRIT_EXPLAIN_ALL = 1u << 0, WRIT_EXPLAIN_VERBOSE = 1u << 1 };

/* Returns the enforcement of each rule on this machine, as `writ explain` prints it. */
WRIT_API int writ_explain(struct writ_policy *p, uint32_t flags, char **ret_text,
			  struct writ_error *err);
/* Returns the effective guarantees as one line of JSON, as `writ explain --json` prints them. */
WRIT_API int writ_guarantees(struct writ_policy *p, char **ret_json, struct writ_error *err);

/* --- running --- */

/* Exit codes are those of `writ run`: the command's own, 128 + signal, 124, 125, 126, 127. */
struct writ_exit {
	size_t size;
	int32_t code;
	uint32_t denials;
	char session[16];  /* id of the session, which names its record */
	/* limit or caller that ended the session; "" if the command ended by itself */
	char ended_by[64];
	/* reason why the command could not be started; "" if the command started */
	char why[128];
};

enum writ_run_flag {
	WRIT_RUN_NEUTRAL = 1u << 0, /* remove dangerous escape sequences from the output */
};

struct writ_run_options {
	size_t size;
	uint32_t flags;		    /* enum writ_run_flag */
	const char *const *argv;    /* command and its arguments; NULL-terminated */
	/* the policy selects variables from this environment; NULL: the handle's */
	const char *const *environ;
	const char *cwd;	    /* working directory; NULL: the policy's */
	/* three descriptors, -1: /dev/null; NULL: use input and output, or /dev/null */
	const int *stdio;
	/*
	 * Alternative to stdio for writ_run() and writ_session_exec(), which call output in the
	 * thread of their caller.
	 */
	const void *input;
	size_t input_n;
	/* stream: 1 output, 2 error */
	void (*output)(void *ctx, int stream, const void *bytes, size_t n);
	void *output_ctx;
	/* pool from which to take a sandbox that is already built; may be NULL */
	struct writ_pool *pool;
};

/*
 * Runs the command argv of @opt and waits for its end. A non-zero exit code of the command is not
 * an error.
 */
WRIT_API int writ_run(struct writ_policy *p, const struct writ_run_options *opt,
		      struct writ_exit *ret, struct writ_error *err);

/* --- sessions --- */

/*
 * Starts a session with the command argv and returns once its sandbox is complete. With an empty
 * argv, the session waits for writ_session_exec(). The session ends when its command ends, when
 * writ_session_stop() is called, or when this process ends.
 */
WRIT_API int writ_session_start(struct writ_policy *p, const struct writ_run_options *opt,
				struct writ_session **ret, struct writ_error *err);
/* Returns the id of the session: eight letters and digits, valid as long as @s. */
WRIT_API const char *writ_session_id(const struct writ_session *s);
/*
 * Waits at most @timeout_ms (-1: no limit). Returns 1 and fills *@ret if the session has ended, 0
 * if it is still running.
 */
WRIT_API int writ_session_wait(struct writ_session *s, int timeout_ms, struct writ_exit *ret,
			       struct writ_error *err);
/* Returns a descriptor for poll(), which is readable once writ_session_wait() will not block. */
WRIT_API int writ_session_fd(const struct writ_session *s);
/* Frees @s. Ends everything in the session if the session is still running. */
WRIT_API void writ_session_free(struct writ_session *s);

/* The following functions accept any session of this user, by its id or a unique prefix. */

/*
 * Runs another command in the session. Uses argv, environ, cwd and stdio, or input and output, of
 * @opt.
 */
WRIT_API int writ_session_exec(struct writ *w, const char *id, const struct writ_run_options *opt,
			       struct writ_exit *ret, struct writ_error *err);
WRIT_API int writ_session_stop(struct writ *w, const char *id, struct writ_error *err);
/*
 * Grants @rule, "read /path" or "write /path", to the running session. *@ret_grant is the number
 * for writ_session_revoke().
 */
WRIT_API int writ_session_allow(struct writ *w, const char *id, const char *rule,
				uint32_t *ret_grant, struct writ_error *err);
WRIT_API int writ_session_revoke(struct writ *w, const char *id, uint32_t grant,
				 struct writ_error *err);

/* --- events --- */

enum writ_event_kind {
	WRIT_EVENT_OTHER = 0, /* the kind is unknown to this version of the library */
	WRIT_EVENT_START,
	WRIT_EVENT_SEALED, /* the sandbox is complete and the command starts */
	WRIT_EVENT_EXEC,
	WRIT_EVENT_DENIED,
	WRIT_EVENT_ALLOW, /* the user gave the running session a live grant */
	WRIT_EVENT_REVOKE,
	WRIT_EVENT_LIMIT,
	WRIT_EVENT_EXITED, /* a command has ended */
	WRIT_EVENT_FAILED,
	WRIT_EVENT_END, /* the session has ended; always the last event */
};

struct writ_event {
	size_t size;
	int32_t kind;	  /* enum writ_event_kind */
	const char *json; /* a line of JSON without newline; valid until the next call */
	size_t json_n;
};

/* Opens the record of a running or ended session at its beginning. @id must be complete. */
WRIT_API int writ_events_open(struct writ *w, const char *id, struct writ_events **ret,
			      struct writ_error *err);
/*
 * Returns 1 and the next event, or 0 if none arrived within @timeout_ms (-1: no limit) or the last
 * one was returned before.
 */
WRIT_API int writ_events_next(struct writ_events *e, int timeout_ms, struct writ_event *ret,
			      struct writ_error *err);
WRIT_API void writ_events_close(struct writ_events *e);

/* --- warm sandboxes --- */

/*
 * Creates a pool of @n sandboxes (at most 64) that are built for @p and wait for a command. Each is
 * used once and then replaced.
 */
WRIT_API int writ_pool_new(struct writ_policy *p, uint32_t n, struct writ_pool **ret,
			   struct writ_error *err);
/*
 * Waits until @n sandboxes are ready, or @timeout_ms have passed. Returns the number that are
 * ready.
 */
WRIT_API int writ_pool_wait(struct writ_pool *pool, uint32_t n, int timeout_ms,
			    struct writ_error *err);
WRIT_API void writ_pool_free(struct writ_pool *pool);

/* --- this process --- */

enum writ_restrict_flag {
	/* Keep sockets that are already open, including those connected to the network. */
	WRIT_RESTRICT_KEEP_SOCKETS = 1u << 0,
};

/*
 * Confines this process and all its children irrevocably: no new privileges, no capabilities, the
 * policy's file rules (Landlock), no network or UNIX connections, and only the system calls of a
 * sandbox. No supervisor is involved: a policy that needs one is refused with
 * WRIT_ERROR_UNENFORCEABLE, unless it accepts weaker guarantees. The process must be
 * single-threaded.
 *
 * A failure before the first step changes nothing. If a later step fails, *@ret_partial (may be
 * NULL) is set to a non-zero value, and completed steps stay in force: the caller should exit.
 */
WRIT_API int writ_restrict_self(struct writ_policy *p, uint32_t flags, int *ret_partial,
				struct writ_error *err);

#ifdef __cplusplus
}
#endif

#endif
