/*
 * slog.h - the log of one session: a file of lines, and a tree over them
 *
 * Reads:  the file, to check it
 * Writes: the file, one write() per entry
 * Next:   session/ (writes it), audit/realm.h (keeps its root), cli/ (checks and shows it)
 *
 * A line is on its way to the disk with the call that appends it: no crash of ours and
 * no kill loses it. With .sync it is on the disk, so that losing power does not either.
 * After a failure nothing more is appended: a log with a hole would look whole.
 */
#ifndef WRIT_AUDIT_SLOG_H
#define WRIT_AUDIT_SLOG_H

#include "audit/entry.h"
#include "tlog/tree.h"

struct slog {
	int fd; /* -1: not open */
	bool sync, broken;
	bool holds; /* lines wait in .line for slog_flush() */
	uint64_t bytes;
	struct tree_frontier tree;
	struct buf line; /* not written yet */
	/* Who else is told whatever is written, as public forms; set before the first. Or NULL. */
	int (*tell)(void *ctx, struct sv lines, struct writ_err *err);
	void *ctx;
	struct buf open;	  /* not told yet */
	struct entry_salts salts; /* while lines are held */
};

#define SLOG_INIT                                                                                  \
	{                                                                                          \
		.fd = -1, .line = BUF_INIT(2 * ENTRY_LINE_MAX),                                    \
		.open = BUF_INIT(2 * ENTRY_LINE_MAX)                                               \
	}

/* Makes the file @path, which must not be there. */
must_check int slog_open(struct slog *l, const char *path, bool sync, struct writ_err *err);
void slog_close(struct slog *l);

/* From now on lines are written together, by slog_flush() or when there are many. */
void slog_hold(struct slog *l);
must_check int slog_flush(struct slog *l, struct writ_err *err);
must_check int slog_append(struct slog *l, const struct entry *e, struct writ_err *err);

/* What a file says, without believing it: each line is checked and given to @each. */
struct slog_read {
	uint64_t size;	    /* whole lines */
	struct digest root; /* over them */
	uint64_t torn;	    /* bytes behind the last newline */
};

/* @each returns 0, or a failure that ends the reading; it may be NULL. */
must_check int slog_read(int fd,
			 int (*each)(void *ctx, uint64_t index, struct sv line,
				     struct writ_err *err),
			 void *ctx, struct slog_read *ret, struct writ_err *err);

#endif
