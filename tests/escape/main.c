/*
 * writ-escape - tries to leave the sandbox it runs in
 *
 *     setup DIR [ID...]        outside: makes the scene (no ids: that of a batch)
 *     setup-root DIR           outside, as root: adds set-id programs for another user
 *     attempt IDS DIR          inside: tries
 *     control IDS DIR          inside: the same where it is allowed
 *     judge IDS DIR FILE       outside: HELD or ESCAPED; FILE is the attempt's output
 *     launch ID DIR -- CMD...  outside: starts CMD in surroundings the row asks for
 *     teardown DIR             outside: ends the helpers
 *     list [--json]
 *
 * IDS is one id, several with commas between them (each then runs in a process of
 * its own, under a time limit), or --all: every row that needs no sandbox of its own.
 */
#include "escape.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct table fs_write_rows, fs_path_rows, fs_read_rows, fs_meta_rows, mount_rows,
	system_rows, protect_rows, protect_name_rows, home_rows, net_rows, unix_rows, family_rows,
	ipc_rows, signal_rows, see_rows, tty_rows, namespace_rows, sweep_rows, identity_rows,
	race_rows, resource_rows, launch_rows, use_rows, hidden_rows;

/* In the order in which they run: what must work comes first. */
const struct row *row_at(size_t i)
{
	static const struct table *const tables[] = {
		&use_rows,	&fs_write_rows, &fs_path_rows,	    &fs_read_rows,   &fs_meta_rows,
		&mount_rows,	&system_rows,	&protect_name_rows, &protect_rows,   &home_rows,
		&launch_rows,	&net_rows,	&family_rows,	    &unix_rows,	     &ipc_rows,
		&see_rows,	&signal_rows,	&tty_rows,	    &namespace_rows, &sweep_rows,
		&identity_rows, &race_rows,	&resource_rows,	    &hidden_rows,
	};

	for (size_t t = 0; t < LENGTH(tables); i -= tables[t++]->n)
		if (i < tables[t]->n)
			return &tables[t]->v[i];
	return NULL;
}

const struct row *row_find(const char *id)
{
	for (size_t i = 0; row_at(i); i++)
		if (!strcmp(row_at(i)->id, id))
			return row_at(i);
	return NULL;
}

static struct ctx context(const struct row *row, const char *dir, bool control)
{
	struct ctx c = { .row = row, .control = control };

	fmt(c.dir, sizeof(c.dir), "%s", dir);
	fmt(c.root, sizeof(c.root), "%s/work", dir);
	fmt(c.work, sizeof(c.work), "%s/work/%s", dir, row->id);
	fmt(c.out, sizeof(c.out), "%s/out/%s", dir, row->id);
	fmt(c.base, sizeof(c.base), control ? "%s/work/%s.c" : "%s/out/%s", dir, row->id);
	fmt(c.rel, sizeof(c.rel), control ? "../%s.c" : "../../out/%s", row->id);
	return c;
}

static int perform(const struct row *row, const char *dir, bool control)
{
	struct ctx c = context(row, dir, control);
	char line[256];

	/* A missing work directory must not turn relative attempts into nonsense. */
	if (chdir(c.work) < 0)
		say(&c, "no workspace: %s", strerror(errno));
	const int r = control ? row->control(&c) : row->fn(&c);
	const int n = r ? snprintf(line, sizeof(line), "=%s %d %s\n", row->id, r, strerror(-r))
			: snprintf(line, sizeof(line), "=%s 0\n", row->id);
	(void)!write(1, line, (size_t)n);
	return r ? 1 : 0;
}

/* In a batch an attempt may hang or be killed; the next one must not notice. */
static void perform_alone(const struct row *row, const char *dir, bool control)
{
	int status = 0;
	pid_t done = 0;
	char line[128];
	const pid_t pid = fork();

	if (pid == 0) {
		(void)setpgid(0, 0);
		_exit(perform(row, dir, control));
	}
	for (int ms = 0; pid > 0 && !done && ms < ATTEMPT_SECONDS * 1000; ms += ms < 20 ? 1 : 10) {
		done = waitpid(pid, &status, WNOHANG);
		if (!done)
			nap(ms < 20 ? 1 : 10);
	}
	if (pid > 0 && done == pid && WIFEXITED(status))
		return;
	if (pid > 0 && !done) {
		(void)kill(-pid, SIGKILL);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
	}
	const int n = snprintf(line, sizeof(line), "=%s -1 ended by signal %d%s\n", row->id,
			       WTERMSIG(status), done ? "" : " after a time-out");
	(void)!write(1, line, (size_t)n);
}

static bool selected(const struct row *row, const char *ids)
{
	const size_t n = strlen(row->id);

	if (!strcmp(ids, "--all"))
		return !(row->flags & ROW_OWN);
	for (const char *p = ids; (p = strstr(p, row->id)); p += n)
		if ((p == ids || p[-1] == ',') && (!p[n] || p[n] == ','))
			return true;
	return false;
}

static int attempt(const char *ids, const char *dir, bool control)
{
	const struct row *row = row_find(ids);

	if (row)
		return control && !row->control ? 98 : perform(row, dir, control);
	for (size_t i = 0; row_at(i); i++)
		if (selected(row_at(i), ids) && (!control || row_at(i)->control))
			perform_alone(row_at(i), dir, control);
	return 0;
}

