#include "mediate/mediate_priv.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mediate/endpoint_priv.h"
#include "mediate/job_priv.h"
#include "mediate/open_priv.h"
#include "mediate/place_priv.h"

#include "base/banned.h"

/*
 * Opens for reading that Landlock would decide if the mediator could let them through. With
 * mediate_options.read_all it lets none through and performs these opens itself. Outside read_roots
 * a session with its own root may read everything in that root that no rule denies; a session in
 * the host's root may read the paths that rules and read_fixed allow.
 */

/*
 * SECURITY: in a session with its own root the mounts are the grants, also those of live grants,
 * which read_roots does not contain. A mount cannot hide a name below it, so the rules that deny
 * reading apply to every path.
 */
static bool may_read(struct call *c, struct sv path)
{
	struct mediator *m = c->m;
	struct cap_verdict v;

	if (path.n == 0 || sv_starts(path, SV("/memfd:")))
		return true;
	if (m->opt.own_mounts) {
		c->op = MEDIATE_READ;
		return !mediate_read_denied(m, path) ||
		       mediate_decide_path(c, WANT_READ, path) == 0;
	}
	if (mediate_is_private(m, path) || mediate_is_read_fixed(m, path))
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

/*
 * True for objects that the mediator may open for the caller. SECURITY: Landlock does not restrict
 * the mediator, and the kernel checks accesses to procfs against the process that opens a file.
 * So the mediator opens no file of procfs, sysfs and the like, wherever such a file system is
 * mounted, and devices only in /dev. A program of the host may read from or write to a named pipe
 * that the session did not create.
 */
static bool is_openable(const struct call *c, int obj, const struct stat *st, struct sv path)
{
	const bool dev = mediate_is_below(path, SV("/dev"));

	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		return mediate_device_is_plain(c->m, obj, st->st_dev);
	case S_IFDIR:
		return dev || mediate_device_is_plain(c->m, obj, st->st_dev);
	case S_IFIFO:
		return path.n == 0 || mediate_is_private(c->m, path) ||
		       endpoint_is_own(c->m, st);
	case S_IFCHR:
		return dev;
	}
	return false;
}

int mediate_open_for_read(struct call *c, int obj, const struct stat *st, struct sv path, int flags)
{
	/* SECURITY: drop O_TRUNC, which works even with O_RDONLY: the decision is about reading. */
	flags &= ~O_TRUNC;
	if ((flags & O_DIRECTORY) && !S_ISDIR(st->st_mode))
		return -ENOTDIR;
	if (S_ISSOCK(st->st_mode))
		return -ENXIO;
	if (!may_read(c, path))
		return -EACCES;
	if (!is_openable(c, obj, st, path))
		return mediate_deny(c, path, RULE_NONE, CAUSE_OPEN_KIND);
	if (is_observing(c))
		return 0;
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
		return mediate_open_object(c, obj, flags);
	case S_IFIFO:
		return mediate_pipe_open(c, obj, flags);
	case S_IFCHR:
		return sv_is(path, "/dev/tty") ? open_tty(c, flags)
					       : mediate_open_object(c, obj, flags);
	}
	return -EACCES;
}

/* --- Programs --- */

enum {
	/* more than the kernel follows: 5 of scripts, and that of the last program */
	INTERPRETERS = 8,
	SCRIPT_HEAD = 256 /* number of bytes in which the kernel looks for the interpreter */
};

/*
 * Opens the program @text, a path in /proc. SECURITY: magic links lead anywhere, so the only one
 * that is followed is the caller's own program. Own descriptors never get here.
 */
static int open_proc_program(struct call *c, struct sv text)
{
	if (sv_is(text, "/proc/self/exe") || sv_is(text, "/proc/thread-self/exe"))
		return task_open(c, "exe", 0);
	return mediate_deny(c, text, RULE_NONE, CAUSE_OPEN_KIND);
}

/*
 * Opens the program that call.text[0] names, with O_PATH. Follows links through private directories
 * too, because they can lead back to a hidden file. Returns a descriptor or -errno.
 */
static int open_program(struct call *c, int dir)
{
	const int own = c->text[0][0] ? mediate_parse_own_fd(c->text[0]) : dir;
	scoped_place p = PLACE_NONE;
	struct stat st;
	int r;

	if (own >= 0 || c->text[0][0] == 0)
		return task_open_fd(c, own);
	r = place_from_text(c, dir, 0, &p);
	if (r == ANSWER_CONTINUE)
		return open_proc_program(c, sv_from(c->text[0]));
	if (r < 0)
		return r;
	for (unsigned links = 0; links < LINKS_MAX; links++) {
		if (mediate_is_below(place_sv(&p), SV("/proc")))
			return open_proc_program(c, place_sv(&p));
		r = place_open(c, &p, true, &st);
		if (r != ANSWER_CONTINUE)
			return r;
	}
	return -ELOOP;
}

