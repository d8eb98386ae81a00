/*
 * compile_priv.h - types and functions that the files of the module `compile` share
 *
 * Reads:  compile/compile.h
 * Writes: nothing
 * Next:   compile.c puts the parts together
 */
#ifndef WRIT_COMPILE_COMPILE_PRIV_H
#define WRIT_COMPILE_COMPILE_PRIV_H

#include <linux/mount.h>

#include "compile/compile.h"

/* A path of the host that the policy grants. */
struct root {
	struct sv path; /* physical path, without a star */
	bool write;
	bool optional;
	bool whole;   /* the grant covers the whole subtree; otherwise exactly this file */
	/*
	 * The mediator decides every open in the tree, because the grant covers only some names,
	 * asks a person, counts uses or is a drop box, or because something in the tree must stay
	 * hidden.
	 */
	bool by_name;
	/*
	 * Opens are mediated only because something in the tree must stay hidden (a denial, writ's
	 * own files): Landlock still grants reading and executing, so that programs here can run.
	 */
	bool hides;
	bool device, socket;
	bool of_base;	    /* only rules of base grant the path, and it is outside the workspace */
};

struct compile {
	struct arena *a;
	const struct plan *plan;
	const struct host_facts *facts;
	const struct policy *policy;
	const struct cap_set *set;
	const struct engine_place *place;
	struct writ_err *err;
	struct jail_writer w;
	VEC(struct root) roots;
	VEC(struct sv) made; /* directories that the program creates, without duplicates */
	struct engine_view *view;
	bool a_tier; /* tier A: the session has its own mounts */
	bool mediate, read_traps;
	bool shows_ours; /* tier B: a readable tree contains writ's own files */
	bool exec_list; /* Landlock enforces the policy's list of programs that may run */
	bool no_exec;	/* while Landlock rules are written: the rules do not grant execution */
	/* While Landlock rules are written: number of the ruleset; 0: the jail's own ruleset. */
	uint32_t layer;
};

enum {
	READ_ONLY = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
	READ_WRITE = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
};

/* Functions of roots.c. */
must_check int compile_roots_find(struct compile *c);
bool compile_path_below(struct sv path, struct sv dir); /* true if @path is @dir or below @dir */

/*
 * skeleton.c: skeleton_put() adds the parts that every jail has, skeleton_own() the session's own
 * directories and files.
 */
must_check int skeleton_put(struct compile *c);
/* Records the directories that compile_early() has had created. */
must_check int skeleton_known(struct compile *c);
must_check int skeleton_own(struct compile *c);
/* Adds the parent directories of @path that the program does not create yet. */
must_check int skeleton_dirs(struct compile *c, struct sv path);
/*
 * skeleton_holds(): is a part of the skeleton at or below @path? skeleton_is(): is @path itself a
 * part of the skeleton?
 */
bool skeleton_holds(const struct compile *c, struct sv path);
bool skeleton_is(const struct compile *c, struct sv path);

/* Functions of compile.c. */
bool compile_shows(const struct compile *c,
		   struct sv path); /* is @path in a tree that a rule grants as a whole? */

/* True unless a rule lets every program run. */
bool compile_has_exec_list(const struct cap_set *set);
/*
 * Appends the path that the denial @d hides to @b; false if @d is not a denial of reading one fixed
 * path.
 */
bool compile_denied_path(const struct cap *d, struct buf *b);
must_check int compile_add_path(struct compile *c, engine_paths *to, struct sv path);

/* trust.c: replaces files in which programs look for the certificate authorities they trust. */
must_check int compile_trust_put(struct compile *c);
/* Will compile_trust_put() create a policy file for browsers at or below @path? */
bool compile_trust_holds(const struct compile *c, struct sv path);

/* probes.c: call compile_probes_put() last, when all grants are known. */
must_check int compile_probes_put(struct compile *c, const struct jail_head *head);

/* Functions of landlock.c. */
must_check int landlock_put(struct compile *c, struct jail_head *head);
/*
 * A policy from a chain of tokens is the intersection of one capability set per hop. Adds a
 * Landlock ruleset for each of these sets.
 */
must_check int landlock_hops(struct compile *c, struct jail_head *head);

#endif
