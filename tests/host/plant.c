/*
 * plant.c - a step of the jail is left out on purpose, and the verdict shows it
 *
 * Links a writ-init that can be told to leave out a step, which the one that people install
 * cannot. First with the whole jail: every boundary that is enforced here held. Then once
 * for each boundary: with the refusal to start, nothing runs; without it, the session goes
 * on and that boundary is violated. And of the real logs that come of it: no entry that is
 * taken away makes a finding better.
 */
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "crypto/crypto.h"
#include "jail/jail.h"
#include "judged.h"
#include "parts/session.h"

extern char **environ;
bool probes_refuses(void);

static char top[] = "/tmp/writ-plant-XXXXXX";
static char sentinel[PATH_MAX], records[PATH_MAX];
static bool refuses;

enum { ENTRIES_MAX = 256, PLANT = 0x100, LEAK = 40 };

/* Instead of the session's own: to see what an open boundary comes to. */
bool probes_refuses(void)
{
	return refuses;
}

/* --- one session --- */

struct outcome {
	int code, exit;
	struct writ_err err;
	struct judgement j;
	bool ran, monotonic;
};

static void judge_file(int fd, struct outcome *ret)
{
	scoped_buf text = BUF_INIT(4 << 20);
	json_t *entries[ENTRIES_MAX];
	size_t n = 0;
	struct sv rest;

	if (fd_read_all(fd, &text, &ret->err) < 0)
		return;
	rest = buf_view(&text);
	while (rest.n && n < ENTRIES_MAX) {
		const struct sv line = sv_cut(&rest, '\n');

		entries[n] = json_loadb(line.p, line.n, 0, NULL);
		n += entries[n] != NULL;
	}
	ret->j = judged(entries, n, NULL);
	ret->monotonic = removals_hold(entries, n, 300);
	while (n)
		json_decref(entries[--n]);
}

/* The only record: each session starts without any. */
static void judge_record(struct outcome *ret)
{
	DIR *d = opendir(records);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.') {
			const int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC);

			judge_file(fd, ret);
			close(fd);
			(void)unlinkat(dirfd(d), e->d_name, 0);
		}
	if (d)
		closedir(d);
}

/* What `writ run --tier TIER -- sh -c SCRIPT` does, without a step. */
static bool attempt(char tier, unsigned without, const char *script, struct outcome *ret)
{
	scoped_arena arena = ARENA_INIT(POLICY_ARENA_MAX);
	char option[] = "--tier", which[2] = { tier, 0 }, end[] = "--", sh[] = "sh";
	char dash_c[] = "-c", text[512];
	char *words[] = { option, which, end, sh, dash_c, text, NULL };
	char *argv[] = { sh, dash_c, text, NULL };
	struct args args = { .arena = &arena };
	struct find_where where;
	struct host_facts facts;
	struct launch_loaded l;
	struct plan *p;
	struct session_options opt = { .argv = argv, .environ = environ, .status_fd = -1 };
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC), quiet[] = { null, null, null };
	struct stat st;

	*ret = (struct outcome){ .exit = EXIT_FAILED };
	snprintf(text, sizeof(text), "%s", script);
	if (opts_parse(cli_verb_get(SV("run")), 6, words, &args, &ret->err) < 0 ||
	    cli_where_find(&arena, NULL, true, &where, &ret->err) < 0 ||
	    cli_load_facts_kept(&args, where.state, &facts) != 0 ||
	    cli_load_policy(&args, NULL, false, &l) != 0 ||
	    cli_load_plan(&args, &l, &l.policy->set, &facts, &p) != 0 || p->refused)
		return false;
	opt.fail_at = without ? PLANT | without : 0;
	opt.policy = l.policy;
	opt.plan = p;
	opt.realm = l.in.where.realm;
	opt.state = l.in.where.state;
	opt.config = l.in.where.config;
	opt.workspace = l.in.where.workspace;
	opt.cwd = l.in.where.cwd;
	opt.home = l.in.where.home;
	opt.program = l.in.program;
	opt.ready_fd = -1;
	opt.stdio = quiet;
	opt.quiet = true;
	ret->code = session_run(&arena, &opt, &ret->exit, &ret->err);
	close(null);
	ret->ran = stat(sentinel, &st) == 0;
	(void)unlink(sentinel);
	judge_record(ret);
	return true;
}

/* --- what should come of it --- */

static void whole(char tier)
{
	struct outcome o;

	if (!ok(attempt(tier, 0, "touch ran", &o), "tier %c: a session: %s", tier, o.err.what))
		return;
	ok(o.code == 0 && o.exit == 0 && o.ran, "tier %c: it runs: %s", tier, o.err.what);
	for (int i = 0; i < BOUNDARIES; i++) {
		const struct finding *f = &o.j.of[i];
		/* A user may have nothing that limits processes. */
		const bool none = i == BOUNDARY_RESOURCES && f->verdict == VERDICT_NOT_ENFORCED;

		ok((f->verdict == VERDICT_HELD && f->strength == STRENGTH_E2) || none,
		   "tier %c: %s: %s E%d (%s)", tier, attest_boundary_name((enum boundary)i),
		   verdict_name(f->verdict), (int)f->strength, f->why);
	}
	ok(o.monotonic, "tier %c: no entry taken away makes a finding better", tier);
}

