#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mediate/creds_priv.h"
#include "mediate/git_priv.h"
#include "mediate/guard_priv.h"
#include "mediate/op_priv.h"
#include "mediate/open_priv.h"
#include "mediate/place_priv.h"

#include "base/banned.h"

/*
 * System calls that create or remove one name. rename_link.c has the calls that involve two names.
 */

/* SECURITY: the mediator never sets a set-user-id or set-group-id bit for a caller. */
enum { MODE_MAY = 01777 };

/*
 * Replaces a denial by @error if @instead, and removes the event of the denial. The kernel checks
 * whether a name exists before it checks permissions, so EEXIST or ENOENT is what the caller would
 * have seen without writ.
 */
static int prefer_errno(struct call *c, int r, bool instead, int error)
{
	if (r != -EACCES || !instead)
		return r;
	c->m->has_event = false;
	return -error;
}

static int find_place(struct call *c, unsigned i, struct place *p)
{
	const int r = place_from_arg(c, i, 0, p);

	if (r < 0)
		return r;
	return mediate_is_left_to_kernel(c->m, p) ? ANSWER_CONTINUE : 0;
}

/*
 * True for the link "tXXXXXX -> testing", which git creates in .git to learn whether links work,
 * and removes at once. The mediator allows this link; after a refusal git would write files instead
 * of links.
 */
static bool is_git_symlink_probe(const struct call *c, const struct place *p)
{
	return strcmp(c->text[1], "testing") == 0 && strlen(p->name) == 7 && p->name[0] == 't';
}

int mediate_check_link(struct call *c, const struct place *p, const char *text)
{
	const uint32_t rule = mediate_rule_bypassed(c->m, place_sv(p), sv_from(text));

	if (rule != RULE_NONE)
		return mediate_deny(c, place_sv(p), rule, CAUSE_LINK_DENIED);
	if (mediate_git_is_worktree(c, p, place_sv(p)))
		return mediate_deny(c, place_sv(p), RULE_NONE, CAUSE_LINK_WORKTREE);
	return mediate_reaches_writ(c, place_parent(p), text)
		       ? mediate_deny(c, place_sv(p), RULE_NONE, CAUSE_LINK_OWN_FILES)
		       : 0;
}

/*
 * Decides whether the caller may create an entry of type @type at @p. For a link, call.text[1] is
 * the target. Returns 0, or records a denial and returns -EACCES.
 */
static int may_create_entry(struct call *c, const struct place *p, mode_t type)
{
	const struct guard g = guard_classify(c, p);
	bool fine = false;
	int r;

	switch (g.kind) {
	case GUARD_FREE:
		fine = true;
		break;
	case GUARD_ANCESTOR:
		fine = type != S_IFLNK || is_git_symlink_probe(c, p);
		break;
	case GUARD_POINTER:
	case GUARD_HOOKS:
		fine = type == S_IFDIR;
		break;
	case GUARD_SAMPLE:
		fine = type == S_IFREG;
		break;
	case GUARD_CONFIG:
	case GUARD_WRITE_ONCE:
	case GUARD_CLOSED:
		break;
	}
	r = fine ? mediate_decide_path(c, WANT_PUT, place_sv(p)) : guard_deny(c, p, &g);
	if (r >= 0 && type == S_IFLNK && !is_git_symlink_probe(c, p) && guard_is_in_git(c, p))
		r = guard_deny_link(c, p);
	if (r >= 0 && type == S_IFLNK)
		r = mediate_check_link(c, p, c->text[1]);
	return r < 0 ? r : guard_check_completion(c, p);
}

/*
 * Resolves the path in argument @i, takes the caller's ids and umask, and decides about creating an
 * entry of type @type. Returns 0 if the caller may create the entry now, else -errno or an
 * ANSWER_*.
 */
static int prepare_entry(struct call *c, unsigned i, mode_t type, struct place *p,
			 struct creds *creds)
{
	int r = find_place(c, i, p);

	if (r != 0)
		return r;
	if (p->name[0] == 0)
		return -EEXIST;
	r = creds_enter(c, creds);
	if (r == 0)
		r = may_create_entry(c, p, type);
	if (r < 0)
		return prefer_errno(c, r, place_exists(p), EEXIST);
	/* A symbolic link has no mode. */
	return type == S_IFLNK ? 0 : creds_set_umask(c, creds);
}

