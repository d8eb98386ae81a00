#include "lang/diag.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

enum { CLIP = 160, CLIP_BEFORE = 60 };

bool diag_add(struct diags *d, enum diag_level level, struct place at, const char *hint,
	      const char *fmt, ...)
{
	char text[512];
	struct diag *g;
	va_list ap;

	if (level == DIAG_ERROR)
		d->errors++;
	if (level == DIAG_WARNING)
		d->warnings++;
	/*
	 * If the list of diagnostics is full, an error replaces the last diagnostic that is not an
	 * error.
	 */
	for (size_t i = d->list.n; d->list.n >= DIAG_MAX && level == DIAG_ERROR && i-- > 0;)
		if (d->list.v[i].level != DIAG_ERROR) {
			memmove(&d->list.v[i], &d->list.v[i + 1],
				(d->list.n - i - 1) * sizeof(*d->list.v));
			d->list.n--;
		}
	if (d->list.n >= DIAG_MAX)
		return level != DIAG_ERROR;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	g = vec_push(d->arena, &d->list);
	if (!g || !arena_sv(d->arena, sv_from(text), &g->text) ||
	    !arena_sv(d->arena, sv_from(hint), &g->hint)) {
		if (g)
			d->list.n--;
		d->lost = true;
		d->errors++;
		return level != DIAG_ERROR;
	}
	g->level = level;
	g->at = at;
	return level != DIAG_ERROR;
}

static size_t source_rank(const struct diags *d, const struct source *src)
{
	size_t i = 0;

	while (i < d->list.n && d->list.v[i].at.src != src)
		i++;
	return i;
}

void diag_sort_all(struct diags *d)
{
	size_t ranks[DIAG_MAX];

	/*
	 * Use an insertion sort: the list has at most DIAG_MAX elements, and diagnostics at equal
	 * places keep their order.
	 */
	for (size_t i = 0; i < d->list.n; i++)
		ranks[i] = source_rank(d, d->list.v[i].at.src);
	for (size_t i = 1; i < d->list.n; i++) {
		const struct diag g = d->list.v[i];
		const size_t rank = ranks[i];
		size_t k = i;

		for (; k > 0; k--) {
			const struct diag *p = &d->list.v[k - 1];

			if (ranks[k - 1] < rank ||
			    (ranks[k - 1] == rank &&
			     (p->at.line < g.at.line ||
			      (p->at.line == g.at.line && p->at.col <= g.at.col))))
				break;
			d->list.v[k] = *p;
			ranks[k] = ranks[k - 1];
		}
		d->list.v[k] = g;
		ranks[k] = rank;
	}
}

const char *diag_nearest(struct sv word, const char *const *list)
{
	const size_t max = word.n <= 3 ? 1 : 2;
	const char *best = NULL;
	size_t best_d = max + 1;

	for (; *list; list++) {
		const size_t n = sv_distance(word, sv_from(*list), max);

		if (n < best_d) {
			best_d = n;
			best = *list;
		}
	}
	return best;
}

const char *diag_suggest(struct arena *a, struct sv word, const char *const *list,
			 const char *otherwise)
{
	const char *near = diag_nearest(word, list);
	const char *hint = near ? arena_fmt(a, "did you mean \"%s\"?", near) : NULL;

	return hint ? hint : otherwise;
}

size_t diag_glyph(struct sv s, bool *ret_plain)
{
	const unsigned char c = (unsigned char)s.p[0];
	const size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	uint32_t v;

	*ret_plain = false;
	if (n > s.n || !sv_is_utf8(sv_sub(s, 0, n)))
		return 1;
	if (n == 1) {
		*ret_plain = (c >= 0x20 && c != 0x7f) || c == '\t';
		return 1;
	}
	v = n == 2 ? c & 0x1f : n == 3 ? c & 0x0f : c & 0x07;
	for (size_t i = 1; i < n; i++)
		v = v << 6 | ((unsigned char)s.p[i] & 0x3f);
	/*
	 * Plain characters exclude C1 controls and characters that are invisible or change the
	 * direction of text, such as soft hyphens and zero-width, bidirectional, BOM and tag
	 * characters.
	 */
	*ret_plain =
		!((v >= 0x80 && v < 0xa0) || v == 0xad || v == 0x34f || v == 0x61c || v == 0x115f ||
		  v == 0x1160 || v == 0x2800 || v == 0x3164 || v == 0xffa0 || v == 0x180e ||
		  (v >= 0x200b && v <= 0x200f) || (v >= 0x2028 && v <= 0x202e) ||
		  (v >= 0x2060 && v <= 0x206f) || v == 0xfeff || (v >= 0xfe00 && v <= 0xfe0f) ||
		  (v >= 0xfff9 && v <= 0xfffb) || (v >= 0xe0000 && v <= 0xe0fff));
	return n;
}