static void plant(char tier, enum boundary b, enum jail_step step)
{
	const char *name = jail_step_name(step);
	const char *boundary = attest_boundary_name(b);
	struct outcome o;

	refuses = true;
	if (!ok(attempt(tier, step, "touch ran", &o), "tier %c without %s: a session", tier, name))
		return;
	ok(o.code < 0 && !o.ran, "tier %c without %s: nothing runs", tier, name);
	ok(strstr(o.err.what, "boundary does not hold"), "tier %c without %s: it says why: %s",
	   tier, name, o.err.what);
	ok(o.j.of[b].verdict == VERDICT_VIOLATED, "tier %c without %s: %s was %s (%s)", tier, name,
	   boundary, verdict_name(o.j.of[b].verdict), o.j.of[b].why);
	refuses = false;
	if (!ok(attempt(tier, step, "touch ran", &o), "tier %c without %s: a session", tier, name))
		return;
	ok(o.ran, "tier %c without %s: it would have run: %s", tier, name, o.err.what);
	/* By an attempt that worked, whatever else the kernel said. */
	ok(o.j.of[b].verdict == VERDICT_VIOLATED && o.j.of[b].strength == STRENGTH_E2,
	   "tier %c without %s: %s was %s (%s)", tier, name, boundary,
	   verdict_name(o.j.of[b].verdict), o.j.of[b].why);
	ok(o.monotonic, "tier %c without %s: no entry taken away makes a finding better", tier,
	   name);
	refuses = true;
}

static int open_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)at;
	return type == FTW_DNR && chmod(path, 0700) < 0 ? -1 : 0;
}

/*
 * What an agent may do to what is tried at the end. It can take away what a control needs,
 * and then nobody knows; it can neither hide an open boundary nor make one up.
 */
static void agents(char tier)
{
	/* clang-format off */
	static const struct { const char *name, *script; int vague; /* a boundary, or -1 */ } rows[] = {
		{ "stays alive", "for i in 1 2 3 4 5; do (trap '' HUP TERM INT; exec setsid sleep 60) & done; touch ran", -1 },
		{ "removes what was tried", "rm notes; mkdir notes; touch ran", -1 },
		{ "attacks pid 1", "kill -STOP 1; kill -KILL 1; (exec 3</proc/1/mem); (echo 1 >/proc/1/oom_score_adj); touch ran", -1 },
		{ "renames what it can", "mv \"$PWD\" ../elsewhere; mv / /x; rmdir /tmp \"$HOME\"; touch ran", -1 },
		{ "shuts its temporary directory", "touch ran; chmod 0 \"$TMPDIR\"", BOUNDARY_FILESYSTEM },
		{ "shuts its home", "touch ran; chmod 0 \"$HOME\"", BOUNDARY_CREDENTIALS },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outcome o;
		bool good = true;

		if (!ok(attempt(tier, 0, rows[i].script, &o), "tier %c: an agent", tier))
			continue;
		ok(o.code == 0 && o.ran, "tier %c: an agent that %s runs, and ends (%d)", tier,
		   rows[i].name, o.exit);
		for (int b = 0; b < BOUNDARIES; b++) {
			const enum verdict v = o.j.of[b].verdict;

			good &= b == rows[i].vague ? v == VERDICT_UNKNOWN
				: b == BOUNDARY_RESOURCES
					? v == VERDICT_HELD || v == VERDICT_NOT_ENFORCED
					: v == VERDICT_HELD;
			if (!good) {
				tap_note("%s: %s (%s)", attest_boundary_name((enum boundary)b),
					 verdict_name(v), o.j.of[b].why);
				break;
			}
		}
		ok(good, "tier %c: an agent that %s changes no verdict but to unknown", tier,
		   rows[i].name);
		if (rows[i].vague >= 0)
			(void)nftw(top, open_one, 16, FTW_PHYS);
		(void)rmdir("notes");
		close(open("notes", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	}
}

static bool make_world(void)
{
	char ws[64], home[64], keys[PATH_MAX];

	if (!mkdtemp(top))
		return false;
	snprintf(ws, sizeof(ws), "%s/work", top);
	snprintf(home, sizeof(home), "%s/home", top);
	snprintf(keys, sizeof(keys), "%s/.ssh", home);
	snprintf(sentinel, sizeof(sentinel), "%s/ran", ws);
	snprintf(records, sizeof(records), "%s/.local/state/writ/sessions", home);
	if (mkdir(ws, 0755) < 0 || chdir(ws) < 0)
		return false;
	/* Something that only the mediator would write. */
	close(open("notes", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	return mkdir(home, 0755) == 0 && mkdir(keys, 0700) == 0 && setenv("HOME", home, 1) == 0 &&
	       unsetenv("XDG_STATE_HOME") == 0 && unsetenv("XDG_CONFIG_HOME") == 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

int main(void)
{
	struct writ_err err = { 0 };
	const int null = open("/dev/null", O_RDONLY);

	/* One that nobody closes but the step that is there for it. */
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, LEAK) < 0 ||
	    !ok(make_world(), "directories") || crypto_start(&err) < 0)
		return tap_done();
	(void)signal(SIGPIPE, SIG_IGN);
	refuses = true;
	for (const char *tier = "AB"; *tier; tier++) {
		whole(*tier);
		agents(*tier);
		plant(*tier, BOUNDARY_FILESYSTEM, STEP_LANDLOCK);
		plant(*tier, BOUNDARY_NETWORK, *tier == 'A' ? STEP_NETWORK : STEP_LANDLOCK);
		plant(*tier, BOUNDARY_PROCESS, STEP_SECCOMP);
		/* A user without namespaces has none to begin with. */
		if (*tier == 'A' || geteuid() == 0)
			plant(*tier, BOUNDARY_PROCESS, STEP_DROP_CAPS);
		plant(*tier, BOUNDARY_RESOURCES, STEP_LIMITS);
		plant(*tier, BOUNDARY_CREDENTIALS, STEP_CLOSE_FDS);
	}
	/* Private homes lie behind a directory that nobody can enter. */
	(void)nftw(top, open_one, 16, FTW_PHYS);
	ok(chdir("/") == 0 && nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, "tidied up");
	return tap_done();
}
