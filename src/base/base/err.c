#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/banned.h"

/*
 * SECURITY: an error message may quote bytes from outside. Replace control characters, so that the
 * message stays on one line and cannot send escape sequences to a terminal.
 */
static void one_line(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
}

int writ_fail(struct writ_err *err, int code, int sys, const char *fmt, ...)
{
	va_list ap;

	err->code = code;
	err->sys = sys;
	va_start(ap, fmt);
	(void)vsnprintf(err->what, sizeof(err->what), fmt, ap);
	va_end(ap);
	one_line(err->what);
	return code;
}

int writ_fail_lit(struct writ_err *err, int code, int sys, const char *what)
{
	size_t i = 0;

	err->code = code;
	err->sys = sys;
	for (; what[i] && i + 1 < sizeof(err->what); i++)
		err->what[i] = what[i];
	err->what[i] = 0;
	return code;
}
