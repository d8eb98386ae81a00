#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mediate/creds_priv.h"
#include "mediate/git_priv.h"
#include "mediate/guard_priv.h"
#include "mediate/op_priv.h"
#include "mediate/open_priv.h"
#include "mediate/place_priv.h"

#include "base/banned.h"

/* System calls that involve two names: rename and link. */

/* --- Rename --- */

struct move {
	struct place *from, *to;
	struct stat st;	   /* the object that moves */
	bool linked;	   /* the call is link(): the old name stays */
	bool swapped;	   /* the call has the flag RENAME_EXCHANGE */
	bool there;	   /* an object exists at @to */
	struct guard at;   /* classification of @to */
};

/* Denies giving a file that a rule hides a new name under which the session could read it. */
static int may_show(struct call *c, const struct move *v)
{
	struct cap_verdict was, is;

	if (!c->m->rules.read_nots || mediate_may(c->m, WANT_READ, place_sv(v->from), &was) ||
	    was.rule == RULE_NONE || !mediate_may(c->m, WANT_READ, place_sv(v->to), &is))
		return 0;
	return mediate_deny(c, place_sv(v->from), was.rule, CAUSE_HIDDEN);
}

/* Decides whether the object may leave its old name (rename) or get a second name (link). */
static int may_leave(struct call *c, const struct move *v)
{
	const struct guard g = guard_classify(c, v->from);
	const bool dir = S_ISDIR(v->st.st_mode);
	bool fine = false;
	int r;

	switch (g.kind) {
	case GUARD_FREE:
	case GUARD_SAMPLE:
		fine = true;
		break;
	case GUARD_ANCESTOR:
		fine = !dir;
		break;
	case GUARD_POINTER:
		/*
		 * SECURITY: a second name for the same file would allow writing the file unchecked.
		 */
		fine = !dir && !v->linked;
		break;
	case GUARD_CONFIG:
	case GUARD_HOOKS:
	case GUARD_WRITE_ONCE:
	case GUARD_CLOSED:
		break;
	}
	r = fine ? mediate_decide_path(c, WANT_WRITE, place_sv(v->from))
		 : guard_deny(c, v->from, &g);
	return r < 0 ? r : may_show(c, v);
}

/* Checks a moved symbolic link like a new link: from its new name it may lead elsewhere. */
static int check_moved_link(struct call *c, const struct place *from, const struct place *to)
{
	char text[PATH_MAX];
	const ssize_t n = readlinkat(from->dir, from->name, text, sizeof(text) - 1);

	if (n <= 0)
		return -EACCES;
	text[n] = 0;
	return guard_is_in_git(c, to) ? guard_deny_link(c, to) : mediate_check_link(c, to, text);
}

/* Decides whether the object may appear at its new name. */
static int may_arrive(struct call *c, struct move *v)
{
	const bool dir = S_ISDIR(v->st.st_mode), file = S_ISREG(v->st.st_mode);
	bool fine = false;
	int r;

	v->at = guard_classify(c, v->to);
	switch (v->at.kind) {
	case GUARD_FREE:
		fine = true;
		break;
	case GUARD_ANCESTOR:
		fine = !dir && !S_ISLNK(v->st.st_mode);
		break;
	case GUARD_POINTER:
	case GUARD_CONFIG:
		fine = file && !v->swapped;
		break;
	case GUARD_SAMPLE:
		fine = file;
		break;
	case GUARD_HOOKS:
	case GUARD_WRITE_ONCE:
	case GUARD_CLOSED:
		break;
	}
	r = fine ? mediate_decide_path(c, v->there && !v->linked ? WANT_WRITE : WANT_PUT,
				       place_sv(v->to))
		 : guard_deny(c, v->to, &v->at);
	if (r >= 0 && S_ISLNK(v->st.st_mode))
		r = check_moved_link(c, v->from, v->to);
	return r < 0 ? r : guard_check_completion(c, v->to);
}

static int may_move(struct call *c, struct move *v)
{
	int r = may_leave(c, v);

	if (r == 0)
		r = may_arrive(c, v);
	if (r == 0 && S_ISDIR(v->st.st_mode))
		r = mediate_check_moved_tree(c, v->from, v->to);
	return r;
}

static bool is_checked(const struct move *v)
{
	return v->at.kind == GUARD_CONFIG || v->at.kind == GUARD_POINTER;
}

