#include "lang/lex.h"

#include "base/banned.h"

static struct place at(const struct source *src, uint32_t line, size_t col, size_t len)
{
	return (struct place){ src, line, (uint32_t)col, (uint32_t)len };
}

/*
 * SECURITY: the parser must read what a reviewer sees. Refuse control, bidirectional and invisible
 * characters everywhere, including comments.
 */
static bool line_is_clean(struct diags *d, const struct source *src, uint32_t no, struct sv line)
{
	bool ascii = true;

	for (size_t i = 0; i < line.n; i++) {
		const unsigned char c = (unsigned char)line.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return diag_add(d, DIAG_ERROR, at(src, no, i + 1, 1), NULL,
					"control character 0x%02x", c);
		ascii = ascii && c < 0x80;
	}
	if (ascii)
		return true;
	if (!sv_is_utf8(line))
		return diag_add(d, DIAG_ERROR, at(src, no, 1, 1),
				"inside double quotes, write other bytes as \\xHH",
				"this line is not valid UTF-8");
	for (size_t i = 0, n; i < line.n; i += n) {
		bool plain;

		n = diag_glyph(sv_skip(line, i), &plain);
		if (!plain)
			return diag_add(d, DIAG_ERROR, at(src, no, i + 1, n), NULL,
					"invisible or direction-changing character");
	}
	return true;
}

/*
 * Decodes the escape sequence after a backslash at @s. Returns the length of the sequence, or 0 if
 * it is unknown.
 */
static size_t escape(struct sv s, char *ret_c)
{
	static const char means[] = "\"\\\0\n\t";
	const size_t at = s.n ? sv_find(SV("\"\\*nt"), s.p[0]) : SIZE_MAX;
	int hi, lo;

	if (at != SIZE_MAX) {
		*ret_c = means[at];
		return 1;
	}
	if (s.n < 3 || s.p[0] != 'x')
		return 0;
	hi = sv_hex(s.p[1]);
	lo = sv_hex(s.p[2]);
	if (hi < 0 || lo < 0 || (hi == 0 && lo == 0))
		return 0;
	*ret_c = (char)(hi << 4 | lo);
	return 3;
}

struct lexer {
	struct diags *d;
	const struct source *src;
	uint32_t no;
	struct sv line;
};

/* Returns the length of the word at @from if the word has no quotes and escapes, otherwise 0. */
static size_t plain_word(struct sv line, size_t from)
{
	size_t i = from;

	while (i < line.n && line.p[i] != ' ' && line.p[i] != '\t' && line.p[i] != '"' &&
	       line.p[i] != '\\')
		i++;
	return i == line.n || line.p[i] == ' ' || line.p[i] == '\t' ? i - from : 0;
}

static bool lex_quoted(struct lexer *l, size_t from, struct word *ret_w, bool *ret_nomem)
{
	char *text = arena_alloc(l->d->arena, l->line.n - from + 1, 1);
	bool quoted = false;
	size_t n = 0, i;

	if (!text) {
		*ret_nomem = true;
		return false;
	}
	for (i = from; i < l->line.n; i++) {
		const char c = l->line.p[i];

		if (c == '"') {
			quoted = !quoted;
		} else if (c == '\\') {
			const size_t len = quoted ? escape(sv_skip(l->line, i + 1), &text[n]) : 0;

			if (len == 0)
				return diag_add(
					l->d, DIAG_ERROR, at(l->src, l->no, i + 1, 1),
					"inside double quotes: \\\" \\\\ \\* \\n \\t \\xHH", "%s",
					quoted ? "unknown escape" : "backslash outside quotes");
			n++;
			i += len;
		} else if (!quoted && (c == ' ' || c == '\t')) {
			break;
		} else {
			text[n++] = c;
		}
	}
	if (quoted)
		return diag_add(l->d, DIAG_ERROR, at(l->src, l->no, from + 1, i - from), NULL,
				"this quote is never closed");
	ret_w->raw = sv_sub(l->line, from, i - from);
	ret_w->text = (struct sv){ text, n };
	ret_w->col = (uint32_t)from + 1;
	return true;
}

/* Reads the word at @from. Returns false after reporting an error. */
static bool lex_word(struct lexer *l, size_t from, struct word *ret_w, bool *ret_nomem)
{
	const size_t n = plain_word(l->line, from);
	const struct sv raw = sv_sub(l->line, from, n);

	if (n == 0)
		return lex_quoted(l, from, ret_w, ret_nomem);
	*ret_w = (struct word){ raw, raw, (uint32_t)from + 1 };
	return true;
}

static int lex_line(struct lexer *l, struct lex_lines *out, struct writ_err *err)
{
	VEC(struct word) words = { 0 };
	bool nomem = false;
	size_t i = 0;

	for (;;) {
		struct word *w;

		while (i < l->line.n && (l->line.p[i] == ' ' || l->line.p[i] == '\t'))
			i++;
		if (i == l->line.n || l->line.p[i] == '#')
			break;
		if (words.n == LEX_WORDS_MAX) {
			diag_add(l->d, DIAG_ERROR, at(l->src, l->no, i + 1, 1), NULL,
				 "more than %d words in one line", LEX_WORDS_MAX);
			return 0;
		}
		w = vec_push(l->d->arena, &words);
		if (!w)
			return writ_nomem(err);
		if (!lex_word(l, i, w, &nomem))
			return nomem ? writ_nomem(err) : 0;
		i += w->raw.n;
	}
	if (words.n == 0)
		return 0;
	return vec_add(l->d->arena, &out->list,
		       (struct lex_line){ l->no, l->line.p[0] == ' ' || l->line.p[0] == '\t',
					  words.v, words.n })
		       ? 0
		       : writ_nomem(err);
}

int lex(struct diags *d, const struct source *src, struct lex_lines *ret_lines,
	struct writ_err *err)
{
	struct lexer l = { .d = d, .src = src };
	struct lex_lines out = { 0 };
	struct sv rest = src->text;

	if (rest.n > LEX_TEXT_MAX) {
		diag_add(d, DIAG_ERROR, at(src, 0, 0, 0), NULL,
			 "a policy has at most %d bytes, this one has %zu", LEX_TEXT_MAX, rest.n);
		return 0;
	}
	while (rest.n) {
		int r;

		l.no++;
		l.line = sv_cut(&rest, '\n');
		if (l.line.n && l.line.p[l.line.n - 1] == '\r')
			l.line.n--;
		if (l.line.n > LEX_LINE_MAX) {
			diag_add(d, DIAG_ERROR, at(src, l.no, 1, 1), NULL,
				 "a line has at most %d bytes, this one has %zu", LEX_LINE_MAX,
				 l.line.n);
			continue;
		}
		if (!line_is_clean(d, src, l.no, l.line))
			continue;
		if (out.list.n == LEX_LINES_MAX) {
			diag_add(d, DIAG_ERROR, at(src, l.no, 1, 1),
				 "grant a directory instead of its files",
				 "more than %d statements", LEX_LINES_MAX);
			break;
		}
		r = lex_line(&l, &out, err);
		if (r < 0)
			return r;
	}
	*ret_lines = out;
	return 0;
}
