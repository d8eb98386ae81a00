/*
 * cap_tool - answers questions about capabilities, one per line
 *
 * Reads queries with fields between tabs from standard input and writes one
 * line for each, in order, so that an independent implementation can be
 * compared with src/policy/cap/:
 *
 *   P g|r|d TEXT      1 if TEXT parses as grant, request or denial, else 0
 *   M CAP REQ         does the grant match the request: 1, 0
 *   W CHILD PARENT    is it within: 1, 0
 *   T A B             the text of the meet, or - if there is none
 *   D DENIAL REQ      does the denial match the request: 1, 0
 *   H RAWPATH         canonical urlpath of a path as it stood on the wire
 *   F HEXBYTES        canonical path of these bytes
 *
 * E says that an operand was refused, ? that the line is no query.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cap/cap.h"

enum { ARENA_MAX = 64 << 20, ARENA_ENOUGH = 1 << 20 };

static bool field(struct sv *rest, struct sv *ret_field)
{
	const bool more = sv_find(*rest, '\t') != SIZE_MAX;

	*ret_field = sv_cut(rest, '\t');
	return more;
}

/* Out of memory must not look like an answer. */
static bool parse(struct arena *a, enum cap_kind kind, struct sv text, struct cap *c)
{
	struct writ_err err = { 0 };
	const int r = cap_parse(a, kind, text, c, &err);

	if (r < 0 && r != WRIT_E_SYNTAX && r != WRIT_E_LIMIT) {
		(void)fprintf(stderr, "cap_tool: %s\n", err.what);
		exit(2);
	}
	return r == 0;
}

static void answer(struct buf *out, bool yes)
{
	buf_str(out, yes ? "1" : "0");
}

static bool query_parse(struct arena *a, struct sv rest, struct buf *out)
{
	enum cap_kind kind = CAP_GRANT;
	struct sv letter;
	struct cap c;

	if (!field(&rest, &letter))
		return false;
	if (sv_is(letter, "r"))
		kind = CAP_REQUEST;
	else if (sv_is(letter, "d"))
		kind = CAP_DENIAL;
	else if (!sv_is(letter, "g"))
		return false;
	answer(out, parse(a, kind, rest, &c));
	return true;
}

static void put_meet(struct arena *a, const struct cap *x, const struct cap *y, struct buf *out)
{
	struct writ_err err = { 0 };
	bool any = false;
	struct cap c;

	if (cap_meet(a, x, y, &c, &any, &err) < 0) {
		(void)fprintf(stderr, "cap_tool: %s\n", err.what);
		exit(2);
	}
	buf_sv(out, any ? c.text : SV("-"));
}

/* M, W, T and D: two capabilities. */
static bool query_pair(struct arena *a, char which, struct sv rest, struct buf *out)
{
	const enum cap_kind first = which == 'D' ? CAP_DENIAL : CAP_GRANT;
	const bool request = which == 'M' || which == 'D';
	struct cap x, y;
	struct sv text;

	if (!field(&rest, &text))
		return false;
	if (!parse(a, first, text, &x) || !parse(a, request ? CAP_REQUEST : CAP_GRANT, rest, &y))
		buf_ch(out, 'E');
	else if (which == 'M')
		answer(out, cap_matches(&x, &y));
	else if (which == 'W')
		answer(out, cap_within(&x, &y));
	else if (which == 'D')
		answer(out, cap_denies(&x, &y));
	else
		put_meet(a, &x, &y, out);
	return true;
}

static int hex_value(char c)
{
	const char *const digits = "0123456789abcdef0123456789ABCDEF";
	const char *hit = c ? strchr(digits, c) : NULL;

	return hit ? (int)((hit - digits) % 16) : -1;
}

static bool unhex(struct arena *a, struct sv hex, struct sv *ret_bytes)
{
	char *p = arena_alloc(a, hex.n / 2 + 1, 1);

	if (!p || hex.n % 2)
		return false;
	for (size_t i = 0; i < hex.n; i += 2) {
		const int hi = hex_value(hex.p[i]), lo = hex_value(hex.p[i + 1]);

		if (hi < 0 || lo < 0)
			return false;
		p[i / 2] = (char)(hi << 4 | lo);
	}
	*ret_bytes = (struct sv){ p, hex.n / 2 };
	return true;
}

static void query_path(struct arena *a, char which, struct sv rest, struct buf *out)
{
	struct writ_err err = { 0 };
	struct sv raw = rest;
	int r = -1;

	if (which == 'H')
		r = cap_put_http_path(out, rest, &err);
	else if (unhex(a, rest, &raw))
		r = cap_put_path(out, raw, &err);
	if (r < 0)
		buf_ch(out, 'E');
}

static void query(struct arena *a, struct sv line, struct buf *out)
{
	const char which = line.n >= 2 && line.p[1] == '\t' ? line.p[0] : 0;
	const struct sv rest = sv_skip(line, 2);
	bool known = true;

	if (which == 'P')
		known = query_parse(a, rest, out);
	else if (which && strchr("MWTD", which))
		known = query_pair(a, which, rest, out);
	else if (which == 'H' || which == 'F')
		query_path(a, which, rest, out);
	else
		known = false;
	if (!known)
		buf_ch(out, '?');
	buf_ch(out, '\n');
}

int main(void)
{
	scoped_arena a = ARENA_INIT(ARENA_MAX);
	scoped_buf out = BUF_INIT(1 << 30);
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	while ((n = getline(&line, &room, stdin)) > 0) {
		const size_t keep = (size_t)n - (line[n - 1] == '\n');

		query(&a, (struct sv){ line, keep }, &out);
		(void)fwrite(out.p, 1, out.n, stdout);
		out.n = 0;
		if (a.used > ARENA_ENOUGH)
			arena_clear(&a);
	}
	free(line);
	return out.failed || ferror(stdin) || fflush(stdout) != 0;
}
