/*
 * repo.h - what git keeps outside a workspace and needs inside
 *
 * Reads:  the workspace's .git file, the repository it points to, ~/.gitconfig
 * Writes: nothing
 * Next:   policy/ grants what was found; session/ sets the identity
 *
 * A .git file is written by whoever wrote the tree, so it is never believed alone:
 * what it points to must be the same user's and must point back.
 */
#ifndef WRIT_REPO_REPO_H
#define WRIT_REPO_REPO_H

#include "policy/policy.h"

/*
 * The git directory that belongs to @workspace (physical) and lies outside of it: the
 * workspace is a linked worktree or a submodule. ret->git is empty if there is none.
 * False: out of memory.
 */
must_check bool repo_find(struct arena *a, struct sv workspace, struct policy_repository *ret);

enum { REPO_TEXT = 256 };

struct repo_identity {
	char name[REPO_TEXT], email[REPO_TEXT]; /* empty: not said, or not fit to be passed */
};

/*
 * user.name and user.email of the person's own git configuration, and of @workspace's
 * repository where that is given. Includes are not read.
 */
void repo_identity(struct sv home, struct sv xdg_config, struct sv workspace,
		   struct repo_identity *ret);

#endif
