#include "wire/target.h"

#include "wire/wire_priv.h"

#include "base/banned.h"

enum { METHOD_MAX = 16 };

bool target_method_check(struct sv method)
{
	for (size_t i = 0; i < method.n; i++)
		if (method.p[i] < 'A' || method.p[i] > 'Z')
			return false;
	return method.n > 0 && method.n <= METHOD_MAX;
}

static const struct sv overrides[] = {
	/* headers that replace the method */
	SV_INIT("x-http-method-override"),
	SV_INIT("x-http-method"),
	SV_INIT("x-method-override"),
	SV_INIT("x-original-method"),
	SV_INIT("x-forwarded-method"),
	/* headers that replace the path */
	SV_INIT("x-original-url"),
	SV_INIT("x-original-uri"),
	SV_INIT("x-rewrite-url"),
	SV_INIT("x-override-url"),
	SV_INIT("x-forwarded-uri"),
	SV_INIT("x-forwarded-path"),
	SV_INIT("x-forwarded-prefix"),
	/* headers that replace the host */
	SV_INIT("x-forwarded-host"),
	SV_INIT("x-forwarded-server"),
	SV_INIT("x-host"),
	SV_INIT("x-http-host-override"),
	SV_INIT("x-original-host"),
	SV_INIT("forwarded"),
};

bool target_is_override(struct sv field)
{
	if (field.n == 0 || !memchr("xXfF", field.p[0], 4))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(overrides); i++)
		if (same_field(field, overrides[i]))
			return true;
	return false;
}

/* Tests for a byte that a path may contain unescaped. */
static bool is_path_byte(char c)
{
	return is_unreserved(c) || memchr("!$&'()*+,=:@/", c, 13);
}

/* Returns the byte that the %-escape at the start of @s encodes, or -1. */
static int escape_value(struct sv s)
{
	const int hi = s.n >= 3 ? sv_hex(s.p[1]) : -1;
	const int lo = s.n >= 3 ? sv_hex(s.p[2]) : -1;

	return hi < 0 || lo < 0 ? -1 : hi << 4 | lo;
}

static enum target_state fail(struct writ_err *err, enum target_state state, const char *what)
{
	wire_set_error(err, WRIT_E_SYNTAX, what);
	return state;
}

/* Checks only the syntax of a path or query: allowed bytes and complete escapes. */
static bool is_well_formed(struct sv s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] <= 0x20 || s.p[i] >= 0x7f || s.p[i] == '#')
			return false;
		if (s.p[i] == '%' && escape_value(sv_skip(s, i)) < 0)
			return false;
	}
	return true;
}

/*
 * Appends the decoded bytes of a well-formed path to @out. Returns false for an escape or byte that
 * servers may interpret differently.
 */
static bool decode(struct sv path, struct buf *out)
{
	for (size_t i = 0; i < path.n; i++) {
		int c = (unsigned char)path.p[i];

		if (c == '\\' || c == ';')
			return false;
		if (c == '%') {
			c = escape_value(sv_skip(path, i));
			if (c < 0x20 || c == 0x7f || memchr("/\\.%;", c, 5))
				return false;
			i += 2;
		}
		buf_ch(out, (char)c);
	}
	return true;
}

/*
 * Tests for a segment that some server reads as "." or "..": one that decodes the path and passes
 * it on makes '?' and '#' end the path, and others drop blanks around names.
 */
static bool is_dots(struct sv seg)
{
	seg = sv_sub(seg, 0, sv_find(seg, '?'));
	seg = sv_sub(seg, 0, sv_find(seg, '#'));
	seg = sv_trim(seg);
	return sv_is(seg, ".") || sv_is(seg, "..");
}

/*
 * Tests that a path has no empty and no dot segments. @path is decoded; decode() has refused
 * encoded slashes and dots, so every separator in @path is a separator for the server too.
 */
static bool segments_ok(struct sv path)
{
	bool last = false;

	path = sv_skip(path, 1);
	while (!last) {
		struct sv seg;

		last = sv_find(path, '/') == SIZE_MAX;
		seg = sv_cut(&path, '/');
		if ((seg.n == 0 && !last) || is_dots(seg))
			return false;
	}
	return true;
}

static void put_escape(struct buf *out, unsigned char c)
{
	static const char digits[] = "0123456789ABCDEF";

	buf_ch(out, '%');
	buf_ch(out, digits[c >> 4]);
	buf_ch(out, digits[c & 15]);
}

static void put_path(struct buf *out, struct sv path)
{
	for (size_t i = 0; i < path.n; i++) {
		const bool escaped = path.p[i] == '%';
		const char c = escaped ? (char)escape_value(sv_skip(path, i)) : path.p[i];

		if (escaped ? is_unreserved(c) : is_path_byte(c))
			buf_ch(out, c);
		else
			put_escape(out, (unsigned char)c);
		i += escaped ? 2 : 0;
	}
}

static enum target_state path_check(struct sv path, struct buf *scratch, struct writ_err *err)
{
	const size_t start = scratch->n;
	struct sv bytes;

	if (!decode(path, scratch))
		return fail(err, TARGET_AMBIGUOUS,
			    "request path that servers may read differently");
	if (buf_check(scratch, err) < 0)
		return TARGET_BAD;
	bytes = sv_skip(buf_view(scratch), start);
	if (!sv_is_utf8(bytes))
		return fail(err, TARGET_AMBIGUOUS, "request path that is not UTF-8");
	if (!segments_ok(bytes))
		return fail(err, TARGET_AMBIGUOUS, "request path with an empty or dot segment");
	return TARGET_OK;
}

enum target_state target_parse(struct sv raw, struct buf *out, struct target *ret_target,
			       struct writ_err *err)
{
	struct sv query = raw;
	const struct sv path = sv_cut(&query, '?');
	const size_t start = out->n;
	enum target_state state;
	size_t path_n;

	if (raw.n == 0 || raw.p[0] != '/' || !is_well_formed(raw))
		return fail(err, TARGET_BAD, "malformed request target");
	state = path_check(path, out, err);
	out->n = start;
	if (out->p)
		out->p[start] = 0;
	if (state != TARGET_OK)
		return state;
	put_path(out, path);
	path_n = out->n - start;
	if (query.n) {
		buf_ch(out, '?');
		buf_sv(out, query);
	}
	if (buf_check(out, err) < 0)
		return TARGET_BAD;
	ret_target->text = sv_skip(buf_view(out), start);
	ret_target->path = sv_sub(ret_target->text, 0, path_n);
	ret_target->query = query.n ? sv_skip(ret_target->text, path_n + 1) : SV("");
	return TARGET_OK;
}
