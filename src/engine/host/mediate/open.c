#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mediate/creds_priv.h"
#include "mediate/guard_priv.h"
#include "mediate/op_priv.h"
#include "mediate/open_priv.h"
#include "mediate/place_priv.h"

#include "base/banned.h"

/*
 * open, openat, creat and truncate. After an open the caller receives a descriptor that the
 * mediator opened, with the flags that the caller asked for.
 */

enum {
	/* SECURITY: mode bits of new files, without set-user-id and set-group-id */
	NEW_MODE = 01777,
	/*
	 * Number of attempts: a program on the host may create and remove the same name meanwhile.
	 */
	TRIES = 3,
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

/* True if the open changes nothing, whatever object is at the path. */
static bool only_reads(const struct want_open *w)
{
	return (w->flags & O_ACCMODE) == O_RDONLY && !(w->flags & (O_CREAT | O_TRUNC)) &&
	       !is_tmpfile(w);
}

/*
 * True for an open for reading that the mediator must perform itself even where Landlock would
 * allow it. See mediate_options.read_all.
 */
static bool reads_are_mediated(const struct call *c, const struct want_open *w)
{
	return c->m->opt.read_all && (w->flags & O_ACCMODE) != O_WRONLY &&
	       (w->flags & O_ACCMODE) != O_RDWR;
}

/* --- Existing files --- */

static int may_overwrite(struct call *c, const struct place *p, const struct want_open *w)
{
	const bool put = !reads(w) && !(w->flags & O_TRUNC);
	const struct guard g = guard_classify(c, p);
	int r = 0;

	switch (g.kind) {
	case GUARD_FREE:
	case GUARD_ANCESTOR:
	case GUARD_SAMPLE:
	case GUARD_POINTER: /* decided below: with O_TRUNC the caller gets a shadow */
		break;
	case GUARD_CONFIG:
		r = mediate_deny(c, place_sv(p), RULE_NONE, CAUSE_CONFIG_WHOLE);
		break;
	case GUARD_HOOKS:
	case GUARD_WRITE_ONCE:
	case GUARD_CLOSED:
		r = guard_deny(c, p, &g);
		break;
	}
	if (r == 0)
		r = mediate_decide_path(c, put ? WANT_PUT : WANT_WRITE, place_sv(p));
	if (r == 0 && reads(w))
		r = mediate_decide_path(c, WANT_READ, place_sv(p));
	if (r == 0 && g.kind == GUARD_POINTER)
		return w->flags & O_TRUNC ? ANSWER_FD : guard_deny(c, p, &g);
	return r;
}

static bool is_own_pipe(const struct call *c, const struct stat *st)
{
	return S_ISFIFO(st->st_mode) && endpoint_is_own(c->m, st);
}

static int overwrite(struct call *c, struct place *p, int obj, const struct stat *st,
		     const struct want_open *w)
{
	int r;

	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	if (S_ISCHR(st->st_mode) && mediate_is_below(place_sv(p), SV("/dev")))
		return ANSWER_CONTINUE;
	if (S_ISSOCK(st->st_mode))
		return -ENXIO;
	/*
	 * A program outside may listen on a socket, and may in the same way read from a named pipe.
	 * So the mediator opens for writing only pipes that the session created.
	 */
	if ((!S_ISREG(st->st_mode) && !is_own_pipe(c, st)) ||
	    !mediate_device_is_plain(c->m, obj, st->st_dev))
		return mediate_deny(
			c, place_sv(p), RULE_NONE, CAUSE_OPEN_WRITE);
	r = may_overwrite(c, p, w);
	if (r == ANSWER_FD)
		return is_observing(c) ? 0 : shadow_open(c, p, st->st_mode, (unsigned)w->flags);
	if (r < 0 || is_observing(c))
		return r;
	return S_ISFIFO(st->st_mode) ? mediate_pipe_open(c, obj, w->flags)
				     : mediate_open_object(c, obj, w->flags);
}

static int open_for_read(struct call *c, struct place *p, int obj, const struct stat *st,
			 const struct want_open *w)
{
	int r;

	if (!mediate_is_read_root(c->m, place_sv(p)))
		return reads_are_mediated(c, w)
			       ? mediate_open_for_read(c, obj, st, place_sv(p), w->flags)
			       : ANSWER_CONTINUE;
	if (S_ISSOCK(st->st_mode))
		return -ENXIO;
	if ((!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) && !is_own_pipe(c, st)) ||
	    !mediate_device_is_plain(c->m, obj, st->st_dev))
		return mediate_deny(c, place_sv(p), RULE_NONE, CAUSE_OPEN_KIND);
	c->op = MEDIATE_READ;
	r = mediate_decide_path(c, WANT_READ, place_sv(p));
	if (r < 0 || is_observing(c))
		return r;
	/*
	 * SECURITY: drop O_TRUNC, which works even with O_RDONLY: the decision was about reading.
	 */
	return S_ISFIFO(st->st_mode) ? mediate_pipe_open(c, obj, w->flags)
				     : mediate_open_object(c, obj, w->flags & ~O_TRUNC);
}

