#include "compile/compile_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "base/fd.h"

#include "base/banned.h"

bool compile_path_below(struct sv path, struct sv dir)
{
	if (dir.n == 1)
		return path.n > 0 && path.p && path.p[0] == '/';
	return sv_starts(path, dir) && (path.n == dir.n || (path.p && path.p[dir.n] == '/'));
}

/*
 * Returns the part of a pattern before its first star, as a path; *@ret_star: the pattern has a
 * star.
 */
static int literal_path(struct compile *c, const struct cap_seq *seq, struct sv *ret,
			bool *ret_star)
{
	scoped_buf b = BUF_INIT(JAIL_PATH);

	*ret_star = false;
	for (size_t i = 0; i < seq->n && !*ret_star; i++) {
		if (seq->segs[i].star || i >= seq->hole) {
			*ret_star = true;
			break;
		}
		buf_ch(&b, '/');
		buf_sv(&b, seq->segs[i].pre);
	}
	if (b.n == 0)
		buf_ch(&b, '/');
	if (b.failed)
		return writ_fail(c->err, WRIT_E_LIMIT, 0, "a path is longer than %d bytes",
				 JAIL_PATH);
	return arena_sv(c->a, buf_view(&b), ret) ? 0 : writ_nomem(c->err);
}

static int add_root(struct compile *c, const struct root *root)
{
	struct root *to;

	for (size_t i = 0; i < c->roots.n; i++)
		if (sv_eq(c->roots.v[i].path, root->path)) {
			struct root *old = &c->roots.v[i];

			/*
			 * A rule that grants the whole tree wins over a rule that grants some names
			 * in the tree.
			 */
			if (old->by_name && !root->by_name && root->write >= old->write)
				old->by_name = false;
			old->write |= root->write;
			old->whole |= root->whole;
			old->optional &= root->optional;
			old->of_base &= root->of_base;
			return 0;
		}
	to = vec_push(c->a, &c->roots);
	if (!to)
		return writ_nomem(c->err);
	*to = *root;
	return 0;
}

/* Does writ itself provide a file or directory at @path or below @path? */
static bool is_split(const struct compile *c, struct sv path)
{
	return skeleton_holds(c, path) || compile_trust_holds(c, path);
}

/*
 * A granted directory that also contains parts of the skeleton (/, /etc, /var) becomes one root per
 * entry, so that the grant does not cover the parts of the skeleton.
 */
static int add_entries(struct compile *c, const struct root *root)
{
	const char *path = arena_str(c->a, root->path);
	scoped_list *d = path ? opendir(path) : NULL;
	struct dirent *e;
	int r = 0;

	if (!path)
		return writ_nomem(c->err);
	if (!d)
		return root->optional && errno == ENOENT
			       ? 0
			       : writ_fail(c->err, WRIT_E_SYS, errno, "%s", path);
	while (r == 0 && (e = readdir(d))) {
		struct root one = *root;
		const char *name;

		if (sv_is(sv_from(e->d_name), ".") || sv_is(sv_from(e->d_name), ".."))
			continue;
		name = arena_fmt(c->a, "%s/%s", root->path.n == 1 ? "" : path, e->d_name);
		if (!name)
			r = writ_nomem(c->err);
		one.path = sv_from(name);
		one.optional = true;
		/*
		 * Skip a link: the skeleton has the links that most machines have, and a rule must
		 * grant the target of any other link itself.
		 */
		if (r == 0 && e->d_type != DT_LNK && !skeleton_is(c, one.path))
			r = is_split(c, one.path) ? add_entries(c, &one) : add_root(c, &one);
	}
	return r;
}

