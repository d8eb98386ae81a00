#include "facts/probe_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#include "base/banned.h"

enum { REPORT_MAGIC = 0x77726974 };

/* Makes this process die with its parent, even if the parent died before prctl(). */
static void die_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(1);
}

__attribute__((noreturn))
static void trial_child(const struct probe *p, trial_fn fn, int arg, int fd, pid_t parent)
{
	struct report r = { .magic = REPORT_MAGIC };
	ssize_t n;

	/* Use a process group, so that one kill() reaches all processes of the trial. */
	(void)setpgid(0, 0);
	die_with(parent);
	/* Reset SIGCHLD: if the caller ignores SIGCHLD, the trial could not reap its children. */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)umask(022);
	r.sys = fn(p, arg, &r);
	r.transient |= facts_is_transient(r.sys);
	n = write(fd, &r, sizeof(r));
	_exit(n == (ssize_t)sizeof(r) ? 0 : 1);
}

/*
 * Returns true if the errno @sys may be temporary. ENOSPC is permanent where the limit of user
 * namespaces is 0.
 */
bool facts_is_transient(int sys)
{
	switch (sys) {
	case ENOMEM:
	case EAGAIN:
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case EINTR:
	case ETIMEDOUT:
		return true;
	case ENOSPC:
		return facts_read_number("/proc/sys/user/max_user_namespaces", 1) != 0;
	}
	return false;
}

static void note_transient(bool *transient)
{
	if (transient)
		*transient = true;
}

int trial_start(const struct probe *p, trial_fn fn, int arg, struct trial *ret_t)
{
	const int64_t now = clock_monotonic_ms();
	const pid_t parent = getpid();
	int fds[2];
	pid_t pid;

	if (now >= p->deadline_ms)
		return ETIMEDOUT;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return errno;
	pid = fork();
	if (pid == 0) {
		(void)close(fds[0]);
		trial_child(p, fn, arg, fds[1], parent);
	}
	(void)close(fds[1]);
	if (pid < 0) {
		const int keep = errno;

		(void)close(fds[0]);
		return keep;
	}
	*ret_t = (struct trial){ .pid = pid,
				 .fd = fds[0],
				 .deadline_ms = now + PROBE_CHILD_MS,
				 .transient = p->transient };
	if (ret_t->deadline_ms > p->deadline_ms)
		ret_t->deadline_ms = p->deadline_ms;
	return 0;
}

/*
 * Reads one report. A pipe transfers a report completely or not at all, since a report is shorter
 * than PIPE_BUF.
 */
static bool read_report(int fd, int64_t deadline_ms, struct report *ret_r)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct report r;
	int64_t left;

	for (;;) {
		left = deadline_ms - clock_monotonic_ms();
		if (left <= 0)
			return false;
		if (poll(&pfd, 1, (int)left) > 0)
			break;
		/* After EINTR or an early wake-up, compute the remaining time again. */
	}
	if (read(fd, &r, sizeof(r)) != (ssize_t)sizeof(r) || r.magic != REPORT_MAGIC)
		return false;
	*ret_r = r;
	return true;
}

int trial_finish(struct trial *t, struct report *ret_r)
{
	struct report r = { .sys = ECHILD };

	/* A trial without a report in time may succeed when the machine is less busy. */
	if (!read_report(t->fd, t->deadline_ms, &r))
		r.transient = clock_monotonic_ms() >= t->deadline_ms;
	if (r.transient)
		note_transient(t->transient);
	(void)close(t->fd);
	/* Kill the process group in any case, to end processes that the trial left behind. */
	facts_group_end(t->pid);
	*ret_r = r;
	return r.sys;
}

int trial_run(const struct probe *p, trial_fn fn, int arg, struct report *ret_r)
{
	struct trial t;

	if (trial_start(p, fn, arg, &t) == 0)
		return trial_finish(&t, ret_r);
	note_transient(p->transient);
	*ret_r = (struct report){ .sys = ECHILD };
	return ECHILD;
}

