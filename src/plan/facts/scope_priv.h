/*
 * scope_priv.h - encoding of the one call that scope.c makes
 *
 * Reads:  facts/scope.h
 * Writes: nothing
 * Next:   scope.c and its test
 */
#ifndef WRIT_FACTS_SCOPE_PRIV_H
#define WRIT_FACTS_SCOPE_PRIV_H

#include "base/buf.h"
#include "facts/scope.h"

enum { SCOPE_SERIAL = 1 };

/* Appends the StartTransientUnit call for @ask to @b. */
void scope_put_call(struct buf *b, const struct scope_ask *ask);

#endif
