/*
 * fault.c - every step of building a jail fails once, on purpose
 *
 * Whatever fails, the command must not have run, the error must name the step, and
 * nothing may be left: no process, descriptor, file of the session, or cgroup.
 */
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "crypto/crypto.h"
#include "jail/jail.h"
#include "parts/session.h"

extern char **environ;

static char top[] = "/tmp/writ-fault-XXXXXX";
static char sentinel[PATH_MAX], run_dir[PATH_MAX], records[PATH_MAX];

/* What one attempt came to. */
struct outcome {
	int code; /* of session_run() */
	int exit; /* what writ would end with */
	struct writ_err err;
	char status[4096]; /* the line of --status-fd */
	double seconds;
};

/* --- looking --- */

static size_t entries(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	size_t n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static char session[NAME_MAX]; /* the id of the last one */
static bool cgroup_found;

static int look_for_cgroup(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type;
	cgroup_found |= strncmp(path + ftw->base, "writ-", 5) == 0 &&
			strcmp(path + ftw->base + 5, session) == 0;
	return 0;
}

static bool has_cgroup(void)
{
	cgroup_found = false;
	(void)nftw("/sys/fs/cgroup", look_for_cgroup, 16, FTW_PHYS);
	return cgroup_found;
}

/* Reads the newest record, which is the only one: each attempt starts without any. */
static void read_record(char *to, size_t room)
{
	DIR *d = opendir(records);
	struct dirent *e;
	ssize_t n = 0;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.') {
			const int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC);

			n = fd < 0 ? 0 : read(fd, to, room - 1);
			close(fd);
			snprintf(session, sizeof(session), "%.8s", e->d_name);
			(void)unlinkat(dirfd(d), e->d_name, 0);
		}
	if (d)
		closedir(d);
	to[n > 0 ? n : 0] = 0;
}

/* --- doing --- */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What `writ run --tier TIER -- touch SENTINEL` does, with a step that fails. */
static bool attempt(const char *tier, enum jail_step step, struct outcome *ret)
{
	scoped_arena arena = ARENA_INIT(POLICY_ARENA_MAX);
	char option[] = "--tier", which[2] = { tier[0], 0 }, end[] = "--", touch[] = "touch";
	char *words[] = { option, which, end, touch, sentinel, NULL };
	char *argv[] = { touch, sentinel, NULL };
	struct args args = { .arena = &arena };
	struct find_where where;
	struct host_facts facts;
	struct launch_loaded l;
	struct plan *p;
	struct session_options opt = { .argv = argv, .environ = environ, .fail_at = step };
	const int status = memfd_create("status", MFD_CLOEXEC);
	const double begin = seconds();
	ssize_t n;

	*ret = (struct outcome){ .exit = EXIT_FAILED };
	if (opts_parse(cli_verb_get(SV("run")), 5, words, &args, &ret->err) < 0 ||
	    cli_where_find(&arena, NULL, true, &where, &ret->err) < 0 ||
	    cli_load_facts_kept(&args, where.state, &facts) != 0 ||
	    cli_load_policy(&args, NULL, false, &l) != 0 ||
	    cli_load_plan(&args, &l, &l.policy->set, &facts, &p) != 0 || p->refused)
		return false;
	opt.policy = l.policy;
	opt.plan = p;
	opt.realm = l.in.where.realm;
	opt.state = l.in.where.state;
	opt.workspace = l.in.where.workspace;
	opt.cwd = l.in.where.cwd;
	opt.home = l.in.where.home;
	opt.program = l.in.program;
	opt.status_fd = status;
	opt.ready_fd = -1;
	opt.quiet = true;
	ret->code = session_run(&arena, &opt, &ret->exit, &ret->err);
	if (ret->code < 0)
		ret->exit = EXIT_FAILED;
	n = pread(status, ret->status, sizeof(ret->status) - 1, 0);
	ret->status[n > 0 ? n : 0] = 0;
	close(status);
	ret->seconds = seconds() - begin;
	return true;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* --- judging --- */

static void nothing_left(const char *what, size_t fds)
{
	ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "%s: no process", what);
	ok(entries("/proc/self/fd") == fds, "%s: no descriptor", what);
	ok(entries(run_dir) == 0, "%s: no file of the session", what);
	ok(session[0] && !has_cgroup(), "%s: no cgroup", what);
}

