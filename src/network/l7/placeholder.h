/*
 * placeholder.h - the text that replaces a secret wherever the agent can see it
 *
 * Reads:  a secret's name and the session's random id
 * Writes: nothing
 * Next:   the supervisor puts the placeholder into the agent's environment; secret.c
 *         searches requests for the placeholder
 *
 * A placeholder is a pure function of name and id: the supervisor and the reader each compute the
 * placeholder and exchange no message about it. The text has only letters, digits, '-' and '_', so
 * a URL, a header and JSON spell the text alike.
 */
#ifndef WRIT_L7_PLACEHOLDER_H
#define WRIT_L7_PLACEHOLDER_H

#include "base/buf.h"

enum { PLACEHOLDER_ID = 32 /* number of lower-case hexadecimal digits */, PLACEHOLDER_MAX = 512 };

must_check bool placeholder_id_check(struct sv id);

/* Appends "writ-placeholder-NAME-ID". */
void placeholder_put(struct buf *b, struct sv name, struct sv id);

#endif
