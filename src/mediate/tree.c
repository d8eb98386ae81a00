#include "mediate/mediate_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

enum { TREE_ENTRIES = 65536, TREE_DEPTH = 100 };

/* A directory on its way from one name to another, with all that is in it. */
struct tree {
	struct call *c;
	size_t seen;
	char from[PATH_MAX], to[PATH_MAX];
};

static int refuse(struct tree *t, const char *why)
{
	return deny(t->c, sv_from(t->from), RULE_NONE, why);
}

static int check_rules(struct tree *t)
{
	struct mediator *m = t->c->m;
	const struct sv from = sv_from(t->from), to = sv_from(t->to);
	struct cap_verdict v;

	if (!may(m, WANT_WRITE, from, &v) || !may(m, WANT_WRITE, to, &v))
		return deny(t->c, v.rule == RULE_NONE ? to : from, v.rule,
			    "something in this directory may not be moved");
	if (m->read_nots && !may(m, WANT_READ, from, &v) && may(m, WANT_READ, to, &v))
		return refuse(t, "something in this directory is hidden by its name");
	return 0;
}

static int check_entry(struct tree *t)
{
	static const char holds[] = "a protected name is inside, and would move with it";
	struct mediator *m = t->c->m;

	if (++t->seen > TREE_ENTRIES)
		return refuse(t, "too many files to check: move it in parts");
	if (protected_at(m, -1, sv_from(t->from)).rel >= PROTECT_AT ||
	    protected_at(m, -1, sv_from(t->to)).rel >= PROTECT_AT)
		return refuse(t, holds);
	return m->globs ? check_rules(t) : 0;
}

/* A link that is moved along may lead elsewhere from there. */
static int check_link(struct tree *t, int dir, const char *name)
{
	const struct sv to = sv_from(t->to);
	struct sv folder = sv_sub(to, 0, sv_rfind(to, '/')), rest;
	char text[PATH_MAX];
	const ssize_t n = readlinkat(dir, name, text, sizeof(text) - 1);

	if (n <= 0)
		return refuse(t, "a link inside cannot be looked at");
	text[n] = 0;
	rest = sv_from(text);
	if (denied_behind(t->c->m, to, rest) != RULE_NONE)
		return refuse(t, "a link inside would lead past a name that is denied");
	link_climb(&folder, &rest);
	return leads_to_ours(t->c, folder, rest.p)
		       ? refuse(t, "a link inside would lead to writ's own files")
		       : 0;
}

static int tree_dir(struct tree *t, int fd, unsigned depth);

static int tree_entry(struct tree *t, int dir, const struct dirent *e, unsigned depth)
{
	const size_t from_n = strlen(t->from), to_n = strlen(t->to), n = strlen(e->d_name);
	unsigned type = e->d_type;
	struct stat st;
	int r, fd;

	if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
		return 0;
	if (from_n + n + 2 > PATH_MAX || to_n + n + 2 > PATH_MAX)
		return refuse(t, "a path in this directory would be too long");
	(void)snprintf(t->from + from_n, PATH_MAX - from_n, "/%s", e->d_name);
	(void)snprintf(t->to + to_n, PATH_MAX - to_n, "/%s", e->d_name);
	if (type == DT_UNKNOWN && fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		type = IFTODT(st.st_mode);
	r = check_entry(t);
	if (r == 0 && type == DT_LNK)
		r = check_link(t, dir, e->d_name);
	if (r == 0 && type == DT_DIR) {
		fd = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? refuse(t, "a directory inside cannot be looked at")
			   : tree_dir(t, fd, depth + 1);
	}
	t->from[from_n] = 0;
	t->to[to_n] = 0;
	return r;
}

/* Takes @fd. */
static int tree_dir(struct tree *t, int fd, unsigned depth)
{
	DIR *d = fdopendir(fd);
	int r = 0;

	if (!d) {
		scope_close(&fd);
		return -ENOMEM;
	}
	if (depth > TREE_DEPTH)
		r = refuse(t, "directories too deep to check");
	while (r == 0) {
		const struct dirent *e = readdir(d);

		if (!e)
			break;
		r = tree_entry(t, fd, e, depth);
	}
	(void)closedir(d);
	return r;
}

int tree_check(struct call *c, int dir, const char *name, struct sv from, struct sv to)
{
	struct tree t = { .c = c };
	const int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	(void)snprintf(t.from, sizeof(t.from), SV_FMT, SV_ARG(from));
	(void)snprintf(t.to, sizeof(t.to), SV_FMT, SV_ARG(to));
	if (fd < 0)
		return errno == ENOTDIR || errno == ENOENT ? -errno
							   : refuse(&t, "cannot be looked at");
	return tree_dir(&t, fd, 0);
}
