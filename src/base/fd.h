/*
 * fd.h - file descriptors with scope, and whole-file reads with a bound
 *
 * Reads:  files named by the caller
 * Writes: files named by the caller
 * Next:   host/, cli/
 */
#ifndef WRIT_BASE_FD_H
#define WRIT_BASE_FD_H

#include "base/buf.h"

void scope_close(const int *fd);
int take_fd(int *fd);
#define scoped_fd __attribute__((cleanup(scope_close))) int

/* Appends all of @fd to @b; fails with WRIT_E_LIMIT above @b's maximum. */
must_check int fd_read_all(int fd, struct buf *b, struct writ_err *err);
must_check int fd_write_all(int fd, struct sv bytes, struct writ_err *err);

/*
 * Appends the regular file (or pipe) at @path to @b. "-" is not special here.
 * Opens with O_NONBLOCK so that a FIFO without a writer cannot hang us.
 */
must_check int fd_read_file(const char *path, struct buf *b, struct writ_err *err);

/*
 * Replaces @path by @bytes: temporary file beside it, synced, renamed. A crash
 * leaves the old file or the new one, never half.
 */
must_check int fd_replace_file(const char *path, struct sv bytes, unsigned mode,
			       struct writ_err *err);

/* Makes the directory @path and those above it, for us alone; fine if it is there. */
must_check int fd_make_dirs(const char *path, struct writ_err *err);
/* The directories that @name lies in, below @dir. */
must_check int fd_make_above(int dir, const char *name, struct writ_err *err);

/* One write() of a short text to @file in @dir, which must be there: 0 or an errno. */
must_check int fd_put_at(int dir, const char *file, const char *text);

#endif
