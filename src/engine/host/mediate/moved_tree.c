#include "mediate/mediate_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mediate/git_priv.h"
#include "mediate/guard_priv.h"
#include "mediate/open_priv.h"
#include "mediate/place_priv.h"

#include "base/banned.h"

enum { TREE_ENTRIES = 65536, TREE_DEPTH = 100 };

/*
 * State of the walk over a directory that a caller renames. @from and @to are the old and the new
 * path of the entry that is being checked; @seen counts the entries.
 */
struct tree {
	struct call *c;
	size_t seen;
	const struct place *place; /* new place of the directory that moves */
	bool git; /* the new path is in a git directory, where no link may be */
	char from[PATH_MAX], to[PATH_MAX];
};

static int deny_here(struct tree *t, enum cap_cause cause)
{
	return mediate_deny(t->c, sv_from(t->from), RULE_NONE, cause);
}

static int check_rules(struct tree *t)
{
	struct mediator *m = t->c->m;
	const struct sv from = sv_from(t->from), to = sv_from(t->to);
	struct cap_verdict v;

	if (!mediate_may(m, WANT_WRITE, from, &v) || !mediate_may(m, WANT_WRITE, to, &v))
		return mediate_deny(t->c, v.rule == RULE_NONE ? to : from, v.rule,
				    CAUSE_MOVE_DENIED);
	if (m->rules.read_nots && !mediate_may(m, WANT_READ, from, &v) &&
	    mediate_may(m, WANT_READ, to, &v))
		return deny_here(t, CAUSE_MOVE_HIDDEN);
	return 0;
}

static int check_entry(struct tree *t)
{
	struct mediator *m = t->c->m;

	if (++t->seen > TREE_ENTRIES)
		return deny_here(t, CAUSE_MOVE_MANY);
	if (mediate_protected_at(m, -1, sv_from(t->from)).rel >= PROTECT_AT ||
	    mediate_protected_at(m, -1, sv_from(t->to)).rel >= PROTECT_AT)
		return deny_here(t, CAUSE_MOVE_PROTECTED);
	return m->rules.globs ? check_rules(t) : 0;
}

/* Checks a moved symbolic link like a new link: from its new path it may lead elsewhere. */
static int check_link(struct tree *t, int dir, const char *name)
{
	const struct sv to = sv_from(t->to);
	struct sv folder = sv_sub(to, 0, sv_rfind(to, '/')), rest;
	char text[PATH_MAX];
	const ssize_t n = readlinkat(dir, name, text, sizeof(text) - 1);

	if (n <= 0)
		return deny_here(t, CAUSE_MOVE_LINK_UNSEEN);
	if (t->git)
		return deny_here(t, CAUSE_MOVE_LINK_GIT);
	if (mediate_git_is_worktree(t->c, t->place, to))
		return deny_here(t, CAUSE_MOVE_LINK_WORKTREE);
	text[n] = 0;
	rest = sv_from(text);
	if (mediate_rule_bypassed(t->c->m, to, rest) != RULE_NONE)
		return deny_here(t, CAUSE_MOVE_LINK_DENIED);
	mediate_link_strip_dotdot(&folder, &rest);
	return mediate_reaches_writ(t->c, folder, rest.p)
		       ? deny_here(t, CAUSE_MOVE_LINK_OWN_FILES)
		       : 0;
}

static int tree_dir(struct tree *t, int fd, unsigned depth);

/*
 * Checks one entry under its old and its new path, and descends into directories. Extends both
 * paths for the entry and restores them afterwards.
 */
static int tree_entry(struct tree *t, int dir, const struct dirent *e, unsigned depth)
{
	const size_t from_n = strlen(t->from), to_n = strlen(t->to), n = strlen(e->d_name);
	unsigned type = e->d_type;
	struct stat st;
	int r, fd;

	if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
		return 0;
	if (from_n + n + 2 > PATH_MAX || to_n + n + 2 > PATH_MAX)
		return deny_here(t, CAUSE_MOVE_LONG);
	(void)snprintf(t->from + from_n, PATH_MAX - from_n, "/%s", e->d_name);
	(void)snprintf(t->to + to_n, PATH_MAX - to_n, "/%s", e->d_name);
	if (type == DT_UNKNOWN && fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		type = IFTODT(st.st_mode);
	r = check_entry(t);
	if (r == 0 && type == DT_LNK)
		r = check_link(t, dir, e->d_name);
	if (r == 0 && type == DT_DIR) {
		fd = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? deny_here(t, CAUSE_MOVE_UNSEEN)
			   : tree_dir(t, fd, depth + 1);
	}
	t->from[from_n] = 0;
	t->to[to_n] = 0;
	return r;
}

/* Checks all entries of the directory @fd and takes ownership of @fd. */
static int tree_dir(struct tree *t, int fd, unsigned depth)
{
	scoped_list *d = fdopendir(fd);
	int r = 0;

	if (!d) {
		fd_scope_close(&fd);
		return -ENOMEM;
	}
	if (depth > TREE_DEPTH)
		r = deny_here(t, CAUSE_MOVE_DEEP);
	while (r == 0) {
		const struct dirent *e = readdir(d);

		if (!e)
			break;
		r = tree_entry(t, fd, e, depth);
	}
	return r;
}

/*
 * Renaming a directory gives every file in it a new path. So the mediator checks each file against
 * protected names and, if some rule is finer than a whole tree, against the rules. It refuses to
 * move a tree that is too large or too deep to check.
 */
int mediate_check_moved_tree(struct call *c, const struct place *from, const struct place *to)
{
	struct tree t = { .c = c, .place = to, .git = guard_is_in_git(c, to) };
	const int fd = openat(from->dir, from->name,
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	(void)snprintf(t.from, sizeof(t.from), SV_FMT, SV_ARG(place_sv(from)));
	(void)snprintf(t.to, sizeof(t.to), SV_FMT, SV_ARG(place_sv(to)));
	if (fd < 0)
		return errno == ENOTDIR || errno == ENOENT ? -errno
							   : deny_here(&t, CAUSE_UNSEEN);
	return tree_dir(&t, fd, 0);
}
