/*
 * restrict_priv.h - confine the calling process: decide, then apply
 *
 * Reads:  a sealed jail program, as compiled for a sandbox of tier B
 * Writes: nothing
 * Next:   restrict.c decides whether the policy can be enforced, apply.c restricts the process
 */
#ifndef WRIT_LIB_RESTRICT_PRIV_H
#define WRIT_LIB_RESTRICT_PRIV_H

#include "jail/program.h"
#include "lib/lib_priv.h"

/* Resources acquired before the first irreversible step, so that few calls can fail after it. */
struct restrict_work {
	const struct jail_head *program;
	size_t size;
	int ruleset;
	bool attributes; /* the process may change mode, owner, times and attributes of files */
	bool no_exec;	 /* `shell none`: the process may not exec any program */
};

/* Creates the Landlock ruleset. Does not restrict the process yet. */
must_check int apply_prepare(struct restrict_work *w, struct writ_err *err);
/*
 * Restricts the process step by step. *@ret_done is the number of steps that were executed,
 * including one that failed.
 */
must_check int apply_steps(const struct restrict_work *w, int *ret_done, struct writ_err *err);

#endif
