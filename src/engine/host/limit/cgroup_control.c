#include "limit/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "limit/limit_priv.h"

#include "base/banned.h"

/* Time limit for kill_each(): a process may fork faster than kill_each() kills. */
enum { KILL_MS = 200 };

/* ---- Count what the limits hit ---- */

static int read_count(const struct cgroup_dir *d, const char *file, struct sv key, uint64_t *ret_v,
		      struct writ_err *err)
{
	char text[1024];
	const int e = limit_file_get(d->fd, file, text, sizeof(text));

	if (e)
		return writ_fail(err, WRIT_E_SYS, e, "read %s in %s", file, d->path);
	if (!limit_keyed_number(sv_from(text), key, ret_v))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "no " SV_FMT " in %s", SV_ARG(key), file);
	return 0;
}

int cgroup_hits(const struct cgroup *c, struct cgroup_hits *ret, struct writ_err *err)
{
	struct cgroup_hits h = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n; i++) {
		const struct cgroup_dir *d = &c->dir[i];
		const bool v2 = d->controls & CTL_V2;

		if (d->controls & CTL_MEMORY)
			r = read_count(d, v2 ? "memory.events" : "memory.oom_control",
				       SV("oom_kill"), &h.oom, err);
		if (r == 0 && d->controls & CTL_PIDS)
			r = read_count(d, "pids.events", SV("max"), &h.pids, err);
	}
	if (r == 0)
		*ret = h;
	return r;
}

/* ---- Freeze ---- */

static bool is_frozen(const struct cgroup_dir *d, bool on)
{
	char text[256];
	uint64_t v;

	if (d->controls & CTL_V2)
		return limit_file_get(d->fd, "cgroup.events", text, sizeof(text)) == 0 &&
		       limit_keyed_number(sv_from(text), SV("frozen"), &v) && v == on;
	return limit_file_get(d->fd, "freezer.state", text, sizeof(text)) == 0 &&
	       sv_is(sv_from(text), on ? "FROZEN\n" : "THAWED\n");
}

static int freeze_dir(const struct cgroup_dir *d, bool on, struct writ_err *err)
{
	const bool v2 = d->controls & CTL_V2;
	const char *file = v2 ? "cgroup.freeze" : "freezer.state";
	const int64_t end = clock_monotonic_ms() + CGROUP_WAIT_MS;
	int e;

	e = fd_put_at(d->fd, file, v2 ? (on ? "1" : "0") : (on ? "FROZEN" : "THAWED"));
	if (e)
		return writ_fail(err, WRIT_E_SYS, e, "write %s in %s", file, d->path);
	while (!is_frozen(d, on)) {
		if (clock_monotonic_ms() >= end)
			return writ_fail(err, WRIT_E_SYS, ETIMEDOUT, "%s of %s",
					 on ? "freezing" : "thawing", d->path);
		clock_sleep_ms(1);
	}
	return 0;
}

int cgroup_freeze(const struct cgroup *c, bool on, struct writ_err *err)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->dir[i].controls & (CTL_V2 | CTL_FREEZER))
			return freeze_dir(&c->dir[i], on, err);
	return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0, "no cgroup here can be frozen");
}

/* ---- Kill ---- */

struct killing {
	struct sv name; /* name of the session's directory */
	size_t n;	/* number of processes found in this pass */
};

/* True if the process is in a cgroup called @name, or below one, in any hierarchy. */
static bool is_member(int pid, struct sv name)
{
	char path[64], text[8192];
	struct sv rest;

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (limit_file_get(AT_FDCWD, path, text, sizeof(text)) != 0)
		return false;
	rest = sv_from(text);
	while (rest.n)
		if (sv_has_word(sv_cut(&rest, '\n'), '/', name))
			return true;
	return false;
}

/*
 * Kills @pid if it is still a member of the cgroup. The kernel may have reused a pid that came from
 * a list. So open the pidfd first and test membership afterwards: if @pid is a member then, the
 * pidfd refers to this member, or to a process that has died.
 */
static void kill_one(int pid, struct sv name)
{
	scoped_fd fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0 && is_member(pid, name))
		(void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}

static void kill_in(int above, const char *name, int dir, void *ctx)
{
	struct killing *k = ctx;
	scoped_fd fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	scoped_buf list = BUF_INIT((size_t)4 << 20);
	struct writ_err ignored;
	struct sv rest;
	uint64_t pid;

	(void)above, (void)name;
	if (fd < 0 || fd_read_all(fd, &list, &ignored) < 0)
		return;
	rest = buf_view(&list);
	while (rest.n) {
		/* cgroup.procs shows 0 for a process outside the reader's pid namespace. */
		if (!sv_to_u64(sv_cut(&rest, '\n'), INT_MAX, &pid) || pid == 0)
			continue;
		k->n++;
		kill_one((int)pid, k->name);
	}
}

/*
 * Kills processes one by one, for a cgroup without cgroup.kill (before Linux 5.14, and in version
 * 1). Freezes the cgroup for the first pass if possible, so that no member forks meanwhile.
 */
static void kill_each(const struct cgroup *c)
{
	const struct cgroup_dir *d = &c->dir[0];
	const int64_t end = clock_monotonic_ms() + KILL_MS;
	struct killing k = { .name = sv_from(d->path) };
	struct writ_err ignored;
	const bool stopped = cgroup_freeze(c, true, &ignored) == 0;

	k.name = sv_skip(k.name, sv_rfind(k.name, '/') + 1);
	do {
		k.n = 0;
		limit_dirs_below(d->fd, CGROUP_DEPTH, kill_in, &k);
		kill_in(-1, NULL, d->fd, &k);
		/* In version 1 a killed process that is frozen dies only after the thaw. */
		if (stopped)
			(void)!cgroup_freeze(c, false, &ignored);
		if (k.n)
			clock_sleep_ms(1);
	} while (k.n && clock_monotonic_ms() < end);
}

void cgroup_kill(const struct cgroup *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->dir[i].controls & CTL_V2 && fd_put_at(c->dir[i].fd, "cgroup.kill", "1") == 0)
			return;
	if (c->n)
		kill_each(c);
}
