#include "parts/directories.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/remove.h"
#include "crypto/crypto.h"
#include "parts/denials.h"
#include "parts/records.h"

#include "base/banned.h"

static struct directories *directories_of(const struct session *s)
{
	return session_state(s, &directories_initial);
}

const struct session_initial directories_initial =
	SESSION_INITIAL(struct directories, .run_fd = -1);

const struct directories *directories_get(const struct session *s)
{
	return directories_of(s);
}

static int below(struct session *s, struct sv *ret, struct writ_err *err, const char *fmt,
		 struct sv name)
{
	const char *path =
		arena_fmt(s->a, SV_FMT "/%s/" SV_FMT, SV_ARG(s->opt->state), fmt, SV_ARG(name));

	if (!path)
		return writ_nomem(err);
	*ret = sv_from(path);
	return fd_make_dirs(path, err);
}

/*
 * Makes a directory for the agent below a directory without permissions, the gate, that no process
 * can pass by name. Files that the agent writes lie on the host: a link into the agent's directory,
 * or a git remote, must not lead the person's own tools there. writ-init passes the gate with its
 * capabilities in the user namespace of the jail. In tier B writ-init lacks these capabilities, so
 * the gate is open.
 */
static int make_gated(struct session *s, const char *gate, const char *name, const char **ret,
		      struct writ_err *err)
{
	const bool shut = s->opt->plan->tier == TIER_A;
	const char *path = arena_fmt(s->a, "%s/%s", gate, name);
	struct stat st;
	int r;

	if (!path || !gate)
		return writ_nomem(err);
	r = fd_make_dirs(gate, err);
	if (r < 0)
		return r;
	*ret = path;
	/* The gate is shut and has a subdirectory: an earlier session made the home. */
	if (shut && stat(gate, &st) == 0 && (st.st_mode & 0700) == 0 && st.st_nlink > 2 &&
	    sv_is(sv_from(name), "home"))
		return 0;
	/* Retry: a session that starts at the same time may shut the gate again. */
	for (int i = 0; i < 100; i++) {
		r = chmod(gate, 0700) < 0 ? -1 : mkdir(path, 0700);
		if (r == 0 || errno != EACCES)
			break;
	}
	if ((r < 0 && errno != EEXIST) || (shut && chmod(gate, 0) < 0))
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	return 0;
}

/*
 * Makes a directory name from the path of the workspace. SECURITY: without a workspace, makes it
 * from the directory where the session starts: a file that an agent leaves in its home, such as
 * .bashrc, must not run in a session that was started elsewhere. The prefix keeps a home without a
 * workspace apart from the home of a workspace at the same path.
 */
static int workspace_id(struct session *s, struct sv *ret, struct writ_err *err)
{
	const bool some = s->opt->workspace.n > 0;
	const struct digest d = crypto_sha256(some ? s->opt->workspace : s->opt->cwd);
	scoped_buf b = BUF_INIT(128), id = BUF_INIT(128);

	digest_hex(&d, &b);
	buf_fmt(&id, "%s" SV_FMT, some ? "" : "none-", SV_ARG(sv_sub(buf_view(&b), 0, 16)));
	return arena_sv(s->a, buf_view(&id), ret) ? 0 : writ_nomem(err);
}

/* Makes the text that tells the agent the rules of the session, one per line. */
static int write_rules(struct session *s, struct writ_err *err)
{
	const struct cap_set *set = &s->opt->policy->set;
	scoped_buf b = BUF_INIT(1 << 20);
	int r;

	buf_str(&b, "# What this session may do. Denials are in denials.jsonl beside this file.\n"
		    "# More is granted by a person outside, with: writ allow\nversion 1\n");
	for (size_t i = 0; i < set->rules.n; i++)
		if (!set->rules.v[i].missing && set->rules.v[i].line)
			buf_fmt(&b, SV_FMT "\n", SV_ARG(set->rules.v[i].text));
	r = buf_check(&b, err);
	if (r == 0 && !arena_sv(s->a, buf_view(&b), &directories_of(s)->rules))
		r = writ_nomem(err);
	return r;
}

