/*
 * attest.h - loads the evidence about a session for the verb attest
 *
 * Reads:  the state directory, evidence given as files, pinned keys
 * Writes: nothing
 * Next:   attest.c (verify), attest_show.c (show, run --attest-out)
 */
#ifndef WRIT_CLI_ATTEST_H
#define WRIT_CLI_ATTEST_H

#include "attest/check.h"
#include "cli/cli.h"
#include "signer/signer.h"

struct attest_loaded {
	struct arena *a;
	struct find_where where;
	struct signer_install signer;
	struct sv id; /* session id; empty: the evidence files state the id */
	bool open;    /* no log records the end of the session */
	bool begun;   /* the signer's log records the start of the session */
	/* the log records the end of the session, but no checkpoint covers the end yet */
	bool unsigned_;
	bool foreign; /* the evidence was given as files */
	struct buf entries, start, end, manifest, bundle;
	struct buf policy_text, vkey, pem;
	struct attest_evidence ev;
	struct tlog_policy policy;
	struct attest_key keys[2 * ATTEST_KEYS_MAX];
	struct note_key signs; /* key that signs the log of writ-signer */
	struct attest_trust trust;
	/* rotations of the user's own log key; only for evidence given as files */
	struct attest_rotated ended;
};

/* Finds the state directory, and finds out whether an installed signer keeps the log. */
must_check int cli_attest_load_init(struct args *a, struct attest_loaded *l, struct writ_err *err);
void cli_attest_load_clear(struct attest_loaded *l);

/*
 * Loads the record of the session whose id starts with @id, or of the newest session if @id is
 * empty. Fails with WRIT_E_SYNTAX if no session, or more than one session, has such an id.
 */
must_check int cli_attest_load_record(struct attest_loaded *l, struct sv id, struct writ_err *err);
/* Adds the entries of the realm's log about the loaded session. */
must_check int cli_attest_load_log(struct attest_loaded *l, struct writ_err *err);

/* Loads evidence given as files: @names is one directory, or the paths of the single files. */
must_check int cli_attest_load_files(struct attest_loaded *l, char *const *names, size_t n,
				     struct writ_err *err);
must_check int cli_attest_load_pins(struct attest_loaded *l, const char *policy, const char *keys,
				    struct writ_err *err);

/* Functions of attest_show.c. */

/*
 * Creates the directory @path if it is missing and opens it. The evidence is written through the
 * descriptor, so a later rename of @path does not redirect it.
 */
must_check int cli_attest_out_open(const char *path, int *ret_fd, struct writ_err *err);
/* Writes all evidence files about session @id into the directory with the descriptor @dir. */
must_check int cli_attest_out(struct args *a, struct sv id, int dir, struct writ_err *err);
int cli_attest_show(struct args *a);

#define scoped_answer __attribute__((cleanup(signer_answer_clear))) struct signer_answer
#define scoped_made __attribute__((cleanup(attest_made_clear))) struct attest_made

#endif
