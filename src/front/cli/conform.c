#include "conform/conform.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

#include "base/banned.h"

enum { CONFORM_ARENA = 256 << 20, JOBS_DEFAULT = 2, JOBS_LIMIT = 16 };

/* Finds the programs writ and writ-escape: installed, in one folder, or in the build tree. */
static int find_programs(struct arena *a, struct conform_options *opt)
{
	static const char *const places[] = { "../libexec/writ", ".", "../tests/escape" };
	char self[PATH_MAX];
	const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n <= 0)
		return cli_end(EXIT_FAILED, "cannot tell where writ lies: is /proc mounted?");
	self[n] = 0;
	opt->writ = arena_str(a, sv_from(self));
	slash = strrchr(self, '/');
	if (!opt->writ || !slash)
		return EXIT_FAILED;
	*slash = 0;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		opt->escape = arena_fmt(a, "%s/%s/writ-escape", self, places[i]);
		if (!opt->escape)
			return EXIT_FAILED;
		if (access(opt->escape, X_OK) == 0)
			return 0;
	}
	return cli_end(EXIT_FAILED,
		       "writ-escape is missing: it belongs into %s/../libexec/writ or beside writ",
		       self);
}

static bool wanted(const struct args *a, enum opt_id id, struct sv value)
{
	bool any = false;

	for (size_t i = 0; i < a->repeated.n; i++) {
		if (a->repeated.v[i].id != id)
			continue;
		if (sv_is(value, a->repeated.v[i].value))
			return true;
		any = true;
	}
	return !any;
}

/* Treat an --id or --bound that matches no row as a usage error, not as success. */
static int check_wanted(const struct args *a, const struct conform_rows *rows)
{
	for (size_t i = 0; i < a->repeated.n; i++) {
		const struct opt_value *v = &a->repeated.v[i];
		bool found = false;

		for (size_t k = 0; k < rows->rows.n; k++)
			found |= sv_is(v->id == OPT_ID ? rows->rows.v[k].id : rows->rows.v[k].bound,
				       v->value);
		if (!found)
			return cli_end(EXIT_FAILED, "no %s \"%s\"; writ conform --list shows them",
				       v->id == OPT_ID ? "row" : "bound", v->value);
	}
	return 0;
}

static int select_rows(struct args *a, struct arena *arena, const char *escape,
		       struct conform_rows *ret)
{
	struct conform_rows all = { 0 };
	struct writ_err err = { 0 };

	if (conform_list(arena, escape, &all, &err) < 0)
		return cli_fail(&err, NULL);
	if (check_wanted(a, &all))
		return EXIT_FAILED;
	for (size_t i = 0; i < all.rows.n; i++) {

		if (wanted(a, OPT_ID, all.rows.v[i].id) &&
		    wanted(a, OPT_BOUND, all.rows.v[i].bound) &&
		    !vec_add(arena, &ret->rows, all.rows.v[i]))
			return EXIT_FAILED;
	}
	if (ret->rows.n == 0)
		return cli_end(EXIT_FAILED, "no row is of that bound and has that id");
	return 0;
}

/*
 * Reads the options of --under: splits the option's value into words, appends the operands to the
 * words, and parses --declare.
 */
static int read_under(struct args *a, struct arena *arena, struct conform_options *opt)
{
	struct writ_err err = { 0 };

	opt->under = a->given[OPT_UNDER];
	if (!opt->under && (a->operands.n || a->given[OPT_DECLARE]))
		return cli_end(EXIT_FAILED, "%s needs --under",
			       a->operands.n ? "a command" : "--declare");
	if (opt->under && a->given[OPT_TIER])
		return cli_end(EXIT_FAILED, "--tier is of writ, not of what --under names");
	if (!opt->under)
		return 0;
	if (conform_split(sv_from(a->value[OPT_UNDER]), arena, &opt->words, &err) < 0)
		return cli_fail(&err, "--under");
	for (size_t i = 0; i < a->operands.n; i++)
		if (!vec_add(arena, &opt->words.words, a->operands.v[i]))
			return EXIT_FAILED;
	return conform_read_declared(sv_from(a->value[OPT_DECLARE]), &opt->declared, &err) < 0
		       ? cli_fail(&err, NULL)
		       : 0;
}

/*
 * Returns the directory in which scenes are made: $TMPDIR, else /var/tmp, else /tmp. /var/tmp is on
 * disk, and most sandboxes do not replace it with a private directory.
 */
static const char *default_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	if (tmp && tmp[0] == '/')
		return tmp;
	return access("/var/tmp", W_OK | X_OK) == 0 ? "/var/tmp" : "/tmp";
}

static int read_options(struct args *a, struct arena *arena, struct conform_options *opt)
{
	const char *tier = a->value[OPT_TIER];
	uint64_t jobs = JOBS_DEFAULT;

	if (a->given[OPT_JOBS] &&
	    (!sv_to_u64(sv_from(a->value[OPT_JOBS]), JOBS_LIMIT, &jobs) || jobs == 0))
		return cli_end(EXIT_FAILED, "--jobs wants a number from 1 to %d", JOBS_LIMIT);
	if (tier && strcmp(tier, "A") != 0 && strcmp(tier, "B") != 0)
		return cli_end(EXIT_FAILED, "--tier wants A or B");
	opt->dir = a->given[OPT_DIR] ? a->value[OPT_DIR] : default_dir();
	opt->user = a->value[OPT_USER];
	opt->tier = tier;
	opt->bare = a->value[OPT_BARE];
	opt->controls = !a->given[OPT_NO_CONTROLS];
	opt->jobs = (unsigned)jobs;
	opt->progress = isatty(STDERR_FILENO) ? STDERR_FILENO : -1;
	opt->environ = environ;
	return read_under(a, arena, opt);
}

static int show_list(struct args *a, const struct conform_rows *rows)
{
	struct buf b = BUF_INIT(OUT_MAX);

	if (a->given[OPT_JSON])
		conform_json_rows(rows, &b);
	else
		conform_show_rows(rows, &b);
	return cli_out(&b, EXIT_DONE);
}

static int show_report(struct args *a, const struct conform_report *r)
{
	struct buf b = BUF_INIT(OUT_MAX);
	struct sv said = sv_from(r->said);
	bool silent = false;

	for (size_t i = 0; i < r->results.n; i++)
		silent |= r->results.v[i].verdict == ROW_NOT_RUN;
	if (a->given[OPT_JSON])
		conform_json(r, &b);
	else
		conform_show(r, a->given[OPT_VERBOSE], &b);
	while (silent && said.n) {
		const struct sv line = sv_cut(&said, '\n');

		cli_note("the sandbox said: " SV_FMT, SV_ARG(line));
	}
	return cli_out(&b, conform_report_passes(r) ? EXIT_DONE : EXIT_NO);
}

int cmd_conform(struct args *a)
{
	scoped_arena arena = ARENA_INIT(CONFORM_ARENA);
	struct conform_options opt = { 0 };
	struct conform_report report = { 0 };
	struct conform_rows rows = { 0 };
	struct writ_err err = { 0 };
	int r = read_options(a, &arena, &opt);

	if (r || (r = find_programs(&arena, &opt)) ||
	    (r = select_rows(a, &arena, opt.escape, &rows)))
		return r;
	if (a->given[OPT_LIST])
		return show_list(a, &rows);
	if (conform_run(&arena, &opt, &rows, &report, &err) < 0)
		return cli_fail(&err, NULL);
	if (report.signal)
		return 128 + report.signal;
	return show_report(a, &report);
}
