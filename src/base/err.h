/*
 * err.h - one failure, by value
 *
 * Reads:  nothing
 * Writes: nothing; libraries return errors, only mains print them
 * Next:   every room
 *
 * Functions return 0 or a negative enum writ_code and take `struct writ_err *err`
 * last, never NULL, left alone on success. errno is an argument, so nothing can
 * change it between the failure and the report. A denial is not an error.
 */
#ifndef WRIT_BASE_ERR_H
#define WRIT_BASE_ERR_H

#include <stdint.h>

#include "base/attr.h"

enum writ_code {
	WRIT_OK = 0,
	WRIT_E_SYS = -1,	   /* a system call failed, .sys says how */
	WRIT_E_NOMEM = -2,
	WRIT_E_SYNTAX = -3,	   /* bytes from outside do not have the right form */
	WRIT_E_LIMIT = -4,	   /* larger, deeper or more than we accept */
	WRIT_E_DENIED = -5,
	WRIT_E_UNENFORCEABLE = -6, /* no control on this host bounds it */
	WRIT_E_BUG = -7,	   /* our own invariant broke: fail closed */
};

/* No pointers and no heap: may be filled after clone() and written to a pipe. */
struct writ_err {
	int32_t code; /* enum writ_code */
	int32_t sys;  /* errno, or 0 */
	char what[120]; /* "mount /proc"; never a secret, never a newline */
};
_Static_assert(sizeof(struct writ_err) == 128, "writ_err is a wire format");

/* Fills *@err and returns @code, so callers write `return writ_fail(err, ...)`. */
printf_like(4, 5) must_check
int writ_fail(struct writ_err *err, int code, int sys, const char *fmt, ...);

/* The same for child-side code: copies @what, formats nothing. */
must_check
int writ_fail_lit(struct writ_err *err, int code, int sys, const char *what);

/* Short for the commonest failure of pure code. */
must_check
int writ_nomem(struct writ_err *err);

#endif
