#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "mediate/job_priv.h"
#include "mediate/open_priv.h"
#include "mediate/place_priv.h"

#include "base/banned.h"

/*
 * Opens for reading that Landlock would decide if the mediator could let them through. With
 * mediate_options.read_all it lets none through and performs these opens itself. Outside read_roots
 * a session with its own root may read everything in that root; a session in the host's root may
 * read the paths that rules and read_fixed allow.
 */

static bool may_read(struct call *c, struct sv path)
{
	struct mediator *m = c->m;
	struct cap_verdict v;

	if (m->opt.own_mounts || path.n == 0 || mediate_is_private(m, path) ||
	    mediate_is_read_fixed(m, path) || sv_starts(path, SV("/memfd:")))
		return true;
	/*
	 * SECURITY: no rule about files covers /sys or /dev, not even a rule for all files. Reading
	 * a device needs the capability dev.use.
	 */
	if (mediate_is_below(path, SV("/sys")))
		return false;
	if (mediate_is_below(path, SV("/dev")))
		return mediate_may_read_device(m, path);
	return mediate_may(m, WANT_READ, path, &v);
}

int mediate_hand_out(struct call *c, int fd, int flags)
{
	if (fd < 0)
		return fd;
	c->fd = fd;
	c->fd_flags = (unsigned)flags & O_CLOEXEC;
	return ANSWER_FD;
}

/*
 * Opens with O_NONBLOCK and clears the flag afterwards: a lease that another process holds on a
 * file must not block the mediator.
 */
int mediate_open_object(struct call *c, int obj, int flags)
{
	const int keep = flags & ~NOT_HANDED;
	scoped_fd fd = mediate_reopen(c->m, obj, keep | O_NONBLOCK);

	if (fd >= 0 && !(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, keep) < 0)
		return -errno;
	return mediate_hand_out(c, fd_take(&fd), flags);
}

int mediate_pipe_open(struct call *c, int obj, int flags)
{
	const bool writes = (flags & O_ACCMODE) != O_RDONLY;
	struct job *j;

	if (writes) {
		const int r = mediate_open_object(c, obj, flags);

		/*
		 * ENXIO: the pipe has no reader yet. Return any other result. Return ENXIO only if
		 * the caller does not want to wait for a reader.
		 */
		if (r != -ENXIO || (flags & O_NONBLOCK))
			return r;
	} else if (flags & O_NONBLOCK) {
		return mediate_hand_out(c, mediate_reopen(c->m, obj, flags & ~NOT_HANDED), flags);
	}
	j = mediate_job_new(c, writes ? JOB_OPEN_TO_WRITE : JOB_OPEN);
	if (!j)
		return -ENOMEM;
	j->flags = (flags & ~NOT_HANDED) | (flags & O_CLOEXEC);
	j->sock = fcntl(obj, F_DUPFD_CLOEXEC, 3);
	return mediate_job_start(c, j);
}

/*
 * Opens the caller's controlling terminal. For the mediator, /dev/tty is its own terminal. Field 7
 * of /proc/TID/stat is the device number of the caller's terminal.
 */
static int open_tty(struct call *c, int flags)
{
	scoped_fd stat = -1;
	char number[32], name[32];
	uint64_t dev = 0;
	int r = task_status(c);

	if (r < 0)
		return r;
	stat = openat(c->task->proc, "stat", O_RDONLY | O_CLOEXEC);
	if (!mediate_stat_field(stat, 7, number))
		return -EACCES;
	/* Pseudo terminals have the major numbers 136 to 143. */
	if (!sv_to_u64(sv_from(number), UINT32_MAX, &dev) || (dev >> 8 & 0xfff) < 136 ||
	    (dev >> 8 & 0xfff) > 143)
		return -ENXIO;
	(void)snprintf(name, sizeof(name), "dev/pts/%u",
		       (unsigned)(((dev >> 8 & 0xfff) - 136) * 256 + (dev & 0xff) +
				  (dev >> 12 & 0xfff00)));
	r = task_root(c);
	if (r < 0)
		return r;
	r = openat(r, name, (flags & ~NOT_HANDED) | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	return r < 0 ? -errno : mediate_hand_out(c, r, flags);
}

int mediate_open_for_read(struct call *c, int obj, const struct stat *st, struct sv path, int flags)
{
	/* SECURITY: drop O_TRUNC, which works even with O_RDONLY: the decision is about reading. */
	flags &= ~O_TRUNC;
	if ((flags & O_DIRECTORY) && !S_ISDIR(st->st_mode))
		return -ENOTDIR;
	if (!may_read(c, path))
		return -EACCES;
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
		return mediate_open_object(c, obj, flags);
	case S_IFIFO:
		return mediate_pipe_open(c, obj, flags);
	case S_IFCHR:
		return sv_is(path, "/dev/tty") ? open_tty(c, flags)
					       : mediate_open_object(c, obj, flags);
	case S_IFSOCK:
		return -ENXIO;
	}
	return -EACCES;
}

/*
 * Denies running a program that rules hide from reading. The kernel reads the path a second time
 * when it performs the exec, so this check stops mistakes but not an attack by a race. Such an
 * attack runs the program; it does not give the caller the content of the file.
 */
int mediate_check_exec(struct call *c, const char *path)
{
	scoped_place p = PLACE_NONE;
	struct stat st;
	scoped_fd obj = -1;

	if (path[0] == 0) {
		obj = task_open_fd(c, c->dir);
		if (obj < 0 || !mediate_path_of_fd(c->m, obj, p.path, &p.n))
			return 0;
	} else {
		if (sv_starts(sv_from(path), SV("/proc/")) || place_find(c, c->dir, path, &p) < 0)
			return 0;
		/* Follow links. If the file is missing, let the kernel report the error. */
		obj = place_open(c, &p, true, &st);
		if (obj < 0)
			return 0;
	}
	return mediate_is_read_root(c->m, place_sv(&p))
		       ? mediate_decide_path(c, WANT_READ, place_sv(&p))
		       : 0;
}
