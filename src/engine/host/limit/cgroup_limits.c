#include "limit/cgroup.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/fd.h"
#include "limit/limit_priv.h"

#include "base/banned.h"

/* Write the limits of a session into its cgroup directories. */

uint8_t limit_asked(const struct cgroup_limits *l)
{
	return (uint8_t)((l->memory ? CTL_MEMORY : 0) | (l->pids ? CTL_PIDS : 0) |
			 (l->cpu ? CTL_CPU : 0));
}

static int put(const struct cgroup_dir *d, const char *file, uint64_t v, struct writ_err *err)
{
	char text[32];
	int e;

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	e = fd_put_at(d->fd, file, text);
	return e ? writ_fail(err, WRIT_E_SYS, e, "write %s in %s", file, d->path) : 0;
}

/* /proc/swaps has one line of headings, then one line per swap area. */
bool limit_no_swap(void)
{
	char text[1024];
	struct sv rest;

	if (limit_file_get(AT_FDCWD, "/proc/swaps", text, sizeof(text)) != 0)
		return false;
	rest = sv_from(text);
	(void)sv_cut(&rest, '\n');
	return rest.n == 0;
}

/*
 * Forbids swap (version 2, and version 1 without swap accounting) or counts it as memory (version
 * 1). Otherwise a session could exceed its memory limit by swapping. Does nothing if version 2 has
 * no swap accounting and the machine no swap.
 */
static int set_swap(const struct cgroup_dir *d, uint64_t bytes, struct writ_err *err)
{
	if (d->controls & CTL_V2) {
		if (limit_file_exists(d->fd, "memory.swap.max"))
			return put(d, "memory.swap.max", 0, err);
		if (limit_no_swap())
			return 0;
		return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0,
				     "memory limit: this kernel does not count swap");
	}
	if (limit_file_exists(d->fd, "memory.memsw.limit_in_bytes"))
		return put(d, "memory.memsw.limit_in_bytes", bytes, err);
	return put(d, "memory.swappiness", 0, err);
}

static int set_memory(const struct cgroup_dir *d, uint64_t bytes, struct writ_err *err)
{
	const bool v2 = d->controls & CTL_V2;
	int r = put(d, v2 ? "memory.max" : "memory.limit_in_bytes", bytes, err);

	if (r == 0)
		r = set_swap(d, bytes, err);
	/*
	 * Let the kernel kill all processes of the session when it runs out of memory (version 2):
	 * a session that lost a random process would fail in unpredictable ways.
	 */
	if (r == 0 && v2)
		r = put(d, "memory.oom.group", 1, err);
	return r;
}

static int set_cpu(const struct cgroup_dir *d, uint64_t thousandths, struct writ_err *err)
{
	/* The kernel accepts no quota below 1 ms and no period above 1 s. */
	const uint64_t period = thousandths < 10 ? 1000000 : 100000;
	uint64_t quota;
	char text[64];
	int e, r;

	if (thousandths > 1000000)
		return writ_fail_lit(err, WRIT_E_LIMIT, 0, "cpu limit above 1000 processors");
	quota = thousandths * (period / 1000);
	if ((d->controls & CTL_V2) == 0) {
		r = put(d, "cpu.cfs_period_us", period, err);
		return r == 0 ? put(d, "cpu.cfs_quota_us", quota, err) : r;
	}
	(void)snprintf(text, sizeof(text), "%llu %llu", (unsigned long long)quota,
		       (unsigned long long)period);
	e = fd_put_at(d->fd, "cpu.max", text);
	return e ? writ_fail(err, WRIT_E_SYS, e, "write cpu.max in %s", d->path) : 0;
}

int limit_set(const struct cgroup *c, const struct cgroup_limits *l, struct writ_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n; i++) {
		const struct cgroup_dir *d = &c->dir[i];

		if (l->memory && d->controls & CTL_MEMORY)
			r = set_memory(d, l->memory, err);
		if (r == 0 && l->pids && d->controls & CTL_PIDS)
			r = put(d, "pids.max", l->pids, err);
		if (r == 0 && l->cpu && d->controls & CTL_CPU)
			r = set_cpu(d, l->cpu, err);
	}
	return r;
}
