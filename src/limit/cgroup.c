#include "limit/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "limit/limit_priv.h"

#include "base/banned.h"

uint8_t limits_asked(const struct cgroup_limits *l)
{
	return (uint8_t)((l->memory ? CTL_MEMORY : 0) | (l->pids ? CTL_PIDS : 0) |
			 (l->cpu ? CTL_CPU : 0));
}

/* ---- one directory ---- */

/*
 * Opens and locks what was just made. The lock says that its session lives: it
 * goes with our last descriptor, however we die. EAGAIN: a sweep was faster and
 * removed it.
 */
static int lock_dir(const char *path, int *ret_fd)
{
	scoped_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat held, there;

	if (fd < 0)
		return errno == ENOENT ? EAGAIN : errno;
	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK || i == 100)
			return errno == EWOULDBLOCK ? EBUSY : errno;
		sleep_ms(1);
	}
	if (fstat(fd, &held) < 0)
		return errno;
	if (stat(path, &there) < 0 || there.st_ino != held.st_ino)
		return EAGAIN;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int make_dir(const char *parent, const char *name, struct cgroup_dir *ret)
{
	const int n = snprintf(ret->path, sizeof(ret->path), "%s/%s", parent, name);
	int e = EAGAIN;

	if (n < 0 || (size_t)n >= sizeof(ret->path))
		return ENAMETOOLONG;
	for (int i = 0; e == EAGAIN && i < 5; i++) {
		if (mkdir(ret->path, 0755) < 0)
			return errno;
		e = lock_dir(ret->path, &ret->fd);
	}
	if (e != 0 && e != EAGAIN)
		(void)rmdir(ret->path);
	return e;
}

/* Version 1 controllers that share a hierarchy share the directory. */
static bool shares_dir(struct cgroup *c, const char *parent, uint8_t controls)
{
	for (size_t i = 0; i < c->n; i++) {
		struct sv above = sv_from(c->dir[i].path);

		above.n = sv_rfind(above, '/');
		if (sv_is(above, parent)) {
			c->dir[i].controls |= controls;
			return true;
		}
	}
	return false;
}

static int add_dir(struct cgroup *c, const char *parent, const char *name, uint8_t controls,
		   struct writ_err *err)
{
	struct cgroup_dir *d;
	int e;

	if (shares_dir(c, parent, controls))
		return 0;
	if (c->n == ARRAY_LEN(c->dir))
		return writ_fail_lit(err, WRIT_E_BUG, 0, "too many cgroups");
	d = &c->dir[c->n];
	e = make_dir(parent, name, d);
	if (e)
		return writ_fail(err, WRIT_E_SYS, e, "make cgroup %s in %s", name, parent);
	d->controls = controls;
	c->n++;
	return 0;
}

static void remove_below(int above, const char *name, int dir, void *ctx)
{
	(void)dir, (void)ctx;
	(void)unlinkat(above, name, AT_REMOVEDIR);
}

/* ---- its limits ---- */

static int put(const struct cgroup_dir *d, const char *file, uint64_t v, struct writ_err *err)
{
	char text[32];
	int e;

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	e = fd_put_at(d->fd, file, text);
	return e ? writ_fail(err, WRIT_E_SYS, e, "write %s in %s", file, d->path) : 0;
}

/* /proc/swaps is one line of headings, then one for each area. */
bool no_swap(void)
{
	char text[1024];
	struct sv rest;

	if (file_get(AT_FDCWD, "/proc/swaps", text, sizeof(text)) != 0)
		return false;
	rest = sv_from(text);
	(void)sv_cut(&rest, '\n');
	return rest.n == 0;
}

/* Memory that is swapped out must count, or the limit is none. */
static int set_swap(const struct cgroup_dir *d, uint64_t bytes, struct writ_err *err)
{
	if (d->controls & CTL_V2) {
		if (file_exists(d->fd, "memory.swap.max"))
			return put(d, "memory.swap.max", 0, err);
		if (no_swap())
			return 0;
		return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0,
				     "memory limit: this kernel does not count swap");
	}
	if (file_exists(d->fd, "memory.memsw.limit_in_bytes"))
		return put(d, "memory.memsw.limit_in_bytes", bytes, err);
	return put(d, "memory.swappiness", 0, err);
}

