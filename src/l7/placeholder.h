/*
 * placeholder.h - the text that stands for a secret where the agent can see it
 *
 * Reads:  a secret's name and the session's random id
 * Writes: nothing
 * Next:   the supervisor puts it into the agent's environment; secret.c looks for it
 *
 * A pure function of both, so that the two processes never have to tell each other.
 * Only letters, digits, '-' and '_': it reads the same in a URL, a header and JSON.
 */
#ifndef WRIT_L7_PLACEHOLDER_H
#define WRIT_L7_PLACEHOLDER_H

#include "base/buf.h"

enum { PLACEHOLDER_ID = 32 /* lower-case hexadecimal digits */, PLACEHOLDER_MAX = 512 };

must_check bool placeholder_id_check(struct sv id);

/* Appends "writ-placeholder-NAME-ID". */
void placeholder_put(struct buf *b, struct sv name, struct sv id);

#endif
