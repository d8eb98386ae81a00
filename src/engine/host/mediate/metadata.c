#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "mediate/creds_priv.h"
#include "mediate/guard_priv.h"
#include "mediate/op_priv.h"
#include "mediate/place_priv.h"

#include "base/banned.h"

/*
 * Modes, owners, times and extended attributes. Landlock does not restrict changes of this
 * metadata, so the mediator lets no such call through to the kernel. This includes calls on a
 * descriptor: the caller could make the number of its descriptor refer to another file before the
 * kernel reads the number.
 */

enum { XATTR_MAX = 65536, AT_META = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH };

struct meta {
	int obj; /* O_PATH descriptor of the object, owned */
	struct stat st;
	char path[PATH_MAX];
	size_t n;
	struct creds creds;
};
#define scoped_meta __attribute__((cleanup(meta_clear))) struct meta

static void meta_clear(struct meta *t)
{
	fd_scope_close(&t->obj);
	creds_leave(&t->creds);
}

/*
 * True for pipes, sockets, memfds and removed files, which have no name on the host. A caller that
 * holds such an object may change it.
 */
static bool is_anonymous(const struct meta *t)
{
	return t->path[0] != '/' || t->st.st_nlink == 0 ||
	       sv_starts((struct sv){ t->path, t->n }, SV("/memfd:"));
}

/*
 * True for the configurations of git, whose mode may change. git tests whether it can change the
 * mode of a configuration by changing it, and a mode does not change the settings in the file.
 */
static bool is_config(const struct protect_hit *hit)
{
	const struct sv row = sv_from(hit->row->name);

	return hit->rel == PROTECT_AT && sv_starts(row, SV(".git/")) &&
	       (sv_ends(row, SV("/config")) || sv_ends(row, SV("/config.worktree")));
}

/*
 * Denies every metadata change of a hook in a repository that guard.c finds by its content. An
 * executable mode would turn a file that was harmless into a hook.
 */
static int hook_decide(struct call *c, const struct meta *t)
{
	const char *slash = strrchr(t->path, '/');
	scoped_place p = PLACE_NONE;
	struct guard g;
	int r;

	if (!S_ISREG(t->st.st_mode) || !slash ||
	    !sv_ends((struct sv){ t->path, (size_t)(slash - t->path) }, SV("/hooks")))
		return 0;
	r = place_find(c, AT_FDCWD, t->path, &p);
	if (r < 0)
		return r;
	g = guard_classify(c, &p);
	return g.kind == GUARD_CLOSED ? guard_deny(c, &p, &g) : 0;
}

static int meta_decide(struct call *c, struct meta *t)
{
	const struct sv path = { t->path, t->n };
	struct protect_hit hit;
	int r;

	if (is_anonymous(t))
		return 0;
	if (!S_ISREG(t->st.st_mode) && !S_ISDIR(t->st.st_mode) && !S_ISLNK(t->st.st_mode) &&
	    !S_ISFIFO(t->st.st_mode) && !S_ISSOCK(t->st.st_mode))
		return mediate_deny(c, path, RULE_NONE, CAUSE_DEVICE_META);
	if (!mediate_device_is_plain(c->m, t->obj, t->st.st_dev))
		return mediate_deny(c, path, RULE_NONE, CAUSE_NOT_FILES);
	r = mediate_decide_path(c, WANT_WRITE, path);
	if (r < 0)
		return r;
	hit = mediate_protected_at(c->m, -1, path);
	if (!mediate_is_private(c->m, path) && hit.rel >= PROTECT_AT && !is_config(&hit))
		return mediate_deny_protected(c, path, hit.row);
	return mediate_is_private(c->m, path) ? 0 : hook_decide(c, t);
}

/*
 * Takes ownership of @obj, finds its path, and decides about changing its metadata. Every change of
 * metadata except those of writer_times() goes through this function.
 */
static int meta_object(struct call *c, struct meta *t, int obj)
{
	if (obj < 0)
		return obj == ANSWER_CONTINUE ? -EACCES : obj;
	t->obj = obj;
	if (fstat(obj, &t->st) < 0 || !mediate_path_of_fd(c->m, obj, t->path, &t->n))
		return -EACCES;
	if (!notify_valid(c->listener, c->id))
		return ANSWER_GONE;
	return meta_decide(c, t);
}

static int meta_fd(struct call *c, int fd, struct meta *t)
{
	return meta_object(c, t, fd == AT_FDCWD ? task_open(c, "cwd", 0) : task_open_fd(c, fd));
}

