/*
 * buf.h - growable bytes that cannot grow without bound
 *
 * Reads:  caller's bytes
 * Writes: its own heap memory
 * Next:   every printer
 *
 * A buffer is made with a maximum. Appending past it, or running out of memory,
 * sets a sticky failure: later appends do nothing, so a printer may append
 * freely and ask once at the end. p is always NUL-terminated when n > 0.
 */
#ifndef WRIT_BASE_BUF_H
#define WRIT_BASE_BUF_H

#include <stdarg.h>

#include "base/err.h"
#include "base/sv.h"

struct buf {
	char *p;
	size_t n, room, max;
	bool failed;
};

#define BUF_INIT(maximum) { .max = (maximum) }
#define scoped_buf __attribute__((cleanup(buf_clear))) struct buf

void buf_clear(struct buf *b); /* frees; the maximum stays */
void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_sv(struct buf *b, struct sv s);
void buf_str(struct buf *b, const char *cstr);
void buf_ch(struct buf *b, char c);
void buf_fill(struct buf *b, char c, size_t count);
void buf_u64(struct buf *b, uint64_t v); /* decimal */
/* @n bytes more, for the caller to write; NULL: there is no room, and nothing was added. */
must_check char *buf_grow(struct buf *b, size_t n);
printf_like(2, 3) void buf_fmt(struct buf *b, const char *fmt, ...);
printf_like(2, 0) void buf_vfmt(struct buf *b, const char *fmt, va_list ap);
struct sv buf_view(const struct buf *b); /* tied to @b until the next append */

/* Fails with WRIT_E_LIMIT if anything was lost. */
must_check int buf_check(const struct buf *b, struct writ_err *err);

#endif
