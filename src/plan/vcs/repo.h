/*
 * repo.h - git data from outside of the workspace that a session needs
 *
 * Theory of operation
 *
 * The vcs module knows the parts of git that matter for a sandbox: where the repository of a
 * workspace is, who commits, and which repository metadata can make git run programs.
 *   repo_find       the git directory of a linked worktree or submodule, outside of the workspace
 *   identity        user.name and user.email for commits made inside
 *   gitconfig       whether a changed configuration is safe, and single values
 *   gitattributes   whether an attributes file is safe
 *
 * The threat is git on the host, run later by the user in a directory where the agent worked.
 * Configuration and attributes can name programs to run, so an agent that writes them could run
 * programs outside of the sandbox. mediate/ lets such files take effect only after this module has
 * checked them.
 *
 * Invariants
 *   - A .git file is never trusted alone, since the agent may have written it. The directory that
 *     the file names must belong to the same user and must name the workspace in turn.
 *   - Unknown keys and attributes are refused: a new version of git may give them a meaning.
 *   - The parsers accept less than git does, so that no text has one meaning for writ and another
 *     for git.
 *
 * Common mistakes
 *   - Adding a key to the safe list whose value git opens as a file or runs in some context.
 *
 * Reads:  the workspace's .git file, the repository it points to, ~/.gitconfig
 * Writes: nothing
 * Next:   locate/ grants the result through the policy; session/ sets the identity
 */
#ifndef WRIT_VCS_REPO_H
#define WRIT_VCS_REPO_H

#include "lang/policy.h"

/*
 * Finds the git directory that belongs to @workspace (physical) and is outside of @workspace,
 * because the workspace is a linked worktree or a submodule. ret->git is empty if there is no such
 * directory. Returns false if out of memory.
 */
must_check bool vcs_repo_find(struct arena *a, struct sv workspace, struct policy_repository *ret);

enum { REPO_TEXT = 256 };

struct repo_identity {
	/* Empty: not configured, or not safe to pass to the sandbox. */
	char name[REPO_TEXT], email[REPO_TEXT];
};

/*
 * Reads user.name and user.email from the user's own git configuration and, if @workspace is given,
 * from the repository of @workspace. Does not follow includes.
 */
void vcs_repo_identity(struct sv home, struct sv xdg_config, struct sv workspace,
		       struct repo_identity *ret);

#endif
