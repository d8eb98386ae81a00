#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

/* Opens. The target gets a descriptor we opened, with the flags it asked for. */

enum {
	NEW_MODE = 01777, /* SECURITY: no set-id bit is ever made on behalf */
	TRIES = 3,	  /* somebody on the host may make and remove the same name */
	/* Only we may add these, and a descriptor does not show them. */
	NOT_HANDED = O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
};

struct want_open {
	int flags;
	mode_t mode;
};

static bool reads(const struct want_open *w)
{
	return (w->flags & O_ACCMODE) != O_WRONLY;
}

static bool is_tmpfile(const struct want_open *w)
{
	return (w->flags & O_TMPFILE) == O_TMPFILE;
}

/* It changes nothing, whatever it finds. */
static bool only_reads(const struct want_open *w)
{
	return (w->flags & O_ACCMODE) == O_RDONLY && !(w->flags & (O_CREAT | O_TRUNC)) &&
	       !is_tmpfile(w);
}

static bool is_read_root(const struct mediator *m, struct sv path)
{
	for (size_t i = 0; i < m->opt.read_roots_n; i++)
		if (is_below(path, m->opt.read_roots[i]))
			return true;
	return false;
}

/* Must it be done by us, whatever it leads to? */
static bool on_behalf(const struct call *c, const struct want_open *w)
{
	return c->m->opt.read_all && (w->flags & O_ACCMODE) != O_WRONLY &&
	       (w->flags & O_ACCMODE) != O_RDWR;
}

static int hand_out(struct call *c, int fd, const struct want_open *w)
{
	c->fd = fd;
	c->fd_flags = (unsigned)w->flags & O_CLOEXEC;
	return ANSWER_FD;
}

/* --- What exists --- */

/* O_NONBLOCK: a lease somebody holds on the file must not stop us. */
static int open_object(struct call *c, int obj, const struct want_open *w)
{
	const int flags = w->flags & ~NOT_HANDED;
	const int fd = reopen(c->m, obj, flags | O_NONBLOCK);

	if (fd < 0)
		return fd;
	if (!(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags) < 0) {
		const int r = -errno;

		scope_close(&fd);
		return r;
	}
	return hand_out(c, fd, w);
}

static int may_overwrite(struct call *c, const struct place *p, const struct want_open *w)
{
	const bool put = !reads(w) && !(w->flags & O_TRUNC);
	const struct guarded g = guard_look(c, p);
	int r = 0;

	switch (g.kind) {
	case GUARD_FREE:
	case GUARD_HOLDS:
	case GUARD_SAMPLE:
	case GUARD_POINTER: /* the caller gives a shadow instead */
		break;
	case GUARD_CONFIG:
		r = deny(c, place_sv(p), RULE_NONE,
			 "git configuration is replaced as a whole, by renaming");
		break;
	case GUARD_HOOKS:
	case GUARD_ONCE:
	case GUARD_SHUT:
		r = guard_refuse(c, p, &g);
		break;
	}
	if (r == 0)
		r = decide_path(c, put ? WANT_PUT : WANT_WRITE, place_sv(p));
	if (r == 0 && reads(w))
		r = decide_path(c, WANT_READ, place_sv(p));
	if (r == 0 && g.kind == GUARD_POINTER)
		return w->flags & O_TRUNC ? ANSWER_FD : guard_refuse(c, p, &g);
	return r;
}

static bool is_own_pipe(const struct call *c, const struct stat *st)
{
	return S_ISFIFO(st->st_mode) && bound_here(c->m, st);
}

static int overwrite(struct call *c, struct place *p, int obj, const struct stat *st,
		     const struct want_open *w)
{
	int r;

	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	if (S_ISCHR(st->st_mode) && is_below(place_sv(p), SV("/dev")))
		return ANSWER_CONTINUE;
	if (S_ISSOCK(st->st_mode))
		return -ENXIO;
	/* Somebody outside may listen to a pipe, as to a socket, unless it was made inside. */
	if ((!S_ISREG(st->st_mode) && !is_own_pipe(c, st)) ||
	    !device_is_plain(c->m, obj, st->st_dev))
		return deny(c, place_sv(p), RULE_NONE,
			    "only regular files, and pipes made in this session, are opened for "
			    "writing");
	r = may_overwrite(c, p, w);
	if (r == ANSWER_FD)
		return only_watching(c) ? 0 : shadow_open(c, p, st->st_mode, (unsigned)w->flags);
	if (r < 0 || only_watching(c))
		return r;
	return S_ISFIFO(st->st_mode) ? pipe_open(c, obj, w->flags) : open_object(c, obj, w);
}

