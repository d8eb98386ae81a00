#include "cli/cli.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

struct threat {
	const char *name, *says;
	const char *head; /* first lines of the new policy */
};

/* clang-format off */
static const struct threat threats[] = {
	{ "prototype", "I try things out on my own code and watch it",
	  "# You watch the agent and the code is your own: it may write all of the project.\n"
	  "net level hosts\n"
	  "isolation >= process\n"
	  "workspace direct\n"
	  "\n"
	  "allow write .\n"
	  "ask net *\n"
	  "\n"
	  "limit pids 2048\n" },
	{ "developer", "it works on my projects while I do something else",
	  "# You are not watching all the time: it may write the project and reach the hosts listed here, nothing else.\n"
	  "net level hosts+dns\n"
	  "isolation >= process\n"
	  "workspace direct\n"
	  "\n"
	  "allow write .\n"
	  "# allow net https://api.example.com          # the hosts it needs, one per line\n"
	  "# secret API_KEY from env:API_KEY to https://api.example.com as bearer\n"
	  "deny read **/.env\n"
	  "\n"
	  "limit pids 1024\n"
	  "limit session 8h\n" },
	{ "production", "it reads input from strangers, or runs their code",
	  "# Strangers decide what the agent sees: a second kernel, a copy of the project, every request on record.\n"
	  "net level signed\n"
	  "isolation >= gvisor\n"
	  "workspace cow\n"
	  "require fs.read=exact fs.write=exact net=exact audit=exact\n"
	  "\n"
	  "allow write .\n"
	  "# allow net https://api.example.com/v1/** methods=GET,POST\n"
	  "# secret API_KEY from env:API_KEY to https://api.example.com as bearer\n"
	  "deny read **/.env\n"
	  "deny read **/.git\n"
	  "\n"
	  "limit memory 2G\n"
	  "limit pids 256\n"
	  "limit disk 5G\n"
	  "limit session 30m\n"
	  "limit output 10M\n" },
	{ "api-only", "it only calls APIs: no shell, no files",
	  "# It runs one program that talks to APIs. It starts nothing else and writes nothing.\n"
	  "net level signed\n"
	  "isolation >= process\n"
	  "\n"
	  "allow shell none\n"
	  "# allow net https://api.example.com/v1/** methods=GET,POST\n"
	  "# secret API_KEY from env:API_KEY to https://api.example.com as bearer\n"
	  "\n"
	  "limit pids 64\n"
	  "limit session 1h\n"
	  "limit output 10M\n" },
};

/* Files that identify the toolchain of a project. */
static const struct { const char *file, *profile; } signs[] = {
	{ "package.json", "node" }, { "pyproject.toml", "python" }, { "requirements.txt", "python" },
	{ "setup.py", "python" }, { "go.mod", "go" }, { "Cargo.toml", "rust" },
};
/* clang-format on */

static const struct threat *find_threat(struct sv name)
{
	for (size_t i = 0; i < ARRAY_LEN(threats); i++)
		if (sv_is(name, threats[i].name))
			return &threats[i];
	return NULL;
}

/* Asks the user on a terminal for a threat; the user answers with a number or a name. */
static const struct threat *ask_threat(void)
{
	scoped_buf b = BUF_INIT(4096);
	struct writ_err err = { 0 };
	char answer[64];
	ssize_t n;
	struct sv word;
	uint64_t v;

	buf_str(&b, "What is this agent for?\n");
	for (size_t i = 0; i < ARRAY_LEN(threats); i++)
		buf_fmt(&b, "  %zu  %-12s%s\n", i + 1, threats[i].name, threats[i].says);
	buf_str(&b, "number or name: ");
	(void)!fd_write_all(STDERR_FILENO, buf_view(&b), &err);
	n = read(STDIN_FILENO, answer, sizeof(answer));
	if (n <= 0)
		return NULL;
	word = (struct sv){ answer, (size_t)n };
	word = sv_trim(sv_cut(&word, '\n'));
	if (sv_to_u64(word, ARRAY_LEN(threats), &v) && v > 0)
		return &threats[v - 1];
	return find_threat(word);
}