/* Installs a checked copy of the file's content at the new name and removes the old name. */
static int move_checked(struct call *c, const struct move *v, uint64_t flags)
{
	scoped_fd fd = openat(v->from->dir, v->from->name,
			      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = mediate_git_install(c, fd, v->to, &v->at, !(flags & RENAME_NOREPLACE));
	if (r < 0 || is_observing(c))
		return r;
	return unlinkat(v->from->dir, v->from->name, 0) < 0 ? -errno : 0;
}

/* Resolves the second path of the call. A call with OP_AT has a second directory for it. */
static int find_second(struct call *c, struct place *p)
{
	if (c->row->form != OP_AT)
		return place_from_arg(c, 1, 1, p);
	c->dir = reg_int(c->arg[1]);
	return place_from_arg(c, 2, 1, p);
}

/*
 * Resolves both paths of the call. call.text[0] already holds the first path. Returns 0, -errno, or
 * ANSWER_CONTINUE if the mediator leaves both places to the kernel.
 */
static int find_two(struct call *c, struct place *a, struct place *b)
{
	bool left_a, left_b;
	int r = place_from_text(c, c->dir, 0, a);

	if (r == 0)
		r = find_second(c, b);
	if (r < 0)
		return r;
	left_a = mediate_is_left_to_kernel(c->m, a);
	left_b = mediate_is_left_to_kernel(c->m, b);
	if (left_a && left_b)
		return ANSWER_CONTINUE;
	/*
	 * Exactly one of the two paths is in a private directory or in /proc. The caller can change
	 * files in private directories without the mediator. Report that the paths are on different
	 * file systems (EXDEV): programs then copy the content through calls that the mediator
	 * checks.
	 */
	return left_a != left_b ? -EXDEV : 0;
}

/*
 * Renames @a to @b. Decides about an exchange in both directions. If the mediator must check the
 * content of the file, installs a checked copy at the new name instead.
 */
static int rename_found(struct call *c, struct place *a, struct place *b, uint64_t flags)
{
	struct move v = { .from = a, .to = b, .swapped = flags & RENAME_EXCHANGE };
	struct move back = { .from = b, .to = a, .swapped = true, .there = true };
	int r;

	if (fstatat(a->dir, a->name, &v.st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	v.there = fstatat(b->dir, b->name, &back.st, AT_SYMLINK_NOFOLLOW) == 0;
	if (v.there && (flags & RENAME_NOREPLACE))
		return -EEXIST;
	if (!v.there && v.swapped)
		return -ENOENT;
	if (mediate_is_mount_point(a) || (v.there && mediate_is_mount_point(b)))
		return -EBUSY;
	r = may_move(c, &v);
	if (r == 0 && v.swapped)
		r = may_move(c, &back);
	if (r < 0)
		return r;
	if (is_checked(&v))
		return move_checked(c, &v, flags);
	if (is_observing(c))
		return 0;
	return syscall(SYS_renameat2, a->dir, place_syscall_name(a), b->dir, place_syscall_name(b),
		       flags) < 0
		       ? -errno
		       : 0;
}

int op_rename(struct call *c)
{
	const uint64_t flags = (uint32_t)c->flags;
	scoped_place a = PLACE_NONE, b = PLACE_NONE;
	scoped_creds creds = { 0 };
	int r;

	if ((flags & ~(uint64_t)(RENAME_NOREPLACE | RENAME_EXCHANGE)) ||
	    flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	r = task_read_path(c, c->arg[0], c->text[0]);
	if (r >= 0)
		r = find_two(c, &a, &b);
	if (r != 0)
		return r;
	if (a.name[0] == 0 || b.name[0] == 0)
		return -EBUSY;
	r = creds_enter(c, &creds);
	return r < 0 ? r : rename_found(c, &a, &b, flags);
}

/* --- Links --- */

/* Gives the object @obj (an O_PATH descriptor), found at v->from, the second name v->to. */
static int link_found(struct call *c, struct move *v, int obj)
{
	char number[16];
	int r = 0;

	if (S_ISDIR(v->st.st_mode))
		return -EPERM;
	if (place_exists(v->to))
		return -EEXIST;
	v->linked = true;
	/* A file without a name (O_TMPFILE) has no old name to decide about. */
	if (v->st.st_nlink > 0)
		r = may_leave(c, v);
	if (r == 0)
		r = may_arrive(c, v);
	if (r < 0)
		return r;
	if (!S_ISREG(v->st.st_mode) && !S_ISLNK(v->st.st_mode))
		return mediate_deny(c, place_sv(v->from), RULE_NONE, CAUSE_LINK_KIND);
	if (!mediate_device_is_plain(c->m, obj, v->st.st_dev))
		return -EXDEV;
	if (is_checked(v)) {
		scoped_fd fd = mediate_reopen(c->m, obj, O_RDONLY | O_NONBLOCK);

		return fd < 0 ? fd : mediate_git_install(c, fd, v->to, &v->at, false);
	}
	if (is_observing(c))
		return 0;
	if (S_ISLNK(v->st.st_mode))
		return linkat(v->from->dir, v->from->name, v->to->dir, v->to->name, 0) < 0 ? -errno
											   : 0;
	(void)snprintf(number, sizeof(number), "%d", obj);
	return linkat(c->m->self, number, v->to->dir, place_syscall_name(v->to),
		      AT_SYMLINK_FOLLOW) < 0
		       ? -errno
		       : 0;
}

/*
 * Gives the object of one of the caller's descriptors a name. If the object has a path, decides
 * about that path as the old name.
 */
static int link_fd(struct call *c, int fd)
{
	scoped_place from = PLACE_NONE, to = PLACE_NONE;
	struct move v = { .from = &from, .to = &to };
	scoped_fd obj = task_open_fd(c, fd);
	scoped_creds creds = { 0 };
	struct stat at;
	char path[PATH_MAX];
	bool left;
	size_t n;
	int r;

	if (obj < 0)
		return obj;
	if (fstat(obj, &v.st) < 0 || !mediate_path_of_fd(c->m, obj, path, &n))
		return -EACCES;
	r = find_second(c, &to);
	if (r < 0)
		return r;
	left = mediate_is_private(c->m, (struct sv){ path, n });
	if (left && mediate_is_left_to_kernel(c->m, &to))
		return ANSWER_CONTINUE;
	if (left || path[0] != '/' || mediate_is_left_to_kernel(c->m, &to))
		return -EXDEV;
	if (to.name[0] == 0)
		return -EEXIST;
	if (v.st.st_nlink > 0) {
		r = place_find(c, AT_FDCWD, path, &from);
		if (r < 0)
			return r;
		/* SECURITY: use the path only if it leads to the same object as the descriptor. */
		if (fstatat(from.dir, from.name, &at, AT_SYMLINK_NOFOLLOW) < 0 ||
		    at.st_dev != v.st.st_dev || at.st_ino != v.st.st_ino)
			return mediate_deny(c, (struct sv){ path, n }, RULE_NONE,
					    CAUSE_NAME_UNKNOWN);
	}
	r = creds_enter(c, &creds);
	return r < 0 ? r : link_found(c, &v, obj);
}

int op_link(struct call *c)
{
	const uint64_t flags = (uint32_t)c->flags;
	scoped_place a = PLACE_NONE, b = PLACE_NONE;
	struct move v = { .from = &a, .to = &b };
	scoped_fd obj = -1;
	scoped_creds creds = { 0 };
	int r;

	if (flags & ~(uint64_t)(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	r = task_read_path(c, c->arg[0], c->text[0]);
	if (r < 0)
		return r;
	if (r == 0 && (flags & AT_EMPTY_PATH))
		return link_fd(c, c->dir);
	if ((flags & AT_SYMLINK_FOLLOW) && mediate_parse_own_fd(c->text[0]) >= 0)
		return link_fd(c, mediate_parse_own_fd(c->text[0]));
	r = find_two(c, &a, &b);
	if (r != 0)
		return r;
	if (a.name[0] == 0)
		return -EPERM;
	if (b.name[0] == 0)
		return -EEXIST;
	r = creds_enter(c, &creds);
	if (r < 0)
		return r;
	obj = place_open(c, &a, flags & AT_SYMLINK_FOLLOW, &v.st);
	/*
	 * The first path is a link into a private directory or into /proc. The mediator treats such
	 * a place and the place of the new name as different file systems.
	 */
	if (obj == ANSWER_CONTINUE)
		return -EXDEV;
	return obj < 0 ? obj : link_found(c, &v, obj);
}
