/*
 * restrict_priv.h - confining the calling process: what is decided, then what is done
 *
 * Reads:  a sealed jail program, the same that a sandbox of tier B would get
 * Writes: nothing
 * Next:   restrict.c decides, apply.c does
 */
#ifndef WRIT_LIB_RESTRICT_PRIV_H
#define WRIT_LIB_RESTRICT_PRIV_H

#include "jail/program.h"
#include "lib/lib_priv.h"

/* Everything made before the first step, so that little can fail later. */
struct restrict_work {
	const struct jail_head *program;
	size_t size;
	int ruleset;
	bool attributes; /* mode, owner, times and attributes of files may be changed */
	bool no_exec;	 /* shell none: no program is run from now on */
};

/* Before the first step: what can be made without changing anything. */
must_check int apply_prepare(struct restrict_work *w, struct writ_err *err);
/* The steps. *@ret_done counts those that are done, also on failure. */
must_check int apply_steps(const struct restrict_work *w, int *ret_done, struct writ_err *err);

#endif