/* Finds the object that the call names and decides about the change. Returns 0 or -errno. */
static int meta_find(struct call *c, struct meta *t)
{
	const uint64_t flags = c->flags;
	scoped_place p = PLACE_NONE;
	struct stat st;
	int r;

	if (c->row->form == OP_FD)
		return meta_fd(c, reg_int(c->arg[0]), t);
	if (flags & ~(uint64_t)AT_META)
		return -EINVAL;
	r = task_read_path(c, c->arg[0], c->text[0]);
	if (r < 0)
		return r;
	if (r == 0 && (flags & AT_EMPTY_PATH))
		return meta_fd(c, c->dir, t);
	if (mediate_parse_own_fd(c->text[0]) >= 0 && !(flags & AT_SYMLINK_NOFOLLOW))
		return meta_fd(c, mediate_parse_own_fd(c->text[0]), t);
	r = place_from_text(c, c->dir, 0, &p);
	if (r < 0)
		return r == ANSWER_CONTINUE ? -EACCES : r;
	return meta_object(c, t, place_open(c, &p, !(flags & AT_SYMLINK_NOFOLLOW), &st));
}

/* Returns a path that names the object, for system calls that accept no O_PATH descriptor. */
static const char *self_path(const struct meta *t, char to[40])
{
	(void)snprintf(to, 40, "/proc/self/fd/%d", t->obj);
	return to;
}

/* --- Modes --- */

int op_chmod(struct call *c)
{
	const uint64_t mode = c->arg[1];
	scoped_meta t = { .obj = -1 };
	char path[40];
	int r = meta_find(c, &t);

	if (r < 0)
		return r;
	if ((mode & (S_ISUID | S_ISGID)) && !S_ISDIR(t.st.st_mode))
		return mediate_deny(c, (struct sv){ t.path, t.n }, RULE_NONE, CAUSE_SET_ID);
	if (S_ISLNK(t.st.st_mode))
		return -EOPNOTSUPP;
	if (is_observing(c))
		return 0;
	r = creds_enter(c, &t.creds);
	if (r < 0)
		return r;
	return chmod(self_path(&t, path), (mode_t)(mode & 07777)) < 0 ? -errno : 0;
}

/* --- Owners --- */

int op_chown(struct call *c)
{
	scoped_meta t = { .obj = -1 };
	int r = meta_find(c, &t);

	if (r < 0 || is_observing(c))
		return r;
	r = creds_enter(c, &t.creds);
	if (r < 0)
		return r;
	return fchownat(t.obj, "", (uid_t)c->arg[1], (gid_t)c->arg[2], AT_EMPTY_PATH) < 0 ? -errno
											   : 0;
}

/* --- Times --- */

static int do_times(struct call *c, struct meta *t, int found, const struct timespec *ts)
{
	char path[40];

	if (found < 0 || is_observing(c))
		return found;
	found = creds_enter(c, &t->creds);
	if (found < 0)
		return found;
	if (S_ISLNK(t->st.st_mode))
		return utimensat(t->obj, "", ts, AT_EMPTY_PATH) < 0 ? -errno : 0;
	return utimensat(AT_FDCWD, self_path(t, path), ts, 0) < 0 ? -errno : 0;
}

/*
 * Sets the times of a file that the caller holds open for writing, without a decision: the policy
 * decided when the caller opened the file, and a writer changes the times anyway. Programs that
 * unpack archives set the times of each file, so this path must be fast. Returns -EAGAIN if @fd is
 * not such a descriptor.
 */
static int writer_times(struct call *c, int fd, const struct timespec *ts)
{
	scoped_fd got = fd < 0 ? -1 : task_dup_thread_fd(c, fd);
	scoped_creds creds = { 0 };
	struct stat st;
	int r, flags;

	if (got < 0)
		return got == ANSWER_GONE ? ANSWER_GONE : -EAGAIN;
	flags = fcntl(got, F_GETFL);
	if (flags < 0 || (flags & O_PATH))
		return -EBADF;
	if ((flags & O_ACCMODE) == O_RDONLY || fstat(got, &st) < 0 || !S_ISREG(st.st_mode) ||
	    !mediate_device_is_plain(c->m, got, st.st_dev))
		return -EAGAIN;
	r = creds_enter(c, &creds);
	if (r < 0 || is_observing(c))
		return r;
	return futimens(got, ts) < 0 ? -errno : 0;
}

