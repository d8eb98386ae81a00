#include "lang/lower_priv.h"

#include "base/banned.h"

enum { SEGS_MAX = CAP_SEGS_MAX };

/* A path of a rule, split into a physical base directory and the segments after the base. */
struct pieces {
	struct sv base; /* base directory, such as "/home/me/app"; "" is the root */
	struct sv *segs;
	size_t n;
	bool slash; /* the path ended in '/': the rule covers a directory with everything below */
};

static bool has_star(struct sv s)
{
	return sv_find(s, '*') != SIZE_MAX;
}

bool lang_path_bytes(struct arena *a, struct sv path, struct sv *ret)
{
	char *p = arena_str(a, path);

	if (!p)
		return false;
	for (size_t i = 0; i < path.n; i++)
		if (p[i] == 0)
			p[i] = '*';
	*ret = (struct sv){ p, path.n };
	return true;
}

static bool find_var(struct lower *l, const struct stmt *s, struct sv name, struct sv *ret)
{
	const struct policy_env *e = l->env;

	for (size_t i = 0; i < e->vars_n; i++)
		if (sv_eq(e->vars[i].name, name)) {
			*ret = e->vars[i].value;
			return true;
		}
	return lower_error(l, s, "variables are set by the operator: --var NAME=VALUE",
			   "no variable $" SV_FMT, SV_ARG(name));
}

/*
 * Removes the first component (. ~ $VAR or /) from *@rest and returns the directory that the
 * component names.
 */
static bool cut_base(struct lower *l, const struct stmt *s, struct sv *rest, struct sv *ret_base)
{
	struct sv path = *rest;
	struct sv head = sv_cut(&path, '/');

	if (head.n == 0 && rest->n) {
		*ret_base = SV("");
	} else if (sv_is(head, ".")) {
		if (l->env->workspace.n == 0)
			return lower_error(l, s, "cd into a project, or name the directory itself",
					   "there is no workspace here: your home, / and system "
					   "directories are never one");
		*ret_base = l->env->workspace;
	} else if (sv_is(head, "~") || sv_is(head, "$HOME")) {
		if (l->env->home.n == 0)
			return lower_error(l, s, NULL, "there is no home directory here");
		*ret_base = l->env->home;
	} else if (sv_starts(head, SV("$"))) {
		if (!find_var(l, s, sv_skip(head, 1), ret_base))
			return false;
	} else {
		return lower_error(l, s, "paths begin with ./ ~/ / or $VAR",
				   "is \"" SV_FMT "\" below the workspace? then write ./" SV_FMT,
				   SV_ARG(*rest), SV_ARG(*rest));
	}
	*rest = path;
	return true;
}

static bool split(struct lower *l, const struct stmt *s, struct sv rest, struct pieces *ret)
{
	size_t slashes = 0;

	for (size_t i = 0; i < rest.n; i++)
		slashes += rest.p[i] == '/';
	ret->segs = arena_array(l->a, struct sv, slashes + 1);
	if (!ret->segs)
		return lower_error(l, s, NULL, "out of memory");
	while (rest.n) {
		const struct sv seg = sv_cut(&rest, '/');

		if (ret->n == SEGS_MAX)
			return lower_error(l, s, NULL, "more than %d segments", SEGS_MAX);
		if (seg.n == 0)
			return lower_error(l, s, NULL, "empty segment (//) in a path");
		if (sv_is(seg, ".") || sv_is(seg, ".."))
			return lower_error(l, s, "write the path it leads to",
					   "\"" SV_FMT "\" inside a path", SV_ARG(seg));
		if (sv_find(sv_skip(seg,
				    sv_find(seg, '*') == SIZE_MAX ? seg.n : sv_find(seg, '*') + 1),
			    '*') != SIZE_MAX &&
		    !sv_is(seg, "**"))
			return lower_error(l, s, "** stands alone between slashes",
					   "more than one * in \"" SV_FMT "\"", SV_ARG(seg));
		ret->segs[ret->n++] = seg;
	}
	return true;
}

static const char deny_only[] = "** inside a path works in deny only";
static const char deny_instead[] = "allow the directory and deny what must not be in it";

static bool split_object(struct lower *l, const struct stmt *s, struct pieces *ret)
{
	const bool deny = s->kind == STMT_RULE && s->effect == EFFECT_DENY;
	struct sv rest = s->object.text;

	*ret = (struct pieces){ 0 };
	ret->base = SV("");
	ret->slash = rest.n > 1 && sv_ends(rest, SV("/"));
	if (sv_starts(rest, SV("**")))
		return deny ? split(l, s, rest, ret) : lower_error(l, s, deny_instead, deny_only);
	if (!cut_base(l, s, &rest, &ret->base))
		return false;
	if (sv_is(ret->base, "/"))
		ret->base = SV("");
	return split(l, s, rest, ret);
}

