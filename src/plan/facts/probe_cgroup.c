#include "facts/probe_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#include "base/banned.h"

enum { LIMITS = V1_CPU + 1 }; /* number of limits: memory, pids, cpu; without the freezer */
enum { WAIT_MS = 2000 };      /* time limit in ms for each wait on a cgroup or on the subject */

/* Results of the trial, one bit each. */
enum {
	CAN_MEMORY = 1 << 0,
	CAN_PIDS = 1 << 1,
	CAN_CPU = 1 << 2,
	CAN_KILL = 1 << 3,
	CAN_FREEZE = 1 << 4,
};
_Static_assert(CAN_MEMORY == 1 << V1_MEMORY && CAN_PIDS == 1 << V1_PIDS && CAN_CPU == 1 << V1_CPU,
	       "a limit's bit is its number");

/* ---- the trial, in the child ---- */

/*
 * Process on which the trial tries limits. For each byte received, the subject tries to fork and
 * reports the result.
 */
struct subject {
	pid_t pid;
	int to, from;
};

__attribute__((noreturn))
static void subject_main(int in, int out)
{
	char c;

	while (read(in, &c, 1) == 1) {
		const pid_t pid = fork();
		ssize_t n;

		if (pid == 0)
			_exit(0);
		/* Report 'r' if a limit made the kernel refuse the fork, else 'f'. */
		c = pid < 0 && errno == EAGAIN ? 'r' : 'f';
		if (pid > 0)
			(void)waitpid(pid, NULL, 0);
		n = write(out, &c, 1);
		if (n != 1)
			break;
	}
	_exit(0);
}

