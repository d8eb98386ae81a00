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

/* ---- Create a directory ---- */

/*
 * Opens and locks a directory that this process has just created. The lock shows that the session
 * lives. The kernel drops the lock when the last descriptor is closed, however the process dies.
 * Returns EAGAIN if cgroup_sweep() of another session removed the directory before the lock.
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
		clock_sleep_ms(1);
	}
	if (fstat(fd, &held) < 0)
		return errno;
	if (stat(path, &there) < 0 || there.st_ino != held.st_ino)
		return EAGAIN;
	*ret_fd = fd_take(&fd);
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

/*
 * Adds @controls to the directory that @c already has in @parent, if any: controllers that share a
 * hierarchy of version 1 share the directory. Returns false if @c has no directory in @parent.
 */
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

/* ---- Version 2 ---- */

static uint8_t controllers_in(int dir, const char *file)
{
	char text[512];
	struct sv list;

	if (limit_file_get(dir, file, text, sizeof(text)) != 0)
		return 0;
	list = sv_from(text);
	if (sv_ends(list, SV("\n")))
		list.n--;
	return (uint8_t)((sv_has_word(list, ' ', SV("memory")) ? CTL_MEMORY : 0) |
			 (sv_has_word(list, ' ', SV("pids")) ? CTL_PIDS : 0) |
			 (sv_has_word(list, ' ', SV("cpu")) ? CTL_CPU : 0));
}

/*
 * Enables the controllers @want for the children of a cgroup. writ never disables a controller:
 * another session may rely on it and would lose its limits.
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

/*
 * Returns the lower of the limits @v (0: no limit) and @own. Counts an @own of 0, which permits
 * nothing, as 1, because 0 in struct cgroup_limits means no limit.
 */
static uint64_t min_of(uint64_t v, uint64_t own)
{
	own = own ? own : 1;
	return v == 0 || own < v ? own : v;
}

/* Returns the lower of the limit @v (0: no limit) and the number in @file, if there is one. */
static uint64_t min_of_file(int dir, const char *file, uint64_t v)
{
	uint64_t own;

	return limit_number_get(dir, file, &own) ? min_of(v, own) : v;
}

static uint64_t min_of_cpu(int dir, uint64_t v)
{
	uint64_t quota, period;

	return limit_cpu_get(dir, &quota, &period) ? min_of(v, quota * 1000 / period) : v;
}

/*
 * Lowers the limits of the session to those of the supervisor's own cgroup. The session's cgroup is
 * a sibling of that cgroup, whose limits therefore do not apply to the session. Without this copy,
 * starting a session would be a way to escape the limits.
 */
static int inherit_limits(const char *own, struct cgroup_limits *l, struct writ_err *err)
{
	scoped_fd dir = open(own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open %s", own);
	l->memory = min_of_file(dir, "memory.high", min_of_file(dir, "memory.max", l->memory));
	l->pids = min_of_file(dir, "pids.max", l->pids);
	l->cpu = min_of_cpu(dir, l->cpu);
	return 0;
}

static bool is_session(const char *dir)
{
	struct sv name = sv_from(dir);

	return cgroup_name_ok(sv_skip(name, sv_rfind(name, '/') + 1));
}

/*
 * Finds a directory whose children can have controllers. The root of the hierarchy is one.
 * Elsewhere the kernel allows no processes in a cgroup that enables controllers for its children.
 * The supervisor's own cgroup contains the supervisor and perhaps other processes, which writ does
 * not move. So use the parent cgroup, if it was delegated to this user and has enabled the
 * controllers. A session inside a session gets no cgroup: as a sibling of the outer session's
 * cgroup, it would escape the outer limits.
 */
static int place_v2(const struct cgroup_places *p, struct cgroup_limits *l, const char **ret_dir,
		    struct writ_err *err)
{
	scoped_fd own = open(p->own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (own < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open %s", p->own);
	if (!limit_file_exists(own, "cgroup.type")) {
		if (limit_asked(l) & ~controllers_in(own, "cgroup.controllers"))
			return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0,
					     "cgroup controllers are not in the unified hierarchy");
		*ret_dir = p->own;
		return 0;
	}
	if (!p->parent[0] || is_session(p->own))
		return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0,
				     "our cgroup may not hand out controllers");
	r = inherit_limits(p->own, l, err);
	if (r < 0)
		return r;

	scoped_fd above = open(p->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (above < 0 || limit_asked(l) & ~controllers_in(above, "cgroup.subtree_control"))
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
		r = add_dir(c, place, name, limit_asked(&l) | CTL_V2, err);
	if (r == 0 && place == p->own) {
		scoped_fd dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		r = dir < 0 ? writ_fail(err, WRIT_E_SYS, errno, "open %s", place)
			    : enable(dir, limit_asked(&l), err);
	}
	if (r == 0)
		r = limit_set(c, &l, err);
	c->v2 = true;
	return r;
}

/* ---- Version 1 ---- */

/*
 * Adds a directory through which writ freezes and kills the whole session: in the unified hierarchy
 * if there is one, else in the hierarchy of the freezer. Ignores errors: the directory enforces no
 * limit, and without it writ kills processes one by one.
 */
static void add_kill_dir(const struct cgroup_places *p, const char *name, struct cgroup *c)
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
	const uint8_t want = limit_asked(l);
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
		r = limit_set(c, l, err);
	if (r == 0)
		add_kill_dir(p, name, c);
	return r;
}

/* ---- Open, join, close ---- */

static int check_facts(const struct host_facts *f, const struct cgroup_limits *l,
		       struct writ_err *err)
{
	const char *missing = NULL;

	if (f->cgroup == CGROUP_NONE)
		missing = "no cgroups here";
	else if (l->memory && !f->cgroup_memory)
		missing = "no cgroup here can limit memory";
	else if (l->cpu && !f->cgroup_cpu)
		missing = "no cgroup here can limit processor time";
	else if (l->pids && !f->cgroup_pids)
		missing = "no cgroup here can limit processes";
	return missing ? writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0, missing) : 0;
}

