/*
 * creds_priv.h - act with the caller's ids and without capabilities
 *
 * A mediator that runs as root changes its file system ids and drops its effective capabilities
 * around each operation. A mediator of an ordinary user has the caller's ids already and changes at
 * most its umask.
 */
#ifndef WRIT_MEDIATE_CREDS_PRIV_H
#define WRIT_MEDIATE_CREDS_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"

struct call;
struct mediator;

/* State of the mediator before creds_enter(), which creds_leave() restores. */
struct creds {
	bool on;
	bool masked;
	mode_t old_mask;
	uint32_t caps[2]; /* effective capabilities before creds_enter() */
};
#define scoped_creds __attribute__((cleanup(creds_leave))) struct creds

/* creds_enter() takes the caller's ids, creds_set_umask() its umask. Both return 0 or -errno. */
int creds_enter(struct call *c, struct creds *ret);
int creds_set_umask(struct call *c, struct creds *a);
void creds_leave(struct creds *a);
must_check bool creds_enter_ids(const struct mediator *m, uid_t uid, gid_t gid, struct creds *ret);

#endif