static void judge_one(const struct row *row, const char *dir, const struct text *out)
{
	struct text why = { 0 };
	const char *mark = path("=%s ", row->id);
	const char *end = memmem(out->v, out->n, mark, strlen(mark));
	const char *said = end ? end + strlen(mark) : "no answer";

	text_add(&why, "%s", "");
	const int escaped = judge(row, dir, out, &why);
	/* Resource rows may be killed before they can say how it went. */
	bool ran = end || memmem(out->v, out->n, path("+%s ", row->id), strlen(row->id) + 2);
	/* Nobody was counted: whoever was there did not carry the mark. */
	if (row->by & BY_TASKS && access(path("%s/state/tasks", dir), F_OK) < 0)
		ran = false;
	printf("%s\t%s\t%s\t%.*s\n", row->id,
	       escaped ? "ESCAPED"
	       : ran   ? "HELD"
		       : "SILENT",
	       why.v, (int)strcspn(said, "\n"), said);
	free(why.v);
}

static int judge_command(const char *ids, const char *dir, const char *file)
{
	struct stat st = { 0 };
	struct text out = { 0 };

	if (stat(file, &st) < 0)
		return 99;
	out.max = (size_t)st.st_size + 2;
	out.v = calloc(1, out.max);
	if (!out.v)
		return 99;
	const int n = read_text(file, out.v, out.max);
	out.n = n > 0 ? (size_t)n : 0;
	nap(60); /* what was sent last must have arrived at the listeners */
	for (size_t i = 0; row_at(i); i++) {
		if (selected(row_at(i), ids))
			judge_one(row_at(i), dir, &out);
	}
	free(out.v);
	return 0;
}

static void list_one(const struct row *r, bool json)
{
	static const char *const flags[] = {
		"own",	      "launch",	  "never-bare", "inherent", "kill-supervisor",
		"root-setup", "positive", "tty",	"serial",   "timed"
	};
	const char *sep = "";

	if (!json) {
		printf("%-9s %-9s %-12s %s\n", r->id, r->bound, r->guarantee, r->what);
		return;
	}
	printf("{\"id\":\"%s\",\"bound\":\"%s\",\"guarantee\":\"%s\",\"what\":\"", r->id, r->bound,
	       r->guarantee);
	for (const char *p = r->what; *p; p++)
		printf(*p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
	printf("\",\"judged\":\"%s\",\"control\":%s,\"policy\":\"%s\",\"gap\":\"%s\",\"flags\":[",
	       r->by == BY_REPORT ? "inside" : "outside", r->control ? "true" : "false",
	       r->policy ? r->policy : "", r->gap ? r->gap : "");
	for (size_t i = 0; i < LENGTH(flags); i++) {
		if (!(r->flags & 1u << i))
			continue;
		printf("%s\"%s\"", sep, flags[i]);
		sep = ",";
	}
	printf("]}");
}

static int list(bool json)
{
	const char *sep = "";

	if (json)
		printf("[");
	for (size_t i = 0; row_at(i); i++) {
		printf("%s", sep);
		list_one(row_at(i), json);
		sep = json ? ",\n" : "";
	}
	if (json)
		printf("]\n");
	return 0;
}

/* What a copy of this program with a set-id bit or file capabilities says, and no more. */
static int privileged(void)
{
	char status[4096];

	(void)read_text("/proc/self/status", status, sizeof(status));
	const char *caps = strstr(status, "CapEff:");
	printf("raised uid=%u euid=%u gid=%u egid=%u %.23s\n", getuid(), geteuid(), getgid(),
	       getegid(), caps ? caps : "");
	(void)fflush(stdout);
	return geteuid() != getuid() || getegid() != getgid() ||
			       (caps && strncmp(caps + 8, "0000000000000000", 16) != 0)
		       ? 0
		       : 1;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	const struct row *row = argc > 2 ? row_find(argv[2]) : NULL;

	if (geteuid() != getuid() || getegid() != getgid() || !strcmp(verb, "whoami"))
		return privileged();
	(void)signal(SIGPIPE, SIG_IGN);
	if (!strcmp(verb, "setup") && argc > 2)
		return scene_setup(argv[2], (const char *const *)(argv + 3), (size_t)argc - 3);
	if (!strcmp(verb, "setup-root") && argc == 3)
		return scene_setup_root(argv[2]);
	if (!strcmp(verb, "teardown") && argc == 3)
		return scene_teardown(argv[2]);
	if (!strcmp(verb, "attempt") && argc == 4)
		return attempt(argv[2], argv[3], false);
	if (!strcmp(verb, "control") && argc == 4)
		return attempt(argv[2], argv[3], true);
	if (!strcmp(verb, "judge") && argc == 5)
		return judge_command(argv[2], argv[3], argv[4]);
	if (!strcmp(verb, "launch") && argc > 5 && row)
		return launch(row, argv[3], argv + 5);
	if (!strcmp(verb, "victim") && argc == 4)
		return victim_main(argv);
	if (!strcmp(verb, "list"))
		return list(argc == 3 && !strcmp(argv[2], "--json"));
	(void)fprintf(stderr, "usage: writ-escape "
			      "setup|attempt|control|judge|launch|teardown|list ...\n");
	return 2;
}
