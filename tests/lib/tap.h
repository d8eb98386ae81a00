/*
 * tap.h - the test harness: TAP on standard output
 *
 * A test program calls ok() and friends and ends with `return tap_done();`.
 */
#ifndef WRIT_TESTS_TAP_H
#define WRIT_TESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/sv.h"

static int tap_count, tap_failed;

__attribute__((format(printf, 4, 5), unused))
static bool tap_ok(bool pass, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	tap_count++;
	printf("%sok %d - ", pass ? "" : "not ", tap_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	if (!pass) {
		tap_failed++;
		printf("# failed at %s:%d\n", file, line);
	}
	return pass;
}

#define ok(cond, ...) tap_ok((cond), __FILE__, __LINE__, __VA_ARGS__)

__attribute__((unused))
static bool tap_is(struct sv got, struct sv want, const char *name,
		   const char *file, int line)
{
	if (tap_ok(sv_eq(got, want), file, line, "%s", name))
		return true;
	printf("#  got: " SV_FMT "\n# want: " SV_FMT "\n", SV_ARG(got),
	       SV_ARG(want));
	return false;
}

#define is_sv(got, want, name) tap_is((got), (want), (name), __FILE__, __LINE__)
#define is_str(got, want, name) tap_is(sv_from(got), sv_from(want), (name), __FILE__, __LINE__)

__attribute__((format(printf, 1, 2), unused))
static void tap_note(const char *fmt, ...)
{
	va_list ap;

	printf("# ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

__attribute__((unused))
static int tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? 1 : 0;
}

#endif
