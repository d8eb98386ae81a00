/*
 * guard_priv.h - names that programs of the user obey outside the session, and what is allowed
 * there
 */
#ifndef WRIT_MEDIATE_GUARD_PRIV_H
#define WRIT_MEDIATE_GUARD_PRIV_H

#include <stdbool.h>

#include "lang/protect.h"

struct call;
struct place;

enum guard_kind {
	GUARD_FREE = 0, /* the name is not protected */
	GUARD_ANCESTOR, /* may contain a protected name: no links, directories only by mkdir */
	GUARD_CONFIG,	/* a git configuration: only checked content may replace it */
	GUARD_POINTER, /* a .git file, commondir or attributes: checked when the caller closes it */
	GUARD_HOOKS,   /* the hooks directory itself: the caller may create it empty */
	GUARD_SAMPLE,  /* a hook named *.sample, which git never runs */
	/* Written once, when git creates the file; afterwards it may only be removed. */
	GUARD_WRITE_ONCE,
	GUARD_CLOSED, /* the mediator allows no change */
};

struct guard {
	enum guard_kind kind;
	const struct protect_name *row;
	bool module; /* the configuration belongs to a submodule */
};

struct guard guard_classify(struct call *c, const struct place *p);
/*
 * Call before @p is created. If the new name turns its directory into a git repository, git starts
 * to obey settings that the session wrote to the directory earlier: checks these settings. Returns
 * 0 or -errno.
 */
int guard_check_completion(struct call *c, const struct place *p);
int guard_deny(struct call *c, const struct place *p, const struct guard *g);

#endif
