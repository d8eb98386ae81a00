/*
 * attest.h - what the verb attest finds, before it judges or shows it
 *
 * Reads:  the state directory, files from elsewhere, pinned keys
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
	struct sv id;	/* of the session; empty: as the files say */
	bool open;	/* no log says that it has ended */
	bool begun;	/* the signer says that it began */
	bool unsigned_; /* its end is in the log, and nobody has signed that yet */
	bool foreign;	/* files from elsewhere */
	struct buf entries, start, end, manifest, bundle;
	struct buf policy_text, vkey, pem;
	struct attest_evidence ev;
	struct tlog_policy policy;
	struct attest_key keys[2 * ATTEST_KEYS_MAX];
	struct note_key signs; /* the signer's, for its log */
	struct attest_trust trust;
	struct attest_rotated ended; /* changes of the key of the log that is here */
};

/* Where we are, and whether another user keeps the log. */
must_check int attest_load_init(struct args *a, struct attest_loaded *l, struct writ_err *err);
void attest_load_clear(struct attest_loaded *l);

/*
 * The record of the session that @id is the beginning of, empty: the last one. WRIT_E_SYNTAX
 * if there is none.
 */
must_check int attest_load_record(struct attest_loaded *l, struct sv id, struct writ_err *err);
/* And what the log of the realm has about it. */
must_check int attest_load_log(struct attest_loaded *l, struct writ_err *err);

/* Files that came from elsewhere: one directory with them, or each by its name. */
must_check int attest_load_files(struct attest_loaded *l, char *const *names, size_t n,
				 struct writ_err *err);
must_check int attest_load_pins(struct attest_loaded *l, const char *policy, const char *keys,
				struct writ_err *err);

/* attest_show.c */

/* A directory for the files; made. Held open: what happens to its name later is no matter. */
must_check int attest_out_open(const char *path, int *ret_fd, struct writ_err *err);
/* All files about session @id into @dir. */
must_check int attest_out(struct args *a, struct sv id, int dir, struct writ_err *err);
int attest_show(struct args *a);

#endif
