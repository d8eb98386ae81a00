/* conform_priv.h - one run of the suite: where, as whom, and what has been heard so far */
#ifndef WRIT_CONFORM_CONFORM_PRIV_H
#define WRIT_CONFORM_CONFORM_PRIV_H

#include <signal.h>
#include <sys/types.h>

#include "conform/conform.h"

enum { OUTPUT_BYTES = 64 << 20, STDERR_TAIL = 1500 };

/* What the sandbox declares for a policy with this line in it. */
struct said {
	struct sv policy;
	struct conform_levels levels;
};

struct suite {
	struct arena *arena;
	const struct conform_options *opt;
	const struct conform_rows *rows;
	const char *base;    /* ours alone: nobody else may write into it */
	const char *program; /* writ-escape, where any user may run it */
	struct sv user, home;
	uid_t uid;
	gid_t gid;
	bool drop; /* what we start becomes that user */
	char **env;
	sigset_t signals; /* blocked, and waited for */
	int stopped;	  /* the signal that told us to end, or 0 */
	const char *phase;
	size_t done;
	VEC(struct said) said;
	char errors[STDERR_TAIL + 1]; /* of the first sandbox in which something did not run */
};

/* --- ground.c: the directory, the user, the environment --- */
must_check int ground_make(struct suite *s, struct writ_err *err);
void ground_remove(struct suite *s);
/* A directory of the tested user with a new name below the base; NULL on failure. */
must_check char *ground_scene(struct suite *s, const char *name, struct writ_err *err);
/* A directory that the tested user owns. */
must_check bool ground_folder(const struct suite *s, const char *path, mode_t mode);
void ground_clear(const struct suite *s, const char *path);
/* base/NAME.writ: the workspace of @scene and one more line. */
must_check int ground_policy(struct suite *s, const char *scene, struct sv extra,
			     const char **ret_file, struct writ_err *err);

/* --- child.c --- */
struct child {
	pid_t pid; /* 0: it has ended and was waited for */
	int status;
};

struct start {
	const char *const *argv;
	const char *cwd; /* NULL: / */
	int out, err;	 /* -1: nowhere */
	bool raised;	 /* as we are, not as the tested user */
};

void signals_block(struct suite *s, sigset_t *ret_old);
/* Waits for a signal, at most @ms; notes it if it tells us to end. */
void signals_wait(struct suite *s, long ms);
long now_ms(void);

/* The child leads a session of its own, so that it can be ended with all it started. */
must_check int child_start(const struct suite *s, const struct start *how, struct child *ret,
			   struct writ_err *err);
/* True if it ended within @ms. @patient: not even a signal to us makes us give up. */
bool child_wait(struct suite *s, struct child *c, long ms, bool patient);
void child_end(struct child *c);

/* Runs to the end; @out may be NULL. *@ret_code is as in shells, 124 after @ms. */
must_check int child_call(struct suite *s, const struct start *how, long ms, bool patient,
			  struct buf *out, struct buf *errs, int *ret_code, struct writ_err *err);

/* --- read.c --- */
void conform_copy_text(char to[CONFORM_TEXT], struct sv s);

/* --- scene.c --- */
struct batch {
	VEC(const struct conform_row *) rows;
};

/* Can the sandbox be started at all? Asked before somebody waits for minutes. */
must_check int scene_try(struct suite *s, struct writ_err *err);
/* All of @batch in one sandbox, or none if @bare. Sets their trials; see suite.errors. */
must_check int scene_run(struct suite *s, const struct batch *batch, bool bare,
			 struct conform_trial *trials, struct writ_err *err);
must_check int scene_controls(struct suite *s, const struct batch *batch,
			      enum conform_control *controls, struct writ_err *err);
/* What the sandbox says about @row's policy; asked once. */
must_check int scene_levels(struct suite *s, struct sv policy, const struct conform_levels **ret,
			    struct writ_err *err);

void progress_show(const struct suite *s);

#endif
