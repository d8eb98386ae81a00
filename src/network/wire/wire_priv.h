/* wire_priv.h - error helpers, a bounded big-endian reader, and comparison without case */
#ifndef WRIT_WIRE_WIRE_PRIV_H
#define WRIT_WIRE_WIRE_PRIV_H

#include <string.h>

#include "wire/wire.h"

/* Sets @err, for functions that return an enum instead of the error code. */
static inline void wire_set_error(struct writ_err *err, int code, const char *what)
{
	(void)!writ_fail_lit(err, code, 0, what);
}

static inline enum wire_state wire_bad(struct writ_err *err, const char *what)
{
	wire_set_error(err, WRIT_E_SYNTAX, what);
	return WIRE_BAD;
}

static inline enum wire_state wire_limit(struct writ_err *err, const char *what)
{
	wire_set_error(err, WRIT_E_LIMIT, what);
	return WIRE_BAD;
}

must_check static inline int wire_refuse(struct writ_err *err, const char *what)
{
	return writ_fail_lit(err, WRIT_E_SYNTAX, 0, what);
}

/*
 * A bounded reader. Reading past the end sets @failed, and every later read fails too, so a
 * decoder may check once after several reads.
 */
struct cursor {
	const uint8_t *p;
	size_t n;
	bool failed;
};

static inline struct cursor cursor_on(struct sv s)
{
	return (struct cursor){ .p = (const uint8_t *)s.p, .n = s.n };
}

static inline struct cursor cursor_take(struct cursor *c, size_t n)
{
	struct cursor part = { .p = c->p, .n = n };

	if (c->failed || n > c->n) {
		*c = (struct cursor){ .p = c->p, .failed = true };
		return *c;
	}
	c->p += n;
	c->n -= n;
	return part;
}

/*
 * Reads @size (1 to 4) bytes as a big-endian number. Returns 0 and sets @failed
 * if fewer bytes are left.
 */
static inline uint32_t cursor_uint(struct cursor *c, size_t size)
{
	const struct cursor part = cursor_take(c, size);
	uint32_t v = 0;

	for (size_t i = 0; i < part.n; i++)
		v = v << 8 | part.p[i];
	return v;
}

/* Reads a part that is preceded by its length, a number of @size bytes. */
static inline struct cursor cursor_part(struct cursor *c, size_t size)
{
	return cursor_take(c, cursor_uint(c, size));
}

static inline struct sv cursor_sv(struct cursor c)
{
	return (struct sv){ (const char *)c.p, c.n };
}

static inline uint8_t *put_uint(uint8_t *to, uint32_t v, size_t size)
{
	for (size_t i = size; i-- > 0; v >>= 8)
		to[i] = (uint8_t)v;
	return to + size;
}

/* Tests for a byte that is never escaped in a URL (RFC 3986). */
static inline bool is_unreserved(char c)
{
	return sv_is_alnum((struct sv){ &c, 1 }, "-._~");
}

static inline bool same_text(struct sv a, struct sv b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (sv_lower(a.p[i]) != sv_lower(b.p[i]))
			return false;
	return true;
}

/*
 * Compares field names, with '_' equal to '-': servers that map fields to variables (CGI, WSGI) do
 * not distinguish '_' from '-'.
 */
static inline bool same_field(struct sv a, struct sv b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (sv_lower(a.p[i] == '_' ? '-' : a.p[i]) !=
		    sv_lower(b.p[i] == '_' ? '-' : b.p[i]))
			return false;
	return true;
}

#endif
