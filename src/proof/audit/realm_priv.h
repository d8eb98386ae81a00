/*
 * realm_priv.h - functions shared by the files that implement the realm's log
 *
 * Reads:  audit/realm.h
 * Writes: nothing
 * Next:   realm.c
 */
#ifndef WRIT_AUDIT_REALM_PRIV_H
#define WRIT_AUDIT_REALM_PRIV_H

#include "audit/realm.h"

/* Functions of realm.c. */
/* Appends the id of this boot, from /proc, to @b. */
must_check int realm_read_boot_id(struct buf *b, struct writ_err *err);
/* Returns the id of this boot; reads /proc only once per log. */
must_check int realm_boot_id(struct realm *r, struct sv *ret, struct writ_err *err);

/* Functions of realm_files.c. */
void realm_nodes_init(struct realm_nodes *n, int dir, uint64_t base);
void realm_nodes_clear(struct realm_nodes *n);
must_check int realm_read_tile(int dir, const struct tile *t, struct buf *b, struct writ_err *err);

/* realm_files.c: name, open, fill up and remove the files of wal/ */
enum { WAL_NAME = 4 + 16 + 1 };
void realm_wal_name(uint64_t base, char ret[static WAL_NAME]);
must_check int realm_roll(struct realm *r, struct writ_err *err);
must_check int realm_wal_open(struct realm *r, struct writ_err *err);
must_check int realm_wal_drop(struct realm *r, uint64_t base, struct writ_err *err);

/*
 * realm_load.c: read the state of a log from disk. The members .low and .high are the first entry
 * indices of the oldest and of the newest file in wal/.
 */
struct realm_found {
	size_t n; /* number of files in wal/ */
	uint64_t low, high;
};
must_check int realm_list(const struct realm *r, struct realm_found *ret, struct writ_err *err);
must_check int realm_load(struct realm *r, struct writ_err *err);

#endif
