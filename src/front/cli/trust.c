#include "cli/cli.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

enum { LINES_MAX = 4096 };

struct lines {
	VEC(struct sv) list;
};

static bool split_lines(struct arena *a, struct sv text, struct lines *ret)
{
	while (text.n)
		if (!vec_add(a, &ret->list, sv_cut(&text, '\n')))
			return false;
	return true;
}

static void put_line(struct buf *b, char mark, struct sv line, bool colour)
{
	const char *on = !colour || mark == ' ' ? "" : mark == '+' ? "\033[32m" : "\033[31m";

	buf_fmt(b, "%s%c ", on, mark);
	diag_put_safe(b, line);
	buf_fmt(b, "%s\n", colour && mark != ' ' ? "\033[0m" : "");
}

/*
 * Prints the difference of two texts line by line. Computes the longest common subsequence from the
 * end of both texts, so that the difference can be printed from the start.
 */
static int diff(struct arena *a, struct sv old_text, struct sv new_text, bool colour, struct buf *b,
		struct writ_err *err)
{
	struct lines x = { 0 }, y = { 0 };
	size_t n, m, i = 0, j = 0;
	uint16_t *len;

	if (!split_lines(a, old_text, &x) || !split_lines(a, new_text, &y))
		return writ_nomem(err);
	n = x.list.n;
	m = y.list.n;
	if (n > LINES_MAX || m > LINES_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "more than %d lines", LINES_MAX);
	len = arena_array(a, uint16_t, (n + 1) * (m + 1));
	if (!len)
		return writ_nomem(err);
	for (i = n; i-- > 0;)
		for (j = m; j-- > 0;) {
			const uint16_t skip_x = len[(i + 1) * (m + 1) + j];
			const uint16_t skip_y = len[i * (m + 1) + j + 1];

			len[i * (m + 1) + j] =
				sv_eq(x.list.v[i], y.list.v[j])
					? (uint16_t)(len[(i + 1) * (m + 1) + j + 1] + 1)
					: (skip_x > skip_y ? skip_x : skip_y);
		}
	for (i = j = 0; i < n || j < m;) {
		if (i < n && j < m && sv_eq(x.list.v[i], y.list.v[j])) {
			put_line(b, ' ', x.list.v[i], colour);
			i++, j++;
		} else if (j == m ||
			   (i < n && len[(i + 1) * (m + 1) + j] >= len[i * (m + 1) + j + 1])) {
			put_line(b, '-', x.list.v[i++], colour);
		} else {
			put_line(b, '+', y.list.v[j++], colour);
		}
	}
	return 0;
}

static bool says_yes(void)
{
	char answer[16] = "";
	const ssize_t n = read(STDIN_FILENO, answer, sizeof(answer) - 1);

	return n > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

/*
 * Tests whether the policy has no errors, and prints its diagnostics. A policy with errors cannot
 * be trusted.
 */
static bool is_right(struct args *a, const struct find_where *w, const struct source *src)
{
	struct diags d = { .arena = a->arena };
	struct find_input in;
	struct find_world world;
	struct writ_err err = { 0 };
	struct policy *p;
	int r;

	cli_input_init(a, true, &in);
	in.where = *w;
	r = locate_add_source(a->arena, &in, src, &err);
	locate_world_init(&world, a->arena, &in);
	if (r == 0)
		r = locate_policy(&world, &d, &p, &err);
	cli_show_diags(&d);
	return r == 0;
}

static int show_change(struct args *a, const struct source *src, const char *pin)
{
	scoped_buf b = BUF_INIT(OUT_MAX);
	struct writ_err err = { 0 };
	struct source old = { .text = SV("") };
	const bool before = locate_text_arg(a->arena, pin, &old, &err) == 0;

	buf_fmt(&b, "%s\n",
		before ? "changes since you last trusted it:" : "never trusted before; all of it:");
	if (diff(a->arena, before ? old.text : SV(""), src->text, cli_use_colour(STDOUT_FILENO), &b,
		 &err) < 0)
		return cli_fail(&err, NULL);
	return cli_out(&b, 0);
}

int cmd_trust(struct args *a)
{
	struct writ_err err = { 0 };
	struct find_where w;
	struct source src;
	const char *file, *pin;
	int code;

	if (cli_where_find(a->arena, a->value[OPT_CWD], false, &w, &err) < 0)
		return cli_fail(&err, NULL);
	if (w.workspace.n == 0 || w.config.n == 0)
		return cli_end(EXIT_FAILED, "nothing to trust: %s",
			       w.no_workspace ? w.no_workspace : "there is no home directory");
	file = arena_fmt(a->arena, SV_FMT "/agent.writ", SV_ARG(w.workspace));
	if (a->operands.n && file && strcmp(a->operands.v[0], "agent.writ") != 0 &&
	    strcmp(a->operands.v[0], file) != 0)
		return cli_end(EXIT_FAILED, "a workspace has one policy of its own: %s", file);
	pin = locate_project_file(a->arena, &w, "trusted");
	if (!file || !pin || locate_text(a->arena, file, &src, &err) < 0)
		return cli_fail(&err, NULL);
	src.alone = true;
	if (!is_right(a, &w, &src))
		return EXIT_POLICY;
	code = show_change(a, &src, pin);
	if (code)
		return code;
	if (!a->given[OPT_YES]) {
		if (!isatty(STDIN_FILENO))
			return cli_end(EXIT_NO, "trust needs a person at a terminal, or --yes");
		cli_note("let %s widen what agents may do here? [y/N]", file);
		if (!says_yes())
			return EXIT_NO;
	}
	if (fd_replace_deep(AT_FDCWD, pin, src.text, 0600, &err) < 0)
		return cli_fail(&err, NULL);
	return cli_end(EXIT_DONE, "trusted; any change to it has to be trusted again");
}