/*
 * Sets the path of @p to the one that the directory stores. A directory that ignores case may have
 * stored the name in another spelling, and rules match the stored spelling. SECURITY: a program on
 * the host may give the name of @obj to another file meanwhile; then the path of @obj ends in
 * " (deleted)", which no rule matches. So the path counts only if it still leads to @obj. Returns
 * 0, -EACCES, or -EAGAIN if the path leads elsewhere; then @p is unchanged.
 */
static int take_stored_path(struct call *c, struct place *p, int obj, const struct stat *st)
{
	static const struct sv gone = SV_INIT(" (deleted)");
	char path[PATH_MAX], up[NAME_MAX + 8];
	const char *name;
	struct stat at;
	size_t n;
	int r;

	if (!c->m->rules.globs)
		return 0;
	if (!mediate_path_of_fd(c->m, obj, path, &n) || path[0] != '/')
		return -EACCES;
	name = strrchr(path, '/') + 1;
	(void)snprintf(up, sizeof(up), "../%s", name);
	if (p->name[0] && *name)
		r = fstatat(p->dir, name, &at, AT_SYMLINK_NOFOLLOW);
	else if (sv_ends((struct sv){ path, n }, gone))
		r = fstatat(obj, up, &at, AT_SYMLINK_NOFOLLOW);
	else
		r = fstat(obj, &at);
	if (r < 0 || at.st_dev != st->st_dev || at.st_ino != st->st_ino)
		return -EAGAIN;
	memcpy(p->path, path, n + 1);
	p->n = n;
	return 0;
}

static int open_found(struct call *c, struct place *p, int obj, const struct stat *st,
		      const struct want_open *w)
{
	if (S_ISLNK(st->st_mode))
		return w->flags & O_DIRECTORY ? -ENOTDIR : -ELOOP;
	if ((w->flags & O_DIRECTORY) && !S_ISDIR(st->st_mode))
		return -ENOTDIR;
	if (only_reads(w) || (w->flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY) {
		if ((w->flags & O_CREAT) && S_ISDIR(st->st_mode))
			return -EISDIR;
		return open_for_read(c, p, obj, st, w);
	}
	return overwrite(c, p, obj, st, w);
}

/* --- New files --- */

/*
 * Decides whether the caller may create and open a new file. Returns 0, -errno, or ANSWER_FD if the
 * caller may but gets a shadow. Writing alone needs fs.put; reading back the written content needs
 * fs.write and fs.read.
 */
static int may_create(struct call *c, const struct place *p, const struct want_open *w)
{
	const struct guard g = guard_classify(c, p);
	int r = 0;

	switch (g.kind) {
	case GUARD_FREE:
	case GUARD_ANCESTOR:
	case GUARD_SAMPLE:
	case GUARD_POINTER:
		break;
	case GUARD_CONFIG:
	case GUARD_HOOKS:
	case GUARD_WRITE_ONCE:
	case GUARD_CLOSED:
		r = guard_deny(c, p, &g);
		break;
	}
	if (r == 0)
		r = mediate_decide_path(c, reads(w) ? WANT_WRITE : WANT_PUT, place_sv(p));
	if (r == 0 && reads(w))
		r = mediate_decide_path(c, WANT_READ, place_sv(p));
	if (r == 0)
		r = guard_check_completion(c, p);
	return r == 0 && g.kind == GUARD_POINTER ? ANSWER_FD : r;
}

/* Creates the file. Returns ANSWER_FD or -errno; -EEXIST if the name exists already. */
static int create(struct call *c, const struct place *p, const struct want_open *w,
		  struct creds *creds)
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
		return is_observing(c) ? 0 : shadow_open(c, p, w->mode, (unsigned)w->flags);
	}
	if (r < 0 || is_observing(c))
		return r;
	r = creds_set_umask(c, creds);
	if (r < 0)
		return r;
	fd = openat(p->dir, p->name,
		    (w->flags & ~O_TRUNC) | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY,
		    w->mode & NEW_MODE);
	return fd < 0 ? -errno : mediate_hand_out(c, fd, w->flags);
}

