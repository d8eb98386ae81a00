/*
 * log.h - what the verbs about the logs share
 *
 * Reads:  the command line
 * Writes: nothing
 * Next:   cli/audit.c, key.c, witness.c
 */
#ifndef WRIT_CLI_LOG_H
#define WRIT_CLI_LOG_H

#include "attest/chain.h"
#include "audit/logkey.h"
#include "audit/pin.h"
#include "cli/cli.h"
#include "signer/signer.h"
#include "witness/ask.h"

/* Where this user's log is; @make makes the realm at first use. */
must_check int log_place_find(struct args *a, bool make, struct log_place *ret,
			      struct writ_err *err);
bool log_is_here(const struct log_place *p); /* this user has kept one */

/* Is there a writ-signer that keeps the log now? */
must_check int log_signer(struct signer_install *ret, struct writ_err *err);

/* One log to look at: the user's own, or that of writ-signer, as a copy. */
struct log_view {
	bool held;
	struct log_place place; /* state: where log/ is; config: the user's */
	struct witness_log asks;
	/* held: */
	struct signer_copy copy; /* .there: else there is no log of this realm */
	struct note_key key;	 /* whose it is */
};

void log_view_own(const struct log_place *p, struct log_view *ret);
/* @sign: it is signed and synced before. Do not move *@ret. */
must_check int log_view_held(struct args *a, const struct log_place *p,
			     const struct signer_install *in, bool sign, struct log_view *ret,
			     struct writ_err *err);
void log_view_close(struct log_view *v);
const char *log_view_words(const struct log_view *v); /* for people: who holds the key */

/* The keys that count: --key, --policy, or CONFIG/log.policy. @signer may be NULL. */
must_check int log_pins(const struct args *a, const struct log_view *v,
			const struct note_key *signer, struct pins *ret, struct writ_err *err);

/* --- audit_verify.c --- */

struct verify_report;

/* A log, and what was found in it. */
struct audit_log {
	struct log_view view;
	struct verify_report *v;
};

/* Those there are: writ-signer's first. */
struct audit_logs {
	struct audit_log log[2];
	size_t n;
};

/* Looks at everything, and asks the witnesses. WRIT_E_SYS and ENOENT: there is no log. */
must_check int audit_look(struct args *a, const struct log_place *p, struct sv session, bool sign,
			  struct audit_logs *ret, struct writ_err *err);
void audit_looked(struct audit_logs *l);
/* The log that has the start of the session, else the first. */
struct audit_log *audit_log_of(struct audit_logs *l, struct sv session);

int audit_verify(struct args *a, const struct log_place *p, struct sv session);
int audit_witness(struct args *a, const struct log_place *p);
/* audit_show.c */
int audit_show(struct args *a, const struct log_place *p, struct sv session, bool follow);

#endif