static int from_cap(struct compile *c, const struct cap_entry *e)
{
	const struct cap *cap = &e->cap;
	const struct cap_rule *rule = &c->set->rules.v[e->rule];
	struct root root = { .optional = rule->optional || rule->built_in };
	bool star;
	int r;

	if (rule->missing)
		return 0;
	switch (cap->action) {
	case CAP_FS_READ:
		break;
	case CAP_FS_WRITE:
	case CAP_FS_PUT:
		root.write = true;
		break;
	case CAP_DEV_USE:
		root.device = true;
		root.write = cap->dev_write;
		break;
	case CAP_UNIX_CONNECT:
		root.socket = root.write = true;
		break;
	case CAP_NONE:
	case CAP_PROC_EXEC:
	case CAP_NET_CONNECT:
	case CAP_NET_BIND:
	case CAP_HTTP_REQUEST:
	case CAP_ENV_PASS:
	case CAP_SECRET_USE:
	case CAP_GIT_USE:
	case CAP_TOOL_CALL:
	case CAP_AGENT_SPAWN:
	case CAP_KERNEL_USE:
	case CAP_STATE_USE:
	case CAP_ACTION_COUNT:
		return 0;
	}
	r = literal_path(c, &cap->path, &root.path, &star);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(c->place->own); i++)
		if (c->place->own[i].n && compile_path_below(root.path, c->place->own[i]))
			return writ_fail(c->err, WRIT_E_UNENFORCEABLE, 0,
					 SV_FMT " is writ's own, and no rule opens it",
					 SV_ARG(c->place->own[i]));
	if (c->a_tier && root.write && !root.socket && skeleton_is(c, root.path))
		return writ_fail(c->err, WRIT_E_UNENFORCEABLE, 0,
				 "every session has a " SV_FMT " of its own, which it may write: "
				 "name a directory in it, or use --tier B",
				 SV_ARG(root.path));
	root.of_base = rule->built_in && !compile_path_below(root.path, c->place->workspace);
	root.whole = cap->path.tail || star;
	root.by_name = star || cap->action == CAP_FS_PUT || cap->approve_n || cap->n || cap->rate_n;
	if (root.whole && is_split(c, root.path))
		return add_entries(c, &root);
	return add_root(c, &root);
}

static int by_path(const void *a, const void *b)
{
	const struct root *x = a, *y = b;

	return sv_cmp(x->path, y->path);
}

/*
 * Marks each root in which a rule denies reading: the mediator then decides every open in that
 * root.
 */
static int mark_denied(struct compile *c)
{
	for (size_t i = 0; i < c->set->nots.n; i++) {
		const struct cap *d = &c->set->nots.v[i].cap;
		struct sv path;
		bool star;
		int r;

		if (d->action != CAP_FS_READ)
			continue;
		r = literal_path(c, &d->path, &path, &star);
		if (r < 0)
			return r;
		for (size_t k = 0; k < c->roots.n; k++) {
			struct root *root = &c->roots.v[k];

			/*
			 * A denial by pattern applies to granted trees. A single file that base
			 * grants stays readable.
			 */
			if (star && root->of_base && !root->whole)
				continue;
			if (!compile_path_below(path, root->path) &&
			    !(star && compile_path_below(root->path, path)))
				continue;
			root->hides |= !root->by_name;
			root->by_name = true;
		}
	}
	return 0;
}

/*
 * SECURITY: in tier B no mount can mask writ's own files. So the mediator decides every open in a
 * readable tree that contains writ's own files.
 */
static void mark_ours(struct compile *c)
{
	for (size_t i = 0; i < ARRAY_LEN(c->place->own); i++)
		for (size_t k = 0; c->place->own[i].n && k < c->roots.n; k++) {
			struct root *root = &c->roots.v[k];

			if (!root->whole || !compile_path_below(c->place->own[i], root->path))
				continue;
			root->hides |= !root->by_name;
			root->by_name = true;
			c->shows_ours = true;
		}
}

int compile_roots_find(struct compile *c)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->set->caps.n; i++)
		r = from_cap(c, &c->set->caps.v[i]);
	if (r == 0)
		r = mark_denied(c);
	if (r == 0 && !c->a_tier)
		mark_ours(c);
	if (r == 0 && c->roots.n)
		qsort(c->roots.v, c->roots.n, sizeof(c->roots.v[0]), by_path);
	return r;
}