static int look_at(struct call *c, struct place *p, int obj, const struct stat *st,
		   const struct want_open *w)
{
	int r;

	if (!is_read_root(c->m, place_sv(p)))
		return on_behalf(c, w) ? behalf_open(c, obj, st, place_sv(p), w->flags)
				       : ANSWER_CONTINUE;
	if (S_ISSOCK(st->st_mode))
		return -ENXIO;
	if ((!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) && !is_own_pipe(c, st)) ||
	    !device_is_plain(c->m, obj, st->st_dev))
		return deny(c, place_sv(p), RULE_NONE, "only files and directories are opened");
	c->op = MEDIATE_READ;
	r = decide_path(c, WANT_READ, place_sv(p));
	if (r < 0 || only_watching(c))
		return r;
	return S_ISFIFO(st->st_mode) ? pipe_open(c, obj, w->flags) : open_object(c, obj, w);
}

static int open_found(struct call *c, struct place *p, int obj, const struct stat *st,
		      const struct want_open *w)
{
	if (S_ISLNK(st->st_mode))
		return w->flags & O_DIRECTORY ? -ENOTDIR : -ELOOP;
	if ((w->flags & O_DIRECTORY) && !S_ISDIR(st->st_mode))
		return -ENOTDIR;
	/* How a directory that ignores case writes the name is what rules are about. */
	if (c->m->globs && !path_of_fd(c->m, obj, p->path, &p->n))
		return -EACCES;
	if (only_reads(w) || (w->flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY) {
		if ((w->flags & O_CREAT) && S_ISDIR(st->st_mode))
			return -EISDIR;
		return look_at(c, p, obj, st, w);
	}
	return overwrite(c, p, obj, st, w);
}

/* --- What does not --- */

static int may_create(struct call *c, const struct place *p, const struct want_open *w)
{
	const struct guarded g = guard_look(c, p);
	int r = 0;

	switch (g.kind) {
	case GUARD_FREE:
	case GUARD_HOLDS:
	case GUARD_SAMPLE:
	case GUARD_POINTER:
		break;
	case GUARD_CONFIG:
	case GUARD_HOOKS:
	case GUARD_ONCE:
	case GUARD_SHUT:
		r = guard_refuse(c, p, &g);
		break;
	}
	if (r == 0)
		r = decide_path(c, reads(w) ? WANT_WRITE : WANT_PUT, place_sv(p));
	if (r == 0 && reads(w))
		r = decide_path(c, WANT_READ, place_sv(p));
	if (r == 0)
		r = guard_complete(c, p);
	return r == 0 && g.kind == GUARD_POINTER ? ANSWER_FD : r;
}

/* -EEXIST if it is there by now. */
static int create(struct call *c, const struct place *p, const struct want_open *w, struct as *as)
{
	int r, fd;

	if (p->name[0] == 0 || p->slash)
		return -EISDIR;
	if (w->flags & O_DIRECTORY)
		return -EINVAL;
	r = may_create(c, p, w);
	if (r == -EACCES && (w->flags & O_EXCL) && place_exists(p)) {
		c->m->has_event = false;
		return -EEXIST;
	}
	if (r == ANSWER_FD) {
		if (place_exists(p))
			return -EEXIST;
		return only_watching(c) ? 0 : shadow_open(c, p, w->mode, (unsigned)w->flags);
	}
	if (r < 0 || only_watching(c))
		return r;
	r = as_mask(c, as);
	if (r < 0)
		return r;
	fd = openat(p->dir, p->name,
		    (w->flags & ~O_TRUNC) | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY,
		    w->mode & NEW_MODE);
	return fd < 0 ? -errno : hand_out(c, fd, w);
}

/* A file without a name: decided as one that has none yet, and again when it gets one. */
static int open_tmpfile(struct call *c, struct place *p, int obj, const struct stat *st,
			const struct want_open *w, struct as *as)
{
	scoped_place inside = PLACE_NONE;
	int r, fd;

	if (!S_ISDIR(st->st_mode))
		return -ENOTDIR;
	r = place_in(c, obj, "#unnamed", &inside);
	if (r == 0)
		r = may_create(c, &inside, w);
	if (r == 0)
		r = as_mask(c, as);
	if (r < 0 || only_watching(c))
		return r;
	(void)p;
	fd = openat(obj, ".", (w->flags & ~(O_NOFOLLOW)) | O_CLOEXEC | O_NOCTTY,
		    w->mode & NEW_MODE);
	return fd < 0 ? -errno : hand_out(c, fd, w);
}

/* --- The common case: a regular file that is there, by its own name --- */

/* How a directory that ignores case writes the name is what rules are about. */
static bool has_name(struct mediator *m, int fd, const struct place *p)
{
	char path[PATH_MAX];
	size_t n;

	return path_of_fd(m, fd, path, &n) && sv_eq((struct sv){ path, n }, place_sv(p));
}

/*
 * Two lookups instead of three. SECURITY: nothing is opened before it was seen to
 * be a regular file, and what is handed out is that very file.
 */
static int open_quick(struct call *c, struct place *p, const struct want_open *w)
{
	const int flags = w->flags & ~NOT_HANDED;
	struct stat st, got;
	int r, fd;

	if (p->slash || p->name[0] == 0 || only_reads(w) || is_tmpfile(w) ||
	    (w->flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY || (w->flags & O_DIRECTORY))
		return -EAGAIN;
	if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT && !(w->flags & O_CREAT) ? -ENOENT : -EAGAIN;
	if (!S_ISREG(st.st_mode) || !device_is_plain(c->m, p->dir, st.st_dev))
		return -EAGAIN;
	r = may_overwrite(c, p, w);
	if (r == ANSWER_FD)
		return -EAGAIN;
	if (r < 0 || only_watching(c))
		return r;
	/* Without O_NOFOLLOW, which the target would see: what was followed shows below. */
	fd = openat(p->dir, p->name, (flags & ~O_TRUNC) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &got) < 0 || got.st_dev != st.st_dev || got.st_ino != st.st_ino ||
	    (c->m->globs && !has_name(c->m, fd, p)))
		r = -EAGAIN;
	if (r == 0 && (flags & O_TRUNC) && ftruncate(fd, 0) < 0)
		r = -errno;
	if (r == 0 && !(w->flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags & ~O_TRUNC) < 0)
		r = -errno;
	if (r < 0) {
		scope_close(&fd);
		return r;
	}
	return hand_out(c, fd, w);
}

/* --- Both --- */

static int open_place(struct call *c, struct place *p, const struct want_open *w, struct as *as)
{
	const bool excl = (w->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);

	for (unsigned i = 0, links = 0; i < TRIES; i++) {
		scoped_fd obj = -1;
		struct stat st;
		int r;

		if (excl && !is_tmpfile(w))
			return create(c, p, w, as);
		r = open_quick(c, p, w);
		if (r != -EAGAIN)
			return r;
		c->m->has_event = false;
		obj = place_object(c, p, !(w->flags & O_NOFOLLOW), &st);
		if (obj == -ENOENT && (w->flags & O_CREAT) && p->dir >= 0) {
			r = create(c, p, w, as);
			if (r != -EEXIST)
				return r;
			as_end(as);
			r = as_begin(c, as);
			if (r < 0)
				return r;
			continue;
		}
		/* A link led to where others would go by themselves. */
		if (obj == ANSWER_CONTINUE && on_behalf(c, w)) {
			if (is_below(place_sv(p), SV("/proc")))
				return proc_open(c, p->path, w->flags);
			if (++links < LINKS_MAX)
				i--;
			continue;
		}
		if (obj < 0)
			return obj;
		if (is_tmpfile(w))
			return open_tmpfile(c, p, obj, &st, w, as);
		return open_found(c, p, obj, &st, w);
	}
	return -EEXIST;
}

/* SECURITY: a path is only good as long as what hangs in the air has none. */
static int look_nameless(struct call *c, int obj, const struct stat *st, const struct want_open *w)
{
	static const struct sv gone = SV_INIT(" (deleted)");
	struct place p = PLACE_NONE;

	if (!path_of_fd(c->m, obj, p.path, &p.n))
		return -EACCES;
	if (p.path[0] != '/')
		return behalf_open(c, obj, st, SV(""), w->flags);
	if (mounts_changed(c->m))
		return -EACCES;
	/* What it was called when it had a name is what rules are about. */
	if (sv_ends(place_sv(&p), gone))
		p.n -= gone.n;
	p.path[p.n] = 0;
	return look_at(c, &p, obj, st, w);
}

/* The path is one of the target's own descriptors: what it is, opened once more. */
static int open_own(struct call *c, int number, const struct want_open *w)
{
	scoped_fd obj = task_fd(c, number);
	scoped_place p = PLACE_NONE;
	scoped_as as = { 0 };
	char path[PATH_MAX];
	struct stat st, at;
	size_t n;
	int r;

	if (obj < 0)
		return obj == -EBADF ? -ENOENT : obj;
	if (fstat(obj, &st) < 0 || !path_of_fd(c->m, obj, path, &n))
		return -EACCES;
	if (on_behalf(c, w) && (path[0] != '/' || st.st_nlink == 0)) {
		r = as_begin(c, &as);
		return r < 0 ? r : look_nameless(c, obj, &st, w);
	}
	if (!on_behalf(c, w) && (!S_ISREG(st.st_mode) || path[0] != '/' || st.st_nlink == 0 ||
				 is_private(c->m, (struct sv){ path, n })))
		return ANSWER_CONTINUE;
	r = place_find(c, AT_FDCWD, path, &p);
	if (r < 0)
		return r;
	/* SECURITY: the name is only good if it is this object's. */
	if (fstatat(p.dir, p.name, &at, AT_SYMLINK_NOFOLLOW) < 0 || at.st_dev != st.st_dev ||
	    at.st_ino != st.st_ino)
		return ANSWER_CONTINUE;
	r = as_begin(c, &as);
	return r < 0 ? r : open_found(c, &p, obj, &st, w);
}

/* The file the target is running, by the name it has or had. */
static int open_exe(struct call *c, const struct want_open *w)
{
	scoped_fd obj = task_open(c, "exe", 0);
	scoped_as as = { 0 };
	struct stat st;
	int r;

	if (obj < 0)
		return obj;
	if (fstat(obj, &st) < 0)
		return -EACCES;
	r = as_begin(c, &as);
	return r < 0 ? r : look_nameless(c, obj, &st, w);
}

/* Behind /proc: @text names it, however it was reached. */
static int open_proc(struct call *c, const char *text, const struct want_open *w)
{
	const int r = on_behalf(c, w) ? proc_open(c, text, w->flags) : ANSWER_CONTINUE;

	return r == ANSWER_CONTINUE && on_behalf(c, w) ? open_exe(c, w) : r;
}

static int open_text(struct call *c, int dirfd, const struct want_open *w)
{
	scoped_place p = PLACE_NONE;
	scoped_as as = { 0 };
	int r;

	if (own_fd_text(c->text[0]) >= 0)
		return open_own(c, own_fd_text(c->text[0]), w);
	/* Usually a link to /proc/self/mounts, and which that is we cannot see. */
	if (on_behalf(c, w) && strcmp(c->text[0], "/etc/mtab") == 0)
		return open_proc(c, "/proc/self/mounts", w);
	r = place_text(c, dirfd, 0, &p);
	if (r == ANSWER_CONTINUE)
		return open_proc(c, c->text[0], w);
	if (r < 0)
		return r;
	if (is_below(place_sv(&p), SV("/proc")))
		return open_proc(c, p.path, w);
	if (is_private(c->m, place_sv(&p)) && !on_behalf(c, w))
		return ANSWER_CONTINUE;
	r = as_begin(c, &as);
	return r < 0 ? r : open_place(c, &p, w, &as);
}

static int do_open(struct call *c, int dirfd, unsigned i, uint64_t flags, uint64_t mode)
{
	const struct want_open w = { (int)(uint32_t)flags, (mode_t)mode };
	int r;

	/* No content comes out of it, and opening it again is another call. */
	if (flags & O_PATH)
		return ANSWER_CONTINUE;
	r = task_text(c, c->arg[i], c->text[0]);
	if (r >= 0)
		r = open_text(c, dirfd, &w);
	/*
	 * SECURITY: where Landlock lets read what rules hide, an open that is let through
	 * could be turned to it by whoever rewrites the path. One for writing could not.
	 */
	return r == ANSWER_CONTINUE && on_behalf(c, &w) ? -EACCES : r;
}

int op_open(struct call *c)
{
	return do_open(c, AT_FDCWD, 0, c->arg[1], c->arg[2]);
}

int op_openat(struct call *c)
{
	return do_open(c, reg_int(c->arg[0]), 1, c->arg[2], c->arg[3]);
}

int op_creat(struct call *c)
{
	return do_open(c, AT_FDCWD, 0, O_CREAT | O_WRONLY | O_TRUNC, c->arg[1]);
}

int op_truncate(struct call *c)
{
	static const struct want_open w = { O_WRONLY | O_TRUNC, 0 };
	scoped_place p = PLACE_NONE;
	scoped_as as = { 0 };
	scoped_fd obj = -1, fd = -1;
	struct stat st;
	int r = place_arg(c, AT_FDCWD, 0, 0, &p);

	if (r < 0)
		return r;
	if (is_left_to_kernel(c->m, &p))
		return ANSWER_CONTINUE;
	if ((int64_t)c->arg[1] < 0)
		return -EINVAL;
	r = as_begin(c, &as);
	obj = r < 0 ? r : place_object(c, &p, true, &st);
	if (obj < 0)
		return obj;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode) || !device_is_plain(c->m, obj, st.st_dev))
		return -EINVAL;
	r = may_overwrite(c, &p, &w);
	if (r == ANSWER_FD)
		return deny(c, place_sv(&p), RULE_NONE, "such a file is replaced as a whole");
	if (r < 0 || only_watching(c))
		return r;
	fd = reopen(c->m, obj, O_WRONLY | O_NONBLOCK);
	if (fd < 0)
		return fd;
	return ftruncate(fd, (off_t)c->arg[1]) < 0 ? -errno : 0;
}
