#include "jail/init/init.h"

#include <asm/signal.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/wait.h>

#include "base/banned.h"

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

	(void)message_send(JAIL_FD_SESSION, &m, -1);
	sys_exit(1);
}

/* One program, mapped and checked. Its descriptor stays open until all are closed. */
static const struct jail_head *next_program(uint32_t *ret_type)
{
	struct writ_err err = { 0 };
	struct jail_message m;
	const void *map;
	uint32_t n, size;
	int fds[GIVEN_MAX];
	const long r = message_receive(JAIL_FD_SESSION, &m, NULL, 0, fds, GIVEN_MAX, &n);

	/* End of file before a program: the supervisor changed its mind. */
	if (r == 0)
		sys_exit(0);
	if (r < 0 || (m.type != JAIL_BUILD && m.type != JAIL_PREPARE) || n != 1 ||
	    program_map(fds[0], sizeof(struct jail_head), &map, &size) < 0 ||
	    program_check(map, size) < 0) {
		(void)init_fail(&err, -EINVAL, "the jail program is damaged", NULL);
		fail_start(STEP_PROGRAM, &err);
	}
	*ret_type = m.type;
	return map;
}

static void receive_program(struct init *in)
{
	struct writ_err err = { 0 };
	uint32_t type;
	const struct jail_head *p = next_program(&type);

	if (type == JAIL_PREPARE && in->own_namespaces) {
		if (root_begin(in, p, &err) < 0)
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

/* --- the life of pid 1 --- */

_Noreturn static void end(struct init *in, const struct jail_message *last);

static void forget(struct init *in, int pid, int status)
{
	for (uint32_t i = 0; i < in->commands_n; i++) {
		struct jail_message m = { .type = JAIL_EXITED,
					  .id = in->commands[i].id,
					  .value = status };

		if (in->commands[i].pid != pid)
			continue;
		in->commands[i] = in->commands[--in->commands_n];
		/* What it left behind dies first: the status is the last word. */
		if (in->last == m.id && !in->ending)
			end(in, &m);
		(void)message_send(JAIL_FD_SESSION, &m, -1);
		return;
	}
}

/* Reaps what has died. True if nobody is left. */
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
		forget(in, (int)pid, status);
	}
	/* SECURITY: who dies as fast as we reap must not keep us from hearing: later, the rest. */
	(void)sys(kill, self, SIGCHLD);
	return false;
}

/* One of our children. False if it is dead already, and only waits to be reaped. */
static bool kill_child(int pid)
{
	int info[32] = { 0 };

	(void)sys(kill, pid, SIGKILL);
	return sys(waitid, P_PID, pid, info, WEXITED | WNOHANG | WNOWAIT, 0) == 0 &&
	       info[0] != SIGCHLD;
}

/* Our children in /proc, the newest last; whole numbers only. */
static long list_children(char *list, size_t size)
{
	char path[64] = "/proc/self/task/";
	size_t n = 16, have = 0;
	long fd, got;

	put_number(path, &n, (uint64_t)sys(getpid));
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
 * Without a pid namespace; orphans come to us. The newest first: it may be about to hand over
 * to another. True if some still live, and the dead do not fill the list yet.
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
	return living && n < LIST_MAX - 16 /* a number that was cut */;
}

static int64_t seconds(void)
{
	int64_t now[2] = { 0 };

	(void)sys(clock_gettime, 1 /* CLOCK_MONOTONIC */, now);
	return now[0];
}

/* Is the supervisor there? */
static bool is_watched(void)
{
	const int64_t now[2] = { 0 };
	struct pollfd p = { JAIL_FD_SESSION, 0, 0 };

	return sys(ppoll, &p, 1, now, 0, 8) == 0;
}

/*
 * SECURITY: the dead count for the limit of processes until they are reaped, so they are not
 * while anybody lives: who forks faster than we can look soon cannot fork any more. What
 * outlasts us is the supervisor's, if there is one; else nobody's, and we go on.
 */
static bool kill_below(struct init *in)
{
	const int64_t end = seconds() + ENDING_S;

	while (seconds() < end || !is_watched()) {
		/* Who is still there then cannot be killed now. */
		const int64_t pause[2] = { 0, seconds() < end ? 100000 : 10000000 };

		if (!kill_children() && reap(in))
			return true;
		(void)sys(nanosleep, pause, 0);
	}
	return false;
}

/* In a pid namespace: one call reaches all. */
static bool kill_inside(struct init *in)
{
	bool alone = false;

	for (int i = 0; i < 2000 && !(alone = reap(in)); i++) {
		int status = 0;
		long pid;

		(void)sys(kill, -1, SIGKILL);
		pid = sys(wait4, -1, &status, 0, 0);
		if (pid > 0)
			forget(in, (int)pid, status);
	}
	return alone;
}