void facts_group_end(pid_t pid)
{
	(void)kill(-pid, SIGKILL);
	facts_grandchild_end(pid);
}

bool trial_ok(const struct probe *p, trial_fn fn, int arg)
{
	struct report r;

	return trial_run(p, fn, arg, &r) == 0;
}

static void take(const struct trial_row *row, const struct report *r, struct host_facts *f)
{
	const bool can = r->sys == 0;

	if (row->take)
		row->take(r, f);
	else
		memcpy((char *)f + row->offset, &can, sizeof(can));
}

void facts_trials_run(const struct probe *p, const struct trial_row *rows, size_t n,
		      struct host_facts *f)
{
	struct trial t[TRIALS_MAX];
	bool started[TRIALS_MAX];
	struct report r;

	if (n > TRIALS_MAX)
		n = TRIALS_MAX; /* cannot happen: probe.c asserts the size of its tables */
	for (size_t i = 0; i < n; i++)
		started[i] = trial_start(p, rows[i].fn, 0, &t[i]) == 0;
	for (size_t i = 0; i < n; i++)
		if (started[i]) {
			(void)trial_finish(&t[i], &r);
			take(&rows[i], &r, f);
		}
	/*
	 * Retry the trials that could not start: a limit on processes may forbid running all trials
	 * at once.
	 */
	for (size_t i = 0; i < n; i++) {
		if (started[i])
			continue;
		(void)trial_run(p, rows[i].fn, 0, &r);
		take(&rows[i], &r, f);
	}
}

pid_t facts_grandchild_fork(void)
{
	const pid_t parent = getpid();
	const pid_t pid = fork();

	/* In a new pid namespace the parent is not visible, and getppid() returns 0. */
	if (pid == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		_exit(1);
	if (pid == 0 && getppid() != parent && getppid() != 0)
		_exit(1);
	return pid;
}

int facts_grandchild_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

pid_t facts_grandchild_idle(void)
{
	const pid_t pid = facts_grandchild_fork();

	if (pid == 0)
		for (;;)
			(void)pause();
	return pid;
}

void facts_grandchild_end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)facts_grandchild_wait(pid);
}

int facts_write_maps(uid_t in_uid, uid_t out_uid, gid_t in_gid, gid_t out_gid)
{
	char line[64];
	int r;

	r = fd_put_at(AT_FDCWD, "/proc/self/setgroups", "deny");
	if (r != 0)
		return r;
	(void)snprintf(line, sizeof(line), "%u %u 1", in_uid, out_uid);
	r = fd_put_at(AT_FDCWD, "/proc/self/uid_map", line);
	if (r != 0)
		return r;
	(void)snprintf(line, sizeof(line), "%u %u 1", in_gid, out_gid);
	return fd_put_at(AT_FDCWD, "/proc/self/gid_map", line);
}

int facts_enter_ns(const struct probe *p, int flags)
{
	int e;

	if (unshare(p->userns ? CLONE_NEWUSER | flags : flags) < 0)
		return errno;
	e = p->userns ? facts_write_maps(0, p->uid, 0, p->gid) : 0;
	/* Make all mounts private, so that later mounts stay in the new mount namespace. */
	if (e == 0 && flags & CLONE_NEWNS && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		e = errno;
	return e;
}

ssize_t facts_read_small(const char *path, char *buf, size_t size)
{
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, buf, size - 1);
	if (n < 0)
		return -1;
	if (n > 0 && buf[n - 1] == '\n')
		n--;
	buf[n] = 0;
	return n;
}

uint64_t facts_read_number(const char *path, uint64_t missing)
{
	char text[32];
	uint64_t v;
	const ssize_t n = facts_read_small(path, text, sizeof(text));

	if (n < 0 || !sv_to_u64((struct sv){ text, (size_t)n }, UINT64_MAX, &v))
		return missing;
	return v;
}
