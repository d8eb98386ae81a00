#include "host/probe_tmp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

enum { DEPTH_MAX = 8 }; /* a trial makes three levels, overlayfs one more */

static bool on_disk(const char *dir)
{
	struct statfs st;

	return statfs(dir, &st) == 0 && st.f_type != TMPFS_MAGIC && st.f_type != RAMFS_MAGIC;
}

static bool make_below(const char *base, size_t size, char *ret_dir)
{
	char path[512];
	const int n = snprintf(path, sizeof(path), "%s/writ-probe-XXXXXX", base);

	if (base[0] != '/' || n < 0 || (size_t)n >= sizeof(path) || (size_t)n >= size)
		return false;
	if (!mkdtemp(path))
		return false;
	memcpy(ret_dir, path, (size_t)n + 1);
	return true;
}

bool probe_tmp_make(const char *wanted, size_t size, char *ret_dir)
{
	const char *env = getenv("TMPDIR");
	const char *const bases[] = { wanted, env ? env : "/tmp", "/var/tmp", "/tmp" };

	/* Overlay and reflink are asked about a disk: a tmpfs is the second choice. */
	for (size_t i = 0; i < ARRAY_LEN(bases); i++)
		if (bases[i] && on_disk(bases[i]) && make_below(bases[i], size, ret_dir))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(bases); i++)
		if (bases[i] && make_below(bases[i], size, ret_dir))
			return true;
	return false;
}

static void remove_below(int dirfd, const char *name, int depth)
{
	struct dirent *d;
	DIR *dir;
	int fd;

	if (depth > DEPTH_MAX)
		return;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == EACCES && fchmodat(dirfd, name, 0700, 0) == 0)
		/* overlayfs leaves its work directory with mode 000 */
		fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	dir = fdopendir(fd);
	if (!dir) {
		(void)close(fd);
		return;
	}
	while ((d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, d->d_name, 0) == 0)
			continue;
		remove_below(fd, d->d_name, depth + 1);
		(void)unlinkat(fd, d->d_name, AT_REMOVEDIR);
	}
	(void)closedir(dir);
}

void probe_tmp_remove(const char *dir)
{
	if (!dir[0])
		return;
	remove_below(AT_FDCWD, dir, 0);
	(void)rmdir(dir);
}