int op_utime(struct call *c)
{
	scoped_meta t = { .obj = -1 };
	struct timespec ts[2] = { { 0 } };
	struct utimbuf u;

	if (c->arg[1] && task_read(c, c->arg[1], &u, sizeof(u)) < 0)
		return -EFAULT;
	if (c->arg[1]) {
		ts[0].tv_sec = u.actime;
		ts[1].tv_sec = u.modtime;
	}
	return do_times(c, &t, meta_find(c, &t), c->arg[1] ? ts : NULL);
}

int op_utimes(struct call *c)
{
	scoped_meta t = { .obj = -1 };
	struct timespec ts[2] = { { 0 } };
	struct timeval tv[2];
	const uint64_t at = c->arg[1];

	if (at && task_read(c, at, tv, sizeof(tv)) < 0)
		return -EFAULT;
	for (unsigned k = 0; at && k < 2; k++) {
		if (tv[k].tv_usec < 0 || tv[k].tv_usec >= 1000000)
			return -EINVAL;
		ts[k] = (struct timespec){ tv[k].tv_sec, tv[k].tv_usec * 1000 };
	}
	return do_times(c, &t, meta_find(c, &t), at ? ts : NULL);
}

int op_utimensat(struct call *c)
{
	scoped_meta t = { .obj = -1 };
	struct timespec ts[2];
	int r, found;

	if (c->arg[1] && task_read(c, c->arg[1], ts, sizeof(ts)) < 0)
		return -EFAULT;
	if (c->arg[0] == 0 && c->dir == AT_FDCWD)
		return -EFAULT;
	if (c->arg[0] == 0 && c->flags)
		return -EINVAL;
	if (c->arg[0] == 0) {
		r = writer_times(c, c->dir, c->arg[1] ? ts : NULL);
		if (r != -EAGAIN)
			return r;
		found = meta_fd(c, c->dir, &t);
	} else {
		found = meta_find(c, &t);
	}
	return do_times(c, &t, found, c->arg[1] ? ts : NULL);
}

/* --- Extended attributes --- */

/*
 * Finds the object that the call names and copies the name of the attribute. SECURITY: refuses
 * attributes outside "user.", which carry capabilities, security labels and access lists. After
 * EOPNOTSUPP, programs that want to set an access list fall back to plain modes.
 */
static int find_attribute(struct call *c, struct meta *t)
{
	int r = meta_find(c, t);

	if (r < 0)
		return r;
	r = task_read_prefix(c, c->arg[1], c->text[1], XATTR_NAME_MAX + 2);
	if (r < 0)
		return r;
	return sv_starts(sv_from(c->text[1]), SV("user.")) ? 0 : -EOPNOTSUPP;
}

int op_setxattr(struct call *c)
{
	scoped_meta t = { .obj = -1 };
	const uint64_t size = c->arg[3];
	char path[40];
	char *value;
	int r = find_attribute(c, &t);

	if (r < 0)
		return r;
	if (size > XATTR_MAX)
		return -E2BIG;
	value = malloc(size + 1);
	if (!value)
		return -ENOMEM;
	r = task_read(c, c->arg[2], value, size);
	if (r == 0)
		r = creds_enter(c, &t.creds);
	/* SECURITY: name and value are the caller's only if the caller is still the same. */
	if (r == 0 && !notify_valid(c->listener, c->id))
		r = ANSWER_GONE;
	if (r == 0 && !is_observing(c) &&
	    setxattr(self_path(&t, path), c->text[1], value, size, reg_int(c->arg[4])) < 0)
		r = -errno;
	free(value);
	return r;
}

int op_removexattr(struct call *c)
{
	scoped_meta t = { .obj = -1 };
	char path[40];
	int r = find_attribute(c, &t);

	if (r == 0)
		r = creds_enter(c, &t.creds);
	if (r == 0 && !notify_valid(c->listener, c->id))
		r = ANSWER_GONE;
	if (r < 0 || is_observing(c))
		return r;
	return removexattr(self_path(&t, path), c->text[1]) < 0 ? -errno : 0;
}

/*
 * The filter traps only the ioctls that change flags of files (immutable, append-only, project id).
 * Programs work without these ioctls, so the mediator always refuses them.
 */
int op_ioctl(struct call *c)
{
	return mediate_deny(c, SV("file flags"), RULE_NONE, CAUSE_FILE_FLAGS);
}
