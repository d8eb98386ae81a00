/*
 * layers.c - a policy whose meet is wrong: the kernel holds every hop all the same
 *
 * The set allows all of the workspace, and one of its hops only a part. Reading is not
 * mediated, and what is mounted follows from the set, so that only the hop's own Landlock
 * layer can refuse.
 */
#include "tap.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "crypto/crypto.h"
#include "parts/session.h"

extern char **environ;

static char top[PATH_MAX];

static void put(const char *name)
{
	const int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	ok(fd >= 0 && dprintf(fd, "%s\n", name) > 0, "%s is there", name);
	close(fd);
}

/* Without what base says about the workspace. */
static void leave_out_workspace(struct cap_set *set, struct sv workspace)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->caps.n; i++) {
		const struct cap_entry e = set->caps.v[i];
		const struct sv text = e.cap.text;
		const struct sv end = sv_skip(text, text.n - 3 - workspace.n);

		if (text.n < workspace.n + 3 || !sv_starts(end, workspace))
			set->caps.v[kept++] = e;
	}
	set->caps.n = kept;
}

static bool load(struct arena *arena, const char *rule, const char *tier, struct args *args,
		 struct launch_loaded *l)
{
	char tier_word[] = "--tier", allow[] = "--allow", end[] = "--", cat[] = "cat";
	char *words[] = { tier_word, arena_str(arena, sv_from(tier)),
			  allow,     arena_str(arena, sv_from(rule)),
			  end,	     cat,
			  NULL };
	struct writ_err err = { 0 };

	*args = (struct args){ .arena = arena };
	return opts_parse(cli_verb_get(SV("run")), 6, words, args, &err) == 0 &&
	       cli_load_policy(args, NULL, false, l) == 0;
}

/* The status of `cat FILE` under the set of `read .` with a hop of `read ./a/`. */
static int attempt(const char *tier, const char *file, bool hop)
{
	scoped_arena arena = ARENA_INIT(POLICY_ARENA_MAX);
	char cat[] = "cat";
	char *argv[] = { cat, arena_str(&arena, sv_from(file)), NULL };
	struct session_options opt = {
		.argv = argv, .environ = environ, .quiet = true, .status_fd = -1, .ready_fd = -1
	};
	struct writ_err err = { 0 };
	struct launch_loaded wide, narrow;
	struct args args, other;
	struct find_where where;
	struct host_facts facts;
	struct cap_set hops[2];
	struct plan *p;
	int code = -1;

	if (cli_where_find(&arena, NULL, true, &where, &err) < 0 ||
	    !load(&arena, "read:.", tier, &args, &wide) ||
	    !load(&arena, "read:./a/", tier, &other, &narrow) ||
	    cli_load_facts_kept(&args, where.state, &facts) != 0 ||
	    cli_load_plan(&args, &wide, &wide.policy->set, &facts, &p) != 0 || p->refused)
		return -1;
	hops[0] = wide.policy->set;
	hops[1] = narrow.policy->set;
	leave_out_workspace(&hops[1], where.workspace);
	wide.policy->set.hops = hops;
	wide.policy->set.hops_n = hop ? 2 : 0;
	opt.policy = wide.policy;
	opt.plan = p;
	opt.realm = where.realm;
	opt.state = where.state;
	opt.workspace = where.workspace;
	opt.cwd = where.cwd;
	opt.home = where.home;
	return session_run(&arena, &opt, &code, &err) < 0 ? -2 : code;
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int open_up(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)ftw;
	if (type != FTW_F && type != FTW_SL)
		(void)chmod(path, 0700);
	return 0;
}

int main(void)
{
	struct writ_err err = { 0 };
	const char *const home = getenv("HOME");
	const char *const places[] = { "/srv",
				       home && strncmp(home, "/tmp", 4) != 0 ? home : NULL };
	size_t i = 0;

	if (crypto_start(&err) < 0)
		return 1;
	/*
	 * In /tmp and /var/tmp the session has files of its own beside the workspace, and
	 * Landlock cannot tell them apart: there it lets read what is mounted.
	 */
	while (i < ARRAY_LEN(places) && (!places[i] || access(places[i], W_OK) < 0))
		i++;
	snprintf(top, sizeof(top), "%s/writ-layers-XXXXXX",
		 i < ARRAY_LEN(places) ? places[i] : "/var/tmp");
	if (!mkdtemp(top) || chdir(top) < 0)
		return 1;
	setenv("HOME", top, 1);
	setenv("XDG_STATE_HOME", top, 1);
	setenv("XDG_CONFIG_HOME", top, 1);
	if (mkdir("w", 0755) < 0 || chdir("w") < 0 || mkdir("a", 0755) < 0)
		return 1;
	put("b");
	put("a/c");
	for (const char *tier = i < ARRAY_LEN(places) ? "AB" : "B"; *tier; tier++) {
		const char name[] = { *tier, 0 };

		ok(attempt(name, "b", false) == 0, "tier %s: without hops it is read", name);
		ok(attempt(name, "b", true) == 1, "tier %s: a hop refuses it", name);
		ok(attempt(name, "a/c", true) == 0, "tier %s: and lets the rest be", name);
	}
	(void)!chdir("/");
	(void)nftw(top, open_up, 16, FTW_PHYS);
	(void)nftw(top, drop, 16, FTW_PHYS | FTW_DEPTH);
	return tap_done();
}
