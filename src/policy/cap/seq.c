#include "cap/component.h"

#include "base/banned.h"

bool cap_is_id(struct sv s)
{
	if (s.n == 0 || s.n > 63)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		const char c = s.p[i];
		const bool alnum = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

		if (!alnum && (i == 0 || (c != '.' && c != '_' && c != '-')))
			return false;
	}
	return true;
}

/* Returns the value of an upper-case hexadecimal digit, or -1. */
static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/*
 * Returns the byte that the percent-encoding at @s stands for, or -1 if the encoding is malformed,
 * forbidden, or encodes a byte that needs no encoding.
 */
static int pct_value(struct sv s, unsigned flags)
{
	const int hi = s.n >= 3 ? hex_value(s.p[1]) : -1;
	const int lo = s.n >= 3 ? hex_value(s.p[2]) : -1;
	int c;

	if (hi < 0 || lo < 0)
		return -1;
	c = hi << 4 | lo;
	if (c == 0 || (c == '/' && !(flags & SEQ_ARGS)) || cap_is_lit((char)c))
		return -1;
	return c;
}

/*
 * Checks the text of a segment. *@ret_star is the position of the star, or SIZE_MAX; *@ret_pct
 * tells whether the segment has percent-encodings.
 */
static bool scan_seg(struct sv text, unsigned flags, size_t *ret_star, bool *ret_pct)
{
	size_t star = SIZE_MAX;
	bool pct = false;

	for (size_t i = 0; i < text.n; i++) {
		if (cap_is_lit(text.p[i]))
			continue;
		if (text.p[i] == '%' && pct_value(sv_skip(text, i), flags) >= 0) {
			pct = true;
			i += 2;
		} else if (text.p[i] == '*' && (flags & SEQ_STAR) && star == SIZE_MAX) {
			star = i;
		} else {
			return false;
		}
	}
	*ret_star = star;
	*ret_pct = pct;
	return true;
}

/* Decodes the text of a segment, which scan_seg() has checked, into memory of @a. */
static bool decode(struct arena *a, struct sv text, unsigned flags, struct sv *ret_bytes)
{
	char *p = arena_alloc(a, text.n + 1, 1);
	size_t n = 0;

	if (!p)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '%') {
			p[n++] = (char)pct_value(sv_skip(text, i), flags);
			i += 2;
		} else {
			p[n++] = text.p[i];
		}
	}
	*ret_bytes = (struct sv){ p, n };
	return true;
}

static bool is_dots(struct sv s)
{
	return s.n <= 2 && s.n > 0 && s.p[0] == '.' && s.p[s.n - 1] == '.';
}

static int seg_parse(struct arena *a, struct sv text, unsigned flags, struct cap_seg *ret_seg)
{
	struct cap_seg seg;
	size_t star;
	bool pct;

	if (text.n == 0 || !scan_seg(text, flags, &star, &pct))
		return WRIT_E_SYNTAX;
	if (is_dots(text) && !(flags & SEQ_ARGS))
		return WRIT_E_SYNTAX;
	seg.star = star != SIZE_MAX;
	seg.pre = sv_sub(text, 0, star);
	seg.suf = seg.star ? sv_skip(text, star + 1) : SV("");
	if (pct && (!decode(a, seg.pre, flags, &seg.pre) || !decode(a, seg.suf, flags, &seg.suf)))
		return WRIT_E_NOMEM;
	*ret_seg = seg;
	return 0;
}

/* Parses @part, the text between two slashes, and adds the segment to the sequence. */
static int seq_part(struct arena *a, struct sv part, bool last, unsigned flags,
		    struct cap_seg *segs, struct cap_seq *s)
{
	int r;

	if (sv_is(part, "**")) {
		if (last && (flags & (SEQ_TAIL | SEQ_HOLE)) && s->hole != s->n)
			s->tail = true;
		else if (!last && (flags & SEQ_HOLE) && s->hole == SIZE_MAX)
			s->hole = s->n;
		else
			return WRIT_E_SYNTAX;
		return 0;
	}
	if (part.n == 0 && last && (flags & SEQ_SLASH)) {
		segs[s->n++] = (struct cap_seg){ .pre = part, .suf = SV("") };
		return 0;
	}
	if (s->n == CAP_SEGS_MAX && !(flags & SEQ_LONG))
		return WRIT_E_LIMIT;
	r = seg_parse(a, part, flags, &segs[s->n]);
	if (r == 0)
		s->n++;
	return r;
}

static size_t count_parts(struct sv text)
{
	size_t n = 1;

	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == '/';
	return n;
}

int cap_seq_parse(struct arena *a, struct sv text, unsigned flags, struct cap_seq *ret_seq)
{
	struct cap_seq s = { .hole = SIZE_MAX };
	struct cap_seg *segs;

	if (!(flags & SEQ_REF)) {
		if (text.n == 0 || text.p[0] != '/')
			return WRIT_E_SYNTAX;
		text = sv_skip(text, 1);
	}
	segs = arena_array(a, struct cap_seg, count_parts(text));
	if (!segs)
		return WRIT_E_NOMEM;
	/* "/" has no segments, except as a URL path, where "/" has one empty segment. */
	for (bool last = text.n == 0 && !(flags & (SEQ_SLASH | SEQ_REF)); !last;) {
		bool more;
		const struct sv part = cut_at(&text, '/', &more);
		int r;

		last = !more;
		r = seq_part(a, part, last, flags, segs, &s);
		if (r < 0)
			return r;
	}
	if (((flags & SEQ_HOLE) && !s.tail) || ((flags & SEQ_REF) && s.n == 0))
		return WRIT_E_SYNTAX;
	s.segs = segs;
	*ret_seq = s;
	return 0;
}

