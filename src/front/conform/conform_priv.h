/* conform_priv.h - the state of one run of the suite */
#ifndef WRIT_CONFORM_CONFORM_PRIV_H
#define WRIT_CONFORM_CONFORM_PRIV_H

#include <signal.h>
#include <sys/types.h>

#include "conform/conform.h"

enum { OUTPUT_BYTES = 64 << 20, STDERR_TAIL = 1500 };

/* Weaknesses that `writ explain` printed for the test policy with the additional line @policy. */
struct declaration {
	struct sv policy;
	struct conform_levels levels;
};

struct suite {
	struct arena *arena;
	const struct conform_options *opt;
	const struct conform_rows *rows;
	const char *base;    /* the testbed's directory; no other user may write to it */
	const char *program; /* copy of writ-escape that any user may run */
	struct sv user, home;
	uid_t uid;
	gid_t gid;
	bool drop; /* the suite starts children as the tested user */
	char **env;
	sigset_t signals; /* signals that are blocked, and received by conform_signals_wait() */
	int stopped;	  /* signal that requested the end of the run; 0: none */
	const char *phase;
	size_t done;
	VEC(struct declaration) declarations;
	/* standard error of the first sandbox in which an attempt did not run */
	char errors[STDERR_TAIL + 1];
};

/* --- testbed.c: the directory, the user, the environment --- */
must_check int testbed_make(struct suite *s, struct writ_err *err);
void testbed_remove(struct suite *s);
/* Creates a directory with a new name in the testbed, owned by the tested user; NULL on failure. */
must_check char *testbed_scene(struct suite *s, const char *name, struct writ_err *err);
/* Creates a directory that the tested user owns. */
must_check bool testbed_mkdir(const struct suite *s, const char *path, mode_t mode);
void testbed_clear(const struct suite *s, const char *path);
/* Writes the policy SCENE.writ: write access to the scene's workspace, and one more line. */
must_check int testbed_policy(struct suite *s, const char *scene, struct sv extra,
			      const char **ret_file, struct writ_err *err);

/* --- child.c --- */
struct child {
	pid_t pid; /* 0: the child has exited and was reaped */
	int status;
};

struct start {
	const char *const *argv;
	const char *cwd; /* working directory; NULL: / */
	int out, err;	 /* descriptors for standard output and error; -1: /dev/null */
	bool raised;	 /* run the child as the current user, not as the tested user */
};

void conform_signals_block(struct suite *s, sigset_t *ret_old);
/* Waits at most @ms for a signal. Stores a terminating signal in suite.stopped. */
void conform_signals_wait(struct suite *s, long ms);

/*
 * Starts a child as the leader of a new session, so that the suite can kill the child with all its
 * descendants.
 */
must_check int conform_child_start(const struct suite *s, const struct start *how,
				   struct child *ret, struct writ_err *err);
/*
 * Returns true if the child exited within @ms. @patient: continue to wait if a signal requests the
 * end of the run.
 */
bool conform_child_wait(struct suite *s, struct child *c, long ms, bool patient);
void conform_child_end(struct child *c);

/*
 * Runs a child until it exits, for at most @ms milliseconds, and kills what is left of the child's
 * process session. @patient is as in conform_child_wait(). @out and @errs may be NULL. *@ret_code
 * is the exit status as in shells; 124: the child had not exited when the time was over, or when a
 * signal stopped the run.
 */
must_check int conform_child_call(struct suite *s, const struct start *how, long ms, bool patient,
				  struct buf *out, struct buf *errs, int *ret_code,
				  struct writ_err *err);

/* --- parse.c --- */
void conform_copy_text(char to[CONFORM_TEXT], struct sv s);

/* --- scene.c --- */
/* Rows whose attempts run together in one sandbox. */
struct batch {
	VEC(const struct conform_row *) rows;
};

/* Checks that the sandbox starts at all, before the suite runs for minutes. */
must_check int scene_try(struct suite *s, struct writ_err *err);
/*
 * Runs all attempts of @batch in one sandbox, or without one if @bare, and sets the trials of the
 * attempts.
 */
must_check int scene_run(struct suite *s, const struct batch *batch, bool bare,
			 struct conform_trial *trials, struct writ_err *err);
/*
 * Runs the controls of @batch in one sandbox: tests whether each operation works on an object where
 * it is allowed.
 */
must_check int scene_controls(struct suite *s, const struct batch *batch,
			      enum conform_control *controls, struct writ_err *err);
/* Returns the levels that the sandbox declares for @policy. Runs `writ explain` once per policy. */
must_check int scene_levels(struct suite *s, struct sv policy, const struct conform_levels **ret,
			    struct writ_err *err);

void conform_progress_show(const struct suite *s);

#endif