/* Makes a file that the agent may read, in the directory @info of the session. */
static int info_file(struct session *s, const char *name, struct sv text, int *ret_fd,
		     struct writ_err *err)
{
	const char *path = arena_fmt(s->a, SV_FMT "/%s", SV_ARG(directories_of(s)->info), name);
	scoped_fd fd =
		path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0644) : -1;
	int r;

	if (!path)
		return writ_nomem(err);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	r = fd_write_all(fd, text, err);
	if (r == 0 && ret_fd)
		*ret_fd = fd_take(&fd);
	return r;
}

/* The two tiers have separate directories, since tier A has a gate and tier B cannot have one. */
static const char *tier_dir(const struct session *s, const char *a, const char *b)
{
	return s->opt->plan->tier == TIER_A ? a : b;
}

/*
 * SECURITY: a session with a token, and the session of an agent, gets its own home, which is
 * removed with the session. Such a session must not read files that other sessions keep, and must
 * not leave files that a session with more permissions would run.
 */
static bool own_home(const struct session *s)
{
	return s->opt->token || s->opt->agent;
}

static const char *home_gate(struct session *s, struct sv workspace)
{
	return own_home(s) ? arena_fmt(s->a, SV_FMT "/%s/own-%s", SV_ARG(s->opt->state),
				       tier_dir(s, "homes", "homes-b"), s->id)
			   : arena_fmt(s->a, SV_FMT "/%s/" SV_FMT, SV_ARG(s->opt->state),
				       tier_dir(s, "homes", "homes-b"), SV_ARG(workspace));
}

static int make_kept(struct session *s, struct sv workspace, struct writ_err *err)
{
	const struct cap_set *set = &s->opt->policy->set;
	const char *home = home_gate(s, workspace);
	const char *kept = arena_fmt(s->a, SV_FMT "/%s/" SV_FMT, SV_ARG(s->opt->state),
				     tier_dir(s, "kept", "kept-b"), SV_ARG(workspace));
	const char *path = NULL;
	int r = home && kept ? 0 : writ_nomem(err);

	/*
	 * Make the run directory before the home, so that session_sweep() in another process does
	 * not take the home for a leftover.
	 */
	if (r == 0 && own_home(s))
		r = directories_run(s, err);
	/*
	 * SECURITY: do not use a home that exists: the home belongs to another session, and is
	 * removed with that session.
	 */
	if (r == 0 && home && own_home(s) && access(home, F_OK) == 0)
		r = writ_fail(err, WRIT_E_SYS, EEXIST, "the home of session %s", s->id);
	if (r == 0)
		r = make_gated(s, home, "home", &path, err);
	if (r < 0)
		return r;
	directories_of(s)->home = sv_from(path);
	directories_of(s)->gate = own_home(s) ? home : NULL;
	directories_of(s)->state = sv_from(kept);
	for (size_t i = 0; r == 0 && i < set->caps.n; i++) {
		const struct cap *c = &set->caps.v[i].cap;
		const char *name;

		if (c->action != CAP_STATE_USE || c->path.n != 1)
			continue;
		name = arena_str(s->a, c->path.segs[0].pre);
		r = name ? make_gated(s, kept, name, &path, err) : writ_nomem(err);
	}
	return r;
}