void diag_put_safe(struct buf *b, struct sv s)
{
	while (s.n) {
		bool plain;
		const size_t n = diag_glyph(s, &plain);

		if (plain && s.p[0] == '\t')
			buf_ch(b, ' '); /* print a tab as a single column, to keep carets aligned */
		else if (plain)
			buf_add(b, s.p, n);
		else
			for (size_t i = 0; i < n; i++)
				buf_fmt(b, "\\x%02x", (unsigned char)s.p[i]);
		s = sv_skip(s, n);
	}
}

/* Returns the number of columns that diag_put_safe() uses for @s. */
static size_t width(struct sv s)
{
	size_t w = 0;

	while (s.n) {
		bool plain;
		const size_t n = diag_glyph(s, &plain);

		w += plain ? 1 : 4 * n;
		s = sv_skip(s, n);
	}
	return w;
}

static struct sv source_line(const struct source *src, uint32_t line)
{
	struct sv rest = src->text;
	struct sv l = SV("");

	while (line--)
		l = sv_cut(&rest, '\n');
	if (l.n && l.p[l.n - 1] == '\r')
		l.n--;
	return l;
}

static void print_excerpt(const struct diag *g, struct buf *b)
{
	const struct sv line = source_line(g->at.src, g->at.line);
	size_t col = g->at.col ? g->at.col - 1 : 0;
	size_t from, marked;

	if (col > line.n)
		col = line.n;
	from = col > CLIP ? col - CLIP_BEFORE : 0;
	buf_fmt(b, "%5u | %s", g->at.line, from ? "..." : "");
	diag_put_safe(b, sv_sub(line, from, CLIP));
	buf_fmt(b, "%s\n      | ", line.n > from + CLIP ? "..." : "");
	buf_fill(b, ' ', width(sv_sub(line, from, col - from)) + (from ? 3 : 0));
	buf_ch(b, '^');
	marked = width(sv_sub(line, col, g->at.len < CLIP ? g->at.len : CLIP));
	if (marked > 1)
		buf_fill(b, '~', marked - 1);
	buf_ch(b, '\n');
}

static const struct {
	const char *word, *colour;
} levels[] = {
	[DIAG_ERROR] = { "error", "\033[1;31m" },
	[DIAG_WARNING] = { "warning", "\033[1;33m" },
	[DIAG_NOTE] = { "note", "\033[1;36m" },
};

void diag_print_all(const struct diags *d, struct buf *b, bool colour)
{
	for (size_t i = 0; i < d->list.n; i++) {
		const struct diag *g = &d->list.v[i];

		if (g->at.src)
			diag_put_safe(b, g->at.src->name);
		else
			buf_str(b, "writ");
		if (g->at.src && g->at.line)
			buf_fmt(b, ":%u:%u", g->at.line, g->at.col);
		buf_fmt(b, ": %s%s:%s ", colour ? levels[g->level].colour : "",
			levels[g->level].word, colour ? "\033[0m" : "");
		diag_put_safe(b, g->text);
		buf_ch(b, '\n');
		if (g->at.src && g->at.line)
			print_excerpt(g, b);
		if (g->hint.n) {
			buf_str(b, "      = ");
			diag_put_safe(b, g->hint);
			buf_ch(b, '\n');
		}
	}
	if (d->errors + d->warnings > d->list.n)
		buf_fmt(b, "writ: %zu more not shown\n", d->errors + d->warnings - d->list.n);
}
