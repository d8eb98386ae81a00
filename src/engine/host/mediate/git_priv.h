/* git_priv.h - git files whose content the mediator checks before the content takes effect */
#ifndef WRIT_MEDIATE_GIT_PRIV_H
#define WRIT_MEDIATE_GIT_PRIV_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/sv.h"

struct call;
struct guard;
struct mediator;
struct place;

/*
 * Checks the content of @from, a descriptor open for reading, and installs a copy at @to. With
 * @replace the copy may replace a file. Returns 0 or -errno.
 */
int mediate_git_install(struct call *c, int from, const struct place *to, const struct guard *g,
			bool replace);
/* Writes @bytes to a temporary file in @dir and renames that file to @name. Returns 0 or -errno. */
int mediate_git_install_bytes(struct mediator *m, int dir, const char *name, struct sv bytes,
			      mode_t mode, bool replace);
/*
 * Checks the content @bytes of a .git file, commondir or .gitattributes before the mediator
 * installs it at @to. Returns 0, or records a denial and returns -EACCES.
 */
int mediate_git_check_pointer(struct call *c, int root, const struct place *to,
			      const struct guard *g, struct sv bytes);
/* Decides whether the caller may remove the git configuration @p. Returns 0 or -errno. */
int mediate_git_may_unlink(struct call *c, const struct place *p, const struct guard *g);
/*
 * Checks an existing git configuration and replaces it by a new file with the same content, which
 * no process holds open for writing. Returns 0 or -errno.
 */
int mediate_git_reinstall_config(struct call *c, const struct place *config, bool module);

/*
 * True if the path @link, at or below @at, is the worktree of a submodule or a directory above it,
 * by a configuration in .git/modules of a directory above @at. A symbolic link must not come there:
 * git outside would write, read and remove files where the link leads. True in doubt.
 */
bool mediate_git_is_worktree(struct call *c, const struct place *at, struct sv link);

#endif
