#include "facts/probe_tmp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/remove.h"

#include "base/banned.h"

static bool on_disk(const char *dir)
{
	struct statfs st;

	return statfs(dir, &st) == 0 && st.f_type != TMPFS_MAGIC && st.f_type != RAMFS_MAGIC;
}

static bool make_below(const char *base, size_t size, char *ret_dir)
{
	char path[512];
	const int n = snprintf(path, sizeof(path), "%s/writ-probe-XXXXXX", base);

	if (base[0] != '/' || n < 0 || (size_t)n >= sizeof(path) || (size_t)n >= size)
		return false;
	if (!mkdtemp(path))
		return false;
	memcpy(ret_dir, path, (size_t)n + 1);
	return true;
}

static bool make_dir(size_t size, char *ret_dir)
{
	const char *env = getenv("TMPDIR");
	const char *const bases[] = { env ? env : "/tmp", "/var/tmp", "/tmp" };

	/* Prefer a directory on disk, because the trials of overlay and reflink are about disks. */
	for (size_t i = 0; i < 2 * ARRAY_LEN(bases); i++) {
		const char *base = bases[i % ARRAY_LEN(bases)];

		if ((i >= ARRAY_LEN(bases) || on_disk(base)) && make_below(base, size, ret_dir))
			return true;
	}
	return false;
}

/*
 * Detaches the janitor from its caller: a signal to the caller's process group would kill the
 * janitor too, and the caller's descriptors, kept open by the janitor, would delay readers of
 * pipes.
 */
static void detach(int *fd)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	if (dup2(*fd, 0) == 0) {
		*fd = 0;
		(void)syscall(SYS_close_range, 1U, ~0U, 0U);
	}
}

__attribute__((noreturn)) static void janitor_main(const struct probe *p, int fd)
{
	char dir[sizeof(p->dir)] = { 0 };
	ssize_t n;
	char c;

	detach(&fd);
	if (!make_dir(sizeof(dir), dir))
		dir[0] = 0;
	n = send(fd, dir, sizeof(dir), MSG_NOSIGNAL);
	/*
	 * Wait for a byte or end of file. Trials hold copies of the other end of the socket pair,
	 * so end of file means that the prober and the last trial are gone.
	 */
	if (n > 0)
		(void)!read(fd, &c, 1);
	if (dir[0])
		remove_tree(AT_FDCWD, dir);
	probe_cgroup_sweep(p);
	_exit(0);
}

void facts_janitor_start(struct probe *p, struct janitor *ret_k)
{
	ssize_t n = -1;
	int fds[2];
	pid_t pid;

	*ret_k = (struct janitor){ .fd = -1 };
	p->dir[0] = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return;
	pid = fork();
	if (pid == 0)
		janitor_main(p, fds[1]);
	(void)close(fds[1]);
	if (pid < 0) {
		(void)close(fds[0]);
		return;
	}
	*ret_k = (struct janitor){ pid, fds[0] };
	do
		n = recv(fds[0], p->dir, sizeof(p->dir), 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(p->dir))
		p->dir[0] = 0;
}

void facts_janitor_end(struct janitor *k)
{
	if (k->pid == 0)
		return;
	(void)send(k->fd, "", 1, MSG_NOSIGNAL);
	(void)close(k->fd);
	(void)facts_grandchild_wait(k->pid);
	k->pid = 0;
}
