#include "session/session_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/remove.h"
#include "crypto/crypto.h"

#include "base/banned.h"

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
 * A directory of the agent's own, behind one that nobody can pass by its name. What
 * the agent writes there lies on the host: a link that leads to it, or a remote,
 * must not make the person's own tools go in. writ-init passes by its rights in the
 * jail's user namespace. In the host's namespaces there is no such right, and no gate.
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
	/* Made before, and shut since: it is there. */
	if (shut && stat(gate, &st) == 0 && (st.st_mode & 0700) == 0 && st.st_nlink > 2 &&
	    sv_is(sv_from(name), "home"))
		return 0;
	/* Others who make it at the same time shut it behind themselves. */
	for (int i = 0; i < 100; i++) {
		r = chmod(gate, 0700) < 0 ? -1 : mkdir(path, 0700);
		if (r == 0 || errno != EACCES)
			break;
	}
	if ((r < 0 && errno != EEXIST) || (shut && chmod(gate, 0) < 0))
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	return 0;
}

/* The workspace by a name that fits into one directory; "none" without one. */
static int workspace_id(struct session *s, struct sv *ret, struct writ_err *err)
{
	const struct digest d = crypto_sha256(s->opt->workspace);
	struct buf b = BUF_INIT(128);
	int r = 0;

	digest_hex(&d, &b);
	if (s->opt->workspace.n == 0)
		*ret = SV("none");
	else if (!arena_sv(s->a, sv_sub(buf_view(&b), 0, 16), ret))
		r = writ_nomem(err);
	buf_clear(&b);
	return r;
}

int session_make_id(char ret_id[static SESSION_ID + 1], struct writ_err *err)
{
	static const char digits[] = "abcdefghijkmnpqrstuvwxyz23456789";
	uint8_t bytes[SESSION_ID];
	int r = crypto_random(bytes, sizeof(bytes), err);

	for (size_t i = 0; r == 0 && i < SESSION_ID; i++)
		ret_id[i] = digits[bytes[i] & 31];
	ret_id[SESSION_ID] = 0;
	return r;
}

/* What the agent may know about its own limits: the rules, one per line. */
static int write_rules(struct session *s, struct writ_err *err)
{
	const struct cap_set *set = &s->opt->policy->set;
	struct buf b = BUF_INIT(1 << 20);
	int r;

	buf_str(&b, "# What this session may do. Denials are in denials.jsonl beside this file.\n"
		    "# More is granted by a person outside, with: writ allow\nversion 1\n");
	for (size_t i = 0; i < set->rules.n; i++)
		if (!set->rules.v[i].missing && set->rules.v[i].line)
			buf_fmt(&b, SV_FMT "\n", SV_ARG(set->rules.v[i].text));
	r = buf_check(&b, err);
	if (r == 0 && !arena_sv(s->a, buf_view(&b), &s->paths.rules))
		r = writ_nomem(err);
	buf_clear(&b);
	return r;
}

/* A file in the session's own directory that the agent may read. */
static int info_file(struct session *s, const char *name, struct sv text, int *ret_fd,
		     struct writ_err *err)
{
	const char *path = arena_fmt(s->a, SV_FMT "/%s", SV_ARG(s->paths.info), name);
	scoped_fd fd =
		path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0644) : -1;
	int r;

	if (!path)
		return writ_nomem(err);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	r = fd_write_all(fd, text, err);
	if (r == 0 && ret_fd)
		*ret_fd = take_fd(&fd);
	return r;
}

/* Kept apart by tier, since one has a gate and the other cannot. */
static const char *tier_dir(const struct session *s, const char *a, const char *b)
{
	return s->opt->plan->tier == TIER_A ? a : b;
}

/*
 * SECURITY: who has a token, or is the agent of another session, gets a home of its own,
 * and it goes with the session. What others have kept in theirs is not theirs to read,
 * and what they leave there would be run by who may do more.
 */
