#include "parts/helper.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

void helper_begin(pid_t parent)
{
	sigset_t none;

	sigemptyset(&none);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The parent may have died before PR_SET_PDEATHSIG took effect. */
	if (getppid() != parent)
		_exit(1);
	(void)setsid();
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void helper_end(pid_t pid, int ms)
{
	scoped_fd fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { fd, POLLIN, 0 };

	(void)kill(pid, SIGKILL);
	(void)poll(&p, 1, ms);
	(void)waitpid(pid, NULL, WNOHANG);
}

void helper_kill(pid_t *pid)
{
	if (*pid <= 0)
		return;
	(void)kill(*pid, SIGKILL);
	while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
		;
	*pid = 0;
}

int helper_pair(int ret_ends[static 2], struct writ_err *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_ends) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "socketpair");
	return 0;
}

int helper_start(struct session *s, helper_main *run, const char *name, pid_t *ret_pid,
		 int *ret_socket, struct writ_err *err)
{
	const pid_t parent = getpid();
	int p[2], r = helper_pair(p, err);
	pid_t pid;

	if (r < 0)
		return r;
	pid = fork();
	if (pid == 0) {
		helper_begin(parent);
		run(s, p[1]);
		_exit(1);
	}
	if (pid < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "start %s", name);
	close(p[1]);
	if (r < 0) {
		close(p[0]);
		return r;
	}
	*ret_pid = pid;
	*ret_socket = p[0];
	return 0;
}
