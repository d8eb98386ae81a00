/*
 * git_priv.h - files of git whose content is checked before it takes effect
 */
#ifndef WRIT_MEDIATE_GIT_PRIV_H
#define WRIT_MEDIATE_GIT_PRIV_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/sv.h"

struct call;
struct guard;
struct mediator;
struct place;

/* Checks the content of @from, a descriptor for reading, and installs a copy at @to. */
int mediate_git_install(struct call *c, int from, const struct place *to, const struct guard *g,
			bool replace);
/* Writes @bytes to a temporary file in @dir and renames it to @name. 0 or -errno. */
int mediate_git_install_bytes(struct mediator *m, int dir, const char *name, struct sv bytes,
			      mode_t mode, bool replace);
/*
 * Checks the content @bytes of a .git file, commondir or attributes file before the mediator
 * installs it at @to.
 */
int mediate_git_check_pointer(struct call *c, int root, const struct place *to,
			      const struct guard *g, struct sv bytes);
int mediate_git_may_unlink(struct call *c, const struct place *p, const struct guard *g);
/*
 * Checks a configuration that exists already and replaces it by a fresh copy, so that no process
 * holds the installed file open for writing.
 */
int mediate_git_reinstall_config(struct call *c, const struct place *config, bool module);

#endif
