/*
 * verify_priv.h - state shared by the files that implement verify.h
 *
 * Reads:  audit/verify.h
 * Writes: nothing
 * Next:   verify.c
 */
#ifndef WRIT_AUDIT_VERIFY_PRIV_H
#define WRIT_AUDIT_VERIFY_PRIV_H

#include "audit/verify.h"

/*
 * A checkpoint file. The verifier compares the checkpoint with the tree when the tree reaches the
 * size of the checkpoint.
 */
struct verify_mark {
	const char *file;
	uint64_t size;
	struct digest root;
	bool seen;
	/*
	 * The checkpoint was signed before this boot: a power loss may have removed entries that it
	 * covers.
	 */
	bool lost;
	struct note note; /* views of text in the arena of the report */
};

/* An entry key.rotate, which replaced the log key. */
struct verify_rotation {
	uint64_t index;
	struct sv old_vkey, new_vkey;
};

struct verify {
	const struct verify_options *opt;
	struct verify_report *v;
	struct realm log; /* the realm's log; only .dir and .lock are used */
	struct tree_frontier tree;
	VEC(struct digest) level[TILE_LEVELS]; /* level[i]: nodes of tree level 8 * (i + 1) */
	VEC(struct verify_mark) marks;
	VEC(struct verify_rotation) rotations;
	/* size in the largest checkpoint, no matter which key signed that checkpoint */
	uint64_t claimed;
};

/*
 * verify_signed.c: load the checkpoints before check_tree(), and check their keys after
 * check_tree()
 */
must_check int verify_load_marks(struct verify *s, struct writ_err *err);
/* compares checkpoints whose size is the current tree size with the tree */
void verify_check_marks(struct verify *s);
must_check int verify_keys(struct verify *s, struct writ_err *err);
/* verify_session.c: check the sessions */
must_check int verify_entry(struct verify *s, struct sv entry, uint64_t index,
			    struct writ_err *err);
must_check int verify_find_running(struct verify *s,
				   struct writ_err *err); /* the caller must hold the log's lock */
void verify_sessions(struct verify *s);

#endif
