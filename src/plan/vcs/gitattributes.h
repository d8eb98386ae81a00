/*
 * gitattributes.h - check a git attributes file before it takes effect
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   mediate/git_files.c, before such a file gets its name
 */
#ifndef WRIT_VCS_GITATTRIBUTES_H
#define WRIT_VCS_GITATTRIBUTES_H

#include "base/sv.h"

enum { GITATTRIBUTES_WHY = 96 };

/*
 * Returns true if no line of @bytes can make git run a program that a git configuration names:
 * every attribute is one that git handles itself, and none can be a user-defined macro. Otherwise
 * returns false, and @why describes the first attribute that is not accepted.
 */
bool gitattributes_check(struct sv bytes, char why[static GITATTRIBUTES_WHY]);

#endif
