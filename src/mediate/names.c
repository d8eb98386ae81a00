#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"

/* Calls that make and remove one name. Those that move one are in moves.c. */

/* SECURITY: no set-id bit is ever made on behalf. */
enum { MODE_MAY = 01777 };

/* What the kernel would have said before it asked anybody is no denial. */
static int soften(struct call *c, int r, bool instead, int error)
{
	if (r != -EACCES || !instead)
		return r;
	c->m->has_event = false;
	return -error;
}

static int find(struct call *c, int dirfd, unsigned i, unsigned buf, struct place *p)
{
	const int r = place_arg(c, dirfd, i, buf, p);

	if (r < 0)
		return r;
	return is_left_to_kernel(c->m, p) ? ANSWER_CONTINUE : 0;
}

/* git tries whether links can be made at all, with this one, and removes it. */
static bool is_probe(const struct call *c, const struct place *p)
{
	return strcmp(c->text[1], "testing") == 0 && strlen(p->name) == 7 && p->name[0] == 't';
}

int may_link(struct call *c, const struct place *p, const char *text)
{
	const uint32_t rule = denied_behind(c->m, place_sv(p), sv_from(text));

	if (rule != RULE_NONE)
		return deny(c, place_sv(p), rule,
			    "a link here would lead past a name that is denied");
	return leads_to_ours(c, place_folder(p), text)
		       ? deny(c, place_sv(p), RULE_NONE, "no link may lead to writ's own files")
		       : 0;
}

/* May something of type @type appear at @p? The text of a link is in call.text[1]. */
static int may_make(struct call *c, const struct place *p, mode_t type)
{
	const struct guarded g = guard_look(c, p);
	bool fine = false;
	int r;

	switch (g.kind) {
	case GUARD_FREE:
		fine = true;
		break;
	case GUARD_HOLDS:
		fine = type != S_IFLNK || is_probe(c, p);
		break;
	case GUARD_POINTER:
	case GUARD_HOOKS:
		fine = type == S_IFDIR;
		break;
	case GUARD_SAMPLE:
		fine = type == S_IFREG;
		break;
	case GUARD_CONFIG:
	case GUARD_ONCE:
	case GUARD_SHUT:
		break;
	}
	r = fine ? decide_path(c, WANT_PUT, place_sv(p)) : guard_refuse(c, p, &g);
	if (r >= 0 && type == S_IFLNK)
		r = may_link(c, p, c->text[1]);
	return r < 0 ? r : guard_complete(c, p);
}

static int do_mkdir(struct call *c, int dirfd, unsigned i, uint64_t mode)
{
	scoped_place p = PLACE_NONE;
	scoped_as as = { 0 };
	int r = find(c, dirfd, i, 0, &p);

	if (r != 0)
		return r;
	if (p.name[0] == 0)
		return -EEXIST;
	r = as_begin(c, &as);
	if (r == 0)
		r = may_make(c, &p, S_IFDIR);
	if (r < 0)
		return soften(c, r, place_exists(&p), EEXIST);
	r = as_mask(c, &as);
	if (r < 0 || only_watching(c))
		return r;
	return mkdirat(p.dir, place_act_name(&p), (mode_t)(mode & MODE_MAY)) < 0 ? -errno : 0;
}

int op_mkdir(struct call *c)
{
	return do_mkdir(c, AT_FDCWD, 0, c->arg[1]);
}

int op_mkdirat(struct call *c)
{
	return do_mkdir(c, reg_int(c->arg[0]), 1, c->arg[2]);
}

static int do_mknod(struct call *c, int dirfd, unsigned i, uint64_t mode)
{
	const mode_t type = mode & S_IFMT ? (mode_t)(mode & S_IFMT) : S_IFREG;
	scoped_place p = PLACE_NONE;
	scoped_as as = { 0 };
	int r;

	if (type != S_IFREG && type != S_IFIFO)
		return -EPERM;
	r = find(c, dirfd, i, 0, &p);
	if (r != 0)
		return r;
	if (p.name[0] == 0)
		return -EEXIST;
	r = as_begin(c, &as);
	if (r == 0)
		r = may_make(c, &p, type);
	if (r < 0)
		return soften(c, r, place_exists(&p), EEXIST);
	r = as_mask(c, &as);
	if (r < 0 || only_watching(c))
		return r;
	if (mknodat(p.dir, place_act_name(&p), type | (mode_t)(mode & MODE_MAY), 0) < 0)
		return -errno;
	if (type == S_IFIFO)
		(void)bound_add(c->m, p.dir, place_act_name(&p));
	return 0;
}

int op_mknod(struct call *c)
{
	return do_mknod(c, AT_FDCWD, 0, c->arg[1]);
}

int op_mknodat(struct call *c)
{
	return do_mknod(c, reg_int(c->arg[0]), 1, c->arg[2]);
}

/*
 * What a link says is text: it is followed, and decided, by whoever opens it.
 *
 * SECURITY: what the agent writes in its own home lies on the host, unguarded. No
 * link in a granted tree may lead to writ's directories, nor to what holds them:
 * the person's tools would follow it. As far as the path exists it is followed.
 */
