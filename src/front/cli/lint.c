#include "cli/cli.h"

#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "lint/lint.h"
#include "lint/policy.h"

#include "base/banned.h"

struct results {
	VEC(struct lint_file) files;
	size_t bad;		/* number of errors and warnings */
	bool unreadable, wrong; /* a file could not be read; a writ policy has errors */
};

static int read_any(struct args *a, const char *path, struct sv *ret, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(LINT_BYTES_MAX + 1);
	const bool in = sv_is(sv_from(path), "-");
	const int r = in ? fd_read_all(STDIN_FILENO, &b, err) : fd_read_file(path, &b, err);

	return r == 0 && !arena_sv(a->arena, buf_view(&b), ret) ? writ_nomem(err) : r;
}

/* Lints a writ policy: prints errors as `check` does, and reports risky rules as findings. */
static int lint_writ(struct args *a, const struct find_where *w, const char *path, struct sv text,
		     struct lint_findings *f, struct writ_err *err)
{
	const size_t slash = sv_rfind(sv_from(path), '/');
	struct source *src = arena_new(a->arena, struct source);
	struct diags d = { .arena = a->arena };
	struct find_input in;
	struct find_world world;
	struct policy *p;
	int r;

	if (!src)
		return writ_nomem(err);
	*src = (struct source){ .name = sv_from(path),
				.dir = sv_sub(sv_from(path), 0, slash == SIZE_MAX ? 0 : slash + 1),
				.text = text };
	cli_input_init(a, true, &in);
	in.where = *w;
	if (in.where.workspace.n == 0)
		in.where.workspace = SV("/workspace");
	locate_world_init(&world, a->arena, &in);
	r = locate_add_source(a->arena, &in, src, err);
	if (r == 0)
		r = locate_policy(&world, &d, &p, err);
	if (d.errors)
		cli_show_diags(&d);
	if (r == WRIT_E_SYNTAX)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "not a right policy, see above");
	return r < 0 ? r : lint_policy(a->arena, p, src, &world.env, f, err);
}

static int lint_one(struct args *a, const struct find_where *w, const char *path,
		    struct results *res)
{
	const struct sv name = sv_from(path);
	struct lint_findings found = { 0 };
	enum lint_format format = LINT_UNKNOWN;
	struct lint_file *file = vec_push(a->arena, &res->files);
	struct writ_err err = { 0 };
	const char *want = a->value[OPT_FORMAT];
	bool writ = want ? sv_is(sv_from(want), "writ") : sv_ends(name, SV(".writ"));
	struct sv text = SV("");
	int r;

	if (!file)
		return writ_nomem(&err);
	if (want && !writ && !lint_format_parse(sv_from(want), &format))
		return cli_end(EXIT_FAILED, "no format \"%s\"; %s", want,
			       opt_get(OPT_FORMAT)->values);
	r = read_any(a, path, &text, &err);
	if (r == 0 && !want && !writ)
		writ = sv_starts(text, SV("version 1\n"));
	if (r == 0 && !writ && format == LINT_UNKNOWN)
		format = lint_detect(name, text);
	if (r == 0)
		r = writ ? lint_writ(a, w, path, text, &found, &err)
			 : lint_run(a->arena, format, name, text, &found, &err);
	*file = (struct lint_file){
		.name = name, .text = text, .format = format, .findings = found.v, .n = found.n
	};
	if (r < 0) {
		file->error = arena_fmt(a->arena, "%s%s%s", err.what, err.sys ? ": " : "",
					err.sys ? strerror(err.sys) : "");
		res->wrong = res->wrong || (writ && r == WRIT_E_SYNTAX);
		res->unreadable = res->unreadable || !(writ && r == WRIT_E_SYNTAX);
	}
	for (size_t i = 0; i < found.n; i++)
		res->bad += found.v[i].rule->severity != LINT_INFO;
	return 0;
}

int cmd_lint(struct args *a)
{
	struct buf b = BUF_INIT(OUT_MAX);
	struct results res = { 0 };
	struct writ_err err = { 0 };
	struct find_where w;
	size_t all = 0;
	int code;

	if (a->operands.n == 0)
		return cli_end(EXIT_FAILED,
			       "lint needs files, as in: writ lint docker-compose.yml .mcp.json");
	if (cli_where_find(a->arena, a->value[OPT_CWD], false, &w, &err) < 0)
		return cli_fail(&err, NULL);
	for (size_t i = 0; i < a->operands.n; i++) {
		code = lint_one(a, &w, a->operands.v[i], &res);
		if (code)
			return EXIT_FAILED;
		all += res.files.v[i].n;
	}
	if (a->given[OPT_SARIF])
		lint_print_sarif(res.files.v, res.files.n, &b);
	else if (a->given[OPT_JSON])
		lint_print_json(res.files.v, res.files.n, &b);
	else
		for (size_t i = 0; i < res.files.n; i++)
			lint_print_text(&res.files.v[i], &b);
	if (!a->given[OPT_QUIET] && !a->given[OPT_JSON] && !a->given[OPT_SARIF])
		buf_fmt(&b, "%zu file%s, %zu finding%s\n", res.files.n, res.files.n == 1 ? "" : "s",
			all, all == 1 ? "" : "s");
	return cli_out(&b, res.unreadable ? EXIT_FAILED
			   : res.wrong	  ? EXIT_POLICY
			   : res.bad	  ? EXIT_NO
					  : EXIT_DONE);
}
