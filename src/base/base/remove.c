#include "base/remove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

/*
 * Limits of the recursion: each level holds two descriptors open. A directory at depth DEPTH_MAX
 * that is not empty is moved to the top directory and removed in a later round, of which there are
 * at most ROUNDS_MAX.
 */
enum { DEPTH_MAX = 64, ROUNDS_MAX = 100000 };

struct removal {
	int top;
	unsigned moved;
	bool again;
};

static void remove_entries(struct removal *r, int fd, int depth);

/*
 * Changes the mode of the directory @name through /proc/self/fd: a change by name would follow a
 * symbolic link that replaced @name in the meantime.
 */
static bool chmod_by_fd(int dir, const char *name)
{
	scoped_fd at = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	scoped_buf b = BUF_INIT(64);

	buf_fmt(&b, "/proc/self/fd/%d", at);
	return at >= 0 && !b.failed && chmod(b.p, 0700) == 0;
}

/*
 * Opens a directory and makes it writable for this process: the session may have removed the
 * owner's permissions.
 */
static int open_writable_dir(int dir, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir, name, flags);

	if (fd < 0 && errno == EACCES && geteuid() != 0 && chmod_by_fd(dir, name))
		fd = openat(dir, name, flags);
	if (fd >= 0)
		(void)fchmod(fd, 0700);
	return fd;
}

static void move_up(struct removal *r, int dir, const char *name)
{
	scoped_buf b = BUF_INIT(32);

	buf_fmt(&b, "deep-%u", r->moved++);
	if (!b.failed)
		(void)!renameat(dir, name, r->top, b.p);
	r->again = true;
}

static void remove_at(struct removal *r, int dir, const char *name, int depth)
{
	scoped_fd fd = -1;

	if (unlinkat(dir, name, 0) == 0)
		return;
	fd = open_writable_dir(dir, name);
	if (fd < 0)
		return;
	if (depth < DEPTH_MAX)
		remove_entries(r, fd, depth);
	if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && depth == DEPTH_MAX)
		move_up(r, dir, name);
}

static void remove_entries(struct removal *r, int fd, int depth)
{
	/*
	 * Open the directory a second time: @fd may already have been read to its end, and entries
	 * created since that read must be removed too.
	 */
	const int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;

	if (!d) {
		fd_scope_close(&copy);
		return;
	}
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			remove_at(r, fd, e->d_name, depth + 1);
	closedir(d);
}

void remove_below(int fd)
{
	struct removal r = { .top = fd, .again = true };

	for (int i = 0; r.again && i < ROUNDS_MAX; i++) {
		r.again = false;
		remove_entries(&r, fd, 0);
	}
}

void remove_tree(int dir, const char *name)
{
	scoped_fd fd = -1;

	if (unlinkat(dir, name, 0) == 0)
		return;
	fd = open_writable_dir(dir, name);
	if (fd >= 0)
		remove_below(fd);
	(void)unlinkat(dir, name, AT_REMOVEDIR);
}
