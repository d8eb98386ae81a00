#include "limit/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "limit/limit_priv.h"
#include "facts/scope.h"

#include "base/banned.h"

/*
 * A cgroup that the user's systemd creates for the session, with the limits of the session. writ
 * uses this cgroup like one that writ created, except that systemd removes it.
 */

enum { UNIT_MS = 5000 };

int unit_check_facts(const struct host_facts *f, const struct cgroup_limits *l,
		     struct writ_err *err)
{
	if ((l->memory && !f->scope_memory) || (l->cpu && !f->scope_cpu) ||
	    (l->pids && !f->scope_pids))
		return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0,
				     "systemd's scopes cannot hold this limit here");
	return 0;
}

/* --- Verify --- */

static bool at_most(int dir, const char *file, uint64_t most)
{
	uint64_t v;

	return limit_number_get(dir, file, &v) && v <= most;
}

static bool cpu_at_most(int dir, uint64_t thousandths)
{
	uint64_t quota, period;

	return limit_cpu_get(dir, &quota, &period) && quota * 1000 <= thousandths * period;
}

/* SECURITY: systemd reports success even if it could not set a limit. Read the limits back. */
int unit_verify(int dir, const struct cgroup_limits *l, struct writ_err *err)
{
	const char *missing = NULL;

	if (l->memory && !at_most(dir, "memory.max", l->memory))
		missing = "systemd made a scope without the memory limit";
	else if (l->memory && !at_most(dir, "memory.swap.max", 0) &&
		 (limit_file_exists(dir, "memory.swap.max") || !limit_no_swap()))
		missing = "systemd made a scope that lets memory be swapped out";
	else if (l->pids && !at_most(dir, "pids.max", l->pids))
		missing = "systemd made a scope without the limit of processes";
	else if (l->cpu && !cpu_at_most(dir, l->cpu))
		missing = "systemd made a scope without the cpu limit";
	return missing ? writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0, missing) : 0;
}

/* --- Create --- */

/* Finds the cgroup of @pid. Fails if it is not the scope @name that writ requested. */
static int find_cgroup(int pid, const char *name, struct cgroup_dir *ret, struct writ_err *err)
{
	struct cgroup_places p;
	struct sv last;
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	r = facts_cgroup_places_of(path, &p, err);
	if (r < 0)
		return r;
	last = sv_from(p.own);
	last = sv_skip(last, sv_rfind(last, '/') + 1);
	if (!p.own[0] || !sv_is(last, name))
		return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0,
				     "systemd did not move the session into its scope");
	memcpy(ret->path, p.own, sizeof(ret->path));
	ret->fd = open(p.own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return ret->fd < 0 ? writ_fail(err, WRIT_E_SYS, errno, "open %s", p.own) : 0;
}

int unit_add(struct cgroup *c, int pid, struct writ_err *err)
{
	char socket[SCOPE_PATH];
	const struct scope_ask ask = { .socket = socket,
				       .name = c->unit,
				       .pid = pid,
				       .memory = c->limits.memory,
				       .cpu = c->limits.cpu,
				       .pids = c->limits.pids,
				       .timeout_ms = UNIT_MS };
	struct cgroup_dir *d = &c->dir[0];
	int r;

	if (!scope_socket((unsigned)geteuid(), socket))
		return writ_fail_lit(err, WRIT_E_SYS, ENAMETOOLONG, "systemd's socket");
	r = scope_start(&ask, err);
	if (r == 0)
		r = find_cgroup(pid, c->unit, d, err);
	if (r < 0)
		return r;
	d->controls = (uint8_t)(limit_asked(&c->limits) | CTL_V2);
	c->n = 1;
	c->v2 = true;
	/*
	 * Let the kernel kill all processes of the session when it runs out of memory. If writ may
	 * not set this, the kernel picks one process.
	 */
	if (c->limits.memory)
		(void)!fd_put_at(d->fd, "memory.oom.group", "1");
	return unit_verify(d->fd, &c->limits, err);
}

static bool is_empty(const struct cgroup_dir *d)
{
	char text[256];
	uint64_t v;

	return limit_file_get(d->fd, "cgroup.events", text, sizeof(text)) != 0 ||
	       !limit_keyed_number(sv_from(text), SV("populated"), &v) || v == 0;
}

void unit_close(struct cgroup *c)
{
	const int64_t end = clock_monotonic_ms() + CGROUP_WAIT_MS;

	if (c->n) {
		cgroup_kill(c);
		while (!is_empty(&c->dir[0]) && clock_monotonic_ms() < end)
			clock_sleep_ms(1);
		(void)close(c->dir[0].fd);
	}
	*c = (struct cgroup){ 0 };
}