static int subject_start(struct subject *ret_s)
{
	int in[2], out[2];
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return errno;
	pid = facts_grandchild_fork();
	if (pid < 0)
		return errno;
	if (pid == 0) {
		(void)close(in[1]);
		(void)close(out[0]);
		subject_main(in[0], out[1]);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	*ret_s = (struct subject){ pid, in[1], out[0] };
	return 0;
}

static bool begin(struct subject *ret_s, struct report *r)
{
	const int e = subject_start(ret_s);

	r->transient |= facts_is_transient(e);
	return e == 0;
}

static void subject_end(const struct subject *s)
{
	facts_grandchild_end(s->pid);
	(void)close(s->to);
	(void)close(s->from);
}

/* Checks whether the subject's fork() was refused. */
static bool subject_refused(const struct subject *s)
{
	struct pollfd pfd = { .fd = s->from, .events = POLLIN };
	char c = 'f';

	return write(s->to, "?", 1) == 1 && poll(&pfd, 1, WAIT_MS) == 1 &&
	       read(s->from, &c, 1) == 1 && c == 'r';
}

/*
 * Removes the cgroup @name below @parent. Does nothing if @parent is empty. A killed member may
 * take a moment to exit, so the function retries after EBUSY for a while.
 */
static void remove_cgroup(const char *parent, const char *name)
{
	scoped_fd fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; fd >= 0 && i < WAIT_MS; i++) {
		if (unlinkat(fd, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
			return;
		clock_sleep_ms(1);
	}
}

/* Creates cgroup @name below @parent. Returns a descriptor of the new directory, or -1. */
static int make_cgroup(const char *parent, const char *name, struct report *r)
{
	scoped_fd fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || mkdirat(fd, name, 0755) < 0) {
		r->transient |= facts_is_transient(errno);
		return -1;
	}
	return openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool move_into(int dir, pid_t pid)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	return fd_put_at(dir, "cgroup.procs", text) == 0;
}

/*
 * File and value of each limit in cgroup version 1 ([0]) and 2 ([1]), and the texts that switch its
 * controller on and off.
 */
static const struct {
	const char *file[2], *value[2], *on, *off;
} limits[LIMITS] = {
	[V1_MEMORY] = { { "memory.limit_in_bytes", "memory.max" }, { "268435456", "268435456" },
			"+memory", "-memory" },
	[V1_PIDS] = { { "pids.max", "pids.max" }, { "1", "1" }, "+pids", "-pids" },
	[V1_CPU] = { { "cpu.cfs_quota_us", "cpu.max" },
		     { "50000", "50000 100000" },
		     "+cpu", "-cpu" },
};

static bool set_limit(int dir, int which, bool v2)
{
	return fd_put_at(dir, limits[which].file[v2], limits[which].value[v2]) == 0;
}

static uint64_t try_v1_one(const char *parent, const char *name, int which, const struct subject *s,
			   struct report *r)
{
	scoped_fd dir = make_cgroup(parent, name, r);

	if (dir < 0 || !set_limit(dir, which, false) || !move_into(dir, s->pid))
		return 0;
	if (which == V1_PIDS && !subject_refused(s))
		return 0;
	return (uint64_t)1 << which;
}

static bool wait_frozen(int dir)
{
	char text[128];

	for (int i = 0; i < WAIT_MS; i++) {
		scoped_fd fd = openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
		const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

		if (n < 0)
			return false;
		text[n] = 0;
		if (strstr(text, "frozen 1"))
			return true;
		clock_sleep_ms(1);
	}
	return false;
}

/* Freezes, thaws and kills the subject. Afterwards the subject is dead but not reaped. */
static uint64_t try_v2_control(int dir, const struct subject *s)
{
	uint64_t can = 0;
	siginfo_t info;

	if (fd_put_at(dir, "cgroup.freeze", "1") == 0) {
		if (wait_frozen(dir))
			can |= CAN_FREEZE;
		(void)!fd_put_at(dir, "cgroup.freeze", "0");
	}
	if (fd_put_at(dir, "cgroup.kill", "1") != 0)
		return can;
	for (int i = 0; i < WAIT_MS; i++) {
		info = (siginfo_t){ 0 };
		if (waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		    info.si_pid == s->pid)
			return can | CAN_KILL;
		clock_sleep_ms(1);
	}
	return can;
}

/*
 * Tries a child cgroup of @parent in the unified hierarchy. If @own is set, @parent is the cgroup
 * of this process, and the trial enables controllers that are available but not enabled. In any
 * other cgroup the controllers stay as they are.
 */
static uint64_t try_v2(const char *parent, const char *name, bool own, struct report *r)
{
	scoped_fd above = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool switched[LIMITS] = { false };
	struct subject s;
	uint64_t can = 0;

	if (above < 0 || !begin(&s, r))
		return 0;

	scoped_fd dir = make_cgroup(parent, name, r);

	if (dir >= 0 && move_into(dir, s.pid)) {
		for (int i = 0; i < LIMITS; i++) {
			bool set = set_limit(dir, i, true);

			if (!set && own &&
			    fd_put_at(above, "cgroup.subtree_control", limits[i].on) == 0) {
				switched[i] = true;
				set = set_limit(dir, i, true);
			}
			can |= (uint64_t)set << i;
		}
		if (can & CAN_PIDS && !subject_refused(&s))
			can &= ~(uint64_t)CAN_PIDS;
		can |= try_v2_control(dir, &s);
	}
	subject_end(&s);
	remove_cgroup(parent, name);
	for (int i = 0; i < LIMITS; i++)
		if (switched[i])
			(void)!fd_put_at(above, "cgroup.subtree_control", limits[i].off);
	return can;
}

static uint64_t try_v1(const struct cgroup_trial *c, const char *name, struct report *r)
{
	struct subject s;
	uint64_t can = 0;

	if (!begin(&s, r))
		return 0;
	for (int i = 0; i < LIMITS; i++)
		if (c->places.v1[i][0])
			can |= try_v1_one(c->places.v1[i], name, i, &s, r);
	subject_end(&s);
	for (int i = 0; i < LIMITS; i++)
		remove_cgroup(c->places.v1[i], name);
	return can;
}

static int try_cgroup(const struct probe *p, int arg, struct report *r)
{
	/* The trial is a fork of the prober, so the pointer is valid in the memory of the trial. */
	const struct cgroup_trial *c = p->cgroup;

	(void)arg;
	if (c->places.own[0])
		r->v[0] |= try_v2(c->places.own, p->cgroup_name, true, r);
	if (c->places.parent[0] && (r->v[0] & CAN_MEMORY) == 0)
		r->v[0] |= try_v2(c->places.parent, p->cgroup_name, false, r);
	if ((r->v[0] & (CAN_MEMORY | CAN_PIDS | CAN_CPU)) == 0)
		r->v[0] |= try_v1(c, p->cgroup_name, r);
	return 0;
}

/* ---- the parent ---- */

void probe_cgroup_start(struct probe *p, struct host_facts *f, struct cgroup_trial *ret_c)
{
	struct writ_err err;

	*ret_c = (struct cgroup_trial){ 0 };
	if (facts_cgroup_places_read(&ret_c->places, &err) < 0)
		return;
	f->cgroup = ret_c->places.version;
	p->cgroup = ret_c;
	ret_c->started = trial_start(p, try_cgroup, 0, &ret_c->t) == 0;
	f->transient_failure |= !ret_c->started;
	/*
	 * Use the deadline of the whole probe: moving a process waits for all processors, which
	 * takes long on a busy machine.
	 */
	ret_c->t.deadline_ms = p->deadline_ms;
}

/* Removes cgroups that a killed trial may have left; a completed trial leaves no cgroups. */
static void sweep(const struct probe *p, const struct cgroup_places *places)
{
	remove_cgroup(places->own, p->cgroup_name);
	remove_cgroup(places->parent, p->cgroup_name);
	for (size_t i = 0; i < LIMITS; i++)
		remove_cgroup(places->v1[i], p->cgroup_name);
}

void probe_cgroup_sweep(const struct probe *p)
{
	struct cgroup_places places;
	struct writ_err err;

	if (facts_cgroup_places_read(&places, &err) == 0)
		sweep(p, &places);
}

void probe_cgroup_finish(const struct probe *p, struct cgroup_trial *c, struct host_facts *f)
{
	struct report r;

	if (!c->started)
		return;
	(void)trial_finish(&c->t, &r);
	sweep(p, &c->places);
	f->cgroup_memory = r.v[0] & CAN_MEMORY;
	f->cgroup_pids = r.v[0] & CAN_PIDS;
	f->cgroup_cpu = r.v[0] & CAN_CPU;
	f->cgroup_kill = r.v[0] & CAN_KILL;
	f->cgroup_freeze = r.v[0] & CAN_FREEZE;
}