static void seg_print(const struct cap_seg *s, struct buf *b)
{
	cap_put_seg(b, s->pre);
	if (s->star)
		buf_ch(b, '*');
	cap_put_seg(b, s->suf);
}

void cap_seq_print(const struct cap_seq *s, struct buf *b)
{
	if (s->n == 0 && !s->tail)
		buf_ch(b, '/');
	for (size_t i = 0; i < s->n; i++) {
		if (i == s->hole)
			buf_str(b, "/**");
		buf_ch(b, '/');
		seg_print(&s->segs[i], b);
	}
	if (s->tail)
		buf_str(b, "/**");
}

void cap_ref_print(const struct cap_seq *s, struct buf *b)
{
	for (size_t i = 0; i < s->n; i++) {
		if (i)
			buf_ch(b, '/');
		seg_print(&s->segs[i], b);
	}
	if (s->tail)
		buf_str(b, "/**");
}

static bool starts_with(struct sv s, struct sv prefix)
{
	return s.n >= prefix.n && memcmp(s.p, prefix.p, prefix.n) == 0;
}

static bool ends_with(struct sv s, struct sv suffix)
{
	return s.n >= suffix.n && memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0;
}

/*
 * Does the segment pattern @p match the literal segment @x? A star never matches an empty segment.
 */
bool cap_seg_matches(const struct cap_seg *p, struct sv x)
{
	if (!p->star)
		return same_bytes(p->pre, x);
	return x.n > 0 && x.n >= p->pre.n + p->suf.n && starts_with(x, p->pre) &&
	       ends_with(x, p->suf);
}

static bool seg_within(const struct cap_seg *child, const struct cap_seg *parent)
{
	if (!child->star)
		return cap_seg_matches(parent, child->pre);
	return parent->star && starts_with(child->pre, parent->pre) &&
	       ends_with(child->suf, parent->suf);
}

static bool segs_match(const struct cap_seg *p, const struct cap_seg *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!cap_seg_matches(&p[i], x[i].pre))
			return false;
	return true;
}

bool cap_seq_matches(const struct cap_seq *p, const struct cap_seq *x)
{
	const size_t lead = p->hole == SIZE_MAX ? p->n : p->hole;

	if (x->n < p->n || (x->n > p->n && !p->tail) || !segs_match(p->segs, x->segs, lead))
		return false;
	if (lead == p->n)
		return true;
	for (size_t at = lead; at + (p->n - lead) <= x->n; at++)
		if (segs_match(p->segs + lead, x->segs + at, p->n - lead))
			return true;
	return false;
}

bool cap_seq_within(const struct cap_seq *child, const struct cap_seq *parent)
{
	if (child->n < parent->n || (!parent->tail && (child->tail || child->n != parent->n)))
		return false;
	for (size_t i = 0; i < parent->n; i++)
		if (!seg_within(&child->segs[i], &parent->segs[i]))
			return false;
	return true;
}

static bool seg_meet(const struct cap_seg *x, const struct cap_seg *y, struct cap_seg *ret_seg)
{
	const struct cap_seg *pre = x->pre.n >= y->pre.n ? x : y;
	const struct cap_seg *suf = x->suf.n >= y->suf.n ? x : y;

	if (!x->star || !y->star) {
		if (!x->star && cap_seg_matches(y, x->pre))
			*ret_seg = *x;
		else if (!y->star && cap_seg_matches(x, y->pre))
			*ret_seg = *y;
		else
			return false;
		return true;
	}
	if (!starts_with(pre->pre, x->pre) || !starts_with(pre->pre, y->pre) ||
	    !ends_with(suf->suf, x->suf) || !ends_with(suf->suf, y->suf))
		return false;
	*ret_seg = (struct cap_seg){ .pre = pre->pre, .suf = suf->suf, .star = true };
	return true;
}

int cap_seq_meet(struct arena *a, const struct cap_seq *x, const struct cap_seq *y,
		 struct cap_seq *ret_seq, bool *ret_any)
{
	const struct cap_seq *more = x->n >= y->n ? x : y;
	const struct cap_seq *less = more == x ? y : x;
	struct cap_seg *segs;

	*ret_any = false;
	if (more->n > less->n && !less->tail)
		return 0;
	segs = arena_array(a, struct cap_seg, more->n);
	if (!segs)
		return WRIT_E_NOMEM;
	for (size_t i = 0; i < more->n; i++) {
		segs[i] = more->segs[i];
		if (i < less->n && !seg_meet(&more->segs[i], &less->segs[i], &segs[i]))
			return 0;
	}
	*ret_seq = (struct cap_seq){
		.segs = segs, .n = more->n, .hole = SIZE_MAX, .tail = more->tail && less->tail
	};
	*ret_any = true;
	return 0;
}
