#include "limit/limit_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

int64_t limit_now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void limit_sleep_ms(void)
{
	const struct timespec ms = { 0, 1000000 };

	(void)nanosleep(&ms, NULL);
}

int file_put(int dir, const char *file, const char *text)
{
	scoped_fd fd = openat(dir, file, O_WRONLY | O_CLOEXEC);
	const size_t n = strlen(text);
	ssize_t wrote;

	if (fd < 0)
		return errno;
	do
		wrote = write(fd, text, n);
	while (wrote < 0 && errno == EINTR);
	if (wrote < 0)
		return errno;
	return (size_t)wrote == n ? 0 : EIO;
}

int file_get(int dir, const char *file, char *ret_text, size_t size)
{
	scoped_fd fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return errno;
	do
		n = read(fd, ret_text, size - 1);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno;
	ret_text[n] = 0;
	return 0;
}

bool file_exists(int dir, const char *file)
{
	return faccessat(dir, file, F_OK, 0) == 0;
}

void dirs_below(int dir, int depth, dir_fn *fn, void *ctx)
{
	scoped_fd fd = depth > 0 ? openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!d)
		return;
	(void)take_fd(&fd);
	while ((e = readdir(d))) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;

		scoped_fd below = openat(dirfd(d), e->d_name,
					 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (below < 0)
			continue;
		dirs_below(below, depth - 1, fn, ctx);
		fn(dirfd(d), e->d_name, below, ctx);
	}
	(void)closedir(d);
}
