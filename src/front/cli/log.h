/*
 * log.h - log access shared by the verbs audit, key and witness
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

/* Finds this user's log. With @make, creates the realm at first use. */
must_check int cli_log_place_find(struct args *a, bool make, struct log_place *ret,
				  struct writ_err *err);
bool cli_log_is_here(const struct log_place *p); /* does this user's own log exist? */

/* Finds out whether a writ-signer that keeps the log is installed. */
must_check int cli_log_signer(struct signer_install *ret, struct writ_err *err);

/* A log to inspect: the user's own, or a copy of the log of writ-signer. */
struct log_view {
	bool held;
	/* place.state is the directory above log/; place.config is the user's */
	struct log_place place;
	struct witness_log asks;
	/* members below: valid if .held is set, for a copy of the log of writ-signer */
	struct signer_copy copy; /* copy.there is false if the signer has no log of this realm */
	struct note_key key;	 /* key that signs the log */
};

void cli_log_view_own(const struct log_place *p, struct log_view *ret);
/*
 * Copies the log of writ-signer. With @sign, writ-signer signs and syncs the log first. *@ret must
 * not be moved afterwards.
 */
must_check int cli_log_view_held(struct args *a, const struct log_place *p,
				 const struct signer_install *in, bool sign, struct log_view *ret,
				 struct writ_err *err);
void cli_log_view_close(struct log_view *v);
/* Returns a text for people that says which user holds the key of the log. */
const char *cli_log_view_words(const struct log_view *v);

/*
 * Loads the keys that are trusted for log @v: from --key, --policy or CONFIG/log.policy. @signer is
 * the key of the installed writ-signer, or NULL.
 */
must_check int cli_log_pins(const struct args *a, const struct log_view *v,
			    const struct note_key *signer, struct pins *ret, struct writ_err *err);

/* --- audit_verify.c --- */

struct verify_report;

/* A log and the result of its verification. */
struct audit_log {
	struct log_view view;
	struct verify_report *v;
};

/* Every existing log; the log of writ-signer comes first. */
struct audit_logs {
	struct audit_log log[2];
	size_t n;
};

/*
 * Verifies every log, and asks the witnesses of the log that records new sessions. With @sign,
 * writ-signer first signs and syncs its log. Fails with WRIT_E_SYS and ENOENT if no log exists.
 */
must_check int cli_audit_look(struct args *a, const struct log_place *p, struct sv session,
			      bool sign, struct audit_logs *ret, struct writ_err *err);
void cli_audit_looked(struct audit_logs *l);
/* Returns the log that records the start of the session, else the first log. */
struct audit_log *cli_audit_log_of(struct audit_logs *l, struct sv session);

int cli_audit_verify(struct args *a, const struct log_place *p, struct sv session);
int cli_audit_witness(struct args *a, const struct log_place *p);
/* Functions of audit_show.c. */
int cli_audit_show(struct args *a, const struct log_place *p, struct sv session, bool follow);

#endif