bool leads_to_ours(const struct call *c, struct sv dir, const char *text)
{
	char path[2 * PATH_MAX], head[PATH_MAX], real[PATH_MAX];
	const int n = text[0] == '/'
			      ? snprintf(path, sizeof(path), "%s", text)
			      : snprintf(path, sizeof(path), SV_FMT "/%s", SV_ARG(dir), text);
	struct buf full = BUF_INIT(sizeof(path));
	size_t cut = (size_t)n;
	bool ours = false;

	if (n < 0 || (size_t)n >= sizeof(head))
		return c->m->opt.closed_dirs_n > 0;
	for (;;) {
		memcpy(head, path, cut);
		head[cut] = 0;
		if (realpath(cut ? head : "/", real))
			break;
		if (cut == 0)
			return true;
		do
			cut--;
		while (cut && path[cut] != '/');
	}
	buf_str(&full, real[1] ? real : "");
	buf_str(&full, path + cut);
	for (size_t i = 0; !ours && i < c->m->opt.closed_dirs_n; i++)
		ours = strstr(path + cut, "..") ||
		       is_below(buf_view(&full), c->m->opt.closed_dirs[i]) ||
		       is_below(c->m->opt.closed_dirs[i], full.n ? buf_view(&full) : SV("/"));
	buf_clear(&full);
	return ours;
}

static int do_symlink(struct call *c, int dirfd, unsigned i)
{
	scoped_place p = PLACE_NONE;
	scoped_as as = { 0 };
	int r = task_text(c, c->arg[0], c->text[1]);

	if (r < 0)
		return r;
	if (r == 0)
		return -ENOENT;
	r = find(c, dirfd, i, 0, &p);
	if (r != 0)
		return r;
	if (p.name[0] == 0)
		return -EEXIST;
	r = as_begin(c, &as);
	if (r == 0)
		r = may_make(c, &p, S_IFLNK);
	if (r < 0)
		return soften(c, r, place_exists(&p), EEXIST);
	if (only_watching(c))
		return 0;
	return symlinkat(c->text[1], p.dir, place_act_name(&p)) < 0 ? -errno : 0;
}

int op_symlink(struct call *c)
{
	return do_symlink(c, AT_FDCWD, 1);
}

int op_symlinkat(struct call *c)
{
	return do_symlink(c, reg_int(c->arg[1]), 2);
}

/* --- Removing --- */

/*
 * What something is mounted on stays. The kernel sees to it in the namespace of who
 * asks, which is the target's and not ours: we would take the mount away with it.
 */
bool is_mounted_on(const struct place *p)
{
	struct statx st = { 0 };

	return statx(p->dir, p->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &st) == 0 &&
	       (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

static int may_remove(struct call *c, const struct place *p, bool dir)
{
	const struct guarded g = guard_look(c, p);
	int r = 0;

	switch (g.kind) {
	case GUARD_FREE:
	case GUARD_HOLDS:
	case GUARD_POINTER:
	case GUARD_SAMPLE:
	case GUARD_ONCE:
		break;
	case GUARD_HOOKS:
		/* Only an empty one goes. */
		r = dir ? 0 : guard_refuse(c, p, &g);
		break;
	case GUARD_CONFIG:
		r = dir ? guard_refuse(c, p, &g) : git_may_unlink(c, p, &g);
		break;
	case GUARD_SHUT:
		r = guard_refuse(c, p, &g);
		break;
	}
	return r < 0 ? r : decide_path(c, WANT_WRITE, place_sv(p));
}

static int do_unlink(struct call *c, int dirfd, unsigned i, uint64_t flags)
{
	const bool dir = flags & AT_REMOVEDIR;
	scoped_place p = PLACE_NONE;
	scoped_as as = { 0 };
	int r;

	if (flags & ~(uint64_t)AT_REMOVEDIR)
		return -EINVAL;
	r = find(c, dirfd, i, 0, &p);
	if (r != 0)
		return r;
	if (p.name[0] == 0 && !dir)
		return -EISDIR;
	if (p.name[0] == 0)
		return p.dotdot ? -ENOTEMPTY : p.n == 1 ? -EBUSY : -EINVAL;
	r = as_begin(c, &as);
	if (r == 0)
		r = may_remove(c, &p, dir);
	if (r < 0)
		return soften(c, r, !place_exists(&p), ENOENT);
	if (is_mounted_on(&p))
		return -EBUSY;
	if (only_watching(c))
		return 0;
	return unlinkat(p.dir, place_act_name(&p), (int)flags) < 0 ? -errno : 0;
}

int op_unlink(struct call *c)
{
	return do_unlink(c, AT_FDCWD, 0, 0);
}

int op_rmdir(struct call *c)
{
	return do_unlink(c, AT_FDCWD, 0, AT_REMOVEDIR);
}

int op_unlinkat(struct call *c)
{
	return do_unlink(c, reg_int(c->arg[0]), 1, c->arg[2]);
}
