#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

/*
 * Opens for reading that Landlock alone would decide about, done by us, because none
 * may be let through. In a root of its own the target may read whatever is there;
 * in the host's, what rules and the fixed list say.
 */

/* Only we may add these. */
enum { NOT_HANDED = O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY };

static bool may_read(struct call *c, struct sv path)
{
	struct mediator *m = c->m;
	struct cap_verdict v;

	if (m->opt.own_mounts || path.n == 0 || is_private(m, path) || is_read_fixed(m, path) ||
	    sv_starts(path, SV("/memfd:")))
		return true;
	/* SECURITY: no rule for files is about these, also not one for all files. */
	if (is_below(path, SV("/sys")))
		return false;
	if (is_below(path, SV("/dev")))
		return may_read_device(m, path);
	return may(m, WANT_READ, path, &v);
}

static int hand(struct call *c, int fd, int flags)
{
	if (fd < 0)
		return fd;
	c->fd = fd;
	c->fd_flags = (unsigned)flags & O_CLOEXEC;
	return ANSWER_FD;
}

/* O_NONBLOCK: a lease somebody holds on the file must not stop us. */
static int open_file(struct call *c, int obj, int flags)
{
	const int keep = flags & ~NOT_HANDED;
	const int fd = reopen(c->m, obj, keep | O_NONBLOCK);

	if (fd >= 0 && !(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, keep) < 0) {
		const int r = -errno;

		scope_close(&fd);
		return r;
	}
	return hand(c, fd, flags);
}

int pipe_open(struct call *c, int obj, int flags)
{
	const bool writes = (flags & O_ACCMODE) != O_RDONLY;
	struct job *j;

	if (writes) {
		const int r = open_file(c, obj, flags);

		/* Nobody reads it yet; whoever may not open it has heard so by now. */
		if (r != -ENXIO || (flags & O_NONBLOCK))
			return r;
	} else if (flags & O_NONBLOCK) {
		return hand(c, reopen(c->m, obj, flags & ~NOT_HANDED), flags);
	}
	j = job_new(c, writes ? JOB_OPEN_TO_WRITE : JOB_OPEN);
	if (!j)
		return -ENOMEM;
	j->flags = (flags & ~NOT_HANDED) | (flags & O_CLOEXEC);
	j->sock = fcntl(obj, F_DUPFD_CLOEXEC, 3);
	return job_start(c, j);
}

/* /dev/tty is another terminal for each; the seventh number of stat says which. */
static int open_tty(struct call *c, int flags)
{
	scoped_fd stat = -1;
	char text[1024], name[32];
	const char *p;
	unsigned dev = 0;
	ssize_t n;
	int r = task_status(c);

	if (r < 0)
		return r;
	stat = openat(c->task->proc, "stat", O_RDONLY | O_CLOEXEC);
	n = stat < 0 ? -1 : read(stat, text, sizeof(text) - 1);
	if (n <= 0)
		return -EACCES;
	text[n] = 0;
	p = strrchr(text, ')');
	for (unsigned i = 0; p && i < 5; i++)
		p = strchr(p + 1, ' ');
	for (p = p ? p + 1 : ""; *p >= '0' && *p <= '9'; p++)
		dev = dev * 10 + (unsigned)(*p - '0');
	/* Pseudo terminals have the major numbers 136 to 143. */
	if ((dev >> 8 & 0xfff) < 136 || (dev >> 8 & 0xfff) > 143)
		return -ENXIO;
	(void)snprintf(name, sizeof(name), "dev/pts/%u",
		       ((dev >> 8 & 0xfff) - 136) * 256 + (dev & 0xff) + (dev >> 12 & 0xfff00));
	r = task_root(c);
	if (r < 0)
		return r;
	r = openat(r, name, (flags & ~NOT_HANDED) | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	return r < 0 ? -errno : hand(c, r, flags);
}

int behalf_open(struct call *c, int obj, const struct stat *st, struct sv path, int flags)
{
	if ((flags & O_DIRECTORY) && !S_ISDIR(st->st_mode))
		return -ENOTDIR;
	if (!may_read(c, path))
		return -EACCES;
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
		return open_file(c, obj, flags);
	case S_IFIFO:
		return pipe_open(c, obj, flags);
	case S_IFCHR:
		return sv_is(path, "/dev/tty") ? open_tty(c, flags) : open_file(c, obj, flags);
	case S_IFSOCK:
		return -ENXIO;
	}
	return -EACCES;
}

/*
 * What is hidden is not run either. Nobody runs a program on behalf of another, so
 * this holds against mistakes and not against a race; but then nothing is read.
 */
int behalf_exec(struct call *c, int dirfd, const char *path)
{
	scoped_place p = PLACE_NONE;
	struct stat st;
	scoped_fd obj = -1;
	bool inside = false;

	if (path[0] == 0) {
		obj = task_fd(c, dirfd);
		if (obj < 0 || !path_of_fd(c->m, obj, p.path, &p.n))
			return 0;
	} else {
		if (sv_starts(sv_from(path), SV("/proc/")) || place_find(c, dirfd, path, &p) < 0)
			return 0;
		/* To what a link leads; what is not there runs nowhere. */
		obj = place_object(c, &p, true, &st);
		if (obj < 0)
			return 0;
	}
	for (size_t i = 0; i < c->m->opt.read_roots_n; i++)
		inside = inside || is_below(place_sv(&p), c->m->opt.read_roots[i]);
	return inside ? decide_path(c, WANT_READ, place_sv(&p)) : 0;
}
