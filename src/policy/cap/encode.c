#include "cap/component.h"

#include "base/banned.h"

static void put_byte(struct buf *b, unsigned char c)
{
	static const char digits[] = "0123456789ABCDEF";
	const char pct[3] = { '%', digits[c >> 4], digits[c & 15] };

	if (cap_is_lit((char)c))
		buf_ch(b, (char)c);
	else
		buf_add(b, pct, sizeof(pct));
}

void cap_put_seg(struct buf *b, struct sv raw)
{
	for (size_t i = 0; i < raw.n; i++)
		put_byte(b, (unsigned char)raw.p[i]);
}

static int refuse(struct writ_err *err, const char *what)
{
	return writ_fail(err, WRIT_E_SYNTAX, 0, "%s", what);
}

static bool is_dots(struct sv s)
{
	return sv_is(s, ".") || sv_is(s, "..");
}

static int check_path(struct sv raw, struct writ_err *err)
{
	size_t n = 0;

	if (raw.n == 0 || raw.p[0] != '/')
		return refuse(err, "path is not absolute");
	if (sv_find(raw, 0) != SIZE_MAX)
		return refuse(err, "path with a NUL");
	if (raw.n > 1 && raw.p[raw.n - 1] == '/')
		return refuse(err, "path with a slash at its end");
	for (raw = sv_skip(raw, 1); raw.n; n++) {
		const struct sv seg = sv_cut(&raw, '/');

		if (seg.n == 0 || is_dots(seg))
			return refuse(err, "path is not a physical one");
	}
	if (n > CAP_SEGS_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "path of more than %d names", CAP_SEGS_MAX);
	return 0;
}

int cap_put_path(struct buf *b, struct sv raw, struct writ_err *err)
{
	const int r = check_path(raw, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < raw.n; i++) {
		if (raw.p[i] == '/')
			buf_ch(b, '/');
		else
			put_byte(b, (unsigned char)raw.p[i]);
	}
	return buf_check(b, err);
}

/*
 * Returns the decoded byte at the start of the HTTP path *@s, or -1 if the byte is refused, and
 * moves *@s past the byte.
 */
static int http_byte(struct sv *s)
{
	const char c = s->p[0];
	const int hi = s->n >= 3 ? sv_hex(s->p[1]) : -1;
	const int lo = s->n >= 3 ? sv_hex(s->p[2]) : -1;

	if (c != '%') {
		*s = sv_skip(*s, 1);
		/*
		 * Refuse '?', '#' and ';': some servers end the path at '?' or '#', others at ';'.
		 */
		return c > 0x20 && c < 0x7f && !memchr("\\;?#", c, 4) ? c : -1;
	}
	if (hi < 0 || lo < 0)
		return -1;
	*s = sv_skip(*s, 3);
	/* memchr() compares 5 bytes, so it also finds the NUL, which is refused too */
	return memchr("/\\.%", hi << 4 | lo, 5) ? -1 : hi << 4 | lo;
}

static int check_http_seg(struct sv seg, bool last, struct writ_err *err)
{
	if (seg.n == 0 && !last)
		return refuse(err, "request path with an empty segment");
	if (is_dots(seg))
		return refuse(err, "request path with a dot segment");
	while (seg.n) {
		if (cap_is_lit(seg.p[0]))
			seg = sv_skip(seg, 1);
		else if (http_byte(&seg) < 0)
			return refuse(err, "request path that servers may read differently");
	}
	return 0;
}

/* Returns the number of bytes at the start of @s that need no encoding. */
static size_t plain_bytes(struct sv s)
{
	size_t n = 0;

	while (n < s.n && (s.p[n] == '/' || cap_is_lit(s.p[n])))
		n++;
	return n;
}

int cap_put_http_path(struct buf *b, struct sv raw, struct writ_err *err)
{
	struct sv rest = sv_skip(raw, 1);
	bool more = true;

	if (raw.n == 0 || raw.p[0] != '/')
		return refuse(err, "request path does not start with a slash");
	while (more) {
		const struct sv seg = cut_at(&rest, '/', &more);
		const int r = check_http_seg(seg, !more, err);

		if (r < 0)
			return r;
	}
	while (raw.n) {
		const size_t n = plain_bytes(raw);

		buf_sv(b, sv_sub(raw, 0, n));
		raw = sv_skip(raw, n);
		/*
		 * put_byte() would write a slash unencoded, but http_byte() has refused encoded
		 * slashes
		 */
		if (raw.n)
			put_byte(b, (unsigned char)http_byte(&raw));
	}
	return buf_check(b, err);
}
