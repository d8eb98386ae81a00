/*
 * gitconfig.h - may this git configuration replace that one?
 *
 * Reads:  the bytes of two configuration files
 * Writes: nothing
 * Next:   mediate/gitdir.c installs what was checked
 *
 * A configuration can name programs that git runs and places it obeys. So the
 * keys that are known to do neither may change, and everything else must stay
 * exactly as it was, in the same order.
 */
#ifndef WRIT_MEDIATE_GITCONFIG_H
#define WRIT_MEDIATE_GITCONFIG_H

#include "base/sv.h"

enum { GITCONFIG_MAX = 1024 * 1024, GITCONFIG_VALUE = 4096, GITCONFIG_WHY = 160 };

struct gitconfig_answer {
	char why[GITCONFIG_WHY];	/* only if refused: the key, and what is wrong */
	char worktree[GITCONFIG_VALUE]; /* core.worktree of the new one; the caller judges it */
	bool has_worktree;
};

/* @module: the configuration of a submodule, which must have a core.worktree. */
must_check bool gitconfig_check(struct sv old_text, struct sv new_text, bool module,
				struct gitconfig_answer *ret);

/*
 * The last value of SECTION.NAME, both in lower case and without a subsection. False
 * if there is none, it has no value, or what comes before it cannot be read.
 */
must_check bool gitconfig_get(struct sv text, const char *section, const char *name,
			      char ret_value[GITCONFIG_VALUE]);

/* True if @fine says so of every place in @text where a remote may be: a path or a URL. */
must_check bool gitconfig_remotes(struct sv text, bool (*fine)(void *arg, struct sv place),
				  void *arg);

/* The place a .git file points to ("gitdir: PLACE"), as written. */
must_check bool gitfile_parse(struct sv text, struct sv *ret_place);

#endif