static int set_memory(const struct cgroup_dir *d, uint64_t bytes, struct writ_err *err)
{
	const bool v2 = d->controls & CTL_V2;
	int r = put(d, v2 ? "memory.max" : "memory.limit_in_bytes", bytes, err);

	if (r == 0)
		r = set_swap(d, bytes, err);
	/* A session that lost one process at random is not one to go on with. */
	if (r == 0 && v2)
		r = put(d, "memory.oom.group", 1, err);
	return r;
}

static int set_cpu(const struct cgroup_dir *d, uint64_t thousandths, struct writ_err *err)
{
	/* The kernel takes no quota below 1 ms and no period above 1 s. */
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

static int set_limits(const struct cgroup *c, const struct cgroup_limits *l, struct writ_err *err)
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

/* ---- version 2 ---- */

static uint8_t controllers_in(int dir, const char *file)
{
	char text[512];
	struct sv list;

	if (file_get(dir, file, text, sizeof(text)) != 0)
		return 0;
	list = sv_from(text);
	if (sv_ends(list, SV("\n")))
		list.n--;
	return (uint8_t)((sv_has_word(list, ' ', SV("memory")) ? CTL_MEMORY : 0) |
			 (sv_has_word(list, ' ', SV("pids")) ? CTL_PIDS : 0) |
			 (sv_has_word(list, ' ', SV("cpu")) ? CTL_CPU : 0));
}

/*
 * Switches controllers on for children. They are never switched off again:
 * another session may have come to rely on them, and its limits would be gone.
 */
static int enable(int dir, uint8_t want, struct writ_err *err)
{
	static const struct {
		uint8_t bit;
		const char *on;
	} rows[] = { { CTL_MEMORY, "+memory" }, { CTL_PIDS, "+pids" }, { CTL_CPU, "+cpu" } };
	const uint8_t missing = want & (uint8_t)~controllers_in(dir, "cgroup.subtree_control");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int e;

		if ((missing & rows[i].bit) == 0)
			continue;
		e = fd_put_at(dir, "cgroup.subtree_control", rows[i].on);
		if (e)
			return writ_fail(err, WRIT_E_SYS, e, "cgroup.subtree_control: %s",
					 rows[i].on);
	}
	return 0;
}

/* The lower of what is asked for and the first number of @file, if it has one. */
static uint64_t lower(int dir, const char *file, uint64_t v)
{
	char text[64];
	struct sv rest;
	uint64_t own;

	if (file_get(dir, file, text, sizeof(text)) != 0)
		return v;
	rest = sv_from(text);
	if (!sv_to_u64(sv_cut(&rest, '\n'), UINT64_MAX, &own))
		return v;    /* "max" */
	own = own ? own : 1; /* 0 would be no limit here */
	return v == 0 || own < v ? own : v;
}

static uint64_t lower_cpu(int dir, uint64_t v)
{
	char text[64];
	struct sv rest;
	uint64_t quota, period, own;

	if (file_get(dir, "cpu.max", text, sizeof(text)) != 0)
		return v;
	rest = sv_from(text);
	if (!sv_to_u64(sv_cut(&rest, ' '), UINT32_MAX, &quota) ||
	    !sv_to_u64(sv_cut(&rest, '\n'), UINT32_MAX, &period) || period == 0)
		return v;
	own = quota * 1000 / period;
	own = own ? own : 1;
	return v == 0 || own < v ? own : v;
}

/*
 * Beside our own cgroup, where its limits do not reach: the session gets them
 * too, or starting one would be a way out of them.
 */
