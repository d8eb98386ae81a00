#include "escape.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

void text_add(struct text *t, const char *format, ...)
{
	for (;;) {
		va_list ap;

		va_start(ap, format);
		const int n = vsnprintf(t->v ? t->v + t->n : NULL, t->max - t->n, format, ap);
		va_end(ap);
		if (n < 0)
			abort();
		if (t->v && t->n + (size_t)n < t->max) {
			t->n += (size_t)n;
			return;
		}
		t->max = (t->max + (size_t)n + 1) * 2;
		t->v = realloc(t->v, t->max);
		if (!t->v)
			abort();
	}
}

static uint64_t hash(uint64_t h, const void *data, size_t n)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

static uint64_t hash_content(const char *name, const struct stat *st)
{
	uint64_t h = 0xcbf29ce484222325u;
	char buf[65536];
	ssize_t n = 0;

	if (S_ISLNK(st->st_mode)) {
		n = readlink(name, buf, sizeof(buf));
		return hash(h, buf, n > 0 ? (size_t)n : 0);
	}
	if (!S_ISREG(st->st_mode))
		return 0;
	const int fd = open(name, O_RDONLY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
	while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0)
		h = hash(h, buf, (size_t)n);
	if (fd >= 0)
		close(fd);
	return h;
}

static uint64_t hash_xattrs(const char *name)
{
	uint64_t h = 0;
	char list[4096];
	char value[4096];
	const ssize_t n = llistxattr(name, list, sizeof(list));

	for (ssize_t i = 0; i < n; i += (ssize_t)strlen(list + i) + 1) {
		const ssize_t v = lgetxattr(name, list + i, value, sizeof(value));

		h += hash(hash(1, list + i, strlen(list + i)), value, v > 0 ? (size_t)v : 0);
	}
	return h;
}

/*
 * One line per object. @inode: what a bystander of the host could notice at all
 * (identity, owner, times, links, attributes); else what a program would obey.
 */
void snapshot(struct text *t, const char *name, bool deep, bool inode)
{
	struct dirent **list = NULL;
	struct stat st;

	if (lstat(name, &st) < 0) {
		text_add(t, "%s missing\n", name);
		return;
	}
	text_add(t, "%s mode=%o hash=%llx", name, st.st_mode,
		 (unsigned long long)hash_content(name, &st));
	if (inode)
		text_add(t,
			 " ino=%lu links=%lu uid=%u gid=%u size=%ld mtime=%ld.%ld ctime=%ld.%ld "
			 "x=%llx",
			 st.st_ino, st.st_nlink, st.st_uid, st.st_gid, (long)st.st_size,
			 st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_ctim.tv_sec,
			 st.st_ctim.tv_nsec, (unsigned long long)hash_xattrs(name));
	text_add(t, "\n");
	if (!deep || !S_ISDIR(st.st_mode))
		return;
	const int n = scandir(name, &list, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char sub[PATH_SIZE];

		fmt(sub, sizeof(sub), "%s/%s", name, list[i]->d_name);
		if (strcmp(list[i]->d_name, ".") != 0 && strcmp(list[i]->d_name, "..") != 0)
			snapshot(t, sub, deep, inode);
		free(list[i]);
	}
	free(list);
}