/*
 * Opens a file without a name (O_TMPFILE). The policy decides as for a new file in the directory
 * @obj. If linkat() gives the file a name later, the mediator decides again.
 */
static int open_tmpfile(struct call *c, int obj, const struct stat *st, const struct want_open *w,
			struct creds *creds)
{
	scoped_place inside = PLACE_NONE;
	int r, fd;

	if (!S_ISDIR(st->st_mode))
		return -ENOTDIR;
	r = place_child(c, obj, "#unnamed", &inside);
	if (r == 0)
		r = may_create(c, &inside, w);
	if (r == 0)
		r = creds_set_umask(c, creds);
	if (r < 0 || is_observing(c))
		return r;
	fd = openat(obj, ".", (w->flags & ~(O_NOFOLLOW)) | O_CLOEXEC | O_NOCTTY,
		    w->mode & NEW_MODE);
	return fd < 0 ? -errno : mediate_hand_out(c, fd, w->flags);
}

/* --- Fast path: an existing regular file, by its own name --- */

/* True if the directory stores the name in the spelling that the caller used. */
static bool has_name(struct mediator *m, int fd, const struct place *p)
{
	char path[PATH_MAX];
	size_t n;

	return mediate_path_of_fd(m, fd, path, &n) && sv_eq((struct sv){ path, n }, place_sv(p));
}

/*
 * Opens an existing regular file for writing with two lookups instead of three. Returns -EAGAIN if
 * the general path must decide. SECURITY: fstatat() must show a regular file before the mediator
 * opens the name, since opening a device may have effects. After the open, device and inode must be
 * the same as before.
 */
static int open_quick(struct call *c, struct place *p, const struct want_open *w)
{
	const int flags = w->flags & ~NOT_HANDED;
	struct stat st, got;
	scoped_fd fd = -1;
	int r;

	if (p->slash || p->name[0] == 0 || only_reads(w) || is_tmpfile(w) ||
	    (w->flags & (O_ACCMODE | O_TRUNC)) == O_RDONLY || (w->flags & O_DIRECTORY))
		return -EAGAIN;
	if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT && !(w->flags & O_CREAT) ? -ENOENT : -EAGAIN;
	if (!S_ISREG(st.st_mode) || !mediate_device_is_plain(c->m, p->dir, st.st_dev))
		return -EAGAIN;
	r = may_overwrite(c, p, w);
	if (r == ANSWER_FD)
		return -EAGAIN;
	if (r < 0 || is_observing(c))
		return r;
	/*
	 * Open without O_NOFOLLOW, because the caller could see that flag on its descriptor. If
	 * openat() followed a link, the comparison of inodes below fails.
	 */
	fd = openat(p->dir, p->name, (flags & ~O_TRUNC) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &got) < 0 || got.st_dev != st.st_dev || got.st_ino != st.st_ino ||
	    (c->m->rules.globs && !has_name(c->m, fd, p)))
		return -EAGAIN;
	if (((flags & O_TRUNC) && ftruncate(fd, 0) < 0) ||
	    (!(w->flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags & ~O_TRUNC) < 0))
		return -errno;
	return mediate_hand_out(c, fd_take(&fd), w->flags);
}

/* --- General path --- */

/*
 * Refuses to write or create through a link in a git directory. Only the last name of the caller's
 * path counts; the policy decides about the object that a link leads to in any case.
 */
static int check_write_through(struct call *c, const struct place *p)
{
	struct stat st;

	if (p->name[0] == 0 || fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISLNK(st.st_mode) || !guard_is_in_git(c, p))
		return 0;
	return guard_deny_link(c, p);
}

/*
 * Opens or creates the file at @p. Starts again, up to TRIES times in all, if another process
 * creates the name after the lookup has not found it, or replaces the file that it has found.
 */
