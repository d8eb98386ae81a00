#include "session/front.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

static bool is_null(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

static int make_pipe(struct front *f, int i, struct writ_err *err)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "pipe");
	f->inside[i] = p[i == 0 ? 0 : 1];
	f->relay.inner[i] = p[i == 0 ? 1 : 0];
	f->given |= 1u << i;
	return 0;
}

/* Terminals of the host's own: there are no others without mounts of our own. */
static int host_terminal(struct front *f, struct writ_err *err)
{
	scoped_fd master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	const struct winsize size = { f->rows, f->cols, 0, 0 };
	int slave;

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open a terminal");
	(void)ioctl(master, TIOCSWINSZ, &size);
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open a terminal");
	for (int i = 0; i < 3; i++)
		if (f->pty & 1u << i) {
			f->inside[i] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
			f->given |= 1u << i;
		}
	close(slave);
	f->relay.pty = take_fd(&master);
	return 0;
}

int front_open(struct front *f, bool host_ttys, struct writ_err *err)
{
	struct winsize size = { 0 };
	int r = 0;

	*f = (struct front)FRONT_INIT;
	for (int i = 0; r == 0 && i < 3; i++) {
		if (fcntl(i, F_GETFD) < 0)
			continue;
		f->relay.outer[i] = i;
		if (isatty(i)) {
			f->pty |= 1u << i;
			f->relay.on_pty[i] = true;
			if (size.ws_row == 0)
				(void)ioctl(i, TIOCGWINSZ, &size);
		} else if (!(i == 0 && is_null(i))) {
			r = make_pipe(f, i, err);
		}
	}
	f->rows = size.ws_row;
	f->cols = size.ws_col;
	if (r == 0 && f->pty && host_ttys)
		r = host_terminal(f, err);
	if (r < 0)
		front_clear(f);
	return r;
}

void front_sent(struct front *f)
{
	for (int i = 0; i < 3; i++) {
		scope_close(&f->inside[i]);
		f->inside[i] = -1;
	}
}

void front_clear(struct front *f)
{
	front_sent(f);
	for (int i = 0; i < 3; i++)
		scope_close(&f->relay.inner[i]);
	scope_close(&f->relay.pty);
	*f = (struct front)FRONT_INIT;
}
