/*
 * guard_priv.h - protected names, and the changes of them that a session may still make
 *
 * Programs that the user runs outside the session, such as git or an editor, obey these files.
 */
#ifndef WRIT_MEDIATE_GUARD_PRIV_H
#define WRIT_MEDIATE_GUARD_PRIV_H

#include <stdbool.h>

#include "lang/protect.h"

struct call;
struct place;

enum guard_kind {
	GUARD_FREE = 0, /* the name is not protected */
	/*
	 * A directory of this name could contain a protected name: the caller may create one by
	 * mkdir(), but not move a directory to or from the name, nor create a link other than git's
	 * probe.
	 */
	GUARD_ANCESTOR,
	/* a git configuration: never opened for writing; only checked content may replace it */
	GUARD_CONFIG,
	/* a .git file, commondir or .gitattributes: checked when the caller closes or moves it */
	GUARD_POINTER,
	/* the hooks directory itself: the caller may create it empty, and remove it by rmdir() */
	GUARD_HOOKS,
	GUARD_SAMPLE,  /* a hook named *.sample, which git never runs */
	/* A file that git writes once, when git creates it. Later the caller may only remove it. */
	GUARD_WRITE_ONCE,
	/* the mediator refuses to create, write, move or remove an object of this name */
	GUARD_CLOSED,
};

struct guard {
	enum guard_kind kind;
	const struct protect_name *row; /* protected name for the event of a denial, or NULL */
	bool module; /* the configuration belongs to a submodule */
};

struct guard guard_classify(struct call *c, const struct place *p);
/*
 * Call before @p is created. The new name may turn its directory into a git repository. Then git
 * starts to obey settings that the session wrote to the directory earlier: checks these settings
 * and that no link is in the directory, and replaces the configuration files by checked copies.
 * Returns 0 or -errno.
 */
int guard_check_completion(struct call *c, const struct place *p);
/*
 * True if @p is in a git directory (that of a repository, a bare repository, a submodule or a
 * linked worktree), or if creating @p makes its directory one. A session may neither create a
 * symbolic link there nor write through one.
 */
bool guard_is_in_git(const struct call *c, const struct place *p);
/* Records the denial of a symbolic link at @p in a git directory and returns -EACCES. */
int guard_deny_link(struct call *c, const struct place *p);
int guard_deny(struct call *c, const struct place *p, const struct guard *g);

#endif