/* Joins the base directory and the first @n segments of a path. */
static bool join(struct lower *l, const struct pieces *p, size_t n, struct sv *ret)
{
	scoped_buf b = BUF_INIT(65536);

	buf_sv(&b, p->base);
	for (size_t i = 0; i < n; i++) {
		struct sv raw;

		if (!lang_path_bytes(l->a, p->segs[i], &raw))
			return false;
		buf_ch(&b, '/');
		buf_sv(&b, raw);
	}
	if (b.n == 0)
		buf_ch(&b, '/');
	return lang_keep(l, &b, ret);
}

static bool put_pattern(struct lower *l, struct buf *b, struct sv seg)
{
	const size_t star = sv_find(seg, '*');
	struct sv pre, suf;

	if (!lang_path_bytes(l->a, sv_sub(seg, 0, star), &pre))
		return false;
	cap_put_seg(b, pre);
	if (star == SIZE_MAX)
		return true;
	buf_ch(b, '*');
	if (!lang_path_bytes(l->a, sv_skip(seg, star + 1), &suf))
		return false;
	cap_put_seg(b, suf);
	return true;
}

/*
 * Builds the canonical text of a path from the physical literal part and the patterns; @tail adds a
 * double star.
 */
static bool put_path(struct lower *l, const struct stmt *s, const struct pieces *p, size_t literals,
		     struct sv physical, bool tail, struct sv *ret)
{
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct writ_err err = { 0 };
	bool good = cap_put_path(&b, physical, &err) == 0;

	for (size_t i = literals; good && i < p->n; i++) {
		if (!sv_ends(buf_view(&b), SV("/")))
			buf_ch(&b, '/');
		if (sv_is(p->segs[i], "**"))
			buf_str(&b, "**");
		else
			good = put_pattern(l, &b, p->segs[i]);
	}
	if (tail && !sv_ends(buf_view(&b), SV("/**")))
		buf_str(&b, sv_ends(buf_view(&b), SV("/")) ? "**" : "/**");
	return (good && lang_keep(l, &b, ret)) || lower_error(l, s, NULL, "this path is too long");
}

/*
 * Checks the position of double stars in a path: a grant may end in one, a denial may also have one
 * before the end.
 */
static bool check_stars(struct lower *l, const struct stmt *s, const struct pieces *p)
{
	const bool deny = s->kind == STMT_RULE && s->effect == EFFECT_DENY;
	size_t inner = 0;

	for (size_t i = 0; i + 1 < p->n; i++)
		inner += sv_is(p->segs[i], "**");
	if (inner > 0 && !deny)
		return lower_error(l, s, deny_instead, deny_only);
	if (inner > 1)
		return lower_error(l, s, NULL, "only one ** before the end of a path");
	return true;
}

/* Does the last name of @path have an extension, like notes.csv, but unlike .cache? */
static bool looks_like_file(struct sv path)
{
	const size_t slash = sv_rfind(path, '/');
	const struct sv last = sv_skip(path, slash == SIZE_MAX ? 0 : slash + 1);
	const size_t dot = sv_rfind(last, '.');

	return dot != SIZE_MAX && dot > 0 && dot + 1 < last.n && sv_find(last, '*') == SIZE_MAX;
}

/*
 * Quotes @s for a shell.
 * SECURITY: users paste commands from hints, and an agent may have chosen the file name in the
 * command.
 */
static const char *shell_word(struct arena *a, struct sv s)
{
	scoped_buf b = BUF_INIT(65536);
	const bool plain = sv_is_alnum(s, "/._-+@=,");
	const char *out;

	if (!plain)
		buf_ch(&b, '\'');
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] == '\'')
			buf_str(&b, "'\\''");
		else
			buf_ch(&b, s.p[i]);
	if (!plain)
		buf_ch(&b, '\'');
	out = b.failed ? NULL : arena_str(a, buf_view(&b));
	return out ? out : "DIRECTORY";
}

