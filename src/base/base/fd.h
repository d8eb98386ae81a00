/*
 * fd.h - scoped file descriptors, bounded whole-file reads, atomic file replacement
 *
 * Reads:  files named by the caller
 * Writes: files named by the caller
 * Next:   facts/, session/, cli/
 */
#ifndef WRIT_BASE_FD_H
#define WRIT_BASE_FD_H

#include <dirent.h>

#include "base/buf.h"

void fd_scope_close(const int *fd);
void fd_close(int *fd); /* closes *@fd, if it is open, and sets it to -1 */
int fd_take(int *fd);
#define scoped_fd __attribute__((cleanup(fd_scope_close))) int

/* Opens the directory @name in @dir to list its names. Returns NULL and sets errno on failure. */
DIR *fd_open_list(int dir, const char *name);
void fd_close_list(DIR **d);
#define scoped_list __attribute__((cleanup(fd_close_list))) DIR

/*
 * Reads @fd to the end of file and appends the bytes to @b. Fails with WRIT_E_LIMIT if the bytes
 * exceed the maximum of @b.
 */
must_check int fd_read_all(int fd, struct buf *b, struct writ_err *err);
must_check int fd_write_all(int fd, struct sv bytes, struct writ_err *err);

/*
 * Appends the contents of the file or pipe at @path to @b; a directory is an error. The path "-"
 * has no special meaning. A FIFO without a writer reads as empty and does not block the caller.
 */
must_check int fd_read_file(const char *path, struct buf *b, struct writ_err *err);
/* Like fd_read_file(), but returns 1, or 0 and an untouched @b if there is no such file. */
must_check int fd_read_optional(const char *path, struct buf *b, struct writ_err *err);

/*
 * Replaces the file @name in @dir by @bytes: writes a temporary file beside @name, syncs and
 * renames it, and syncs the directory. A crash leaves the old file or the new file, never a partial
 * file. After success a crash leaves the new file: a power failure must not undo a revocation or a
 * new key.
 */
must_check int fd_replace_at(int dir, const char *name, struct sv bytes, unsigned mode,
			     struct writ_err *err);
must_check int fd_replace_file(const char *path, struct sv bytes, unsigned mode,
			       struct writ_err *err);

/*
 * Syncs the directory that holds @name, so that the name survives a crash. Does nothing if this
 * process may not read the directory.
 */
must_check int fd_sync_above(int dir, const char *name, struct writ_err *err);

/* Creates the directory @path and its parents with mode 0700, as far as they do not exist. */
must_check int fd_make_dirs(const char *path, struct writ_err *err);
/* Creates the parent directories of @name, relative to @dir, with mode 0700. */
must_check int fd_make_above(int dir, const char *name, struct writ_err *err);
/* Like fd_replace_at(), and creates the parent directories of @name. */
must_check int fd_replace_deep(int dir, const char *name, struct sv bytes, unsigned mode,
			       struct writ_err *err);

/* Writes @text with one write() to the existing file @file in @dir. Returns 0 or an errno. */
must_check int fd_put_at(int dir, const char *file, const char *text);

#endif
