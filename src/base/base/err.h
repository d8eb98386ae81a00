/*
 * err.h - the error type, and the conventions of the base module
 *
 * Theory of operation
 *
 * The base module is the bottom layer: memory (arena.h, buf.h), text (sv.h), descriptors
 * and files (fd.h, remove.h), messages with descriptors (packet.h), time (clock.h) and
 * this error type. It depends on libc only and keeps no state between calls. Every
 * other module builds on it and follows the conventions set here.
 *
 * Errors travel by value. A function returns 0 or a negative enum writ_code and takes
 * `struct writ_err *err` as its last argument. The function that detects a failure
 * fills *err once with writ_fail(); callers pass the code up unchanged. Libraries
 * neither print nor exit; only a main program prints an error.
 *
 * Invariants
 *   - err is never NULL, and is left untouched on success.
 *   - errno is an argument of writ_fail(), so no call between the failure and the
 *     report can change it.
 *   - struct writ_err has no pointers and a fixed size. Code that runs after clone()
 *     without a heap fills it and writes it to a pipe.
 *   - Every buffer and arena has a maximum. Reaching it is an error, never an abort.
 *
 * Common mistakes
 *   - A denial is not an error. A policy that refuses a request returns a value;
 *     WRIT_E_DENIED is for operations that fail because proof or permission is missing.
 *   - `what` may appear on a terminal and in logs: never put a secret into it.
 *
 * Reads:  nothing
 * Writes: nothing; libraries return errors, only main programs print them
 * Next:   every module
 */
#ifndef WRIT_BASE_ERR_H
#define WRIT_BASE_ERR_H

#include <stdint.h>

#include "base/attr.h"

enum writ_code {
	WRIT_OK = 0,
	WRIT_E_SYS = -1, /* a system call failed; .sys is the errno of the call */
	WRIT_E_NOMEM = -2,
	WRIT_E_SYNTAX = -3, /* input from outside is malformed */
	WRIT_E_LIMIT = -4,  /* input from outside exceeds a size, depth or count limit */
	WRIT_E_DENIED = -5,
	WRIT_E_UNENFORCEABLE = -6, /* this host has no control that enforces the request */
	WRIT_E_BUG = -7,	   /* an internal invariant is broken: fail closed */
};

/*
 * An error. Fixed size, no pointers, no heap: code can fill an error after clone() and write it to
 * a pipe.
 */
struct writ_err {
	int32_t code; /* a value of enum writ_code */
	int32_t sys;  /* errno of the failed call, or 0 */
	/* failed operation, such as "mount /proc"; never a secret, never a newline */
	char what[120];
};
_Static_assert(sizeof(struct writ_err) == 128, "writ_err is a wire format");

/* Fills *@err and returns @code, so that callers can write `return writ_fail(err, ...)`. */
printf_like(4, 5) must_check
int writ_fail(struct writ_err *err, int code, int sys, const char *fmt, ...);

/* Variant of writ_fail() for code between clone() and exec: copies @what without formatting. */
must_check
int writ_fail_lit(struct writ_err *err, int code, int sys, const char *what);

/*
 * Reports "out of memory", the most common failure of pure code. Inline, so that the analyzer of a
 * caller sees that the result is negative.
 */
must_check
static inline int writ_nomem(struct writ_err *err)
{
	(void)!writ_fail_lit(err, WRIT_E_NOMEM, 0, "out of memory");
	return WRIT_E_NOMEM;
}

#endif
