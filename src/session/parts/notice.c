#include "parts/notice.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

#include "base/banned.h"

/*
 * Writes as much of *@text as fits into standard error now. Returns 1 if it wrote some bytes, 0 if
 * no byte fits now, -1 if standard error is broken.
 */
static int write_some(struct sv *text)
{
	struct stat st;
	const bool stalls =
		fstat(STDERR_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
	struct pollfd p = { STDERR_FILENO, POLLOUT, 0 };
	const size_t part = text->n < PIPE_BUF ? text->n : PIPE_BUF;
	struct iovec v = { .iov_len = part };
	ssize_t n;

	memcpy(&v.iov_base, &text->p, sizeof(text->p)); /* pwritev2() does not change the text */
	if (poll(&p, 1, 0) != 1)
		return 0;
	if (!(p.revents & POLLOUT))
		return -1;
	n = stalls ? pwritev2(STDERR_FILENO, &v, 1, -1, RWF_NOWAIT) : -1;
	/*
	 * Kernels before 6.4 lack RWF_NOWAIT for pipes. After POLLOUT, PIPE_BUF bytes fit unless
	 * another writer is faster.
	 */
	if (!stalls || (n < 0 && errno == EOPNOTSUPP))
		n = write(STDERR_FILENO, text->p, part);
	if (n <= 0)
		return n == 0 || errno == EAGAIN || errno == EINTR ? 0 : -1;
	*text = sv_skip(*text, (size_t)n);
	return 1;
}

/*
 * SECURITY: the agent may share the pipe of standard error, and fill it. The supervisor enforces
 * the agent's time limits, so the supervisor never waits for a reader. A line that does not fit is
 * dropped from standard error; the record has the same event.
 */
static void write_now(struct sv text)
{
	while (text.n && write_some(&text) > 0)
		;
}

/*
 * Prints @text after the session has ended, when the reader may take its time. After the time limit
 * of the session, or a signal that asks writ to end, waits only for a reader that keeps reading.
 */
void notice_last(const struct session *s, struct sv text)
{
	const struct timespec step = { .tv_nsec = 50000000 };
	const uint64_t length = s->opt->policy->set.limits[LIMIT_SESSION] * 1000;
	bool stop = session_status(s)->stop_requested;
	uint64_t read_ms = clock_boot_ms();
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGHUP);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGQUIT);
	while (text.n && clock_boot_ms() < read_ms + SESSION_GRACE_MS) {
		const int r = write_some(&text);

		if (r < 0)
			return;
		if (r > 0) {
			read_ms = clock_boot_ms();
			continue;
		}
		stop |= sigtimedwait(&ends, NULL, &step) > 0 ||
			(length && clock_boot_ms() >= session_status(s)->started_ms + length);
		if (!stop)
			read_ms = clock_boot_ms();
	}
}

void notice_print(const struct session *s, const char *fmt, ...)
{
	scoped_buf b = BUF_INIT(16384), safe = BUF_INIT(65536);
	struct termios mode;
	va_list ap;

	if (s->opt->detach)
		return;
	va_start(ap, fmt);
	buf_vfmt(&b, fmt, ap);
	va_end(ap);
	buf_str(&safe, "writ: ");
	diag_put_safe(&safe, buf_view(&b));
	/* End lines with a carriage return: the terminal may be raw while the command runs. */
	buf_str(&safe,
		tcgetattr(STDERR_FILENO, &mode) == 0 && !(mode.c_oflag & OPOST) ? "\r\n" : "\n");
	write_now(buf_view(&safe));
}
