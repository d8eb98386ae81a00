#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"

/*
 * SECURITY: closing a descriptor twice closes another file if the number of the descriptor was
 * reused in between. The second close() usually fails with EBADF and harms nothing, so the bug
 * stays unnoticed until the order of calls changes. Sanitizer builds abort on EBADF; release builds
 * ignore EBADF.
 */
#ifdef __SANITIZE_ADDRESS__
#define CLOSED_TWICE() abort()
#else
#define CLOSED_TWICE() ((void)0)
#endif

void fd_scope_close(const int *fd)
{
	const int keep = errno;

	if (*fd >= 0 && close(*fd) < 0 && errno == EBADF)
		CLOSED_TWICE();
	errno = keep;
}

void fd_close(int *fd)
{
	fd_scope_close(fd);
	*fd = -1;
}

int fd_take(int *fd)
{
	const int out = *fd;

	*fd = -1;
	return out;
}

DIR *fd_open_list(int dir, const char *name)
{
	scoped_fd fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (d)
		(void)fd_take(&fd);
	return d;
}

void fd_close_list(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

int fd_read_all(int fd, struct buf *b, struct writ_err *err)
{
	char chunk[16384];

	for (;;) {
		const ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n == 0)
			return buf_check(b, err);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return writ_fail(err, WRIT_E_SYS, errno, "read");
		}
		buf_add(b, chunk, (size_t)n);
		if (b->failed)
			return buf_check(b, err);
	}
}

int fd_write_all(int fd, struct sv bytes, struct writ_err *err)
{
	while (bytes.n) {
		const ssize_t n = write(fd, bytes.p, bytes.n);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return writ_fail(err, WRIT_E_SYS, errno, "write");
		}
		bytes = sv_skip(bytes, (size_t)n);
	}
	return 0;
}

int fd_read_file(const char *path, struct buf *b, struct writ_err *err)
{
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open %s", path);
	if (fstat(fd, &st) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "stat %s", path);
	if (S_ISDIR(st.st_mode))
		return writ_fail(err, WRIT_E_SYS, EISDIR, "read %s", path);
	/* Undo O_NONBLOCK for a pipe: the process at the other end may write slowly. */
	if (!S_ISREG(st.st_mode) && fcntl(fd, F_SETFL, 0) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "read %s", path);
	return fd_read_all(fd, b, err);
}

int fd_read_optional(const char *path, struct buf *b, struct writ_err *err)
{
	struct writ_err why = { 0 };
	const int r = fd_read_file(path, b, &why);

	if (r < 0 && why.sys == ENOENT)
		return 0;
	if (r < 0)
		*err = why;
	return r < 0 ? r : 1;
}

/* Ignore a directory that this process may write but not read: it cannot be synced. */
int fd_sync_above(int dir, const char *name, struct writ_err *err)
{
	const char *slash = strrchr(name, '/');
	char path[PATH_MAX] = ".";
	scoped_fd fd = -1;

	if (slash)
		(void)snprintf(path, sizeof(path), "%.*s", slash == name ? 1 : (int)(slash - name),
			       name);
	fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES)
		return 0;
	return fd < 0 || fsync(fd) < 0 ? writ_fail(err, WRIT_E_SYS, errno, "sync %s", path) : 0;
}

int fd_replace_at(int dir, const char *name, struct sv bytes, unsigned mode, struct writ_err *err)
{
	char tmp[PATH_MAX];
	int r = snprintf(tmp, sizeof(tmp), "%s.%ld.new", name, (long)getpid());

	if (r < 0 || (size_t)r >= sizeof(tmp))
		return writ_fail(err, WRIT_E_SYS, ENAMETOOLONG, "write %s", name);
	/* SECURITY: O_EXCL refuses a file or link that appears under this name after unlinkat(). */
	(void)unlinkat(dir, tmp, 0);

	scoped_fd fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);

	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "create %s", tmp);
	r = fd_write_all(fd, bytes, err);
	if (r == 0 && fsync(fd) < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "sync %s", tmp);
	if (r == 0 && renameat(dir, tmp, dir, name) < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "rename to %s", name);
	if (r < 0)
		(void)unlinkat(dir, tmp, 0);
	return r < 0 ? r : fd_sync_above(dir, name, err);
}

int fd_replace_file(const char *path, struct sv bytes, unsigned mode, struct writ_err *err)
{
	return fd_replace_at(AT_FDCWD, path, bytes, mode, err);
}

int fd_make_dirs(const char *path, struct writ_err *err)
{
	int r;

	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return 0;
	if (errno != ENOENT)
		return writ_fail(err, WRIT_E_SYS, errno, "mkdir %s", path);
	r = fd_make_above(AT_FDCWD, path, err);
	if (r == 0 && mkdir(path, 0700) < 0 && errno != EEXIST)
		r = writ_fail(err, WRIT_E_SYS, errno, "mkdir %s", path);
	return r;
}

int fd_make_above(int dir, const char *name, struct writ_err *err)
{
	char path[PATH_MAX];

	for (const char *end = name; *end && (end = strchr(end + 1, '/'));) {
		(void)snprintf(path, sizeof(path), "%.*s", (int)(end - name), name);
		if (mkdirat(dir, path, 0700) < 0 && errno != EEXIST)
			return writ_fail(err, WRIT_E_SYS, errno, "mkdir %s", path);
	}
	return 0;
}

int fd_replace_deep(int dir, const char *name, struct sv bytes, unsigned mode, struct writ_err *err)
{
	const int r = fd_make_above(dir, name, err);

	return r < 0 ? r : fd_replace_at(dir, name, bytes, mode, err);
}

int fd_put_at(int dir, const char *file, const char *text)
{
	scoped_fd fd = openat(dir, file, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	const size_t n = strlen(text);
	ssize_t wrote;

	if (fd < 0)
		return errno;
	do {
		wrote = write(fd, text, n);
	} while (wrote < 0 && errno == EINTR);
	if (wrote < 0)
		return errno;
	return (size_t)wrote == n ? 0 : EIO;
}
