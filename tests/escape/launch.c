/*
 * Starts a sandbox in unfriendly surroundings: descriptors without close-on-exec,
 * secrets in the environment and the keyring, a terminal. Stays outside as its
 * parent, and notes what came back through the terminal.
 */
#include "escape.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { CROWD = 200 };

static int connected(const char *dir, const struct row *row)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	fmt(un.sun_path, sizeof(un.sun_path), "%s/out/%s/dgram", dir, row->id);
	(void)!connect(fd, (void *)&un, sizeof(un));
	return fd;
}

/* None of these has close-on-exec; a careless starter leaves such things open. */
static void leak_descriptors(const char *dir, const struct row *row)
{
	char secret[SECRET_SIZE];
	const char *base = path("%s/out/%s", dir, row->id);
	const int memory = memfd_create("leaked", 0);

	secret_of(dir, row, secret);
	(void)!write(memory, secret, strlen(secret));
	(void)!open(path("%s/f", base), O_RDWR);
	(void)!open(base, O_RDONLY | O_DIRECTORY);
	(void)!open(base, O_PATH);
	(void)!open("/", O_RDONLY | O_DIRECTORY);
	(void)connected(dir, row);
	for (int i = 0; i < CROWD; i++)
		(void)!dup(memory);
	/* High numbers are where a loop up to some constant stops too early. */
	(void)fcntl(memory, F_DUPFD, 1000);
	const int file = open(path("%s/f", base), O_RDWR);
	(void)fcntl(file, F_DUPFD, 1010);
}

static void poison_environment(const struct row *row, const char *secret)
{
	if (row->arg && !strncmp(row->arg, "env:", 4))
		(void)setenv(row->arg + 4, secret, 1);
}

static void fill_keyring(const char *dir, const struct row *row, const char *secret)
{
	(void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	(void)syscall(SYS_add_key, "user", abstract_name(dir, row->id, "session"), secret,
		      strlen(secret), KEY_SPEC_SESSION_KEYRING);
}

struct terminal {
	int master, slave;
	struct termios before;
};

static int open_terminal(struct terminal *t)
{
	t->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t->master < 0 || grantpt(t->master) < 0 || unlockpt(t->master) < 0)
		return -errno;
	t->slave = open(ptsname(t->master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t->slave < 0 || tcgetattr(t->slave, &t->before) < 0)
		return -errno;
	/* Bytes put into the queue must be readable one by one, and not echoed. */
	t->before.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	return rc(tcsetattr(t->slave, TCSANOW, &t->before));
}

static void note(const char *dir, const struct row *row, const char *what)
{
	const int fd = open(path("%s/state/events", dir), O_WRONLY | O_APPEND | O_CLOEXEC);
	const char *line = path("%s %s\n", row->id, what);

	(void)!write(fd, line, strlen(line));
	close(fd);
}

static void inspect_terminal(const char *dir, const struct row *row, const struct terminal *t)
{
	struct termios after;
	int waiting = 0;

	if (ioctl(t->slave, FIONREAD, &waiting) == 0 && waiting > 0)
		note(dir, row, "keystrokes were put into the user's terminal");
	if (tcgetattr(t->slave, &after) == 0 &&
	    (after.c_lflag != t->before.c_lflag || after.c_iflag != t->before.c_iflag ||
	     memcmp(after.c_cc, t->before.c_cc, sizeof(after.c_cc)) != 0))
		note(dir, row, "the user's terminal was left changed");
}

static void become_child(const char *dir, const struct row *row, const struct terminal *t,
			 char **argv)
{
	char secret[SECRET_SIZE];

	secret_of(dir, row, secret);
	if (row->flags & ROW_TTY) {
		(void)setsid();
		(void)ioctl(t->slave, TIOCSCTTY, 0);
		(void)dup2(t->slave, 0);
	}
	poison_environment(row, secret);
	if (row->need & NEED_HOME)
		(void)setenv("HOME", path("%s/out/%s", dir, row->id), 1);
	if (row->arg && !strcmp(row->arg, "fds"))
		leak_descriptors(dir, row);
	if (row->arg && !strcmp(row->arg, "keyring"))
		fill_keyring(dir, row, secret);
	(void)execvp(argv[0], argv);
	perror(argv[0]);
	_exit(99);
}

int launch(const struct row *row, const char *dir, char **argv)
{
	struct terminal t = { -1, -1, { 0 } };
	int status = 0;

	if (row->flags & ROW_TTY && open_terminal(&t) < 0)
		return 99;
	const pid_t pid = fork();
	if (pid == 0)
		become_child(dir, row, &t, argv);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (row->flags & ROW_TTY)
		inspect_terminal(dir, row, &t);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
