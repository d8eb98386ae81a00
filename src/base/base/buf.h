/*
 * buf.h - growable byte buffer with a maximum size
 *
 * Reads:  caller's bytes
 * Writes: heap memory owned by the buffer
 * Next:   every printer
 *
 * A buffer is made with a maximum. Appending past the maximum, or running out of memory, sets a
 * sticky failure flag: later appends do nothing. A printer can therefore append freely and call
 * buf_check() once at the end. The bytes at p are followed by a NUL when n > 0.
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

void buf_clear(struct buf *b); /* frees the bytes and clears the failure flag; keeps the maximum */
void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_sv(struct buf *b, struct sv s);
void buf_str(struct buf *b, const char *cstr);
void buf_ch(struct buf *b, char c);
void buf_fill(struct buf *b, char c, size_t count);
void buf_u64(struct buf *b, uint64_t v); /* appends @v in decimal */
/*
 * Appends @n bytes for the caller to fill in, and returns their address. Returns NULL, and appends
 * nothing, if the bytes do not fit or memory runs out.
 */
must_check char *buf_grow(struct buf *b, size_t n);
printf_like(2, 3) void buf_fmt(struct buf *b, const char *fmt, ...);
printf_like(2, 0) void buf_vfmt(struct buf *b, const char *fmt, va_list ap);
/* Returns a view of the bytes in @b, which is valid until the next append to @b. */
struct sv buf_view(const struct buf *b);

/* Fails with WRIT_E_LIMIT if an append to @b failed since @b was made or cleared. */
must_check int buf_check(const struct buf *b, struct writ_err *err);

#endif
