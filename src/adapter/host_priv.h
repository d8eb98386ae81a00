/*
 * host_priv.h - what the files of the host adapter share
 *
 * Reads:  adapter/host.h
 * Writes: nothing
 * Next:   host.c puts the parts together
 */
#ifndef WRIT_ADAPTER_HOST_PRIV_H
#define WRIT_ADAPTER_HOST_PRIV_H

#include <linux/mount.h>

#include "adapter/host.h"

/* A place of the host that the policy opens. */
struct root {
	struct sv path; /* physical, without a star */
	bool write;
	bool optional;
	bool whole;   /* the subtree; else exactly this file */
	bool by_name; /* only some names in it: every open there is mediated */
	bool hides;   /* by_name, but all it lacks is what a rule hides: programs may run */
	bool device, socket;
	bool of_base;	    /* shown by base, whatever the policy says */
	const char *inside; /* seen under another name; NULL: under its own */
};

struct compile {
	struct arena *a;
	const struct plan *plan;
	const struct host_facts *facts;
	const struct policy *policy;
	const struct cap_set *set;
	const struct host_place *place;
	struct writ_err *err;
	struct jail_writer w;
	VEC(struct root) roots;
	VEC(struct sv) made; /* directories of the skeleton, each once */
	struct host_view *view;
	bool a_tier; /* own mounts */
	bool mediate, read_traps;
	bool shows_ours; /* a tree that may be read holds writ's own files */
	bool exec_list; /* only named programs run */
	bool no_exec;	/* while rules are written: without the right to run */
	uint32_t layer; /* while rules are written: of which ruleset; 0: the jail's own */
};

enum {
	READ_ONLY = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
	READ_WRITE = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
};

/* roots.c */
must_check int host_roots_find(struct compile *c);
bool path_below(struct sv path, struct sv dir); /* or the same */

/* skeleton.c: what every jail has, whatever the policy says, and what is the session's own */
must_check int skeleton_put(struct compile *c);
must_check int skeleton_known(struct compile *c); /* its directories are there already */
must_check int skeleton_own(struct compile *c);
must_check int skeleton_dirs(struct compile *c, struct sv path); /* its parents, not itself */
/* Does a part of the skeleton lie at or below it? Is it such a part, and nothing else? */
bool skeleton_holds(const struct compile *c, struct sv path);
bool skeleton_is(const struct compile *c, struct sv path);

/* host.c */
bool host_shows(const struct compile *c, struct sv path); /* is it in a tree that is shown whole? */

bool has_exec_list(const struct cap_set *set); /* does it say what may be run? */

/* trust.c: where programs look for the authorities they trust */
must_check int trust_put(struct compile *c);
/* Does a place of ours lie at or below it? */
bool trust_holds(const struct compile *c, struct sv path);

/* probes.c: last, when all that is granted is known */
must_check int probes_put(struct compile *c, const struct jail_head *head);

/* landlock.c */
must_check int landlock_put(struct compile *c, struct jail_head *head);
/* One more ruleset for each set that the policy is the meet of. */
must_check int landlock_hops(struct compile *c, struct jail_head *head);

#endif