static int inherit(const char *own, struct cgroup_limits *l, struct writ_err *err)
{
	scoped_fd dir = open(own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open %s", own);
	l->memory = lower(dir, "memory.high", lower(dir, "memory.max", l->memory));
	l->pids = lower(dir, "pids.max", l->pids);
	l->cpu = lower_cpu(dir, l->cpu);
	return 0;
}

static bool is_session(const char *dir)
{
	struct sv name = sv_from(dir);

	return cgroup_name_ok(sv_skip(name, sv_rfind(name, '/') + 1));
}

/*
 * Where a child can have controllers. In the root of the hierarchy: below it.
 * Elsewhere the kernel wants no processes in a cgroup that hands out
 * controllers, and we are one in ours; moving everybody who shares it into a
 * child is not ours to do. So it is the parent, if it was given to us with its
 * controllers on. A session within a session stays inside: none there.
 */
static int place_v2(const struct cgroup_places *p, struct cgroup_limits *l, const char **ret_dir,
		    struct writ_err *err)
{
	scoped_fd own = open(p->own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (own < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open %s", p->own);
	if (!file_exists(own, "cgroup.type")) {
		if (limits_asked(l) & ~controllers_in(own, "cgroup.controllers"))
			return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0,
					     "cgroup controllers are not in the unified hierarchy");
		*ret_dir = p->own;
		return 0;
	}
	if (!p->parent[0] || is_session(p->own))
		return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0,
				     "our cgroup may not hand out controllers");
	r = inherit(p->own, l, err);
	if (r < 0)
		return r;

	scoped_fd above = open(p->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (above < 0 || limits_asked(l) & ~controllers_in(above, "cgroup.subtree_control"))
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0, "no controllers from %s", p->parent);
	*ret_dir = p->parent;
	return 0;
}

static int open_v2(const struct cgroup_places *p, struct cgroup_limits l, const char *name,
		   struct cgroup *c, struct writ_err *err)
{
	const char *place = NULL;
	int r;

	if (!p->own[0])
		return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0, "our cgroup is not in sight");
	r = place_v2(p, &l, &place, err);
	if (r == 0)
		r = add_dir(c, place, name, limits_asked(&l) | CTL_V2, err);
	if (r == 0 && place == p->own) {
		scoped_fd dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		r = dir < 0 ? writ_fail(err, WRIT_E_SYS, errno, "open %s", place)
			    : enable(dir, limits_asked(&l), err);
	}
	if (r == 0)
		r = set_limits(c, &l, err);
	c->v2 = true;
	return r;
}

/* ---- version 1 ---- */

/*
 * What stops and kills the whole session at once: a directory of the unified
 * hierarchy if there is one, else one of the freezer. Not a limit, so a machine
 * with neither is fine.
 */
static void add_stopper(const struct cgroup_places *p, const char *name, struct cgroup *c)
{
	struct writ_err ignored;

	if (p->own[0] && add_dir(c, p->own, name, CTL_V2, &ignored) == 0)
		return;
	if (p->v1[V1_FREEZER][0])
		(void)!add_dir(c, p->v1[V1_FREEZER], name, CTL_FREEZER, &ignored);
}

static int open_v1(const struct cgroup_places *p, const struct cgroup_limits *l, const char *name,
		   struct cgroup *c, struct writ_err *err)
{
	const uint8_t want = limits_asked(l);
	int r = 0;

	for (int i = 0; r == 0 && i < V1_FREEZER; i++) {
		if ((want & 1 << i) == 0)
			continue;
		if (!p->v1[i][0])
			return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0,
					     "our cgroup is not in sight");
		r = add_dir(c, p->v1[i], name, (uint8_t)(1 << i), err);
	}
	if (r == 0)
		r = set_limits(c, l, err);
	if (r == 0)
		add_stopper(p, name, c);
	return r;
}

/* ---- the whole ---- */