/*
 * By pid 1, which the agent could never reach, once nobody of the agent's is alive: what
 * holds now held for them. From here on it is restricted like a command was.
 */
static void probe_end(const struct init *in)
{
	if (in->ruleset >= 0 && sys(landlock_restrict_self, in->ruleset, 0) < 0)
		return;
	for (uint32_t i = 0; in->ruleset >= 0 && i < in->p->layers; i++)
		if (sys(landlock_restrict_self, in->layers[i], 0) < 0)
			return;
	(void)probe_run(in->p, JAIL_PHASE_END, 0, in->ruleset >= 0);
}

/* Nothing survives the session. @last is sent at the end; may be NULL. */
_Noreturn static void end(struct init *in, const struct jail_message *last)
{
	struct jail_message m = { .type = JAIL_EMPTY };
	bool alone;

	in->ending = true;
	alone = in->own_namespaces ? kill_inside(in) : kill_below(in);
	if (alone && in->ran && in->p->probes.n)
		probe_end(in);
	if (last)
		(void)message_send(JAIL_FD_SESSION, last, -1);
	if (alone)
		(void)message_send(JAIL_FD_SESSION, &m, -1);
	sys_exit(0);
}

static void spawn(struct init *in, const struct jail_message *ask, const int *fds, uint32_t n)
{
	struct jail_message m = { .type = JAIL_FAILED, .id = ask->id, .step = STEP_EXEC };
	int pid = -E2BIG;

	if (n >= 1 && in->commands_n < COMMANDS_MAX)
		pid = spawn_command(in, ask->id, fds[0], fds + 1, n - 1);
	for (uint32_t i = 0; i < n; i++)
		(void)sys(close, fds[i]);
	if (pid < 0) {
		(void)init_fail(&m.err, pid, "start a process", NULL);
		(void)message_send(JAIL_FD_SESSION, &m, -1);
		m = (struct jail_message){ .type = JAIL_EXITED, .id = ask->id, .value = 126 << 8 };
		if (ask->value)
			end(in, &m);
		(void)message_send(JAIL_FD_SESSION, &m, -1);
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
		/* A command that has just been cloned may not lead its group yet. */
		if (sys(kill, -pid, m->value) == -ESRCH)
			(void)sys(kill, pid, m->value);
	}
}

