/*
 * slog.h - the log of one session: a file of lines, and a tree over them
 *
 * Reads:  the file, to check the log
 * Writes: the file, one write() per entry
 * Next:   session/ (writes the log), audit/realm.h (keeps the root), cli/ (checks the log)
 *
 * slog_append() hands the line to the kernel before it returns (unless lines are held back), so
 * neither a crash nor SIGKILL of this process loses it. With .sync the line is on disk, so a power
 * loss does not lose it either. After a failed write nothing more is appended: a log with a gap
 * would look complete.
 */
#ifndef WRIT_AUDIT_SLOG_H
#define WRIT_AUDIT_SLOG_H

#include "audit/entry.h"
#include "tlog/tree.h"

struct slog {
	int fd; /* file of the log; -1 if not open */
	bool sync, broken;
	bool holds; /* lines are held back: they collect in .line until slog_flush() */
	uint64_t bytes;
	struct tree_frontier tree;
	struct buf line; /* log lines not written yet */
	/*
	 * Callback that receives the public forms of lines after slog has written the lines. May be
	 * NULL; set it before the first append.
	 */
	int (*publish)(void *ctx, struct sv lines, struct writ_err *err);
	void *ctx;
	struct buf open;	  /* public forms of lines not passed to publish() yet */
	struct entry_salts salts; /* salts for entries while lines are held back */
};

#define SLOG_INIT                                                                                  \
	{                                                                                          \
		.fd = -1, .line = BUF_INIT(2 * ENTRY_LINE_MAX),                                    \
		.open = BUF_INIT(2 * ENTRY_LINE_MAX)                                               \
	}

/* Creates the session log @path, which must not exist. */
must_check int slog_open(struct slog *l, const char *path, bool sync, struct writ_err *err);
void slog_close(struct slog *l);

/*
 * Holds log lines back from now on. slog_flush() writes the held lines together; slog_append() does
 * so when many collected.
 */
void slog_hold(struct slog *l);
must_check int slog_flush(struct slog *l, struct writ_err *err);
must_check int slog_append(struct slog *l, const struct entry *e, struct writ_err *err);

/* Result of reading a session log: the form of each line was checked, but no signature. */
struct slog_read {
	uint64_t size;	    /* number of complete lines in the log */
	struct digest root; /* root hash over the complete lines of the log */
	uint64_t torn;	    /* bytes after the last newline of the log */
};

/*
 * Reads a session log from @fd and calls @each, which may be NULL, for every complete line. @each
 * returns 0, or an error that stops the reading.
 */
must_check int slog_read(int fd,
			 int (*each)(void *ctx, uint64_t index, struct sv line,
				     struct writ_err *err),
			 void *ctx, struct slog_read *ret, struct writ_err *err);

#endif