static int open_place(struct call *c, struct place *p, const struct want_open *w,
		      struct creds *creds)
{
	const bool excl = (w->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
	bool replaced = false;

	for (unsigned i = 0, links = 0; i < TRIES; i++) {
		scoped_fd obj = -1;
		struct stat st;
		int r;

		if (excl && !is_tmpfile(w))
			return create(c, p, w, creds);
		r = open_quick(c, p, w);
		if (r != -EAGAIN)
			return r;
		c->m->has_event = false;
		r = only_reads(w) || (w->flags & O_NOFOLLOW) ? 0 : check_write_through(c, p);
		if (r < 0)
			return r;
		obj = place_open(c, p, !(w->flags & O_NOFOLLOW), &st);
		if (obj == -ENOENT && (w->flags & O_CREAT) && p->dir >= 0) {
			r = create(c, p, w, creds);
			if (r != -EEXIST)
				return r;
			creds_leave(creds);
			r = creds_enter(c, creds);
			if (r < 0)
				return r;
			continue;
		}
		/*
		 * A link led to a private directory or to /proc. The kernel would open the file
		 * there, but the mediator may let no open through: it continues at the target of
		 * the link.
		 */
		if (obj == ANSWER_CONTINUE && reads_are_mediated(c, w)) {
			if (mediate_is_below(place_sv(p), SV("/proc")))
				return mediate_proc_open(c, p->path, w->flags);
			if (++links < LINKS_MAX)
				i--;
			continue;
		}
		if (obj < 0)
			return obj;
		if (is_tmpfile(w))
			return open_tmpfile(c, obj, &st, w, creds);
		r = take_stored_path(c, p, obj, &st);
		if (r != -EAGAIN)
			return r < 0 ? r : open_found(c, p, obj, &st, w);
		replaced = true;
	}
	return replaced ? -EACCES : -EEXIST;
}

/*
 * Opens for reading an object whose name may be gone, such as the running program after an update.
 * SECURITY: the path of a file in a detached mount means nothing, so this function opens no object
 * with a path after the mounts changed.
 */
static int open_unnamed(struct call *c, int obj, const struct stat *st, const struct want_open *w)
{
	static const struct sv gone = SV_INIT(" (deleted)");
	struct place p = PLACE_NONE;

	if (!mediate_path_of_fd(c->m, obj, p.path, &p.n))
		return -EACCES;
	if (p.path[0] != '/')
		return mediate_open_for_read(c, obj, st, SV(""), w->flags);
	if (mediate_mounts_changed(c->m))
		return -EACCES;
	/* Rules match the name that the file had before it was removed. */
	if (sv_ends(place_sv(&p), gone))
		p.n -= gone.n;
	p.path[p.n] = 0;
	return open_for_read(c, &p, obj, st, w);
}

/* Opens one of the caller's own descriptors again, by a path such as /proc/self/fd/7. */
static int open_own_fd(struct call *c, int number, const struct want_open *w)
{
	scoped_fd obj = task_open_fd(c, number);
	scoped_place p = PLACE_NONE;
	scoped_creds creds = { 0 };
	char path[PATH_MAX];
	struct stat st, at;
	size_t n;
	int r;

	if (obj < 0)
		return obj == -EBADF ? -ENOENT : obj;
	if (fstat(obj, &st) < 0 || !mediate_path_of_fd(c->m, obj, path, &n))
		return -EACCES;
	if (reads_are_mediated(c, w) && (path[0] != '/' || st.st_nlink == 0)) {
		r = creds_enter(c, &creds);
		return r < 0 ? r : open_unnamed(c, obj, &st, w);
	}
	if (!reads_are_mediated(c, w) &&
	    (!S_ISREG(st.st_mode) || path[0] != '/' || st.st_nlink == 0 ||
	     mediate_is_private(c->m, (struct sv){ path, n })))
		return ANSWER_CONTINUE;
	if (reads_are_mediated(c, w) && mediate_is_below((struct sv){ path, n }, SV("/proc")))
		return mediate_proc_open(c, path, w->flags);
	r = place_find(c, AT_FDCWD, path, &p);
	if (r < 0)
		return r;
	/*
	 * SECURITY: use the path only if it leads to the same object as the descriptor. If it does
	 * not, Landlock decides about the descriptor, or op_open() refuses the open.
	 */
	if (fstatat(p.dir, p.name, &at, AT_SYMLINK_NOFOLLOW) < 0 || at.st_dev != st.st_dev ||
	    at.st_ino != st.st_ino)
		return ANSWER_CONTINUE;
	r = creds_enter(c, &creds);
	if (r == 0)
		r = take_stored_path(c, &p, obj, &st);
	if (r == -EAGAIN)
		return -EACCES;
	return r < 0 ? r : open_found(c, &p, obj, &st, w);
}

/* Opens /proc/self/exe: the program the caller runs. */
static int open_exe(struct call *c, const struct want_open *w)
{
	scoped_fd obj = task_open(c, "exe", 0);
	scoped_creds creds = { 0 };
	struct stat st;
	int r;

	if (obj < 0)
		return obj;
	if (fstat(obj, &st) < 0)
		return -EACCES;
	r = creds_enter(c, &creds);
	return r < 0 ? r : open_unnamed(c, obj, &st, w);
}

/*
 * Handles an open of @text, a path in /proc: lets it through, or performs it if reads are mediated.
 */
static int open_proc(struct call *c, const char *text, const struct want_open *w)
{
	const int r =
		reads_are_mediated(c, w) ? mediate_proc_open(c, text, w->flags) : ANSWER_CONTINUE;

	return r == ANSWER_CONTINUE && reads_are_mediated(c, w) ? open_exe(c, w) : r;
}

static int open_text(struct call *c, const struct want_open *w)
{
	scoped_place p = PLACE_NONE;
	scoped_creds creds = { 0 };
	int r;

	if (mediate_parse_own_fd(c->text[0]) >= 0)
		return open_own_fd(c, mediate_parse_own_fd(c->text[0]), w);
	/*
	 * /etc/mtab is usually a link to /proc/self/mounts. Do not resolve this link: for the
	 * mediator, /proc/self is its own entry.
	 */
	if (reads_are_mediated(c, w) && strcmp(c->text[0], "/etc/mtab") == 0)
		return open_proc(c, "/proc/self/mounts", w);
	r = place_from_text(c, c->dir, 0, &p);
	if (r == ANSWER_CONTINUE)
		return open_proc(c, c->text[0], w);
	if (r < 0)
		return r;
	if (mediate_is_below(place_sv(&p), SV("/proc")))
		return open_proc(c, p.path, w);
	if (mediate_is_private(c->m, place_sv(&p)) && !reads_are_mediated(c, w))
		return ANSWER_CONTINUE;
	r = creds_enter(c, &creds);
	return r < 0 ? r : open_place(c, &p, w, &creds);
}

int op_open(struct call *c)
{
	/* The mode is the argument after the flags. creat() has no argument with flags. */
	const struct want_open w = { reg_int(c->flags), (mode_t)c->arg[c->row->flags_at + 1] };
	int r;

	/*
	 * An O_PATH descriptor gives no access to content. Opening the file through such a
	 * descriptor is another trapped call.
	 */
	if (c->flags & O_PATH)
		return ANSWER_CONTINUE;
	r = task_read_path(c, c->arg[0], c->text[0]);
	if (r >= 0)
		r = open_text(c, &w);
	/*
	 * SECURITY: with mediate_options.read_all Landlock allows reading files that rules hide, so
	 * that programs among them can be run. If the mediator let an open through, the caller
	 * could change the path after the mediator has read it, and so read a hidden file. Writing
	 * is different: Landlock itself confines writes.
	 */
	return r == ANSWER_CONTINUE && reads_are_mediated(c, &w) ? -EACCES : r;
}

/*
 * Truncates a file by its path. Refuses a file whose content the mediator checks: such a file
 * cannot be shortened in place.
 */
int op_truncate(struct call *c)
{
	static const struct want_open w = { O_WRONLY | O_TRUNC, 0 };
	scoped_place p = PLACE_NONE;
	scoped_creds creds = { 0 };
	scoped_fd obj = -1, fd = -1;
	struct stat st;
	int r = place_from_arg(c, 0, 0, &p);

	if (r < 0)
		return r;
	if (mediate_is_left_to_kernel(c->m, &p))
		return ANSWER_CONTINUE;
	if ((int64_t)c->arg[1] < 0)
		return -EINVAL;
	r = creds_enter(c, &creds);
	r = r < 0 ? r : check_write_through(c, &p);
	obj = r < 0 ? r : place_open(c, &p, true, &st);
	if (obj < 0)
		return obj;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode) || !mediate_device_is_plain(c->m, obj, st.st_dev))
		return -EINVAL;
	r = may_overwrite(c, &p, &w);
	if (r == ANSWER_FD)
		return mediate_deny(c, place_sv(&p), RULE_NONE, CAUSE_REPLACE_WHOLE);
	if (r < 0 || is_observing(c))
		return r;
	fd = mediate_reopen(c->m, obj, O_WRONLY | O_NONBLOCK);
	if (fd < 0)
		return fd;
	return ftruncate(fd, (off_t)c->arg[1]) < 0 ? -errno : 0;
}
