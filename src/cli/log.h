/*
 * log.h - what the verbs about the logs share
 *
 * Reads:  the command line
 * Writes: nothing
 * Next:   cli/audit.c, key.c, witness.c
 */
#ifndef WRIT_CLI_LOG_H
#define WRIT_CLI_LOG_H

#include "audit/logkey.h"
#include "audit/pin.h"
#include "cli/cli.h"

/* Where this user's log is; @make makes the realm at first use. */
must_check int log_place_find(struct args *a, bool make, struct log_place *ret,
			      struct writ_err *err);

/* The keys that count: --key, --policy, or CONFIG/log.policy. */
must_check int log_pins(const struct args *a, const struct log_place *p, struct pins *ret,
			struct writ_err *err);

struct verify_report;

/* audit_verify.c: looks at everything, and asks the witnesses */
must_check int audit_look(struct args *a, const struct log_place *p, struct sv session,
			  struct verify_report *v, struct writ_err *err);
int audit_verify(struct args *a, const struct log_place *p, struct sv session);
int audit_witness(struct args *a, const struct log_place *p);
/* audit_show.c */
int audit_show(struct args *a, const struct log_place *p, struct sv session, bool follow);

#endif