static void serve(struct init *in)
{
	struct jail_message m;
	uint32_t n;
	int fds[GIVEN_MAX];
	const long r = message_receive(JAIL_FD_SESSION, &m, NULL, 0, fds, GIVEN_MAX, &n);

	if (r == -EAGAIN)
		return;
	if (r <= 0 || m.type == JAIL_END)
		end(in, NULL);
	if (m.type == JAIL_SPAWN) {
		spawn(in, &m, fds, n);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		(void)sys(close, fds[i]);
	if (m.type == JAIL_SIGNAL && m.value > 0 && m.value <= 64)
		signal_command(in, &m);
}

/*
 * What writ-init was started with: some signals may be ignored. Only SIGPIPE stays so
 * until a command is run, because whoever we speak to may be gone.
 */
static void reset_signals(void)
{
	/* The kernel's own layout; everything zero is the default action, no flags. */
	const uint64_t action[4] = { 0 };

	for (int i = 1; i <= 64; i++)
		if (i != SIGPIPE)
			(void)sys(rt_sigaction, i, action, 0, 8);
}

/* --- the first steps of the keeper, and pid 1 --- */

/* Directories of cgroups; the first @unified of them are of the unified hierarchy. */
struct doors {
	int fds[GIVEN_MAX];
	uint32_t n, unified;
};

static void doors_close(const struct doors *d)
{
	for (uint32_t i = 0; i < d->n; i++)
		(void)sys(close, d->fds[i]);
}

static void wait_for_doors(struct doors *ret)
{
	struct jail_message m;
	const long r = message_receive(JAIL_FD_KEEPER, &m, NULL, 0, ret->fds, GIVEN_MAX, &ret->n);

	/* The end of file: the supervisor changed its mind. */
	if (r <= 0 || m.type != JAIL_JOIN)
		sys_exit(r != 0);
	ret->unified = m.value == 1 && ret->n;
}

/*
 * A new process may begin in another cgroup; moving one that runs makes the kernel wait
 * for all processors. Whatever keeps it from that, the supervisor sees and moves it.
 */
static long clone_into(const struct doors *d, uint64_t spaces)
{
	struct clone_args args = { .flags = spaces | CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	long pid = -ENOSYS;

	if (d->unified) {
		args.cgroup = (unsigned)d->fds[0];
		pid = sys(clone3, &args, sizeof(args));
	}
	return pid < 0 ? sys(clone, spaces | SIGCHLD, 0, 0, 0, 0) : pid;
}

/* The older hierarchies: a thread that moves itself waits for nobody either. */
static void join_alone(const struct doors *d)
{
	for (uint32_t i = d->unified; i < d->n; i++)
		(void)write_text(d->fds[i], "tasks", "0");
}

_Noreturn static void pid1_main(struct init *in)
{
	struct jail_message m = { .type = JAIL_HELLO };
	const uint64_t child = UINT64_C(1) << (SIGCHLD - 1);
	struct writ_err err = { 0 };
	uint32_t step = STEP_PROGRAM;
	char drop[128];

	/* Without a pid namespace our death would free the others: the socket tells us instead. */
	if (in->own_namespaces)
		(void)sys(prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)sys(rt_sigprocmask, 0 /* SIG_BLOCK */, &child, 0, 8);
	if (message_send(JAIL_FD_SESSION, &m, -1) < 0)
		sys_exit(1);
	reset_signals();
	receive_program(in);
	if (steps_run(in, &err, &step) < 0)
		fail_start(step, &err);
	/* New ids took the first one away. */
	if (in->own_namespaces)
		(void)sys(prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	in->children = (int)sys(signalfd4, -1, &child, 8, O_CLOEXEC | O_NONBLOCK);
	if (in->children < 0) {
		(void)init_fail(&err, in->children, "signalfd", NULL);
		fail_start(STEP_SEALED, &err);
	}
	m = (struct jail_message){ .type = JAIL_SEALED, .value = in->done };
	if (message_send(JAIL_FD_SESSION, &m, in->feed) < 0)
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
			serve(in);
	}
}

/* argv: A or B, or J for A that waits for JAIL_JOIN; then optionally the step that is to fail. */
_Noreturn static void start(const char *tier, const char *fail)
{
	/* The network takes longest to make: the keeper does, while pid 1 goes on. */
	const uint64_t spaces =
		CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
	struct init in = { .old_root = -1,
			   .network = -1,
			   .parent = -1,
			   .feed = -1,
			   .feed_tree = -1,
			   .ruleset = -1,
			   .own_namespaces = tier[0] != 'B' };
	struct doors doors = { .n = 0 };
	struct writ_err err = { 0 };
	int link[2];
	long pid;

	for (; fail && *fail >= '0' && *fail <= '9'; fail++)
		in.fail_at = in.fail_at * 10 + (uint32_t)(*fail - '0');
	if (in.own_namespaces)
		(void)sys(prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	/* Keys typed at the supervisor's terminal are not for us. */
	(void)sys(setsid);
	/* SECURITY: they came through an exec and must not go through another. */
	if (sys(fcntl, JAIL_FD_SESSION, F_SETFD, FD_CLOEXEC) < 0 ||
	    sys(fcntl, JAIL_FD_KEEPER, F_SETFD, FD_CLOEXEC) < 0)
		sys_exit(2);
	if (!in.own_namespaces) {
		(void)sys(prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		(void)sys(close, JAIL_FD_KEEPER);
		pid1_main(&in);
	}
	if (step_enter(&in, &err) < 0)
		fail_start(in.fail_at == STEP_ID_MAP ? STEP_ID_MAP : STEP_NAMESPACES, &err);
	pid = sys(socketpair, 1 /* AF_UNIX */, 5 /* SOCK_SEQPACKET */ | O_CLOEXEC, 0, link);
	/* Who has to wait does meanwhile what takes longest; pid 1 is in it from the beginning. */
	if (pid == 0 && tier[0] == 'J' && !PLANTED(in.fail_at, STEP_NETWORK)) {
		keeper_network(link[1]);
		link[1] = -1;
	}
	if (pid == 0 && tier[0] == 'J')
		wait_for_doors(&doors);
	if (pid == 0)
		pid = clone_into(&doors, spaces);
	if (pid < 0) {
		(void)init_fail(&err, pid, "new namespaces", NULL);
		fail_start(STEP_NAMESPACES, &err);
	}
	in.done = 1u << STEP_NAMESPACES | 1u << STEP_ID_MAP;
	if (pid == 0) {
		(void)sys(close, JAIL_FD_KEEPER);
		if (link[1] >= 0)
			(void)sys(close, link[1]);
		in.network = link[0];
		join_alone(&doors);
		doors_close(&doors);
		pid1_main(&in);
	}
	doors_close(&doors);
	(void)sys(close, JAIL_FD_SESSION);
	(void)sys(close, link[0]);
	keeper_main((int)pid, link[1]);
}

_Noreturn void init_main(const long *stack);
_Noreturn void init_main(const long *stack)
{
	const char *const *argv = (const char *const *)(stack + 1);

	if (stack[0] < 2)
		sys_exit(2);
	start(argv[1], stack[0] > 2 ? argv[2] : NULL);
}

/* The kernel enters with the argument count on top of the stack. */
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp,%ebp\n\tmov %rsp,%rdi\n\tand $-16,%rsp\n\tcall "
	"init_main\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29,#0\n\tmov x0,sp\n\tbl init_main\n");
#endif