static bool report_missing(struct lower *l, const struct stmt *s, struct sv name, bool *ret_skip)
{
	const char *hint;

	*ret_skip = s->optional;
	l->set->rules.v[l->rule].missing = s->optional || l->env->missing_ok;
	if (s->optional)
		return true;
	hint = arena_fmt(l->a, "%s%s   (or write ?" SV_FMT " if it may be missing)",
			 looks_like_file(s->object.text) ? "create " : "mkdir -p ",
			 shell_word(l->a, name), SV_ARG(s->object.raw));
	if (!l->env->missing_ok)
		return lower_error(l, s, hint, SV_FMT " does not exist", SV_ARG(name));
	diag_add(l->d, DIAG_WARNING, lang_word_place(s, &s->object), hint,
		 SV_FMT " does not exist here, so a run would be refused", SV_ARG(name));
	return true;
}

/* Checks that the path of a grant names an existing file or directory. */
static bool check_exists(struct lower *l, const struct stmt *s, const struct pieces *p,
			 const struct lowered_path *q, struct sv name, bool *ret_skip)
{
	switch (q->kind) {
	case PATH_MISSING:
		return report_missing(l, s, name, ret_skip);
	case PATH_OTHER:
		return lower_error(l, s, "sockets: allow unix PATH; devices: allow device PATH",
				   SV_FMT " is neither a file nor a directory", SV_ARG(name));
	case PATH_FILE:
		if (!q->whole || p->slash)
			return lower_error(l, s, NULL, SV_FMT " is a file, not a directory",
					   SV_ARG(name));
		return true;
	case PATH_DIR:
		return true;
	}
	return false;
}

static bool is_kernel_tree(struct sv path)
{
	return sv_below(path, SV("/proc")) || sv_below(path, SV("/dev")) ||
	       sv_below(path, SV("/sys"));
}

bool lower_path(struct lower *l, const struct stmt *s, struct lowered_path *ret, bool *ret_skip)
{
	const bool deny = s->kind == STMT_RULE && s->effect == EFFECT_DENY;
	struct policy_path found;
	struct lowered_path q;
	struct pieces p;
	size_t literals = 0;
	struct sv name;
	bool tail;

	*ret_skip = false;
	if (s->optional && ((sv_starts(s->object.text, SV(".")) && l->env->workspace.n == 0) ||
			    (sv_starts(s->object.text, SV("~")) && l->env->home.n == 0))) {
		*ret_skip = true;
		return true;
	}
	if (!split_object(l, s, &p) || !check_stars(l, s, &p))
		return false;
	while (literals < p.n && !has_star(p.segs[literals]))
		literals++;
	if (!join(l, &p, literals, &name) ||
	    !l->env->ops->lookup(l->env->ops->ctx, l->a, name, &found))
		return lower_error(l, s, NULL, "out of memory");
	q = (struct lowered_path){ .literal = found.physical,
				   .kind = found.kind,
				   .whole = literals == p.n };
	/*
	 * SECURITY: an earlier session may have planted a link in the workspace. Refuse a path that
	 * is named below the workspace but leads out of the workspace; the user can name the real
	 * path instead.
	 */
	if (!deny && sv_below(name, l->env->workspace) &&
	    !sv_below(found.physical, l->env->workspace))
		return lower_error(l, s, "if you mean it, name that path itself",
				   "a link leads out of the workspace, to " SV_FMT,
				   SV_ARG(found.physical));
	if (!deny && is_kernel_tree(found.physical))
		return lower_error(l, s, "devices: allow device PATH; sockets: allow unix PATH",
				   "every session has its own /proc, /dev and /sys");
	if (l->env->elsewhere)
		q.kind = p.slash ? PATH_DIR : PATH_FILE;
	else if (!deny && !check_exists(l, s, &p, &q, name, ret_skip))
		return false;
	tail = deny || p.slash || (q.whole && q.kind == PATH_DIR);
	if (!put_path(l, s, &p, literals, found.physical, tail, &q.text))
		return false;
	if (deny && !sv_eq(name, found.physical) &&
	    !put_path(l, s, &p, literals, name, tail, &q.as_written))
		return false;
	*ret = q;
	return true;
}

bool lower_plain_path(struct lower *l, const struct stmt *s, struct sv *ret_raw)
{
	struct policy_path found;
	struct pieces p;
	struct sv name;

	if (!split_object(l, s, &p))
		return false;
	for (size_t i = 0; i < p.n; i++)
		if (has_star(p.segs[i]))
			return lower_error(l, s, NULL, "no wildcards here: name one path");
	if (!join(l, &p, p.n, &name) || !l->env->ops->lookup(l->env->ops->ctx, l->a, name, &found))
		return lower_error(l, s, NULL, "out of memory");
	*ret_raw = found.physical;
	return true;
}