static const struct threat *choose(struct args *a)
{
	const struct threat *t = NULL;

	if (a->given[OPT_THREAT])
		t = find_threat(sv_from(a->value[OPT_THREAT]));
	else if (isatty(STDIN_FILENO))
		t = ask_threat();
	if (!t)
		cli_note("say --threat prototype, developer, production or api-only");
	return t;
}

static void write_policy(struct args *a, const struct find_where *w, const struct threat *t,
			 struct buf *b)
{
	bool used[ARRAY_LEN(signs)] = { false };

	buf_str(b, "version 1\n");
	buf_str(b, "# The policy of ");
	diag_put_safe(b, w->workspace);
	buf_fmt(b, ", made by writ init --threat %s. It is yours to edit.\n", t->name);
	buf_str(b,
		"# writ explain shows what enforces each line here, writ check finds mistakes.\n");
	for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
		const char *path =
			arena_fmt(a->arena, SV_FMT "/%s", SV_ARG(w->workspace), signs[i].file);

		for (size_t k = 0; k < i; k++)
			used[i] = used[i] ||
				  (used[k] && strcmp(signs[k].profile, signs[i].profile) == 0);
		if (used[i] || !path || access(path, F_OK) != 0)
			continue;
		used[i] = true;
		buf_fmt(b, "use %s%*s# because of %s\n", signs[i].profile,
			(int)(12 - strlen(signs[i].profile)), "", signs[i].file);
	}
	buf_ch(b, '\n');
	buf_str(b, t->head);
}

/* Reports, before the first run, which lines of the new policy this machine cannot enforce. */
static int say_what_it_needs(struct args *a, const struct find_where *w, struct sv text)
{
	struct source src = { .name = SV("init"), .dir = SV("") };
	struct launch_loaded l = { .diags.arena = a->arena };
	struct writ_err err = { 0 };
	struct host_facts f;
	struct plan *p;
	int r;

	cli_input_init(a, true, &l.in);
	l.in.where = *w;
	if (!arena_sv(a->arena, text, &src.text) ||
	    locate_add_source(a->arena, &l.in, &src, &err) < 0)
		return cli_fail(&err, "out of memory");
	locate_world_init(&l.world, a->arena, &l.in);
	if (locate_policy(&l.world, &l.diags, &l.policy, &err) < 0) {
		cli_show_diags(&l.diags);
		return EXIT_FAILED;
	}
	r = cli_load_facts_kept(a, w->state, &f);
	if (r == 0)
		r = cli_load_plan(a, &l, &l.policy->set, &f, &p);
	if (r == 0 && !plan_runs(p)) {
		cli_show_refused(p);
		cli_note("a run with this policy ends with 122 here: change these lines, or run it "
			 "where they hold");
	}
	return r;
}

int cmd_init(struct args *a)
{
	scoped_buf b = BUF_INIT(65536);
	struct writ_err err = { 0 };
	const struct threat *t;
	struct find_where w;
	const char *path;
	int code;

	if (cli_where_find(a->arena, a->value[OPT_CWD], false, &w, &err) < 0)
		return cli_fail(&err, NULL);
	if (w.workspace.n == 0 || w.config.n == 0)
		return cli_end(EXIT_FAILED, "no project here: %s",
			       w.no_workspace ? w.no_workspace : "there is no home directory");
	t = choose(a);
	if (!t)
		return EXIT_FAILED;
	write_policy(a, &w, t, &b);
	if (buf_check(&b, &err) < 0)
		return cli_fail(&err, NULL);
	if (a->given[OPT_PRINT]) {
		code = say_what_it_needs(a, &w, buf_view(&b));
		return cli_out(&b, code);
	}
	path = locate_project_file(a->arena, &w, "projects");
	if (!path)
		return cli_fail(&err, "out of memory");
	if (access(path, F_OK) == 0 && !a->given[OPT_FORCE])
		return cli_end(EXIT_NO, "%s is already there; edit it, or replace it with --force",
			       path);
	if (fd_replace_deep(AT_FDCWD, path, buf_view(&b), 0600, &err) < 0)
		return cli_fail(&err, NULL);
	cli_note("wrote %s", path);
	code = say_what_it_needs(a, &w, buf_view(&b));
	return cli_end(code, "next: writ explain");
}