static bool own_home(const struct session *s)
{
	return s->opt->token || s->opt->parent.n;
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

	/* First, so that nobody takes the home for one that was left behind. */
	if (r == 0 && own_home(s))
		r = session_place_run(s, err);
	/* SECURITY: one that is there is of another session, and goes with that. */
	if (r == 0 && home && own_home(s) && access(home, F_OK) == 0)
		r = writ_fail(err, WRIT_E_SYS, EEXIST, "the home of session %s", s->id);
	if (r == 0)
		r = make_gated(s, home, "home", &path, err);
	if (r < 0)
		return r;
	s->paths.home = sv_from(path);
	s->paths.gate = own_home(s) ? home : NULL;
	s->paths.state = sv_from(kept);
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

/* Still there by its name: who locks a directory is the only one to remove it. */
static bool is_linked(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/*
 * The directory at @path, locked; -1 if that failed. Nobody is waited for: who sweeps may
 * take a new one for one that was left behind, and then it is made again.
 */
static int make_locked(const char *path)
{
	bool made = mkdir(path, 0700) == 0;

	for (int i = 0; made && i < 100; i++) {
		scoped_fd fd = open(path, O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_linked(fd))
			return take_fd(&fd);
		(void)usleep(1000);
		made = mkdir(path, 0700) == 0 || errno == EEXIST;
	}
	return -1;
}

/*
 * The session's own directory is locked as long as we live: who can lock it has
 * found a session that died hard.
 */
int session_place_run(struct session *s, struct writ_err *err)
{
	struct sv all;
	const char *path = arena_fmt(s->a, SV_FMT "/run/%s", SV_ARG(s->opt->state), s->id);
	int r;

	if (s->paths.run_fd >= 0)
		return 0;
	if (!path)
		return writ_nomem(err);
	r = below(s, &all, err, "run", SV(""));
	if (r < 0)
		return r;
	s->paths.run_fd = make_locked(path);
	if (s->paths.run_fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	s->paths.run = sv_from(path);
	return 0;
}

/* Without mounts of its own the agent sees the host's names: its files lie there. */
static int make_shown(struct session *s, struct writ_err *err)
{
	int r = session_place_run(s, err);
	const char *info = r < 0 ? "" : arena_fmt(s->a, SV_FMT "/info", SV_ARG(s->paths.run));
	const char *tmp = r < 0 ? "" : arena_fmt(s->a, SV_FMT "/tmp", SV_ARG(s->paths.run));
	const char *shm = r < 0 ? "" : arena_fmt(s->a, SV_FMT "/shm", SV_ARG(s->paths.run));

	if (r < 0)
		return r;
	if (!info || !tmp || !shm)
		return writ_nomem(err);
	s->paths.info = sv_from(info);
	s->paths.tmp = sv_from(tmp);
	s->paths.shm = sv_from(shm);
	if (mkdir(info, 0755) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", info);
	if (mkdir(tmp, 0700) < 0 || mkdir(shm, 0700) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "make a temporary directory");
	r = info_file(s, "policy", s->paths.rules, NULL, err);
	return r < 0 ? r : info_file(s, "denials.jsonl", SV(""), &s->feed, err);
}

int session_place_record(struct session *s, struct writ_err *err)
{
	const char *dir = arena_fmt(s->a, SV_FMT "/sessions", SV_ARG(s->opt->state));
	const char *path = dir ? arena_fmt(s->a, "%s/%s.jsonl", dir, s->id) : NULL;
	struct writ_err first = { 0 };
	struct sv run;
	int r;

	if (!path)
		return writ_nomem(err);
	s->paths.record = sv_from(path);
	r = slog_open(&s->log, path, s->opt->durable, &first);
	if (r < 0 && first.sys != ENOENT)
		*err = first;
	/* The first session of all: what every later one finds. */
	if (r < 0 && first.sys == ENOENT) {
		r = fd_make_dirs(dir, err);
		if (r == 0)
			r = below(s, &run, err, "run", SV(""));
		if (r == 0)
			r = slog_open(&s->log, path, s->opt->durable, err);
	}
	return r;
}

int session_place_make(struct session *s, struct writ_err *err)
{
	struct sv workspace;
	int r = 0;

	/* A jail that was made early is in a cgroup of that name. */
	if (s->opt->begun && s->opt->begun->id[0])
		memcpy(s->id, s->opt->begun->id, sizeof(s->id));
	else
		r = session_make_id(s->id, err);
	s->paths.run_fd = -1;
	if (s->opt->state.n == 0)
		return writ_fail(err, WRIT_E_SYS, ENOENT, "there is no place for state: set HOME");
	if (r == 0)
		r = workspace_id(s, &workspace, err);
	if (r == 0)
		r = make_kept(s, workspace, err);
	if (r == 0)
		r = write_rules(s, err);
	return r == 0 && s->opt->plan->tier == TIER_B ? make_shown(s, err) : r;
}

/*
 * Homes of sessions that died hard: whoever has one of its own has a directory in @run as
 * long as it lives, made before and removed after it. Who makes it instead keeps a session of
 * the same name away meanwhile.
 */
static void sweep_homes(struct sv state, int run, const char *name)
{
	static const char prefix[] = "own-";
	scoped_arena a = ARENA_INIT(1 << 16);
	const char *path = arena_fmt(&a, SV_FMT "/%s", SV_ARG(state), name);
	DIR *d = path ? opendir(path) : NULL;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		const struct sv id = sv_skip(sv_from(e->d_name), sizeof(prefix) - 1);

		if (!sv_starts(sv_from(e->d_name), sv_from(prefix)) || id.n != SESSION_ID ||
		    mkdirat(run, id.p, 0700) < 0)
			continue;
		remove_tree(dirfd(d), e->d_name);
		(void)unlinkat(run, id.p, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
}

void session_sweep(struct sv state)
{
	scoped_arena a = ARENA_INIT(1 << 16);
	const char *path = arena_fmt(&a, SV_FMT "/run", SV_ARG(state));
	DIR *d = path ? opendir(path) : NULL;
	struct dirent *e;

	/* Somebody else is at it. */
	if (d && flock(dirfd(d), LOCK_EX | LOCK_NB) < 0) {
		closedir(d);
		return;
	}
	while (d && (e = readdir(d))) {
		scoped_fd fd = -1;

		if (strlen(e->d_name) != SESSION_ID)
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || !is_linked(fd))
			continue;
		remove_below(fd);
		(void)unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	}
	if (d) {
		sweep_homes(state, dirfd(d), "homes");
		sweep_homes(state, dirfd(d), "homes-b");
		closedir(d);
	}
}

/* Our own code and tables, of which most was needed once. */
static int drop_code(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)size, (void)ctx;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uintptr_t from = (info->dlpi_addr + p->p_vaddr) & ~(page - 1);
		const uintptr_t to = info->dlpi_addr + p->p_vaddr + p->p_memsz;

		/* Never written to, so that what is needed again comes back as it was. */
		if (p->p_type == PT_LOAD && !(p->p_flags & PF_W))
			(void)madvise((void *)from, to - from, MADV_DONTNEED);
	}
	return 1; /* the program itself comes first */
}

/*
 * What was called deeper than we are left its frames behind. SECURITY: only of the process's
 * own stack, below which nothing else is mapped for much longer than this.
 */
static void drop_frames(void)
{
	enum { NEAR = 16 << 10, FAR = 512 << 10 };
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0) & ~(page - 1);

	if (gettid() == getpid())
		(void)madvise((void *)(here - FAR), FAR - NEAR, MADV_DONTNEED);
}

void session_rest(void)
{
	(void)malloc_trim(0);
	drop_frames();
	(void)dl_iterate_phdr(drop_code, NULL);
}

void session_place_clear(struct session *s)
{
	if (s->paths.gate)
		remove_tree(AT_FDCWD, s->paths.gate);
	/* Twice, if somebody put something there meanwhile. */
	for (int i = 0; s->paths.run.n && i < 2; i++) {
		if (s->paths.run_fd >= 0)
			remove_below(s->paths.run_fd);
		if (rmdir(s->paths.run.p) == 0)
			break;
	}
	scope_close(&s->paths.run_fd);
	s->paths.run_fd = -1;
}
