#include "init/init.h"

#include <asm/ioctls.h>
#include <asm/signal.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/termios.h>
#include <linux/wait.h>

#include "base/banned.h"

enum { STDIO = 3 };

/* State that a command needs between its clone and its exec. */
struct spawn {
	const struct init *in;
	const struct jail_command *c;
	uint32_t id;
	const int *given;
	uint32_t given_n;
	const char **argv, **envp;
};

/*
 * Sends the reason of a failure to the supervisor and exits with the status of a shell: 127 if the
 * program was not found, else 126.
 */
_Noreturn static void give_up(uint32_t id, long r, const char *what, const char *object)
{
	struct jail_message m = { .type = JAIL_FAILED, .id = id, .step = STEP_EXEC };

	(void)init_fail(&m.err, r, what, object);
	(void)init_message_send(JAIL_FD_SESSION, &m, -1);
	sys_exit(r == -ENOENT || r == -ENOTDIR ? 127 : 126);
}

/* Opens a pseudo terminal of the jail and sends the master of the terminal to the supervisor. */
static int open_terminal(const struct spawn *s)
{
	struct jail_message m = { .type = JAIL_STARTED, .id = s->id };
	const struct winsize size = { s->c->rows, s->c->cols, 0, 0 };
	const long master = sys(openat, AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
	int locked = 0;
	long slave;

	if (master < 0)
		give_up(s->id, master, "open /dev/ptmx", NULL);
	(void)sys(ioctl, master, TIOCSPTLCK, &locked);
	(void)sys(ioctl, master, TIOCSWINSZ, &size);
	slave = sys(ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		give_up(s->id, slave, "open a terminal", NULL);
	if (init_message_send(JAIL_FD_SESSION, &m, (int)master) < 0)
		give_up(s->id, -EIO, "hand over the terminal", NULL);
	(void)sys(close, master);
	return (int)slave;
}

static uint32_t rulesets(const struct init *in)
{
	return in->ruleset < 0 ? 0 : 1 + in->p->layers;
}

/*
 * Returns the number of the gate: the descriptor on which a command with JAIL_COMMAND_GATE waits
 * until the supervisor lets it run.
 */
static uint32_t gate_fd(const struct init *in)
{
	return JAIL_FD_SESSION + 1 + rulesets(in);
}

/*
 * Sets up the standard descriptors of the command and closes all others except the session's
 * socket, the rulesets and the gate. A received descriptor never has a number from 0 to 2, because
 * pid 1 keeps /dev/null open there, so no dup3() overwrites a descriptor that is still needed.
 */
static void set_descriptors(const struct spawn *s)
{
	int from[STDIO], terminal = -1, gate = -1;
	uint32_t next = 0;
	long r = 0;

	if (s->c->pty && !(s->in->p->flags & JAIL_TTY_HOST))
		terminal = open_terminal(s);
	for (uint32_t i = 0; i < STDIO; i++) {
		if (s->c->pty & 1u << i && terminal >= 0)
			from[i] = terminal;
		else if (s->c->given & 1u << i && next < s->given_n)
			from[i] = s->given[next++];
		else
			from[i] = (int)i; /* keep pid 1's /dev/null as this standard descriptor */
	}
	/* Move the gate descriptor above the numbers that the rulesets need. */
	if (s->c->flags & JAIL_COMMAND_GATE && next < s->given_n) {
		r = sys(fcntl, s->given[next], F_DUPFD_CLOEXEC, gate_fd(s->in) + 1);
		gate = (int)r;
	}
	for (uint32_t i = 0; r >= 0 && i < STDIO; i++) {
		if (from[i] == (int)i)
			r = sys(fcntl, from[i], F_SETFD, 0);
		else
			r = sys(dup3, from[i], i, 0);
	}
	if (r < 0)
		give_up(s->id, r, "standard descriptors", NULL);
	/*
	 * Move the rulesets and the gate, all of which are close-on-exec, to the numbers after the
	 * session's socket: the command still needs them before its exec. pid 1 opened the rulesets
	 * in this order, so dup3() never overwrites a ruleset that the loop handles later.
	 */
	for (uint32_t i = 0; r >= 0 && i < rulesets(s->in); i++) {
		const int set = i ? s->in->layers[i - 1] : s->in->ruleset;
		const int to = JAIL_FD_SESSION + 1 + (int)i;

		r = set == to ? 0 : sys(dup3, set, to, O_CLOEXEC);
	}
	if (r >= 0 && gate >= 0)
		r = sys(dup3, gate, gate_fd(s->in), O_CLOEXEC);
	if (r >= 0 && !PLANTED(s->in->p->fail_at, STEP_CLOSE_FDS))
		r = sys(close_range, gate_fd(s->in) + (gate >= 0), ~0u, 0);
	if (r < 0)
		give_up(s->id, r, "close descriptors", NULL);
}

/*
 * Restores the default action of SIGPIPE and unblocks all signals for the command. pid 1 has
 * restored the other signals already.
 */
static void restore_signals(void)
{
	const uint64_t action[4] = { 0 };
	const uint64_t none = 0;

	(void)sys(rt_sigaction, SIGPIPE, action, 0, 8);
	(void)sys(rt_sigprocmask, 2 /* SIG_SETMASK */, &none, 0, 8);
}

/*
 * Runs in a helper process that shares descriptors with the command, but neither the command's
 * filter, which may trap the call that sends the listener, nor its limit of open files. The helper
 * waits for the number of the listener and sends the listener.
 */
_Noreturn static void send_listener(uint32_t id, int from)
{
	struct jail_message m = { .type = JAIL_LISTENER, .id = id };
	int fd = -1;

	if (sys(read, from, &fd, sizeof(fd)) != (long)sizeof(fd) || fd < 0)
		sys_exit(1);
	sys_exit(init_message_send(JAIL_FD_SESSION, &m, fd) < 0);
}

/*
 * Runs the probes under the Landlock rulesets and the base filter of the command, before the trap
 * filter is installed and before the program starts.
 */
static void probe(const struct spawn *s)
{
	const int r = init_probe_run(s->in->p, JAIL_PHASE_START, s->id, s->in->ruleset >= 0);

	if (r < 0)
		give_up(s->id, r, "say what was tried", NULL);
}

/*
 * Waits until the supervisor lets the command run. SECURITY: the command starts only after the
 * supervisor has recorded all facts about this jail and found them right.
 */
static void wait_for_gate(const struct spawn *s)
{
	char go = 0;
	long r;

	do {
		r = sys(read, gate_fd(s->in), &go, 1);
	} while (r == -EINTR);
	if (r != 1)
		sys_exit(126);
	(void)sys(close, gate_fd(s->in));
}

/*
 * Installs the trap filter and returns the listener of the filter, or a negative errno. Prefers
 * WAIT_KILLABLE_RECV (kernel 5.19): with this flag only fatal signals interrupt a call that the
 * mediator has received.
 */
static long set_traps(const struct jail_head *p)
{
	const unsigned long wait_killable = 1ul << 5;
	const long fd =
		init_seccomp(p, p->traps, SECCOMP_FILTER_FLAG_NEW_LISTENER | wait_killable);

	return fd != -EINVAL ? fd : init_seccomp(p, p->traps, SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

/* The helper waits on @pipe for the number of the listener. */
struct helper {
	long pid;
	int pipe[2];
};

/*
 * Starts the helper. SECURITY: the helper keeps the limits of pid 1, and the command then lowers
 * its limit of open files. So the listener gets through even if other sessions of the user have as
 * many descriptors in flight as they may: see lock_files().
 */
static void start_helper(const struct spawn *s, struct helper *h)
{
	const long r = sys(pipe2, h->pipe, O_CLOEXEC);

	if (r < 0)
		give_up(s->id, r, "pipe", NULL);
	h->pid = sys(clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (h->pid == 0)
		send_listener(s->id, h->pipe[0]);
	if (h->pid < 0)
		give_up(s->id, h->pid, "clone", NULL);
}

static void install_traps(const struct spawn *s, const struct helper *h)
{
	int status = 0;
	long fd, r;

	fd = set_traps(s->in->p);
	r = fd < 0 ? -1 : fd;
	(void)sys(write, h->pipe[1], &r, sizeof(int));
	do {
		r = sys(wait4, h->pid, &status, 0, 0);
	} while (r == -EINTR);
	if (fd < 0 || r != h->pid || status != 0)
		give_up(s->id, fd < 0 ? fd : -EPIPE, "seccomp listener", NULL);
	/*
	 * SECURITY: close the listener before the program runs: a process that holds the listener
	 * could answer trapped calls instead of the mediator.
	 */
	(void)sys(close, fd);
	(void)sys(close, h->pipe[0]);
	(void)sys(close, h->pipe[1]);
}

static bool is_script(int fd)
{
	char head[2] = { 0 };

	return sys(pread64, fd, head, sizeof(head), 0) == 2 && head[0] == '#' && head[1] == '!';
}

/*
 * Executes @path through a descriptor, so that the file that was opened is the file that runs. Uses
 * the path instead for a script, because the interpreter opens the script again; for a program that
 * may not be read; and with JAIL_EXEC_BY_PATH.
 */
static long exec_path(const struct spawn *s, const char *path)
{
	const long fd = sys(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	long r;

	/* EACCES: a program may be executable without being readable. */
	if (fd < 0 && fd != -EACCES)
		return fd;
	if (fd < 0 || (s->in->p->flags & JAIL_EXEC_BY_PATH) || is_script((int)fd))
		r = sys(execve, path, s->argv, s->envp);
	else
		r = sys(execveat, fd, "", s->argv, s->envp, AT_EMPTY_PATH);
	if (fd >= 0)
		(void)sys(close, fd);
	return r;
}

static bool has_slash(const char *s)
{
	while (*s && *s != '/')
		s++;
	return *s == '/';
}

_Noreturn static void find_and_run(const struct spawn *s)
{
	const char *name = s->argv[0], *dirs = span_at(s->c, s->c->path);
	const size_t name_n = strlen(name);
	char path[JAIL_PATH];
	long worst = -ENOENT;

	if (s->c->program.n)
		name = span_at(s->c, s->c->program);
	if (has_slash(name))
		give_up(s->id, exec_path(s, name), "run", name);
	while (*dirs && name_n) {
		size_t n = 0;

		while (dirs[n] && dirs[n] != ':')
			n++;
		/*
		 * Skip an empty or relative entry of PATH: it would mean the current directory,
		 * which the agent controls.
		 */
		if (n && dirs[0] == '/' && n + name_n + 2 <= sizeof(path)) {
			long r;

			memcpy(path, dirs, n);
			path[n] = '/';
			memcpy(path + n + 1, name, name_n + 1);
			r = exec_path(s, path);
			if (r != -ENOENT && r != -ENOTDIR)
				worst = r;
		}
		dirs += n;
		dirs += *dirs == ':';
	}
	give_up(s->id, worst, "run", name);
}

/* Exits with the same status as the command, or dies by the same signal. */
_Noreturn static void exit_like(int status)
{
	const int sig = status & 0x7f;
	const long self = sys(getpid);

	if (sig) {
		restore_signals();
		(void)sys(kill, self, sig);
	}
	sys_exit(sig ? 128 + sig : status >> 8 & 0xff);
}

/*
 * Runs as the parent of the command and leads the session of a terminal. Without a parent in the
 * same session the kernel considers the command's process group orphaned and ignores Ctrl-Z.
 * Forwards signals to the command, reports when the command stops, and exits like the command.
 */
_Noreturn static void lead_terminal(uint32_t id, int child)
{
	const uint64_t all = ~UINT64_C(0);
	struct jail_message m = { .type = JAIL_STOPPED, .id = id };

	(void)sys(setpgid, child, child);
	for (int i = 0; i < STDIO; i++)
		(void)sys(close, i);
	for (;;) {
		const long sig = sys(rt_sigtimedwait, &all, 0, 0, 8);
		int status = 0;

		if (sig == SIGCHLD && sys(wait4, child, &status, WNOHANG | WUNTRACED, 0) == child) {
			if ((status & 0xff) != 0x7f)
				exit_like(status);
			(void)init_message_send(JAIL_FD_SESSION, &m, -1);
		} else if (sig > 0 && sig != SIGCHLD) {
			(void)sys(kill, -child, sig == JAIL_KILL_LED ? SIGKILL : sig);
		}
	}
}

/* Puts the command into its own process group, in the foreground of @terminal. */
static void join_foreground(int terminal)
{
	const int self = (int)sys(getpid);

	(void)sys(setpgid, 0, 0);
	(void)sys(ioctl, terminal, TIOCSPGRP, &self);
}

/* Returns the number of a standard descriptor that is the new terminal, or -1. */
static int terminal_of(const struct spawn *s)
{
	for (int i = 0; i < STDIO; i++)
		if (s->c->pty & 1u << i)
			return i;
	return -1;
}

_Noreturn static void child_main(const struct spawn *s)
{
	const uint64_t all = ~UINT64_C(0);
	const int terminal = terminal_of(s);
	struct helper helper;
	long r;

	(void)sys(setsid);
	set_descriptors(s);
	if (terminal >= 0) {
		(void)sys(rt_sigprocmask, 0 /* SIG_BLOCK */, &all, 0, 8);
		(void)sys(ioctl, terminal, TIOCSCTTY, 0);
		r = sys(clone, SIGCHLD, 0, 0, 0, 0);
		if (r < 0)
			give_up(s->id, r, "clone", NULL);
		if (r > 0)
			lead_terminal(s->id, (int)r);
		join_foreground(terminal);
	}
	restore_signals();
	(void)sys(umask, s->c->umask);
	r = sys(chdir, span_at(s->c, s->c->cwd));
	if (r < 0)
		give_up(s->id, r, "enter", span_at(s->c, s->c->cwd));
	for (uint32_t i = 0; i < rulesets(s->in); i++) {
		r = sys(landlock_restrict_self, JAIL_FD_SESSION + 1 + i, 0);
		if (r < 0)
			give_up(s->id, r, "Landlock", NULL);
		(void)sys(close, JAIL_FD_SESSION + 1 + i);
	}
	if (s->in->p->flags & JAIL_TRAPS)
		start_helper(s, &helper);
	r = lock_files(s->in->p);
	if (r < 0)
		give_up(s->id, r, "resource limit", NULL);
	if (s->c->flags & JAIL_COMMAND_PROBE)
		probe(s);
	if (s->in->p->flags & JAIL_TRAPS)
		install_traps(s, &helper);
	if (s->c->flags & JAIL_COMMAND_GATE)
		wait_for_gate(s);
	if (s->in->p->fail_at == STEP_EXEC)
		give_up(s->id, -ECANCELED, "failed on purpose", NULL);
	find_and_run(s);
}

/* Builds argv and envp in a new mapping. Returns the size of the mapping, or a negative errno. */
static long make_pointers(const struct jail_command *c, struct spawn *s)
{
	const struct jail_span *args = span_at(c, c->args), *env = span_at(c, c->env);
	const size_t n = ((size_t)c->args.n + c->env.n + 2) * sizeof(char *);
	const long at = sys(mmap, 0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at < 0 && at > -4096)
		return at;
	s->argv = (const char **)at;
	s->envp = s->argv + c->args.n + 1;
	for (uint32_t i = 0; i < c->args.n; i++)
		s->argv[i] = span_at(c, args[i]);
	for (uint32_t i = 0; i < c->env.n; i++)
		s->envp[i] = span_at(c, env[i]);
	return (long)n;
}

int init_spawn(struct init *in, uint32_t id, int command, const int *fds, uint32_t fds_n)
{
	struct spawn s = { .in = in, .id = id, .given = fds, .given_n = fds_n };
	const void *map;
	uint32_t size;
	long n, pid;
	int r = init_program_map(command, sizeof(struct jail_command), &map, &size);

	if (r < 0)
		return r;
	s.c = map;
	r = init_command_check(s.c, size);
	n = r < 0 ? r : make_pointers(s.c, &s);
	pid = n < 0 ? n : sys(clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		child_main(&s);
	if (n > 0)
		(void)sys(munmap, s.argv, n);
	(void)sys(munmap, map, size);
	return (int)pid;
}
