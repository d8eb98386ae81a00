#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "lang/lex.h"
#include "locate/locate.h"

#include "base/banned.h"

static int make_source(struct arena *a, const char *path, int read, const struct buf *b,
		       struct source *ret, struct writ_err *err)
{
	struct source src = { .dir = SV("") };

	if (read == WRIT_E_LIMIT)
		return writ_fail(err, WRIT_E_LIMIT, 0, "%s is larger than %d bytes", path,
				 LEX_TEXT_MAX);
	if (read < 0)
		return read;
	if (!arena_sv(a, buf_view(b), &src.text) || !arena_sv(a, sv_from(path), &src.name))
		return writ_nomem(err);
	*ret = src;
	return 0;
}

int locate_text(struct arena *a, const char *path, struct source *ret, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(LEX_TEXT_MAX + 1);
	int r = fd_read_file(path, &b, err);
	size_t slash;

	r = make_source(a, path, r, &b, ret, err);
	if (r < 0)
		return r;
	slash = sv_rfind(ret->name, '/');
	if (slash != SIZE_MAX)
		ret->dir = sv_sub(ret->name, 0, slash + 1);
	return 0;
}

int locate_text_arg(struct arena *a, const char *path, struct source *ret, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(LEX_TEXT_MAX + 1);

	if (strcmp(path, "-") != 0)
		return locate_text(a, path, ret, err);
	return make_source(a, path, fd_read_all(STDIN_FILENO, &b, err), &b, ret, err);
}

int locate_add_source(struct arena *a, struct find_input *in, const struct source *src,
		      struct writ_err *err)
{
	struct source *slot = vec_push(a, &in->files);

	if (!slot)
		return writ_nomem(err);
	*slot = *src;
	return 0;
}

int locate_add_file(struct arena *a, struct find_input *in, const char *path, struct writ_err *err)
{
	struct source src;
	const int r = locate_text(a, path, &src, err);

	return r < 0 ? r : locate_add_source(a, in, &src, err);
}

/* --- policies that apply if the user names none --- */

static int add_if_there(struct arena *a, struct find_input *in, const char *path, bool *any,
			struct writ_err *err)
{
	struct writ_err why = { 0 };
	const int r = path ? locate_add_file(a, in, path, &why) : writ_nomem(&why);

	if (r == WRIT_E_SYS && (why.sys == ENOENT || why.sys == ENOTDIR))
		return 0;
	if (r < 0)
		*err = why;
	else
		*any = true;
	return r;
}

/*
 * Checks whether a person trusted exactly this text. The trusted text is stored as a copy, so that
 * writ can show a diff.
 */
static bool is_trusted(struct arena *a, const struct find_where *w, const struct source *src)
{
	const char *path = w->config.n ? locate_project_file(a, w, "trusted") : NULL;
	struct writ_err none = { 0 };
	struct digest x, y;
	struct source pin;

	if (!path || locate_text(a, path, &pin, &none) < 0)
		return false;
	x = crypto_sha256(src->text);
	y = crypto_sha256(pin.text);
	return digest_eq(&x, &y);
}

/*
 * Adds the workspace's agent.writ. SECURITY: the agent can write agent.writ, so this file only
 * narrows the other policies, unless a person has trusted its exact text.
 */
static int add_workspace_file(struct arena *a, struct find_input *in, bool *any,
			      struct writ_err *err)
{
	const char *path = arena_fmt(a, SV_FMT "/agent.writ", SV_ARG(in->where.workspace));
	struct writ_err why = { 0 };
	struct source src;
	const int r = path ? locate_text(a, path, &src, &why) : writ_nomem(&why);

	if (r == WRIT_E_SYS && why.sys == ENOENT)
		return 0;
	if (r < 0) {
		*err = why;
		return r;
	}
	src.alone = true;
	if (is_trusted(a, &in->where, &src)) {
		*any = true;
		return locate_add_source(a, in, &src, err);
	}
	in->narrow = src;
	in->has_narrow = true;
	return 0;
}

static bool grants(const struct find_input *in)
{
	for (size_t i = 0; i < in->args.n; i++)
		if (in->args.v[i].kind != ARG_LIMIT && in->args.v[i].kind != ARG_ENV)
			return true;
	return false;
}

int locate_policies(struct arena *a, struct find_input *in, struct writ_err *err)
{
	const struct find_where *w = &in->where;
	bool any = false;
	int r = 0;

	/* If the user gave any policy file or rule that grants, apply exactly the given rules. */
	if (in->files.n || grants(in))
		return 0;
	if (w->config.n)
		r = add_if_there(a, in, arena_fmt(a, SV_FMT "/policy.writ", SV_ARG(w->config)),
				 &any, err);
	if (r == 0 && w->config.n && w->workspace.n)
		r = add_if_there(a, in, locate_project_file(a, w, "projects"), &any, err);
	if (r == 0 && w->workspace.n)
		r = add_workspace_file(a, in, &any, err);
	in->default_write = !any;
	return r;
}
