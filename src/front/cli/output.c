#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

bool cli_use_colour(int fd)
{
	const char *no = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(fd) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

int cli_out(struct buf *b, int code)
{
	struct writ_err err = { 0 };

	/* Print no message for EPIPE: a reader such as head(1) closed the pipe on purpose. */
	if (buf_check(b, &err) < 0 || fd_write_all(STDOUT_FILENO, buf_view(b), &err) < 0)
		code = err.sys == EPIPE ? EXIT_FAILED : cli_fail(&err, NULL);
	buf_clear(b);
	return code;
}

printf_like(1, 0) static void note(const char *fmt, va_list ap)
{
	scoped_buf b = BUF_INIT(65536), safe = BUF_INIT(65536 * 4);
	struct writ_err err = { 0 };

	buf_vfmt(&b, fmt, ap);
	buf_str(&safe, "writ: ");
	diag_put_safe(&safe, buf_view(&b));
	buf_ch(&safe, '\n');
	/* A failed write to standard error cannot be reported. */
	(void)!fd_write_all(STDERR_FILENO, buf_view(&safe), &err);
}

void cli_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(fmt, ap);
	va_end(ap);
}

int cli_end(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(fmt, ap);
	va_end(ap);
	return code;
}

int cli_fail(const struct writ_err *err, const char *what)
{
	return cli_end(EXIT_FAILED, "%s%s%s%s%s", what ? what : "", what ? ": " : "", err->what,
		       err->sys ? ": " : "", err->sys ? strerror(err->sys) : "");
}
