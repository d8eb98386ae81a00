/*
 * gitconfig.h - check whether a git configuration may replace another
 *
 * Reads:  the bytes of two configuration files
 * Writes: nothing
 * Next:   mediate/git_files.c installs the checked file
 *
 * SECURITY: a git configuration can name programs that git runs and paths that git uses. Git on the
 * host, outside of the sandbox, reads the configuration that an agent wrote. So only listed keys
 * may change. Git neither runs the value of a listed key nor opens it as a file, with two
 * exceptions that are checked: the URL of a remote, and core.worktree of a submodule. All other
 * entries must stay exactly as they were, in the same order.
 */
#ifndef WRIT_VCS_GITCONFIG_H
#define WRIT_VCS_GITCONFIG_H

#include "base/sv.h"

enum { GITCONFIG_MAX = 1024 * 1024, GITCONFIG_VALUE = 4096, GITCONFIG_WHY = 160 };

struct gitconfig_answer {
	char why[GITCONFIG_WHY]; /* if the check refused: the key and the reason */
	/* Core.worktree of the new configuration; the caller checks this path. */
	char worktree[GITCONFIG_VALUE];
	bool has_worktree;
};

/*
 * Checks whether @new_text may replace @old_text. @module: the texts are the configuration of a
 * submodule, which may set core.worktree.
 */
must_check bool gitconfig_check(struct sv old_text, struct sv new_text, bool module,
				struct gitconfig_answer *ret);

/*
 * Returns the last value of SECTION.NAME, both in lower case and without a subsection. Returns
 * false if there is no such value, if the value is empty, or if the text before the value is
 * malformed.
 */
must_check bool gitconfig_get(struct sv text, const char *section, const char *name,
			      char ret_value[GITCONFIG_VALUE]);

/*
 * Calls @fine for each path, URL or name of a remote in @text. Returns true if @fine accepts all of
 * them and the text is well formed.
 */
must_check bool gitconfig_remotes(struct sv text, bool (*fine)(void *arg, struct sv place),
				  void *arg);

/* Returns the path in a .git file ("gitdir: PATH"), as written. */
must_check bool gitfile_parse(struct sv text, struct sv *ret_place);

#endif
