#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine/confine.h"

/* What a program that was confined can still do: each is 0, or its errno. */
enum {
	READ_OWN,
	WRITE_OWN,
	READ_OTHER,
	WRITE_READ,
	READ_READ,
	SOCKET,
	PAIR,
	SIGNAL,
	SPACE,
	RUN,
	RUN_OWN,
	COUNT
};

static char dir[] = "/tmp/confine-XXXXXX";

static int attempt(int r)
{
	return r < 0 ? errno : 0;
}

static int run(const char *path)
{
	char *const argv[] = { (char *)(uintptr_t)path, NULL };
	int status;
	const pid_t pid = fork();

	if (pid == 0) {
		execv(path, argv);
		_exit(errno == EACCES ? 100 : 101);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									       : -1;
}

static void inside(int to)
{
	char own[64], ro[64];
	const struct confine_tree trees[] = {
		{ "/usr", CONFINE_RUN },   { "/lib", CONFINE_RUN },
		{ "/lib64", CONFINE_RUN }, { own, CONFINE_WRITE },
		{ ro, CONFINE_READ },	   { "/nowhere", CONFINE_RUN },
		{ NULL, CONFINE_RUN },	   { "/etc/ld.so.cache", CONFINE_READ },
	};
	struct writ_err err = { 0 };
	int v[COUNT];

	(void)snprintf(own, sizeof(own), "%s/own", dir);
	(void)snprintf(ro, sizeof(ro), "%s/ro", dir);
	if (confine_command(trees, ARRAY_LEN(trees), &err) < 0)
		_exit(err.code == WRIT_E_UNENFORCEABLE ? 77 : 1);
	v[READ_OWN] = attempt(chdir(own) < 0 ? -1 : open("x", O_RDONLY));
	v[WRITE_OWN] = attempt(open("y", O_WRONLY | O_CREAT, 0700));
	v[READ_OTHER] = attempt(open("/etc/passwd", O_RDONLY));
	v[WRITE_READ] = attempt(open("../ro/y", O_WRONLY | O_CREAT, 0600));
	v[READ_READ] = attempt(open("../ro/x", O_RDONLY));
	v[SOCKET] = attempt(socket(AF_INET, SOCK_STREAM, 0));
	v[PAIR] = attempt(socket(AF_UNIX, SOCK_STREAM, 0));
	v[SIGNAL] = attempt(kill(getppid(), 0));
	v[SPACE] =
		attempt((int)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL));
	v[RUN] = run("/usr/bin/true");
	v[RUN_OWN] = run("x");
	if (write(to, v, sizeof(v)) != (ssize_t)sizeof(v))
		_exit(1);
	_exit(0);
}

static void make(const char *name, unsigned mode)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (mode & 0100 && mkdir(path, mode) == 0)
		return;
	fd = open(path, O_WRONLY | O_CREAT, 0700);
	if (fd < 0 || write(fd, "#!/usr/bin/true\n", 16) != 16)
		ok(false, "make %s", path);
	close(fd);
}

int main(void)
{
	int p[2], v[COUNT] = { 0 }, status = -1;
	pid_t pid;

	if (!mkdtemp(dir) || pipe(p) < 0)
		return 1;
	make("own", 0700);
	make("ro", 0700);
	make("own/x", 0);
	make("ro/x", 0);
	pid = fork();
	if (pid == 0)
		inside(p[1]);
	close(p[1]);
	ok(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status), "it ends by itself");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		ok(true, "not confined, and said so # SKIP no Landlock");
		return tap_done();
	}
	ok(read(p[0], v, sizeof(v)) == (ssize_t)sizeof(v), "it was confined");
	ok(v[READ_OWN] == 0 && v[WRITE_OWN] == 0, "reads and writes where it may");
	ok(v[READ_READ] == 0 && v[WRITE_READ] == EACCES, "reads only where it may not write");
	ok(v[READ_OTHER] == EACCES, "reads nothing else");
	ok(v[SOCKET] == EPERM && v[PAIR] == EPERM, "has no sockets");
	ok(v[SIGNAL] == EPERM, "reaches no process");
	ok(v[SPACE] == EPERM, "makes no namespace");
	ok(v[RUN] == 0 && v[RUN_OWN] == 100, "runs programs of the system, none that it wrote");
	(void)!chdir("/");
	for (size_t i = 0; i < 5; i++) {
		static const char *const names[] = { "own/x", "own/y", "ro/x", "own", "ro" };
		char path[64];

		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)remove(path);
	}
	ok(rmdir(dir) == 0, "nothing is left");
	return tap_done();
}