/* Copies the interpreter that the ELF program @fd names, such as ld.so, like find_interpreter(). */
static int elf_interpreter(struct call *c, int fd)
{
	Elf64_Ehdr h;
	Elf64_Phdr p;

	/* Not 64 bits: each call of such a program is refused, so it does no harm. */
	if (pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
	    memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	for (size_t i = 0; i < h.e_phnum; i++) {
		if (h.e_phentsize != sizeof(p) || h.e_phoff > INT32_MAX ||
		    pread(fd, &p, sizeof(p), (off_t)(h.e_phoff + i * sizeof(p))) !=
			    (ssize_t)sizeof(p))
			return -ENOEXEC;
		if (p.p_type != PT_INTERP)
			continue;
		if (p.p_filesz < 2 || p.p_filesz > PATH_MAX || p.p_offset > INT64_MAX ||
		    pread(fd, c->text[0], p.p_filesz, (off_t)p.p_offset) != (ssize_t)p.p_filesz ||
		    c->text[0][p.p_filesz - 1] != 0)
			return -ENOEXEC;
		return 1;
	}
	return 0;
}

/*
 * Copies the path of the interpreter of the program @obj to call.text[0]. Returns 1, 0 if there is
 * none, or -errno.
 */
static int find_interpreter(struct call *c, int obj)
{
	char head[SCRIPT_HEAD + 1];
	scoped_fd fd = mediate_reopen(c->m, obj, O_RDONLY | O_NONBLOCK);
	const ssize_t got = fd < 0 ? -1 : pread(fd, head, SCRIPT_HEAD, 0);
	size_t at = 2, n;

	if (got < 0)
		return -EACCES;
	head[got] = 0;
	if (strncmp(head, "#!", 2) != 0)
		return elf_interpreter(c, fd);
	at += strspn(head + at, " \t");
	n = strcspn(head + at, " \t\n");
	memcpy(c->text[0], head + at, n);
	c->text[0][n] = 0;
	return n ? 1 : -ENOEXEC;
}

/* Decides about running @obj: it must be readable by the rules. Returns 0 or -EACCES. */
static int decide_program(struct call *c, int obj, const struct stat *st)
{
	static const struct sv gone = SV_INIT(" (deleted)");
	char text[PATH_MAX];
	struct sv path = { text, 0 };

	if (!mediate_path_of_fd(c->m, obj, text, &path.n))
		return -EACCES;
	if (text[0] != '/' || sv_starts(path, SV("/memfd:")))
		return 0;
	/*
	 * The host may replace a program while it is started. Rules match the name that it had;
	 * a file whose name really ends so is decided by both names.
	 */
	if (sv_ends(path, gone) &&
	    mediate_read_denied(c->m, sv_sub(path, 0, path.n - gone.n)))
		return mediate_decide_path(c, WANT_READ, sv_sub(path, 0, path.n - gone.n));
	if (S_ISREG(st->st_mode) && !mediate_device_is_plain(c->m, obj, st->st_dev))
		return mediate_deny(c, path, RULE_NONE, CAUSE_OPEN_KIND);
	return mediate_is_read_root(c->m, path) || mediate_read_denied(c->m, path)
		       ? mediate_decide_path(c, WANT_READ, path)
		       : 0;
}

/*
 * Denies running a program that rules hide from reading, also as the interpreter of another. The
 * kernel reads the path a second time when it performs the exec, so who wins a race can still run a
 * hidden program. SECURITY: what the mediator cannot resolve is refused, because the kernel might.
 */
int mediate_check_exec(struct call *c)
{
	int dir = c->dir;

	for (unsigned i = 0; i <= INTERPRETERS; i++) {
		scoped_fd obj = open_program(c, dir);
		struct stat st;
		int r;

		if (obj < 0)
			return obj;
		if (fstat(obj, &st) < 0)
			return -EACCES;
		r = decide_program(c, obj, &st);
		/* The kernel refuses to run anything but a regular file. */
		if (r < 0 || !S_ISREG(st.st_mode))
			return r;
		r = find_interpreter(c, obj);
		if (r <= 0)
			return r;
		dir = AT_FDCWD;
	}
	return -ELOOP;
}
