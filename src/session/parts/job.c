#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "parts/session.h"
#include "parts/signals.h"
#include "parts/terminal.h"

#include "base/banned.h"

/*
 * SECURITY: a shell shows its prompt again when the process that it started stops. The supervisor
 * must not be that process: other processes of the session keep running, and a stopped supervisor
 * could not enforce time limits, end the session with its token, or answer requests. So under job
 * control the shell starts a separate job process, which only passes signals on. The supervisor is
 * the child of the job process, is in the same process group, and is never stopped by a terminal.
 */

struct job {
	pid_t child;
	int fd; /* the job process's end of the socket to the supervisor */
	int signals;
	sigset_t before;
	bool has_modes;
	struct termios modes; /* modes of the terminal before the session */
};

/* --- in the supervisor --- */

bool job_stop(const struct session *s)
{
	return s->opt->job > 0 && send(s->opt->job, "s", 1, MSG_NOSIGNAL) == 1;
}

int job_recv(const struct session *s)
{
	char c = 0;
	const ssize_t n = recv(s->opt->job, &c, 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n == 1 ? 1 : -1;
}

void job_wake(const struct session *s)
{
	if (s->opt->job > 0)
		(void)kill(getppid(), SIGCONT);
}

/* --- in the job process, which the shell started --- */

static void went_on(const struct job *j)
{
	(void)!send(j->fd, "c", 1, MSG_NOSIGNAL);
}

/*
 * Stops the job process with all processes of its pipeline. The kernel ignores the signal if no
 * shell could continue the job.
 */
static void stop(const struct job *j)
{
	const struct timespec now = { 0 };
	siginfo_t ended = { 0 };
	sigset_t stops, goes_on;

	/* The supervisor has ended: no process would continue the job process. */
	if (waitid(P_PID, (id_t)j->child, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid)
		return;

	sigemptyset(&stops);
	sigaddset(&stops, SIGTSTP);
	sigemptyset(&goes_on);
	sigaddset(&goes_on, SIGCONT);
	(void)sigprocmask(SIG_UNBLOCK, &stops, NULL);
	(void)kill(0, SIGTSTP);
	(void)sigprocmask(SIG_BLOCK, &stops, NULL);
	/*
	 * Drop a pending SIGCONT and report it once: when a second report arrives, the command may
	 * have stopped again.
	 */
	(void)sigtimedwait(&goes_on, NULL, &now);
	went_on(j);
}

/*
 * Forwards a signal to the supervisor. The kernel sends terminal signals to the whole process
 * group, and so to the supervisor as well. SIGHUP after the loss of the terminal goes only to the
 * session leader.
 */
static void pass_on(const struct job *j, const struct signalfd_siginfo *i)
{
	const union sigval from = { .sival_int = (int)i->ssi_pid };
	const bool sent = i->ssi_code <= 0 && i->ssi_pid != (uint32_t)getpid();

	if (i->ssi_signo == SIGCONT)
		went_on(j);
	else if (i->ssi_signo == SIGHUP || (sent && i->ssi_signo != SIGCHLD))
		(void)sigqueue(j->child, (int)i->ssi_signo, from);
}

/* Returns true if the supervisor has ended, with its status in *@ret_status. */
static bool look(const struct job *j, int *ret_status)
{
	const pid_t pid = waitpid(j->child, ret_status, WNOHANG | WUNTRACED);

	if (pid != j->child || !WIFSTOPPED(*ret_status))
		return pid == j->child || (pid < 0 && errno != EINTR);
	/*
	 * A supervisor that has not blocked signals yet stops as any program: stop, too, and
	 * continue the supervisor afterwards.
	 */
	(void)kill(getpid(), SIGSTOP);
	(void)kill(j->child, SIGCONT);
	return false;
}

static int wait_for(const struct job *j)
{
	struct pollfd p[2] = { { j->signals, POLLIN, 0 }, { j->fd, POLLIN, 0 } };
	struct signalfd_siginfo i;
	int status = SESSION_FAILED << 8;
	char c;

	while (!look(j, &status)) {
		if (poll(p, 2, -1) < 0)
			continue;
		if (p[0].revents && read(j->signals, &i, sizeof(i)) == (ssize_t)sizeof(i))
			pass_on(j, &i);
		if (!p[1].revents)
			continue;
		if (recv(j->fd, &c, 1, MSG_DONTWAIT) == 1)
			stop(j);
		else
			p[1].fd = -1; /* the supervisor has closed its end and is about to exit */
	}
	return status;
}

/* Ends as the supervisor ended, so that the parent of the job process sees no difference. */
static int end_like(int status)
{
	sigset_t set;

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	sigemptyset(&set);
	sigaddset(&set, WTERMSIG(status));
	(void)signal(WTERMSIG(status), SIG_DFL);
	(void)kill(getpid(), WTERMSIG(status));
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	return SESSION_SIGNALLED + WTERMSIG(status);
}

static bool look_at_terminal(struct job *j)
{
	scoped_fd fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	j->has_modes = fd >= 0 && tcgetattr(fd, &j->modes) == 0;
	return fd >= 0;
}

/*
 * Restores the modes of the terminal after a supervisor that was killed, if this process group is
 * still in the foreground.
 */
static void give_terminal_back(const struct job *j)
{
	scoped_fd fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (j->has_modes && fd >= 0 && tcgetpgrp(fd) == getpgrp())
		(void)tcsetattr(fd, TCSANOW, &j->modes);
}

static int take_signals(struct job *j, struct writ_err *err)
{
	sigset_t set;

	signals_forwarded(&set);
	sigaddset(&set, SIGCHLD);
	(void)signal(SIGCHLD, SIG_DFL);
	if (sigprocmask(SIG_BLOCK, &set, &j->before) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "block signals");
	j->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return j->signals < 0 ? writ_fail(err, WRIT_E_SYS, errno, "signalfd") : 0;
}

/* Closes all descriptors above 2 except those of @j: the reader of a pipe may wait for its end. */
static void close_others(const struct job *j)
{
	const int a = j->fd < j->signals ? j->fd : j->signals;
	const int b = j->fd < j->signals ? j->signals : j->fd;

	if (a > 3)
		(void)close_range(3, (unsigned)a - 1, 0);
	if (b > a + 1)
		(void)close_range((unsigned)a + 1, (unsigned)b - 1, 0);
	(void)close_range((unsigned)b + 1, ~0u, 0);
}

int session_job(int *ret_job, int *ret_exit, struct writ_err *err)
{
	const pid_t self = getpid();
	struct job j = { .signals = -1 };
	int pair[2], status, r;

	if (!look_at_terminal(&j))
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "socketpair");
	r = take_signals(&j, err);
	j.child = r < 0 ? -1 : fork();
	if (r == 0 && j.child < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "fork");
	if (r < 0) {
		close(pair[0]);
		close(pair[1]);
		fd_scope_close(&j.signals);
		return r;
	}
	if (j.child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			_exit(SESSION_FAILED);
		close(pair[0]);
		close(j.signals);
		(void)sigprocmask(SIG_SETMASK, &j.before, NULL);
		*ret_job = pair[1];
		return 0;
	}
	close(pair[1]);
	j.fd = pair[0];
	close_others(&j);
	status = wait_for(&j);
	if (WIFSIGNALED(status))
		give_terminal_back(&j);
	*ret_exit = end_like(status);
	return 1;
}
