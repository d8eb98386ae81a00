#include "parts/std_fds.h"

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

static int make_pipe(struct std_fds *f, int i, struct writ_err *err)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "pipe");
	f->inside[i] = p[i == 0 ? 0 : 1];
	f->relay.inner[i] = p[i == 0 ? 1 : 0];
	f->given |= 1u << i;
	return 0;
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/*
 * Standard output and standard error share one pipe if they are the same file for the caller, so
 * that their bytes stay in order.
 */
static int share_pipe(struct std_fds *f, struct writ_err *err)
{
	f->inside[2] = fcntl(f->inside[1], F_DUPFD_CLOEXEC, 3);
	if (f->inside[2] < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "pipe");
	f->relay.outer[2] = -1;
	f->given |= 1u << 2;
	return 0;
}

int std_fds_terminal(uint32_t pty, uint16_t rows, uint16_t cols, int ret_inside[static 3],
		     int *ret_master, struct writ_err *err)
{
	scoped_fd master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	const struct winsize size = { rows, cols, 0, 0 };
	int slave;

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open a terminal");
	(void)ioctl(master, TIOCSWINSZ, &size);
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open a terminal");
	for (int i = 0; i < 3; i++)
		if (pty & 1u << i)
			ret_inside[i] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
	close(slave);
	*ret_master = fd_take(&master);
	return 0;
}

int std_fds_open(struct std_fds *f, const int *stdio, bool host_ttys, struct writ_err *err)
{
	struct winsize size = { 0 };
	int r = 0;

	*f = (struct std_fds)STD_FDS_INIT;
	for (int i = 0; r == 0 && i < 3; i++) {
		const int fd = stdio ? stdio[i] : i;

		if (fcntl(fd, F_GETFD) < 0)
			continue;
		f->relay.outer[i] = fd;
		if (!stdio && isatty(fd)) {
			f->pty |= 1u << i;
			f->relay.on_pty[i] = true;
			if (size.ws_row == 0)
				(void)ioctl(fd, TIOCGWINSZ, &size);
		} else if (i == 2 && f->inside[1] >= 0 && same_file(f->relay.outer[1], fd)) {
			r = share_pipe(f, err);
		} else if (!(i == 0 && is_null(fd))) {
			r = make_pipe(f, i, err);
		}
	}
	f->rows = size.ws_row;
	f->cols = size.ws_col;
	/* A jail without its own mounts has only terminals of the host: open one now. */
	if (r == 0 && f->pty && host_ttys) {
		r = std_fds_terminal(f->pty, f->rows, f->cols, f->inside, &f->relay.pty, err);
		f->given |= f->pty;
	}
	if (r < 0)
		std_fds_clear(f);
	return r;
}

void std_fds_sent(struct std_fds *f)
{
	for (int i = 0; i < 3; i++)
		fd_close(&f->inside[i]);
}

int std_fds_relay(struct std_fds *f, struct relay **ret_relay, struct writ_err *err)
{
	const int r = relay_new(&f->relay, ret_relay, err);

	/*
	 * SECURITY: the relay closes these descriptors when they end; the numbers may then belong
	 * to other files, so forget them.
	 */
	if (r == 0) {
		for (int i = 0; i < 3; i++)
			f->relay.inner[i] = -1;
		f->relay.pty = -1;
	}
	return r;
}

void std_fds_clear(struct std_fds *f)
{
	std_fds_sent(f);
	for (int i = 0; i < 3; i++)
		fd_scope_close(&f->relay.inner[i]);
	fd_scope_close(&f->relay.pty);
	*f = (struct std_fds)STD_FDS_INIT;
}
