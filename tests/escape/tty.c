/* The user's terminals: what is typed there, and what may be typed for them. */
#include "escape.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

/* A shell would run this once the agent is gone; the terminal is a stand-in. */
static int inject(int fd, unsigned long request)
{
	static const char text[] = "echo injected\n";

	for (const char *p = text; *p; p++)
		if (syscall(SYS_ioctl, fd, request, p) < 0)
			return -errno;
	return 0;
}

static int sti_stdin(struct ctx *c)
{
	(void)c;
	return inject(0, TIOCSTI);
}

/* A filter that compares 64 bits lets the kernel, which looks at 32, do it. */
static int sti_high_bits(struct ctx *c)
{
	(void)c;
	return inject(0, TIOCSTI | 1ul << 32);
}

static int sti_dev_tty(struct ctx *c)
{
	const int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);

	(void)c;
	return fd < 0 ? -errno : inject(fd, TIOCSTI);
}

static int sti_reopened(struct ctx *c)
{
	const int fd = open("/proc/self/fd/0", O_RDWR | O_CLOEXEC);

	(void)c;
	return fd < 0 ? -errno : inject(fd, TIOCSTI);
}

static int sti_int80(struct ctx *c)
{
	char *low = low_memory();

	(void)c;
	if (!low)
		return -ENOSYS;
	*low = 'x';
	return (int)int80(54, 0, TIOCSTI, (long)low, 0, 0);
}

static int change_modes(struct ctx *c)
{
	struct termios t;

	(void)c;
	if (tcgetattr(0, &t) < 0)
		return -errno;
	t.c_cc[VINTR] = 'f';
	t.c_lflag ^= ECHO;
	return rc(tcsetattr(0, TCSANOW, &t));
}

static int other_write(struct ctx *c)
{
	const char *name = target(c, "tty");

	return name ? put(open(name, O_WRONLY | O_NOCTTY | O_CLOEXEC)) : -ENOENT;
}

static int other_read(struct ctx *c)
{
	const char *name = target(c, "tty");

	return name ? say_fd(c, open(name, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)) : -ENOENT;
}

static int other_inject(struct ctx *c)
{
	const char *name = target(c, "tty");
	const int fd = name ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;

	return fd < 0 ? -errno : inject(fd, TIOCSTI);
}

/* Console functions that paste: the shift state is read, nothing is pasted. */
static int console_function(struct ctx *c)
{
	char sub = 6;
	const int fd = open("/dev/tty1", O_RDWR | O_NOCTTY | O_CLOEXEC);

	(void)c;
	return fd < 0 ? -errno : rc(ioctl(fd, TIOCLINUX, &sub));
}

/* clang-format off */
#define T(id, fn, what) { id, "terminal", "syscall", what, fn, NULL, BY_EVENT, 0, ROW_OWN | ROW_LAUNCH | ROW_TTY, NULL, 0, NULL }

static const struct row rows[] = {
	T("TY-001", sti_stdin, "TIOCSTI on standard input"), T("TY-002", sti_high_bits, "TIOCSTI with bit 32 set"), T("TY-003", sti_dev_tty, "TIOCSTI on /dev/tty"),
	T("TY-004", sti_reopened, "TIOCSTI on standard input opened again"), T("TY-005", sti_int80, "TIOCSTI through the 32-bit gate"),
	T("TY-006", change_modes, "leave the terminal's modes changed"),
	{ "TY-007", "terminal", "fs.write", "write to another terminal of the user", other_write, NULL, BY_EVENT, NEED_PTY, 0, NULL, 0, NULL },
	{ "TY-008", "terminal", "fs.read", "read what is typed in another terminal", other_read, NULL, BY_SECRET, NEED_PTY, 0, NULL, 0, NULL },
	{ "TY-009", "terminal", "syscall", "TIOCSTI on another terminal", other_inject, NULL, BY_REPORT, NEED_PTY, 0, NULL, 0, NULL },
	{ "TY-010", "terminal", "syscall", "TIOCLINUX on a console", console_function, NULL, BY_REPORT, 0, 0, NULL, 0, NULL },
};
/* clang-format on */

const struct table tty_rows = { rows, LENGTH(rows) };
