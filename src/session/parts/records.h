/*
 * records.h - records of sessions that run or have ended
 *
 * Reads:  the state directory
 * Writes: removes old records
 * Next:   cli/ shows records; directories.c prunes old records as a session starts
 */
#ifndef WRIT_PARTS_RECORDS_H
#define WRIT_PARTS_RECORDS_H

#include "loop/session.h"
#include "parts/denial_text.h"

/*
 * Opens the record of the session whose id begins with @id, or with an empty @id the record that
 * was written last. Returns its descriptor, which the caller closes, and the complete id.
 */
must_check int session_record(struct sv state, struct sv id, char ret_id[static SESSION_ID + 1],
			      struct writ_err *err);

/*
 * Calls @each for every line of the record of the session whose id begins with @id; with @follow
 * also for lines that are written later. @each returns false to stop.
 */
must_check int session_lines(struct sv state, struct sv id, bool follow,
			     bool (*each)(void *ctx, struct sv line), void *ctx,
			     struct writ_err *err);

/*
 * Calls @each for every denial of the session whose id begins with @id, whether the session runs or
 * has ended. @each returns false to stop.
 */
must_check int session_denials(struct sv state, struct sv id,
			       bool (*each)(void *ctx, const struct session_denial *d), void *ctx,
			       struct writ_err *err);

enum { SESSION_KEEP_DAYS = 30, SESSION_KEEP = 500 }; /* age and number of kept records */

/*
 * Removes records of ended sessions: those older than @seconds, and all but the newest @keep.
 * *@ret_n is the number of removed records.
 */
must_check int session_prune(struct sv state, uint64_t seconds, size_t keep, size_t *ret_n,
			     struct writ_err *err);

/* Removes old records, at most once an hour. */
void record_prune_tidy(struct sv state);

/* Removes files that sessions which were killed have left below @state. */
void session_sweep(struct sv state);

#endif
