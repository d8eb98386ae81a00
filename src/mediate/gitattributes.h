/*
 * gitattributes.h - may a file of attributes stand in a repository?
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   gitdir.c, before such a file gets its name
 */
#ifndef WRIT_MEDIATE_GITATTRIBUTES_H
#define WRIT_MEDIATE_GITATTRIBUTES_H

#include "base/sv.h"

enum { GITATTRIBUTES_WHY = 96 };

/*
 * True if no line of @bytes can make git run a program that somebody configured elsewhere:
 * only attributes that git itself carries out, and none that it may know as a macro of
 * other ones. Else @why has the first that is not.
 */
bool gitattributes_check(struct sv bytes, char why[static GITATTRIBUTES_WHY]);

#endif
