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
 * SECURITY: who closes a number twice closes somebody else's file the second time, or does when
 * the order of things changes. Builds that look for mistakes end there; others cannot tell.
 */
#ifdef __SANITIZE_ADDRESS__
#define CLOSED_TWICE() abort()
#else
#define CLOSED_TWICE() ((void)0)
#endif

void scope_close(const int *fd)
{
	const int keep = errno;

	if (*fd >= 0 && close(*fd) < 0 && errno == EBADF)
		CLOSED_TWICE();
	errno = keep;
}

int take_fd(int *fd)
{
	const int out = *fd;

	*fd = -1;
	return out;
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
	/* Blocking again: a pipe that a shell made for us may be slow. */
	if (!S_ISREG(st.st_mode) && fcntl(fd, F_SETFL, 0) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "read %s", path);
	return fd_read_all(fd, b, err);
}

int fd_replace_file(const char *path, struct sv bytes, unsigned mode, struct writ_err *err)
{
	char tmp[PATH_MAX];
	int r;

	r = snprintf(tmp, sizeof(tmp), "%s.%ld.new", path, (long)getpid());
	if (r < 0 || (size_t)r >= sizeof(tmp))
		return writ_fail(err, WRIT_E_SYS, ENAMETOOLONG, "write %s", path);

	scoped_fd fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "create %s", tmp);
	r = fd_write_all(fd, bytes, err);
	if (r == 0 && fsync(fd) < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "sync %s", tmp);
	if (r == 0 && rename(tmp, path) < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "rename to %s", path);
	if (r < 0)
		(void)unlink(tmp);
	return r;
}

int fd_make_dirs(const char *path, struct writ_err *err)
{
	char p[PATH_MAX];
	const size_t n = strlen(path);

	if (n >= sizeof(p))
		return writ_fail(err, WRIT_E_SYS, ENAMETOOLONG, "mkdir %s", path);
	memcpy(p, path, n + 1);
	if (mkdir(p, 0700) == 0 || errno == EEXIST)
		return 0;
	for (size_t i = 1; i <= n; i++) {
		if (p[i] != '/' && p[i] != 0)
			continue;
		p[i] = 0;
		if (mkdir(p, 0700) < 0 && errno != EEXIST)
			return writ_fail(err, WRIT_E_SYS, errno, "mkdir %s", p);
		p[i] = i == n ? 0 : '/';
	}
	return 0;
}

int fd_make_above(int dir, const char *name, struct writ_err *err)
{
	char path[PATH_MAX];
	const char *end = name;

	while ((end = strchr(end, '/'))) {
		(void)snprintf(path, sizeof(path), "%.*s", (int)(end - name), name);
		if (mkdirat(dir, path, 0700) < 0 && errno != EEXIST)
			return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
		end++;
	}
	return 0;
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