/* Is the open directory still linked? Only the process that locks a directory may remove it. */
static bool is_linked(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/*
 * Makes the directory @path and locks it; returns -1 on failure. Does not block on the lock.
 * session_sweep() in another process may take the new directory for a leftover, lock it and remove
 * it: then makes the directory again.
 */
static int make_locked(const char *path)
{
	bool made = mkdir(path, 0700) == 0;

	for (int i = 0; made && i < 100; i++) {
		scoped_fd fd = open(path, O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_linked(fd))
			return fd_take(&fd);
		(void)usleep(1000);
		made = mkdir(path, 0700) == 0 || errno == EEXIST;
	}
	return -1;
}

/*
 * Makes the run directory of the session, which stays locked as long as the supervisor lives: a
 * process that can lock a run directory has found a session that was killed.
 */
int directories_run(struct session *s, struct writ_err *err)
{
	struct sv all;
	const char *path = arena_fmt(s->a, SV_FMT "/run/%s", SV_ARG(s->opt->state), s->id);
	int r;

	if (directories_of(s)->run_fd >= 0)
		return 0;
	if (!path)
		return writ_nomem(err);
	r = below(s, &all, err, "run", SV(""));
	if (r < 0)
		return r;
	directories_of(s)->run_fd = make_locked(path);
	if (directories_of(s)->run_fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	directories_of(s)->run = sv_from(path);
	return 0;
}

/* Makes the agent's directories in tier B, where the agent sees the paths of the host. */
static int make_shown(struct session *s, struct writ_err *err)
{
	int feed = -1, r = directories_run(s, err);
	const struct sv run = directories_of(s)->run;
	const char *info = arena_fmt(s->a, SV_FMT "/info", SV_ARG(run));
	const char *tmp = arena_fmt(s->a, SV_FMT "/tmp", SV_ARG(run));
	const char *shm = arena_fmt(s->a, SV_FMT "/shm", SV_ARG(run));

	if (r < 0)
		return r;
	if (!info || !tmp || !shm)
		return writ_nomem(err);
	directories_of(s)->info = sv_from(info);
	directories_of(s)->tmp = sv_from(tmp);
	directories_of(s)->shm = sv_from(shm);
	if (mkdir(info, 0755) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", info);
	if (mkdir(tmp, 0700) < 0 || mkdir(shm, 0700) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "make a temporary directory");
	r = info_file(s, "policy", directories_of(s)->rules, NULL, err);
	if (r == 0)
		r = info_file(s, "denials.jsonl", SV(""), &feed, err);
	if (r == 0)
		denials_feed(s, feed);
	return r;
}

int directories_start(struct session *s, struct writ_err *err)
{
	struct sv workspace;
	int r = workspace_id(s, &workspace, err);

	if (r == 0)
		r = make_kept(s, workspace, err);
	if (r == 0)
		r = write_rules(s, err);
	return r == 0 && s->opt->plan->tier == TIER_B ? make_shown(s, err) : r;
}

/*
 * Removes homes of sessions that were killed. A session with its own home has a directory in @run
 * from before the home is made until after the home is removed. While the sweep holds a directory
 * of that name, no new session can take the same id.
 */
static void sweep_homes(struct sv state, int run, const char *name)
{
	static const char prefix[] = "own-";
	scoped_arena a = ARENA_INIT(1 << 16);
	const char *path = arena_fmt(&a, SV_FMT "/%s", SV_ARG(state), name);
	scoped_list *d = path ? opendir(path) : NULL;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		const struct sv id = sv_skip(sv_from(e->d_name), sizeof(prefix) - 1);

		if (!sv_starts(sv_from(e->d_name), sv_from(prefix)) || id.n != SESSION_ID ||
		    mkdirat(run, id.p, 0700) < 0)
			continue;
		remove_tree(dirfd(d), e->d_name);
		(void)unlinkat(run, id.p, AT_REMOVEDIR);
	}
}

void session_sweep(struct sv state)
{
	scoped_arena a = ARENA_INIT(1 << 16);
	const char *path = arena_fmt(&a, SV_FMT "/run", SV_ARG(state));
	scoped_list *d = path ? opendir(path) : NULL;
	struct dirent *e;

	/* Return if there is no such directory, or if another process is sweeping. */
	if (!d || flock(dirfd(d), LOCK_EX | LOCK_NB) < 0)
		return;
	while ((e = readdir(d))) {
		scoped_fd fd = -1;

		if (strlen(e->d_name) != SESSION_ID)
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || !is_linked(fd))
			continue;
		remove_below(fd);
		(void)unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	}
	sweep_homes(state, dirfd(d), "homes");
	sweep_homes(state, dirfd(d), "homes-b");
}

/* Removes leftovers of sessions that were killed, their cgroup directories included. */
int directories_sweep(struct session *s, struct writ_err *err)
{
	(void)err;
	session_sweep(s->opt->state);
	record_prune_tidy(s->opt->state);
	s->opt->plan->engine->sweep(s->opt->plan->facts);
	return 0;
}

void directories_clear(struct session *s)
{
	if (directories_of(s)->gate)
		remove_tree(AT_FDCWD, directories_of(s)->gate);
	/* Try twice: another process may have added a file after the first removal. */
	for (int i = 0; directories_of(s)->run.n && i < 2; i++) {
		if (directories_of(s)->run_fd >= 0)
			remove_below(directories_of(s)->run_fd);
		if (rmdir(directories_of(s)->run.p) == 0)
			break;
	}
	fd_close(&directories_of(s)->run_fd);
}
