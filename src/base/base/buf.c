#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

enum { FMT_GUESS = 128 };

void buf_clear(struct buf *b)
{
	free(b->p);
	b->p = NULL;
	b->n = b->room = 0;
	b->failed = false;
}

/* Reserves space for @n more bytes and a NUL. On failure sets the sticky failure flag. */
static bool buf_reserve(struct buf *b, size_t n)
{
	size_t want, room;
	char *p;

	if (b->failed)
		return false;
	if (n > b->max || b->n > b->max - n) {
		b->failed = true;
		return false;
	}
	want = b->n + n + 1;
	if (want <= b->room)
		return true;
	room = b->room ? b->room : 256;
	while (room < want)
		room *= 2;
	p = realloc(b->p, room);
	if (!p) {
		b->failed = true;
		return false;
	}
	b->p = p;
	b->room = room;
	return true;
}

char *buf_grow(struct buf *b, size_t n)
{
	char *at;

	if (!buf_reserve(b, n))
		return NULL;
	at = b->p + b->n;
	b->n += n;
	b->p[b->n] = 0;
	return at;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
	char *to = buf_grow(b, n);

	if (to && n)
		memcpy(to, bytes, n);
}

void buf_sv(struct buf *b, struct sv s)
{
	buf_add(b, s.p, s.n);
}

void buf_str(struct buf *b, const char *cstr)
{
	buf_sv(b, sv_from(cstr));
}

void buf_ch(struct buf *b, char c)
{
	char *to = buf_grow(b, 1);

	if (to)
		*to = c;
}

void buf_u64(struct buf *b, uint64_t v)
{
	char digits[20];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + v % 10);
	while (v /= 10);
	buf_add(b, digits + at, sizeof(digits) - at);
}

void buf_fill(struct buf *b, char c, size_t count)
{
	char *to = buf_grow(b, count);

	if (to)
		memset(to, c, count);
}

void buf_vfmt(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	/* Format into FMT_GUESS spare bytes first: most texts fit and are formatted only once. */
	if (!buf_reserve(b, FMT_GUESS < b->max - b->n ? FMT_GUESS : b->max - b->n))
		return;
	va_copy(again, ap);
	n = vsnprintf(b->p + b->n, b->room - b->n, fmt, ap);
	if (n >= 0 && ((size_t)n >= b->room - b->n || (size_t)n > b->max - b->n)) {
		b->p[b->n] = 0;
		if (buf_reserve(b, (size_t)n))
			(void)vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
	}
	va_end(again);
	if (n < 0) {
		b->p[b->n] = 0;
		b->failed = true;
	}
	if (!b->failed)
		b->n += (size_t)n;
}

void buf_fmt(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vfmt(b, fmt, ap);
	va_end(ap);
}

struct sv buf_view(const struct buf *b)
{
	return b->n ? (struct sv){ b->p, b->n } : SV("");
}

int buf_check(const struct buf *b, struct writ_err *err)
{
	if (b->failed)
		return writ_fail(err, WRIT_E_LIMIT, 0,
				 "output larger than %zu bytes", b->max);
	return 0;
}