/*
 * Removes the directories that were added to @c since it was equal to @begun. These directories
 * contain no process yet; those of @begun may contain processes.
 */
static void undo_to(struct cgroup *c, const struct cgroup *begun)
{
	while (c->n > begun->n) {
		const struct cgroup_dir *d = &c->dir[--c->n];

		(void)rmdir(d->path);
		(void)close(d->fd);
	}
	*c = *begun;
}

/*
 * Creates the session's cgroup in version 2. If version 1 is mounted too and version 2 fails,
 * creates the cgroup in version 1.
 */
static int open_v2_or_v1(const struct host_facts *f, const struct cgroup_limits *l,
			 const char *name, struct cgroup *c, struct writ_err *err)
{
	const struct cgroup begun = *c;
	struct writ_err first;
	struct cgroup_places p;
	int r = facts_cgroup_places_read(&p, err);

	if (r < 0)
		return r;
	if (f->cgroup == CGROUP_V2)
		return open_v2(&p, *l, name, c, err);
	if (f->cgroup == CGROUP_HYBRID && open_v2(&p, *l, name, c, &first) == 0)
		return 0;
	undo_to(c, &begun);
	return open_v1(&p, l, name, c, err);
}

static bool make_name(const char *id, char (*ret)[80])
{
	(void)snprintf(*ret, sizeof(*ret), "writ-%s", id);
	return cgroup_name_ok(sv_from(*ret));
}

/*
 * If cgroup_go_on() needs other directories than those created here, it creates them, and
 * cgroup_add() moves the process there.
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
	    !make_name(id, &name) || facts_cgroup_places_read(&p, &ignored) < 0)
		return;
	/* A session has a limit of processes by default, so it needs this controller. */
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

	if (limit_asked(l) == 0)
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
			r = open_v2_or_v1(f, l, name, c, err);
	}
	if (r < 0)
		cgroup_close(c);
	return r;
}

/*
 * True if the process is a member of the cgroup. False also if the list of members is too long to
 * read at once; the caller of this function then moves the process again, which is harmless.
 */
static bool is_in(const struct cgroup_dir *d, const char *pid)
{
	char text[1024];

	return limit_file_get(d->fd, "cgroup.procs", text, sizeof(text)) == 0 &&
	       strlen(text) + 1 < sizeof(text) && sv_has_word(sv_from(text), '\n', sv_from(pid));
}

int cgroup_add(struct cgroup *c, int pid, struct writ_err *err)
{
	char text[32];

	if (pid <= 0) /* pid 0 means the writer: the kernel would move the supervisor itself */
		return writ_fail_lit(err, WRIT_E_BUG, 0, "no process to move");
	if (c->unit[0])
		return unit_add(c, pid, err);
	(void)snprintf(text, sizeof(text), "%d", pid);
	for (size_t i = 0; i < c->n; i++) {
		const struct cgroup_dir *d = &c->dir[i];
		const int e = is_in(d, text) ? 0 : fd_put_at(d->fd, "cgroup.procs", text);

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

/* Removes a directory and the directories below it. Returns true if the directory is gone. */
static bool remove_dir(const struct cgroup_dir *d)
{
	if (rmdir(d->path) == 0 || errno == ENOENT)
		return true;
	limit_dirs_below(d->fd, CGROUP_DEPTH, remove_below, NULL);
	return rmdir(d->path) == 0;
}

/*
 * Closes the first directory of @c and removes it from @c. If open_v1() created the directory
 * through which writ kills the session, that directory is the last one, so that writ can kill until
 * then.
 */
static void drop_first(struct cgroup *c)
{
	(void)close(c->dir[0].fd);
	c->n--;
	memmove(&c->dir[0], &c->dir[1], c->n * sizeof(c->dir[0]));
}

void cgroup_close(struct cgroup *c)
{
	const int64_t end = clock_monotonic_ms() + CGROUP_WAIT_MS;
	struct timespec pause = { 0, 50000 };

	if (c->unit[0]) {
		unit_close(c);
		return;
	}
	cgroup_kill(c);
	while (c->n) {
		if (remove_dir(&c->dir[0]) || clock_monotonic_ms() >= end) {
			drop_first(c);
			continue;
		}
		/* Dead processes take a moment to leave the cgroup. */
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
		return; /* another process holds the lock: the session lives */
	limit_dirs_below(dir, CGROUP_DEPTH, remove_below, NULL);
	(void)unlinkat(above, name, AT_REMOVEDIR);
}

static void sweep_in(const char *path)
{
	scoped_fd dir = path[0] ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (dir >= 0)
		limit_dirs_below(dir, 1, sweep_one, NULL);
}

void cgroup_sweep(const struct host_facts *f)
{
	struct cgroup_places p;
	struct writ_err ignored;

	if (f->cgroup == CGROUP_NONE || facts_cgroup_places_read(&p, &ignored) < 0)
		return;
	sweep_in(p.own);
	sweep_in(p.parent);
	for (size_t i = 0; i < V1_COUNT; i++)
		sweep_in(p.v1[i]);
}
