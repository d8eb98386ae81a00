/*
 * scope_priv.h - inside the room: the one call we make
 *
 * Reads:  scope/scope.h
 * Writes: nothing
 * Next:   scope.c and its test
 */
#ifndef WRIT_SCOPE_SCOPE_PRIV_H
#define WRIT_SCOPE_SCOPE_PRIV_H

#include "base/buf.h"
#include "scope/scope.h"

enum { SCOPE_SERIAL = 1 };

/* StartTransientUnit, as bytes. */
void scope_put_call(struct buf *b, const struct scope_ask *ask);

#endif
