#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/launch.h"

#include "base/banned.h"

/*
 * The new process keeps the caller's standard error, to report failures of the start, and no other
 * descriptor of the caller but @ready.
 */
static int enter_background(int ready)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)setsid();
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(ready, 3) < 0 ||
	    close_range(4, ~0u, 0) < 0 || fcntl(3, F_SETFD, FD_CLOEXEC) < 0)
		_exit(SESSION_FAILED);
	return 3;
}

int launch_background(int *ret_ready_fd, char ret_id[static SESSION_ID + 1], int *ret_exit,
		      struct writ_err *err)
{
	int ready[2], status = 0;
	ssize_t n;
	pid_t pid;

	ret_id[0] = 0;
	*ret_exit = SESSION_FAILED;
	if (pipe2(ready, O_CLOEXEC) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "pipe");
	pid = fork();
	if (pid == 0) {
		close(ready[0]);
		*ret_ready_fd = enter_background(ready[1]);
		return 0;
	}
	close(ready[1]);
	n = pid < 0 ? -1 : read(ready[0], ret_id, SESSION_ID);
	close(ready[0]);
	if (pid < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "fork");
	ret_id[n == SESSION_ID ? SESSION_ID : 0] = 0;
	if (n != SESSION_ID && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	    WEXITSTATUS(status))
		*ret_exit = WEXITSTATUS(status);
	return 1;
}
