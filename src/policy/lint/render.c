#include "codec/json.h"
#include "lang/diag.h"
#include "lint/check_priv.h"

#include "base/banned.h"

enum { LINE_MAX_BYTES = 4096, LINE_COLUMNS = 160 };

/*
 * Is the first character of @s in the private use area (U+E000 to U+F8FF)? A font may draw anything
 * for such a character.
 */
static bool is_private_use(struct sv s)
{
	return (uint8_t)s.p[0] == 0xee || ((uint8_t)s.p[0] == 0xef && (uint8_t)s.p[1] <= 0xa3);
}

/* Appends @s on one line, without characters that could move the cursor of the terminal. */
static void put_safe(struct buf *b, struct sv s, size_t columns)
{
	while (s.n && columns--) {
		bool plain;
		const size_t n = diag_glyph(s, &plain);

		if (s.p[0] == '\t')
			buf_ch(b, ' ');
		else if (!plain || is_private_use(s))
			buf_ch(b, '?');
		else
			buf_add(b, s.p, n);
		s = sv_skip(s, n);
	}
	if (s.n)
		buf_str(b, "...");
}

static bool has_secret(const struct lint_finding *f)
{
	return f->rule == lint_rule_row(R_SECRET_LITERAL);
}

/*
 * Cache of the source line shown last. Findings are in order, so the printer reads the file once.
 */
struct source_line {
	const struct lint_file *file;
	struct sv rest; /* text of the file from the start of line @number */
	uint32_t number;
	struct buf shown; /* line @number with secrets masked, or empty */
};

/*
 * Copies @line, line @number of the file, to @b, with stars in the ranges of findings about
 * secrets.
 */
static void mask_findings(const struct lint_file *file, uint32_t number, struct sv line,
			  struct buf *b)
{
	uint32_t column = 1;

	while (line.n) {
		bool plain, hide = false;
		const size_t n = diag_glyph(line, &plain);

		for (size_t i = 0; i < file->n; i++) {
			const struct lint_finding *f = &file->findings[i];

			hide = hide || (f->line == number && has_secret(f) && column >= f->column &&
					column < f->column + f->width);
		}
		if (hide)
			buf_ch(b, '*');
		else
			buf_add(b, line.p, n);
		line = sv_skip(line, n);
		column++;
	}
}

/* Loads line @number into the cache. */
static void show_line(struct source_line *src, uint32_t number)
{
	scoped_buf starred = BUF_INIT(2 * LINE_MAX_BYTES);
	struct sv line;

	if (src->number == number)
		return;
	if (!src->number || number < src->number) {
		src->rest = src->file->text;
		src->number = 1;
	}
	for (; src->number < number && src->rest.n; src->number++)
		(void)sv_cut(&src->rest, '\n');
	src->number = number;
	buf_clear(&src->shown);
	line = sv_sub(src->rest, 0, sv_find(src->rest, '\n'));
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	if (line.n > LINE_MAX_BYTES)
		return;
	mask_findings(src->file, number, line, &starred);
	lint_secret_mask(buf_view(&starred), &src->shown);
	if (starred.failed || src->shown.failed)
		buf_clear(&src->shown);
}

static void put_source(struct source_line *src, const struct lint_finding *f, struct buf *b)
{
	uint32_t width = f->width;

	show_line(src, f->line);
	if (!src->shown.n || f->column > LINE_COLUMNS)
		return;
	buf_fmt(b, "%5u | ", f->line);
	put_safe(b, buf_view(&src->shown), LINE_COLUMNS);
	if (width > LINE_COLUMNS - f->column + 1)
		width = LINE_COLUMNS - f->column + 1;
	buf_str(b, "\n      | ");
	buf_fill(b, ' ', f->column - 1);
	buf_ch(b, '^');
	buf_fill(b, '~', width - 1);
	buf_ch(b, '\n');
}

void lint_message(const struct lint_finding *f, struct buf *b)
{
	buf_str(b, f->rule->title);
	if (f->detail.n)
		buf_str(b, ": ");
	buf_sv(b, f->detail);
}

void lint_print_text(const struct lint_file *file, struct buf *b)
{
	struct source_line src = { .file = file, .shown = BUF_INIT(4 * LINE_MAX_BYTES) };
	scoped_buf message = BUF_INIT(LINE_MAX_BYTES);

	if (file->error) {
		put_safe(b, file->name, SIZE_MAX);
		buf_fmt(b, ": error: %s\n", file->error);
	}
	for (size_t i = 0; i < file->n; i++) {
		const struct lint_finding *f = &file->findings[i];

		put_safe(b, file->name, SIZE_MAX);
		if (f->line)
			buf_fmt(b, ":%u:%u", f->line, f->column);
		buf_fmt(b, ": %s: ", lint_severity_name(f->rule->severity));
		lint_message(f, &message);
		put_safe(b, buf_view(&message), SIZE_MAX);
		buf_clear(&message);
		if (f->where.n) {
			buf_str(b, " (");
			put_safe(b, f->where, SIZE_MAX);
			buf_ch(b, ')');
		}
		buf_fmt(b, " [%s %s]\n", f->rule->id, f->rule->name);
		if (f->line)
			put_source(&src, f, b);
		buf_fmt(b, "  why: %s\n  fix: %s\n", f->rule->why, f->rule->fix);
	}
	buf_clear(&src.shown);
}

void lint_put_guarantees(struct buf *b, uint32_t set)
{
	buf_ch(b, '[');
	for (enum guarantee g = 0; g < G_COUNT; g++)
		if (set & (1u << g))
			json_put_item(b, sv_from(guarantee_name(g)));
	buf_ch(b, ']');
}

static void put_finding(struct buf *b, const struct lint_finding *f)
{
	scoped_buf message = BUF_INIT(LINE_MAX_BYTES);

	lint_message(f, &message);
	buf_ch(b, '{');
	json_put_member(b, "rule", sv_from(f->rule->id));
	json_put_member(b, "name", sv_from(f->rule->name));
	json_put_member(b, "severity", sv_from(lint_severity_name(f->rule->severity)));
	json_put_number(b, "line", f->line);
	json_put_number(b, "column", f->column);
	json_put_member(b, "where", f->where);
	json_put_member(b, "message", buf_view(&message));
	json_put_member(b, "why", sv_from(f->rule->why));
	json_put_member(b, "fix", sv_from(f->rule->fix));
	json_put_key(b, "endangers");
	lint_put_guarantees(b, f->rule->endangers);
	buf_ch(b, '}');
}

void lint_print_json(const struct lint_file *files, size_t n, struct buf *b)
{
	size_t count[LINT_SEVERITY_COUNT] = { 0 };

	buf_str(b, "{\"version\":1,\"files\":[");
	for (size_t i = 0; i < n; i++) {
		json_put_sep(b);
		buf_ch(b, '{');
		json_put_member(b, "file", files[i].name);
		json_put_member(b, "format", sv_from(lint_format_name(files[i].format)));
		if (files[i].error)
			json_put_member(b, "error", sv_from(files[i].error));
		buf_str(b, ",\"findings\":[");
		for (size_t j = 0; j < files[i].n; j++) {
			buf_str(b, j ? ",\n" : "\n");
			put_finding(b, &files[i].findings[j]);
			count[files[i].findings[j].rule->severity]++;
		}
		buf_str(b, "]}");
	}
	buf_fmt(b, "],\"summary\":{\"error\":%zu,\"warning\":%zu,\"info\":%zu}}\n",
		count[LINT_ERROR], count[LINT_WARNING], count[LINT_INFO]);
}
