/*
 * lib_priv.h - what the files of the library and writ-supervise share
 *
 * Reads:  writ/writ.h
 * Writes: nothing
 * Next:   calls of writ.h are in the file of their subject
 *
 * A session is supervised by a process of its own, writ-supervise, which the
 * library carries along and starts. So nothing of the program that uses the
 * library is inherited but credentials, umask and what was handed over: threads,
 * signals, descriptors and memory of the one are not those of the other.
 */
#ifndef WRIT_LIB_LIB_PRIV_H
#define WRIT_LIB_LIB_PRIV_H

#include <pthread.h>
#include <sys/types.h>
#include <writ/writ.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "find/find.h"
#include "host/facts.h"
#include "plan/plan.h"

/* --- a policy with everything it was made from --- */

/* The library fills it, and it goes to writ-supervise as bytes. */
struct lib_input {
	struct find_input find;
	enum plan_tier tier;
	struct digest digest; /* of the set; all zero until it is known */
};

/* input.c */
must_check int lib_input_encode(const struct lib_input *in, struct buf *b, struct writ_err *err);
must_check int lib_input_decode(struct arena *a, struct sv bytes, struct lib_input *ret,
				struct writ_err *err);

/*
 * What to run, and where. Strings in it end with a NUL. Decoded, argv and environ
 * end with NULL.
 */
struct lib_command {
	uint32_t flags;	 /* enum writ_run_flag, and LIB_RUN_NAMED */
	struct sv id;	 /* of a running session: one more command there; else empty */
	struct sv state; /* with id */
	struct sv cwd;
	VEC(char *) argv, environ;
};
/* A flag that callers of the library cannot give: the session is used by its id. */
enum { LIB_RUN_NAMED = 1u << 16 };
must_check int lib_command_encode(const struct lib_command *c, struct buf *b, struct writ_err *err);
must_check int lib_command_decode(struct arena *a, struct sv bytes, struct lib_command *ret,
				  struct writ_err *err);

/* plan.c: what holds, and the first thing that does not */
must_check int lib_plan(struct arena *a, const struct policy *p, const struct host_facts *f,
			enum plan_tier tier, struct plan **ret, struct writ_err *err);
must_check int lib_plan_check(const struct plan *p, const struct policy *policy,
			      struct writ_err *err);

/* --- the supervisor --- */

/* Descriptors that writ-supervise starts with. */
enum { SUPER_SOCKET = 3, SUPER_LIFE = 4 };

/*
 * The library asks: one byte of enum super_ask, and descriptors. The answers are
 * told apart by their length and first byte: eight bytes are the id of a session
 * that now runs, '{' begins its status, anything else is a struct super_answer.
 */
enum super_ask {
	SUPER_FACTS =
		'f', /* descriptor: struct lib_input. Answer: the facts, as text, in one file */
	SUPER_POLICY =
		'p',	  /* descriptor: struct lib_input. Answer once it is ready for a command */
	SUPER_RUN = 'r',  /* descriptors: struct lib_command, then three for the command */
	SUPER_EXEC = 'x', /* the same, in a running session; SUPER_POLICY does not come first */
};

enum super_told { SUPER_NOTHING = 0, SUPER_READY, SUPER_ENDED };

struct super_answer {
	uint32_t told; /* enum super_told */
	int32_t exit;
	struct writ_err err; /* code 0: none */
};

struct super {
	pid_t pid;
	int socket;
	int life; /* closing it ends the supervisor */
};
#define SUPER_INIT                                                                                 \
	{                                                                                          \
		.socket = -1, .life = -1                                                           \
	}

/* supervise.c */
must_check int super_open(struct writ *w, struct super *ret, struct writ_err *err);
must_check int super_ask(const struct super *s, enum super_ask what, struct sv bytes,
			 const int *fds, size_t fds_n, struct writ_err *err);
/* One message: returns 1, 0 if none came in time, or an error; the end is an error. */
must_check int super_hear(const struct super *s, int timeout_ms, void *ret_bytes, size_t room,
			  size_t *ret_n, int *ret_fd, struct writ_err *err);
void super_close(struct super *s);
must_check int super_facts(struct writ *w, struct host_facts *ret, struct writ_err *err);

/* --- the library's own objects --- */

struct writ {
	struct arena arena;
	struct find_where where;
	char **environ;
	int program;	      /* writ-supervise, ready to be run */
	pthread_mutex_t lock; /* for the two below */
	bool has_facts;
	struct host_facts facts;
};

struct writ_policy {
	struct writ *w;
	struct arena arena;
	struct lib_input in;
	struct diags diags;
	struct policy *policy;
	struct buf bytes; /* lib_input_encode() of it, digest included */
};

/* pool.c: a warm supervisor, or one that was just started; the policy was sent. */
must_check int pool_take(struct writ_policy *p, struct writ_pool *pool, struct super *ret,
			 struct writ_err *err);
/* Starts what was taken again; may be NULL. After the caller's own start, not before. */
void pool_refill(struct writ_pool *pool);

/* handle.c */
int lib_error(struct writ_error *to, const struct writ_err *from);
int lib_argument(struct writ_error *to, const char *what);
/* Is @size one this library can work with? Copies the common part to @to, the rest is zero. */
must_check bool lib_options(void *to, size_t room, size_t least, const void *from);
must_check int lib_text(struct buf *b, char **ret, struct writ_err *err);

#endif
