#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "conform/conform_priv.h"

#include "base/banned.h"

/* --- Signals: blocked and received by waiting, so no handler can race --- */

void conform_signals_block(struct suite *s, sigset_t *ret_old)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };

	/*
	 * If the parent of this process ignores SIGCHLD, the kernel would reap children before
	 * waitpid() can.
	 */
	(void)signal(SIGCHLD, SIG_DFL);
	sigemptyset(&s->signals);
	sigaddset(&s->signals, SIGCHLD);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct sigaction old;

		/*
		 * Keep ignoring a signal that the parent of this process ignores: nohup relies on
		 * that.
		 */
		if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaddset(&s->signals, ends[i]);
	}
	(void)sigprocmask(SIG_BLOCK, &s->signals, ret_old);
}

void conform_signals_wait(struct suite *s, long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
	const int sig = sigtimedwait(&s->signals, NULL, &t);

	if (sig > 0 && sig != SIGCHLD && !s->stopped)
		s->stopped = sig;
}

/* --- One child --- */

static bool set_up_child(const struct suite *s, const struct start *how)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int out = how->out < 0 ? null : how->out;
	const int err = how->err < 0 ? null : how->err;
	sigset_t none;

	sigemptyset(&none);
	if (setsid() < 0 || null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		return false;
	/* Close all descriptors from 3 up on exec, including those that this process inherited. */
	if (syscall(SYS_close_range, 3, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */) < 0)
		return false;
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGXFSZ, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/*
	 * SECURITY: drop the supplementary groups and the gid before the uid. After the uid is
	 * dropped, the process may not change groups.
	 */
	if (s->drop && !how->raised &&
	    (setgroups(0, NULL) < 0 || setresgid(s->gid, s->gid, s->gid) < 0 ||
	     setresuid(s->uid, s->uid, s->uid) < 0))
		return false;
	return chdir(how->cwd ? how->cwd : "/") == 0;
}

/*
 * Runs in the child. Writes errno to the pipe @report if exec fails; a successful exec closes the
 * pipe.
 */
static void exec_child(const struct suite *s, const struct start *how, int report)
{
	union {
		const char *const *in;
		char *const *out;
	} argv = { .in = how->argv };
	int why;

	if (set_up_child(s, how))
		(void)execvpe(argv.out[0], argv.out, s->env);
	why = errno;
	(void)!write(report, &why, sizeof(why));
	_exit(127);
}

/*
 * Starts a child. A pipe distinguishes a failed exec from a program that exits with the same
 * status: the pipe delivers errno, or closes on exec.
 */
int conform_child_start(const struct suite *s, const struct start *how, struct child *ret,
			struct writ_err *err)
{
	int report[2], why = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "pipe");
	pid = fork();
	if (pid == 0)
		exec_child(s, how, report[1]);
	close(report[1]);
	do {
		n = pid < 0 ? -1 : read(report[0], &why, sizeof(why));
	} while (pid > 0 && n < 0 && errno == EINTR);
	if (pid < 0)
		why = errno;
	close(report[0]);
	if (pid > 0 && n != sizeof(why)) {
		*ret = (struct child){ .pid = pid };
		return 0;
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return writ_fail(err, WRIT_E_SYS, why, "cannot start %.80s as " SV_FMT, how->argv[0],
			 SV_ARG(s->user));
}

static bool reap(struct child *c)
{
	if (c->pid > 0 && waitpid(c->pid, &c->status, WNOHANG) == c->pid)
		c->pid = 0;
	return c->pid == 0;
}

bool conform_child_wait(struct suite *s, struct child *c, long ms, bool patient)
{
	const int64_t end = clock_monotonic_ms() + ms;

	while (!reap(c)) {
		const int64_t left = end - clock_monotonic_ms();

		if (left <= 0 || (s->stopped && !patient))
			return false;
		/* Wake up regularly: one SIGCHLD may stand for several children. */
		conform_signals_wait(s, left < 200 ? left : 200);
	}
	return true;
}

/*
 * Returns the session id of a process: field 6 of /proc/PID/stat, counted after the name in
 * parentheses, which may contain any bytes. 0 if the process is gone.
 */
static pid_t session_of(const char *pid)
{
	scoped_buf text = BUF_INIT(8192);
	struct writ_err err = { 0 };
	char path[64];
	struct sv rest;
	uint64_t session;

	if (snprintf(path, sizeof(path), "/proc/%.20s/stat", pid) < 0 ||
	    fd_read_file(path, &text, &err) < 0)
		return 0;
	rest = sv_skip(buf_view(&text), sv_rfind(buf_view(&text), ')'));
	for (int i = 0; i < 4; i++) /* skip ")", state, parent and group */
		(void)sv_cut(&rest, ' ');
	return sv_to_u64(sv_cut(&rest, ' '), INT32_MAX, &session) ? (pid_t)session : 0;
}

/*
 * Kills all processes in the session of @leader. Attempts may create process groups, but stay in
 * the session, and the session contains only descendants of @leader.
 */
static void kill_session(pid_t leader)
{
	scoped_list *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		uint64_t pid;

		if (sv_to_u64(sv_from(e->d_name), INT32_MAX, &pid) && pid > 1 &&
		    session_of(e->d_name) == leader)
			(void)kill((pid_t)pid, SIGKILL);
	}
}

void conform_child_end(struct child *c)
{
	if (reap(c))
		return;
	/*
	 * The child has led its process group and its session since the start, so group and session
	 * contain only descendants of the child.
	 */
	(void)kill(-c->pid, SIGKILL);
	kill_session(c->pid);
	while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
}

static int collect(int fd, struct buf *b, struct writ_err *err)
{
	if (lseek(fd, 0, SEEK_SET) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "lseek");
	return fd_read_all(fd, b, err);
}

int conform_child_call(struct suite *s, const struct start *how, long ms, bool patient,
		       struct buf *out, struct buf *errs, int *ret_code, struct writ_err *err)
{
	scoped_fd o = memfd_create("out", MFD_CLOEXEC);
	scoped_fd e = memfd_create("err", MFD_CLOEXEC);
	struct start start = *how;
	struct child c = { 0 };
	bool ended;
	int r;

	if (o < 0 || e < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "memfd_create");
	start.out = o;
	start.err = e;
	r = conform_child_start(s, &start, &c, err);
	if (r < 0)
		return r;
	ended = conform_child_wait(s, &c, ms, patient);
	conform_child_end(&c);
	*ret_code = !ended		  ? 124
		    : WIFEXITED(c.status) ? WEXITSTATUS(c.status)
					  : 128 + WTERMSIG(c.status);
	r = out ? collect(o, out, err) : 0;
	return r == 0 && errs ? collect(e, errs, err) : r;
}