int op_mkdir(struct call *c)
{
	scoped_place p = PLACE_NONE;
	scoped_creds creds = { 0 };
	const int r = prepare_entry(c, 0, S_IFDIR, &p, &creds);

	if (r < 0 || is_observing(c))
		return r;
	return mkdirat(p.dir, place_syscall_name(&p), (mode_t)(c->arg[1] & MODE_MAY)) < 0 ? -errno
											   : 0;
}

/*
 * Creates regular files and named pipes. Refuses devices, and sockets, which bind() creates.
 * Records a named pipe as the session's own: the mediator opens no other pipes for writing.
 */
int op_mknod(struct call *c)
{
	const uint64_t mode = c->arg[1];
	const mode_t type = mode & S_IFMT ? (mode_t)(mode & S_IFMT) : S_IFREG;
	scoped_place p = PLACE_NONE;
	scoped_creds creds = { 0 };
	int r;

	if (type != S_IFREG && type != S_IFIFO)
		return -EPERM;
	r = prepare_entry(c, 0, type, &p, &creds);
	if (r < 0 || is_observing(c))
		return r;
	if (mknodat(p.dir, place_syscall_name(&p), type | (mode_t)(mode & MODE_MAY), 0) < 0)
		return -errno;
	if (type == S_IFIFO)
		(void)endpoint_add(c->m, p.dir, place_syscall_name(&p));
	return 0;
}

int op_symlink(struct call *c)
{
	scoped_place p = PLACE_NONE;
	scoped_creds creds = { 0 };
	const bool at = c->nr == SYS_symlinkat;
	int r = task_read_path(c, c->arg[0], c->text[1]);

	if (r < 0)
		return r;
	if (r == 0)
		return -ENOENT;
	/* The directory is argument 1 of symlinkat(), after the target of the link. */
	if (at)
		c->dir = reg_int(c->arg[1]);
	r = prepare_entry(c, at ? 2 : 1, S_IFLNK, &p, &creds);
	if (r < 0 || is_observing(c))
		return r;
	return symlinkat(c->text[1], p.dir, place_syscall_name(&p)) < 0 ? -errno : 0;
}

/* --- Removing --- */

/*
 * True if @p is the root of a mount. The kernel refuses to remove or rename a mount point, but only
 * if the mount is visible in the namespace of the calling process. The mediator is outside the
 * session's mount namespace, so without this check it would detach the session's mount together
 * with the name.
 */
bool mediate_is_mount_point(const struct place *p)
{
	struct statx st = { 0 };

	return statx(p->dir, p->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &st) == 0 &&
	       (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

static int may_remove(struct call *c, const struct place *p, bool dir)
{
	const struct guard g = guard_classify(c, p);
	int r = 0;

	switch (g.kind) {
	case GUARD_FREE:
	case GUARD_ANCESTOR:
	case GUARD_POINTER:
	case GUARD_SAMPLE:
	case GUARD_WRITE_ONCE:
		break;
	case GUARD_HOOKS:
		/* rmdir() removes only an empty directory, so the session removes no hook. */
		r = dir ? 0 : guard_deny(c, p, &g);
		break;
	case GUARD_CONFIG:
		r = dir ? guard_deny(c, p, &g) : mediate_git_may_unlink(c, p, &g);
		break;
	case GUARD_CLOSED:
		r = guard_deny(c, p, &g);
		break;
	}
	return r < 0 ? r : mediate_decide_path(c, WANT_WRITE, place_sv(p));
}

/*
 * unlink, rmdir and unlinkat. For a path that ends in "." or "..", or is the root, returns the
 * errno that the kernel would return.
 */
int op_unlink(struct call *c)
{
	const bool dir = c->flags & AT_REMOVEDIR;
	scoped_place p = PLACE_NONE;
	scoped_creds creds = { 0 };
	int r;

	if (c->flags & ~(uint64_t)AT_REMOVEDIR)
		return -EINVAL;
	r = find_place(c, 0, &p);
	if (r != 0)
		return r;
	if (p.name[0] == 0 && !dir)
		return -EISDIR;
	if (p.name[0] == 0)
		return p.dotdot ? -ENOTEMPTY : p.n == 1 ? -EBUSY : -EINVAL;
	r = creds_enter(c, &creds);
	if (r == 0)
		r = may_remove(c, &p, dir);
	if (r < 0)
		return prefer_errno(c, r, !place_exists(&p), ENOENT);
	if (mediate_is_mount_point(&p))
		return -EBUSY;
	if (is_observing(c))
		return 0;
	return unlinkat(p.dir, place_syscall_name(&p), (int)c->flags) < 0 ? -errno : 0;
}
