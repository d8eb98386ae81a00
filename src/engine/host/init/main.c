#include "init/init.h"

#include <asm/signal.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/wait.h>

#include "base/banned.h"

/* Constants of the kernel that only headers of the C library define. */
enum { MONOTONIC = 1, BLOCK_SIGNALS = 0 };
enum { GIVEN_MAX = 5, REAP_MAX = 256, ENDING_S = 4, LIST_MAX = 64 << 10 };

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	char *t = to;
	const char *f = from;

	while (n--)
		*t++ = *f++;
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	char *t = to;
	const char *f = from;

	if (t < f)
		return memcpy(to, from, n);
	while (n--)
		t[n] = f[n];
	return to;
}

void *memset(void *to, int byte, size_t n)
{
	char *t = to;

	while (n--)
		*t++ = (char)byte;
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;

	for (size_t i = 0; i < n; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

size_t strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

int init_fail(struct writ_err *err, long r, const char *what, const char *object)
{
	const char *const parts[] = { what, object ? " " : NULL, object, NULL };
	size_t n = 0;

	err->code = WRIT_E_SYS;
	err->sys = (int32_t)-r;
	for (size_t i = 0; parts[i]; i++)
		for (const char *s = parts[i]; *s && n + 1 < sizeof(err->what); s++)
			err->what[n++] = (char)(*s == '\n' ? '?' : *s);
	err->what[n] = 0;
	return r < 0 ? (int)r : -EIO;
}

_Noreturn static void fail_start(uint32_t step, const struct writ_err *err)
{
	struct jail_message m = { .type = JAIL_FAILED, .step = step, .err = *err };

	(void)init_message_send(JAIL_FD_SESSION, &m, -1);
	sys_exit(1);
}

_Noreturn static void fail_namespaces(long r)
{
	struct writ_err err = { 0 };

	(void)init_fail(&err, r, "new namespaces", NULL);
	fail_start(STEP_NAMESPACES, &err);
}

/*
 * Receives a jail program and returns its checked mapping. The descriptor of the program stays open
 * until lock_fds() closes it.
 */
static const struct jail_head *next_program(uint32_t *ret_type)
{
	struct writ_err err = { 0 };
	struct jail_message m;
	const void *map;
	uint32_t n, size;
	int fds[GIVEN_MAX];
	const long r = init_message_receive(JAIL_FD_SESSION, &m, NULL, 0, fds, GIVEN_MAX, &n);

	/* End of file before a program: the supervisor gave up. Exit without an error. */
	if (r == 0)
		sys_exit(0);
	if (r < 0 || (m.type != JAIL_BUILD && m.type != JAIL_PREPARE) || n != 1 ||
	    init_program_map(fds[0], sizeof(struct jail_head), &map, &size) < 0 ||
	    init_program_check(map, size) < 0) {
		(void)init_fail(&err, -EINVAL, "the jail program is damaged", NULL);
		fail_start(STEP_PROGRAM, &err);
	}
	*ret_type = m.type;
	return map;
}

/*
 * Receives the jail program. In tier A the message JAIL_PREPARE may bring a first part of the
 * program earlier: pid 1 makes the mounts of this part while the supervisor still computes the
 * rest.
 */
static void receive_program(struct init *in)
{
	struct writ_err err = { 0 };
	uint32_t type;
	const struct jail_head *p = next_program(&type);

	if (type == JAIL_PREPARE && in->own_namespaces) {
		if (init_root_begin(in, p, &err) < 0)
			fail_start(STEP_ROOT, &err);
		(void)sys(munmap, p, p->size);
		p = next_program(&type);
	}
	if (type != JAIL_BUILD) {
		(void)init_fail(&err, -EINVAL, "the jail program does not come", NULL);
		fail_start(STEP_PROGRAM, &err);
	}
	in->p = p;
	if (((in->p->flags & JAIL_OWN_NAMESPACES) != 0) != in->own_namespaces ||
	    in->p->fail_at == STEP_PROGRAM) {
		(void)init_fail(&err, -EINVAL, "the jail program is for another tier", NULL);
		fail_start(STEP_PROGRAM, &err);
	}
	in->done |= 1u << STEP_PROGRAM;
}

/* --- pid 1 --- */

_Noreturn static void end_session(struct init *in, const struct jail_message *last);

/*
 * Reports the exit of a command to the supervisor. The exit of an orphan that pid 1 adopted is not
 * reported.
 */
static void report_exit(struct init *in, int pid, int status)
{
	for (uint32_t i = 0; i < in->commands_n; i++) {
		struct jail_message m = { .type = JAIL_EXITED,
					  .id = in->commands[i].id,
					  .value = status };

		if (in->commands[i].pid != pid)
			continue;
		in->commands[i] = in->commands[--in->commands_n];
		/*
		 * The session ends with this command. Kill every process that the command left
		 * before pid 1 reports its status: the supervisor takes the status as the end of
		 * the session.
		 */
		if (in->last == m.id && !in->ending)
			end_session(in, &m);
		(void)init_message_send(JAIL_FD_SESSION, &m, -1);
		return;
	}
}

/* Reaps up to REAP_MAX dead children of pid 1. True if pid 1 has no child left. */
static bool reap(struct init *in)
{
	const long self = sys(getpid);

	for (int i = 0; i < REAP_MAX; i++) {
		int status = 0;
		const long pid = sys(wait4, -1, &status, WNOHANG, 0);

		if (pid == -ECHILD)
			return true;
		if (pid <= 0)
			return false;
		report_exit(in, (int)pid, status);
	}
	/*
	 * SECURITY: processes that die as fast as they are reaped must not keep pid 1 from reading
	 * messages. Raise SIGCHLD again, so that the main loop reaps the rest later.
	 */
	(void)sys(kill, self, SIGCHLD);
	return false;
}

/* Sends SIGKILL to a child of pid 1. False if the child is dead already and waits to be reaped. */
static bool kill_child(int pid)
{
	int info[32] = { 0 };

	(void)sys(kill, pid, SIGKILL);
	return sys(waitid, P_PID, pid, info, WEXITED | WNOHANG | WNOWAIT, 0) == 0 &&
	       info[0] != SIGCHLD;
}

/*
 * Reads the pids of the children of pid 1 from /proc, the newest last. Drops the last number of the
 * list if the end of the buffer cut the number.
 */
static long list_children(char *list, size_t size)
{
	char path[64] = "/proc/self/task/";
	size_t n = 16, have = 0;
	long fd, got;

	init_put_number(path, &n, (uint64_t)sys(getpid));
	memcpy(path + n, "/children", 10);
	fd = sys(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	while (have < size && (got = sys(read, fd, list + have, size - have)) > 0)
		have += (size_t)got;
	(void)sys(close, fd);
	while (have && list[have - 1] != ' ')
		have--;
	return (long)have;
}

/*
 * Kills all children of pid 1 in tier B, where no pid namespace exists; orphans have become
 * children of pid 1. Starts with the newest child, which may be about to fork again. Returns true
 * if a child still lives. Returns false if the list is full, so that the caller reaps the zombies
 * that fill it and the remaining children fit next time.
 */
static bool kill_children(void)
{
	char list[LIST_MAX];
	const long n = list_children(list, sizeof(list));
	bool living = false;
	int pid = 0, unit = 1;

	for (long i = n - 1; i >= 0; i--) {
		if (list[i] != ' ') {
			pid += (list[i] - '0') * unit;
			unit *= 10;
		}
		if (pid > 1 && (i == 0 || list[i - 1] == ' ')) {
			living |= kill_child(pid);
			pid = 0;
			unit = 1;
		}
	}
	return living &&
	       n < LIST_MAX - 16 /* 16: space for a number that the end of the buffer cut */;
}

static int64_t seconds(void)
{
	int64_t now[2] = { 0 };

	(void)sys(clock_gettime, MONOTONIC, now);
	return now[0];
}

/* True while the supervisor holds its end of the session's socket open. */
static bool supervisor_alive(void)
{
	const int64_t now[2] = { 0 };
	struct pollfd p = { JAIL_FD_SESSION, 0, 0 };

	return sys(ppoll, &p, 1, now, 0, 8) == 0;
}

/*
 * Kills all processes of a jail without a pid namespace. SECURITY: zombies count towards the limit
 * of processes until they are reaped. So pid 1 reaps no zombie while any process lives: a process
 * that forks faster than pid 1 can list children soon cannot fork any more. After ENDING_S seconds
 * pid 1 gives up and the supervisor kills the remaining processes; if the supervisor has died, pid
 * 1 continues.
 */
static bool kill_descendants(struct init *in)
{
	const int64_t end = seconds() + ENDING_S;

	while (seconds() < end || !supervisor_alive()) {
		/*
		 * After the timeout only processes in an uninterruptible state are left. Try less
		 * often.
		 */
		const int64_t pause[2] = { 0, seconds() < end ? 100000 : 10000000 };

		if (!kill_children() && reap(in))
			return true;
		(void)sys(nanosleep, pause, 0);
	}
	return false;
}

/*
 * Kills all processes of a jail with a pid namespace except pid 1: kill(-1) reaches every other
 * process in the namespace.
 */
static bool kill_namespace(struct init *in)
{
	bool alone = false;

	for (int i = 0; i < 2000 && !(alone = reap(in)); i++) {
		int status = 0;
		long pid;

		(void)sys(kill, -1, SIGKILL);
		pid = sys(wait4, -1, &status, 0, 0);
		if (pid > 0)
			report_exit(in, (int)pid, status);
	}
	return alone;
}

/*
 * Runs the probes again in pid 1 at the end of the session. No process of the agent is alive, and
 * none could ever change pid 1, so a restriction that holds now held for the agent too. pid 1 first
 * restricts itself with the limit of open files and the Landlock rulesets of commands.
 */
static void probe_end(const struct init *in)
{
	if (lock_files(in->p) < 0)
		return;
	if (in->ruleset >= 0 && sys(landlock_restrict_self, in->ruleset, 0) < 0)
		return;
	for (uint32_t i = 0; in->ruleset >= 0 && i < in->p->layers; i++)
		if (sys(landlock_restrict_self, in->layers[i], 0) < 0)
			return;
	(void)init_probe_run(in->p, JAIL_PHASE_END, 0, in->ruleset >= 0);
}

/*
 * Ends the session: kills all other processes of the jail, sends @last (unless NULL), sends
 * JAIL_EMPTY if no process is left, and exits.
 */
_Noreturn static void end_session(struct init *in, const struct jail_message *last)
{
	struct jail_message m = { .type = JAIL_EMPTY };
	bool alone;

	in->ending = true;
	alone = in->own_namespaces ? kill_namespace(in) : kill_descendants(in);
	if (alone && in->ran && in->p->probes.n)
		probe_end(in);
	if (last)
		(void)init_message_send(JAIL_FD_SESSION, last, -1);
	if (alone)
		(void)init_message_send(JAIL_FD_SESSION, &m, -1);
	sys_exit(0);
}

static void spawn_command(struct init *in, const struct jail_message *ask, const int *fds,
			  uint32_t n)
{
	struct jail_message m = { .type = JAIL_FAILED, .id = ask->id, .step = STEP_EXEC };
	int pid = -E2BIG;

	if (n >= 1 && in->commands_n < COMMANDS_MAX)
		pid = init_spawn(in, ask->id, fds[0], fds + 1, n - 1);
	for (uint32_t i = 0; i < n; i++)
		(void)sys(close, fds[i]);
	if (pid < 0) {
		(void)init_fail(&m.err, pid, "start a process", NULL);
		(void)init_message_send(JAIL_FD_SESSION, &m, -1);
		m = (struct jail_message){ .type = JAIL_EXITED, .id = ask->id, .value = 126 << 8 };
		if (ask->value)
			end_session(in, &m);
		(void)init_message_send(JAIL_FD_SESSION, &m, -1);
		return;
	}
	in->ran = true;
	in->commands[in->commands_n].pid = pid;
	in->commands[in->commands_n++].id = ask->id;
	if (ask->value)
		in->last = ask->id;
}

static void signal_command(const struct init *in, const struct jail_message *m)
{
	for (uint32_t i = 0; i < in->commands_n; i++) {
		const int pid = in->commands[i].pid;

		if (in->commands[i].id != m->id)
			continue;
		/*
		 * A command that was just cloned may not lead its process group yet: then signal
		 * the process.
		 */
		if (sys(kill, -pid, m->value) == -ESRCH)
			(void)sys(kill, pid, m->value);
	}
}

static void serve_supervisor(struct init *in)
{
	struct jail_message m;
	uint32_t n;
	int fds[GIVEN_MAX];
	const long r = init_message_receive(JAIL_FD_SESSION, &m, NULL, 0, fds, GIVEN_MAX, &n);

	if (r == -EAGAIN)
		return;
	if (r <= 0 || m.type == JAIL_END)
		end_session(in, NULL);
	if (m.type == JAIL_SPAWN) {
		spawn_command(in, &m, fds, n);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		(void)sys(close, fds[i]);
	if (m.type == JAIL_SIGNAL && m.value > 0 && m.value <= 64)
		signal_command(in, &m);
}

/*
 * Restores the default action of signals that the supervisor inherited as ignored. Only SIGPIPE
 * stays ignored until a command runs, because the supervisor may close its socket at any time.
 */
static void reset_signals(void)
{
	/* The kernel's own struct sigaction: all zero is the default action without flags. */
	const uint64_t action[4] = { 0 };

	for (int i = 1; i <= 64; i++)
		if (i != SIGPIPE)
			(void)sys(rt_sigaction, i, action, 0, 8);
}

/* --- Start: create pid 1 and the keeper --- */

/*
 * Descriptors of cgroup directories; the first @unified (0 or 1) belong to the unified hierarchy.
 */
struct cgroup_dirs {
	int fds[GIVEN_MAX];
	uint32_t n, unified;
};

static void cgroup_dirs_close(const struct cgroup_dirs *d)
{
	for (uint32_t i = 0; i < d->n; i++)
		(void)sys(close, d->fds[i]);
}

static void recv_cgroup_dirs(struct cgroup_dirs *ret)
{
	struct jail_message m;
	const long r =
		init_message_receive(JAIL_FD_KEEPER, &m, NULL, 0, ret->fds, GIVEN_MAX, &ret->n);

	/* End of file: the supervisor gave up. Exit without an error. */
	if (r <= 0 || m.type != JAIL_JOIN)
		sys_exit(r != 0);
	ret->unified = m.value == 1 && ret->n;
}

/*
 * Creates pid 1 directly in its cgroup of the unified hierarchy, if there is one. Moving a running
 * process would make the kernel wait for all processors. If the kernel refuses, clones the process
 * without the cgroup: the supervisor checks the cgroup later and moves the process.
 */
static long clone_into(const struct cgroup_dirs *d, uint64_t spaces)
{
	struct clone_args args = { .flags = spaces | CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	long pid = -ENOSYS;

	if (d->unified) {
		args.cgroup = (unsigned)d->fds[0];
		pid = sys(clone3, &args, sizeof(args));
	}
	return pid < 0 ? sys(clone, spaces | SIGCHLD, 0, 0, 0, 0) : pid;
}

/*
 * Joins the cgroups of version 1. A thread that moves only itself does not have to wait for other
 * processors.
 */
static void join_v1_cgroups(const struct cgroup_dirs *d)
{
	for (uint32_t i = d->unified; i < d->n; i++)
		(void)init_write_text(d->fds[i], "tasks", "0");
}

_Noreturn static void pid1_main(struct init *in)
{
	struct jail_message m = { .type = JAIL_HELLO };
	const uint64_t child = UINT64_C(1) << (SIGCHLD - 1);
	struct writ_err err = { 0 };
	uint32_t step = STEP_PROGRAM;
	char drop[128];

	/*
	 * pid 1 must die with the supervisor. In tier B the death of pid 1 would leave the other
	 * processes without a subreaper, so there pid 1 reads the end of file on its socket instead
	 * and kills them first.
	 */
	if (in->own_namespaces)
		(void)sys(prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)sys(rt_sigprocmask, BLOCK_SIGNALS, &child, 0, 8);
	if (init_message_send(JAIL_FD_SESSION, &m, -1) < 0)
		sys_exit(1);
	reset_signals();
	receive_program(in);
	if (init_steps_run(in, &err, &step) < 0)
		fail_start(step, &err);
	/* The change of ids in the steps above cleared PR_SET_PDEATHSIG: set it again. */
	if (in->own_namespaces)
		(void)sys(prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	in->children = (int)sys(signalfd4, -1, &child, 8, O_CLOEXEC | O_NONBLOCK);
	if (in->children < 0) {
		(void)init_fail(&err, in->children, "signalfd", NULL);
		fail_start(STEP_SEALED, &err);
	}
	m = (struct jail_message){ .type = JAIL_SEALED, .value = in->done };
	if (init_message_send(JAIL_FD_SESSION, &m, in->feed) < 0)
		sys_exit(1);
	if (in->feed >= 0)
		(void)sys(close, in->feed);
	in->feed = -1;
	for (;;) {
		struct pollfd p[2] = { { JAIL_FD_SESSION, POLLIN, 0 },
				       { in->children, POLLIN, 0 } };

		if (sys(ppoll, p, 2, 0, 0, 8) < 0)
			continue;
		if (p[1].revents) {
			(void)sys(read, in->children, drop, sizeof(drop));
			(void)reap(in);
		}
		if (p[0].revents)
			serve_supervisor(in);
	}
}

/*
 * Tier A: enters the outer user namespace, then splits into two processes: pid 1, in all other new
 * namespaces, and the keeper, which stays outside of these namespaces. @join: wait for JAIL_JOIN
 * before pid 1 is created.
 */
_Noreturn static void start_own_namespaces(struct init *in, bool join)
{
	const uint64_t spaces =
		CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
	struct cgroup_dirs dirs = { .n = 0 };
	struct writ_err err = { 0 };
	int link[2];
	long r, pid;

	if (init_step_enter(in, &err) < 0)
		fail_start(in->fail_at == STEP_ID_MAP ? STEP_ID_MAP : STEP_NAMESPACES, &err);
	/* The keeper sends the network namespace to pid 1 through this socket pair. */
	r = sys(socketpair, FAMILY_UNIX, TYPE_SEQPACKET | O_CLOEXEC, 0, link);
	if (r < 0)
		fail_namespaces(r);
	/*
	 * A network namespace takes longest to create of all namespaces. A keeper that has to wait
	 * for JAIL_JOIN anyway creates it now, and pid 1 is cloned into it. Otherwise the keeper
	 * creates it while pid 1 builds the root.
	 */
	if (join && !PLANTED(in->fail_at, STEP_NETWORK)) {
		keeper_network(link[1]);
		link[1] = -1;
	}
	if (join)
		recv_cgroup_dirs(&dirs);
	pid = clone_into(&dirs, spaces);
	if (pid < 0)
		fail_namespaces(pid);
	in->done = 1u << STEP_NAMESPACES | 1u << STEP_ID_MAP;
	if (pid == 0) {
		(void)sys(close, JAIL_FD_KEEPER);
		if (link[1] >= 0)
			(void)sys(close, link[1]);
		in->network = link[0];
		join_v1_cgroups(&dirs);
		cgroup_dirs_close(&dirs);
		pid1_main(in);
	}
	cgroup_dirs_close(&dirs);
	(void)sys(close, JAIL_FD_SESSION);
	(void)sys(close, link[0]);
	keeper_main((int)pid, link[1]);
}

/*
 * Tier B: no namespaces and no keeper. This process is pid 1 of the session: as a subreaper it
 * adopts the orphans of commands.
 */
_Noreturn static void start_host_namespaces(struct init *in)
{
	(void)sys(prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)sys(close, JAIL_FD_KEEPER);
	pid1_main(in);
}

/*
 * @tier: "A", "B", or "J" for a tier A that waits for JAIL_JOIN. @fail: NULL, or the number of the
 * step that must fail.
 */
_Noreturn static void start(const char *tier, const char *fail)
{
	struct init in = { .old_root = -1,
			   .network = -1,
			   .parent = -1,
			   .feed = -1,
			   .feed_tree = -1,
			   .ruleset = -1,
			   .own_namespaces = tier[0] != 'B' };

	for (; fail && *fail >= '0' && *fail <= '9'; fail++)
		in.fail_at = in.fail_at * 10 + (uint32_t)(*fail - '0');
	if (in.own_namespaces)
		(void)sys(prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	/* Leave the supervisor's terminal: Ctrl-C on that terminal must not reach the session. */
	(void)sys(setsid);
	/*
	 * SECURITY: the supervisor passed the two sockets through an exec. No command may inherit
	 * the sockets.
	 */
	if (sys(fcntl, JAIL_FD_SESSION, F_SETFD, FD_CLOEXEC) < 0 ||
	    sys(fcntl, JAIL_FD_KEEPER, F_SETFD, FD_CLOEXEC) < 0)
		sys_exit(2);
	if (in.own_namespaces)
		start_own_namespaces(&in, tier[0] == 'J');
	start_host_namespaces(&in);
}

_Noreturn void init_main(const long *stack);
_Noreturn void init_main(const long *stack)
{
	const char *const *argv = (const char *const *)(stack + 1);

	if (stack[0] < 2)
		sys_exit(2);
	start(argv[1], stack[0] > 2 ? argv[2] : NULL);
}

/* The kernel starts the program with the argument count on top of the stack. */
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp,%ebp\n\tmov %rsp,%rdi\n\tand $-16,%rsp\n\tcall "
	"init_main\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29,#0\n\tmov x0,sp\n\tbl init_main\n");
#endif
