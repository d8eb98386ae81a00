/*
 * record.h - the record of the session: one entry per event
 *
 * Reads:  entries of all parts
 * Writes: sessions/ID.jsonl and the log of the realm
 * Next:   seal.c commits to the record in the realm's log; executable.c names the program
 *
 * Every part writes entries to the record: record_begin(), members, record_end(). The supervisor
 * writes an entry before it acts on the event. SECURITY: if the record cannot be written, the
 * session ends. The realm's log (seal.c) holds the beginning and the end of every session, so a
 * record that is changed later does not match the log.
 */
#ifndef WRIT_PARTS_RECORD_H
#define WRIT_PARTS_RECORD_H

#include "audit/slog.h"
#include "loop/loop.h"

extern const struct session_initial record_initial;
/* Formats the plan as text and computes the digests of plan and policy, ahead of record_start(). */
must_check int record_guarantees(struct session *s, struct writ_err *err);
/* Opens the record, writes its first entry, and adds the session to the realm's log. */
must_check int record_start(struct session *s, struct writ_err *err);
/*
 * Opens the record of a session that failed before record_start(), and writes its first entry, as
 * far as that is possible.
 */
void record_start_failed(struct session *s);
void record_poll(struct session *s, struct session_poll *set);
void record_on_event(struct session *s, const struct pollfd *p, size_t n);
void record_clear(struct session *s);

must_check struct entry record_begin(const char *event);
void record_str(struct entry *e, const char *key, struct sv value);
/* Adds the text of a reason as "why"; nothing for CAUSE_NONE. */
void record_why(struct entry *e, const struct cap_why *why);
void record_num(struct entry *e, const char *key, int64_t value);
void record_end(struct session *s, struct entry *e);
/*
 * record_what() writes an entry with one text. record_limit() writes an entry about a limit that
 * was reached, with the number @value under @key if @key is not NULL.
 */
void record_what(struct session *s, const char *event, const char *text);
void record_limit(struct session *s, const char *limit, const char *key, int64_t value);
/* Holds entries back until record_flush() writes them with one call. */
void record_gather(struct session *s);
void record_flush(struct session *s);
bool record_gathers(const struct session *s);
/* Ends the session because the record cannot be written. */
void record_fail(struct session *s, const struct writ_err *err);
bool record_has_failed(const struct session *s);
struct sv record_path(const struct session *s); /* path of the record; empty until it is open */

/*
 * Add members to an entry: the number of entries, the digests of plan and policy, and whether the
 * record survives a power failure.
 */
void record_put_totals(const struct session *s, struct entry *e);
void record_put_digests(const struct session *s, struct entry *e);
void record_put_durability(const struct session *s, struct entry *e);

/* executable.c: records the program of the session by the digest of its file. */
void executable_record(const struct session *s, struct entry *e);

/* seal.c: writes the end of the session to the realm's log. Negative: the log has no signed end. */
must_check int seal_finish(struct session *s);
/* Reads the realm's log ahead for seal_finish(), while writ-init still has work to do. */
void seal_ready(struct session *s);

#endif
