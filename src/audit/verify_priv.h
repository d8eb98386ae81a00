/*
 * verify_priv.h - what the files of verify.h share
 *
 * Reads:  audit/verify.h
 * Writes: nothing
 * Next:   verify.c
 */
#ifndef WRIT_AUDIT_VERIFY_PRIV_H
#define WRIT_AUDIT_VERIFY_PRIV_H

#include "audit/verify.h"

/* A checkpoint that the tree is compared with when it is as large. */
struct verify_mark {
	const char *file;
	uint64_t size;
	struct digest root;
	bool seen;
	bool lost; /* of an earlier boot: power may have taken back what it covers */
	struct buf bytes;
	struct note note;
};

/* An entry that gave the log another key. */
struct verify_rotation {
	uint64_t index;
	struct sv old_vkey, new_vkey;
};

struct verify {
	const struct verify_options *opt;
	struct verify_report *v;
	struct realm log; /* only its directory and lock */
	struct tree_frontier tree;
	VEC(struct digest) level[TILE_LEVELS]; /* nodes of level 8 * (i + 1) */
	VEC(struct verify_mark) marks;
	VEC(struct verify_rotation) rotations;
	uint64_t claimed; /* entries that some checkpoint covers, whoever signed it */
};

/* verify_tree.c: every entry, every tile */
must_check int verify_tree(struct verify *s, struct writ_err *err);
/* verify_signed.c: before and after it */
must_check int verify_load_marks(struct verify *s, struct writ_err *err);
void verify_compare(struct verify *s); /* at each size */
must_check int verify_keys(struct verify *s, struct writ_err *err);
/* verify_session.c */
must_check int verify_note(struct verify *s, struct sv entry, uint64_t index, struct writ_err *err);
must_check int verify_running(struct verify *s, struct writ_err *err); /* under the lock */
must_check int verify_sessions(struct verify *s, struct writ_err *err);

#endif