static int check_facts(const struct host_facts *f, const struct cgroup_limits *l,
		       struct writ_err *err)
{
	if (f->cgroup == CGROUP_NONE)
		return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0, "no cgroups here");
	if (l->memory && !f->cgroup_memory)
		return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0,
				     "no cgroup here can limit memory");
	if (l->cpu && !f->cgroup_cpu)
		return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0,
				     "no cgroup here can limit processor time");
	if (l->pids && !f->cgroup_pids)
		return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0,
				     "no cgroup here can limit processes");
	return 0;
}

/* Back to what there was before, where there may be a process by now; in the others is none. */
static void cut_back(struct cgroup *c, const struct cgroup *begun)
{
	while (c->n > begun->n) {
		const struct cgroup_dir *d = &c->dir[--c->n];

		(void)rmdir(d->path);
		(void)close(d->fd);
	}
	*c = *begun;
}

/* Version 2 where it has the controllers, else version 1. */
static int open_any(const struct host_facts *f, const struct cgroup_limits *l, const char *name,
		    struct cgroup *c, struct writ_err *err)
{
	const struct cgroup begun = *c;
	struct writ_err first;
	struct cgroup_places p;
	int r = cgroup_places_read(&p, err);

	if (r < 0)
		return r;
	if (f->cgroup == CGROUP_V2)
		return open_v2(&p, *l, name, c, err);
	if (f->cgroup == CGROUP_HYBRID && open_v2(&p, *l, name, c, &first) == 0)
		return 0;
	cut_back(c, &begun);
	return open_v1(&p, l, name, c, err);
}

static bool make_name(const char *id, char (*ret)[80])
{
	(void)snprintf(*ret, sizeof(*ret), "writ-%s", id);
	return cgroup_name_ok(sv_from(*ret));
}

/*
 * Directories that the second step is all but sure to want. What it does not find here it
 * makes, and cgroup_add() moves the process there.
 */
void cgroup_begin(const struct host_facts *f, const char *id, struct cgroup *ret)
{
	const bool v1 = f->cgroup == CGROUP_V1 || f->cgroup == CGROUP_HYBRID;
	struct cgroup_limits none = { 0 };
	struct cgroup_places p;
	struct writ_err ignored;
	const char *place = NULL;
	char name[80];

	*ret = (struct cgroup){ 0 };
	if (f->cgroup == CGROUP_NONE || facts_scope(f) || !f->cgroup_pids ||
	    !make_name(id, &name) || cgroup_places_read(&p, &ignored) < 0)
		return;
	/* Processes are limited unless somebody says otherwise. */
	if (v1 && p.v1[V1_PIDS][0])
		(void)!add_dir(ret, p.v1[V1_PIDS], name, CTL_PIDS, &ignored);
	if (p.own[0] && place_v2(&p, &none, &place, &ignored) == 0 && (!v1 || place == p.own))
		(void)!add_dir(ret, place, name, CTL_V2, &ignored);
}

int cgroup_go_on(const struct host_facts *f, const struct cgroup_limits *l, const char *id,
		 struct cgroup *c, struct writ_err *err)
{
	char name[80];
	int r = 0;

	if (limits_asked(l) == 0)
		return 0;
	if (!make_name(id, &name)) {
		r = writ_fail_lit(err, WRIT_E_BUG, 0, "a cgroup cannot have that name");
	} else if (facts_scope(f)) {
		r = unit_check_facts(f, l, err);
		if (r == 0) {
			(void)snprintf(c->unit, sizeof(c->unit), "%.64s.scope", name);
			c->limits = *l;
		}
	} else {
		r = check_facts(f, l, err);
		if (r == 0)
			r = open_any(f, l, name, c, err);
	}
	if (r < 0)
		cgroup_close(c);
	return r;
}

int cgroup_open(const struct host_facts *f, const struct cgroup_limits *l, const char *id,
		struct cgroup *ret, struct writ_err *err)
{
	struct cgroup c = { 0 };
	const int r = cgroup_go_on(f, l, id, &c, err);

	if (r == 0)
		*ret = c;
	return r;
}

