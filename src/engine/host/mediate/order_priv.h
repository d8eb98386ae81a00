/*
 * order_priv.h - a lock between mediators of one user, so that a check holds until the operation
 */
#ifndef WRIT_MEDIATE_ORDER_PRIV_H
#define WRIT_MEDIATE_ORDER_PRIV_H

#include <linux/types.h>
#include <stdbool.h>

#include "base/err.h"

struct mediator;

int order_open(struct mediator *m, struct writ_err *err);
/* True for calls that create, move or remove names, or open or truncate files for writing. */
bool order_needed(int nr, const __u64 *arg);
int order_lock(struct mediator *m); /* takes the lock; returns 0, or -EBUSY after a bounded wait */
void order_unlock(struct mediator *m);

#endif