static void control(const char *tier)
{
	struct outcome o;
	char record[1 << 16];

	if (!ok(attempt(tier, STEP_NONE, &o), "tier %s: control: an attempt can be made", tier))
		return;
	ok(o.code == 0 && o.exit == 0 && exists(sentinel), "tier %s: control: it runs: %s", tier,
	   o.err.what);
	(void)unlink(sentinel);
	read_record(record, sizeof(record));
	ok(strstr(record, "\"sealed\"") && !strstr(record, "\"failed\""),
	   "tier %s: control: its record says so", tier);
}

static void fails(const char *tier, enum jail_step step)
{
	const size_t fds = entries("/proc/self/fd");
	const char *name = jail_step_name(step);
	char what[64], want[64], record[1 << 16];
	struct outcome o;

	snprintf(what, sizeof(what), "tier %s, %s", tier, name);
	if (!ok(attempt(tier, step, &o), "%s: an attempt can be made", what))
		return;
	ok(!exists(sentinel), "%s: the command has not run", what);
	(void)unlink(sentinel);
	if (step == STEP_EXEC)
		ok(o.code == 0 && o.exit == 126, "%s: ends with 126, not %d", what, o.exit);
	else
		ok(o.code < 0, "%s: is an error of starting", what);
	ok(o.err.what[0], "%s: says something: %s", what, o.err.what);
	read_record(record, sizeof(record));
	snprintf(want, sizeof(want), "\"step\":\"%s\"", name);
	if (!ok(strstr(record, want), "%s: the record names the step", what))
		tap_note("%.800s", strstr(record, "\n") ? strstr(record, "\n") + 1 : record);
	if (!ok(strstr(o.status, want), "%s: the status line names the step", what))
		tap_note("%s", o.status);
	snprintf(want, sizeof(want), "\"exit\":%d,", o.exit);
	if (!ok(strstr(o.status, want), "%s: the status line says %d", what, o.exit))
		tap_note("%s", o.status);
	ok(o.seconds < 5, "%s: at once (%.1f s)", what, o.seconds);
	nothing_left(what, fds);
}

static bool make_world(void)
{
	char ws[64], home[64];

	if (!mkdtemp(top))
		return false;
	snprintf(ws, sizeof(ws), "%s/work", top);
	snprintf(home, sizeof(home), "%s/home", top);
	snprintf(sentinel, sizeof(sentinel), "%s/ran", ws);
	snprintf(run_dir, sizeof(run_dir), "%s/.local/state/writ/run", home);
	snprintf(records, sizeof(records), "%s/.local/state/writ/sessions", home);
	return mkdir(ws, 0755) == 0 && mkdir(home, 0755) == 0 && chdir(ws) == 0 &&
	       setenv("HOME", home, 1) == 0 && unsetenv("XDG_STATE_HOME") == 0 &&
	       unsetenv("XDG_CONFIG_HOME") == 0;
}

static int open_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)at;
	return type == FTW_DNR && chmod(path, 0700) < 0 ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

int main(void)
{
	/* Steps that exist only with namespaces of one's own. */
	const unsigned only_a = 1u << STEP_NAMESPACES | 1u << STEP_ID_MAP | 1u << STEP_ROOT |
				1u << STEP_NETWORK | 1u << STEP_INNER_USERNS;
	struct writ_err err = { 0 };
	const int null = open("/dev/null", O_RDONLY);

	if (null < 0 || dup2(null, 0) < 0 || !ok(make_world(), "directories") ||
	    crypto_start(&err) < 0)
		return tap_done();
	if (null > 0)
		close(null);
	(void)signal(SIGPIPE, SIG_IGN);
	for (const char *tier = "AB"; *tier; tier++) {
		const char name[2] = { *tier, 0 };

		control(name);
		for (unsigned step = 1; step <= STEP_EXEC; step++)
			if (*tier == 'A' || !(only_a & 1u << step))
				fails(name, (enum jail_step)step);
		control(name);
	}
	/* Private homes lie behind a directory that nobody can enter. */
	(void)nftw(top, open_one, 16, FTW_PHYS);
	ok(chdir("/") == 0 && nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, "tidied up");
	return tap_done();
}