/* Did it begin there? Only asked of one whose members all fit into a small list. */
static bool has(const struct cgroup_dir *d, const char *pid)
{
	char text[1024];

	return file_get(d->fd, "cgroup.procs", text, sizeof(text)) == 0 &&
	       strlen(text) + 1 < sizeof(text) && sv_has_word(sv_from(text), '\n', sv_from(pid));
}

int cgroup_add(struct cgroup *c, int pid, struct writ_err *err)
{
	char text[32];

	if (pid <= 0) /* 0 would be ourselves */
		return writ_fail_lit(err, WRIT_E_BUG, 0, "no process to move");
	if (c->unit[0])
		return unit_add(c, pid, err);
	(void)snprintf(text, sizeof(text), "%d", pid);
	for (size_t i = 0; i < c->n; i++) {
		const struct cgroup_dir *d = &c->dir[i];
		const int e = has(d, text) ? 0 : fd_put_at(d->fd, "cgroup.procs", text);

		if (e)
			return writ_fail(err, WRIT_E_SYS, e, "move process %d into %s", pid,
					 d->path);
	}
	return 0;
}

size_t cgroup_doors(const struct cgroup *c, int ret_fds[static CGROUP_DIRS], size_t *ret_unified)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		if (c->dir[i].controls & CTL_V2)
			ret_fds[n++] = c->dir[i].fd;
	*ret_unified = n;
	for (size_t i = 0; i < c->n; i++)
		if ((c->dir[i].controls & CTL_V2) == 0)
			ret_fds[n++] = c->dir[i].fd;
	return n;
}

/* True when the directory is gone. */
static bool remove_dir(const struct cgroup_dir *d)
{
	if (rmdir(d->path) == 0 || errno == ENOENT)
		return true;
	dirs_below(d->fd, CGROUP_DEPTH, remove_below, NULL);
	return rmdir(d->path) == 0;
}

/* Closes and forgets the first directory. What stops the session comes last and stays longest. */
static void drop_first(struct cgroup *c)
{
	(void)close(c->dir[0].fd);
	c->n--;
	memmove(&c->dir[0], &c->dir[1], c->n * sizeof(c->dir[0]));
}

void cgroup_close(struct cgroup *c)
{
	const int64_t end = monotonic_ms() + CGROUP_WAIT_MS;
	struct timespec pause = { 0, 50000 };

	if (c->unit[0]) {
		unit_close(c);
		return;
	}
	cgroup_kill(c);
	while (c->n) {
		if (remove_dir(&c->dir[0]) || monotonic_ms() >= end) {
			drop_first(c);
			continue;
		}
		/* The dead take a moment to leave. */
		(void)nanosleep(&pause, NULL);
		pause.tv_nsec = pause.tv_nsec < 1000000 ? pause.tv_nsec * 2 : pause.tv_nsec;
		cgroup_kill(c);
	}
	*c = (struct cgroup){ 0 };
}

static void sweep_one(int above, const char *name, int dir, void *ctx)
{
	struct stat st;

	(void)ctx;
	if (!cgroup_name_ok(sv_from(name)) || fstat(dir, &st) < 0 || st.st_uid != geteuid())
		return;
	if (flock(dir, LOCK_EX | LOCK_NB) < 0)
		return; /* its session lives */
	dirs_below(dir, CGROUP_DEPTH, remove_below, NULL);
	(void)unlinkat(above, name, AT_REMOVEDIR);
}

static void sweep_in(const char *path)
{
	scoped_fd dir = path[0] ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (dir >= 0)
		dirs_below(dir, 1, sweep_one, NULL);
}

void cgroup_sweep(const struct host_facts *f)
{
	struct cgroup_places p;
	struct writ_err ignored;

	if (f->cgroup == CGROUP_NONE || cgroup_places_read(&p, &ignored) < 0)
		return;
	sweep_in(p.own);
	sweep_in(p.parent);
	for (size_t i = 0; i < V1_COUNT; i++)
		sweep_in(p.v1[i]);
}
