#include "lint/lint.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lint/check_priv.h"

#include "base/banned.h"

enum { DETAIL_BYTES = 300 };

void lint_fail(struct check *c, int code, const char *why)
{
	if (c->failed)
		return;
	c->failed = code;
	c->failed_why = why;
}

void *lint_must(struct check *c, void *p)
{
	if (!p)
		lint_fail(c, WRIT_E_NOMEM, "out of memory");
	return p;
}

bool lint_keep(struct check *c, struct sv s, struct sv *ret)
{
	const bool good = arena_sv(c->arena, s, ret);

	if (!good)
		lint_fail(c, WRIT_E_NOMEM, "out of memory");
	return good;
}

static bool is_lead(char ch)
{
	return ((uint8_t)ch & 0xc0) != 0x80;
}

/*
 * Moves the cached position back to @off. The cost is only the distance; the function searches the
 * start of the line only if the line changed, because a file may be one long line.
 */
static void seek_back(struct check *c, size_t off)
{
	const char *p = c->text.p;
	const uint32_t line = c->pos.line;
	const char *bol;

	for (; c->pos.off > off; c->pos.off--) {
		c->pos.line -= p[c->pos.off - 1] == '\n';
		c->pos.column -= is_lead(p[c->pos.off - 1]);
	}
	if (c->pos.line == line)
		return;
	bol = off ? memrchr(p, '\n', off) : NULL;
	c->pos.off = bol ? (size_t)(bol - p) + 1 : 0;
	c->pos.column = 1;
}

static void seek(struct check *c, size_t off)
{
	const char *p = c->text.p;

	if (!c->pos.line)
		c->pos.line = c->pos.column = 1;
	if (off < c->pos.off)
		seek_back(c, off);
	for (; c->pos.off < off; c->pos.off++) {
		if (p[c->pos.off] == '\n') {
			c->pos.line++;
			c->pos.column = 1;
		} else if (is_lead(p[c->pos.off])) {
			c->pos.column++;
		}
	}
}

static uint32_t width_of(const struct check *c, const struct node *at)
{
	uint32_t width = 0;

	for (uint32_t i = 0; i < at->width; i++)
		width += is_lead(c->text.p[at->off + i]);
	return width ? width : 1;
}

/* Joins the label of the check and the path of node @at in the document. */
static struct sv full_where(struct check *c, const struct node *at)
{
	const struct sv path = lint_where(c->arena, at);
	const char *both;

	if (!c->label.n || !path.n)
		return c->label.n ? c->label : path;
	both = arena_fmt(c->arena, SV_FMT ": " SV_FMT, SV_ARG(c->label), SV_ARG(path));
	return both ? sv_from(both) : path;
}

/* Truncate the detail first, then mask it: lint still recognises a truncated secret as a secret. */
static struct sv masked(struct check *c, struct sv detail)
{
	scoped_buf b = BUF_INIT(4 * DETAIL_BYTES);
	struct sv out;

	lint_secret_mask(sv_sub(detail, 0, DETAIL_BYTES), &b);
	if (b.failed || !arena_sv(c->arena, buf_view(&b), &out))
		return SV("");
	return out;
}

void lint_found(struct check *c, enum rule_id r, const struct node *at, struct sv detail)
{
	const struct lint_rule *rule = lint_rule_row(r);
	struct lint_finding *f;

	if (c->failed || !lint_applies(rule, c->format))
		return;
	if (c->found.n >= LINT_FINDINGS_MAX) {
		lint_fail(c, WRIT_E_LIMIT, "too many findings");
		return;
	}
	f = lint_must(c, vec_push(c->arena, &c->found));
	if (!f)
		return;
	seek(c, at->off);
	*f = (struct lint_finding){
		.rule = rule,
		.line = c->pos.line,
		.column = c->pos.column,
		.width = width_of(c, at),
		.where = full_where(c, at),
		.detail = masked(c, detail),
	};
}

void lint_report(struct check *c, enum rule_id r, const struct node *at, const char *fmt, ...)
{
	scoped_buf b = BUF_INIT(2 * DETAIL_BYTES);
	va_list ap;

	va_start(ap, fmt);
	buf_vfmt(&b, fmt, ap);
	va_end(ap);
	lint_found(c, r, at, b.failed ? SV("") : buf_view(&b));
}

static int by_place(const void *pa, const void *pb)
{
	const struct lint_finding *a = pa, *b = pb;
	int r;

	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->column != b->column)
		return a->column < b->column ? -1 : 1;
	r = strcmp(a->rule->id, b->rule->id);
	return r ? r : sv_cmp(a->where, b->where);
}

/*
 * Copies sorted findings to the caller. Reports findings with the same rule and position once
 * (services that share an anchor, for example, yield such findings).
 */
static int publish(struct check *c, struct writ_err *err)
{
	const struct lint_finding *last = NULL;
	const size_t before = c->out->n;

	if (c->found.n)
		qsort(c->found.v, c->found.n, sizeof(*c->found.v), by_place);
	for (size_t i = 0; i < c->found.n; i++) {
		const struct lint_finding *f = &c->found.v[i];

		if (last && last->rule == f->rule && last->line == f->line &&
		    last->column == f->column)
			continue;
		if (!vec_add(c->arena, c->out, *f)) {
			c->out->n = before;
			return writ_nomem(err);
		}
		last = f;
	}
	return 0;
}

static int run_yaml(struct check *c, struct writ_err *err)
{
	struct node_list docs = { 0 };
	bool egress = false;
	int r = lint_yaml(c, &docs, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < docs.n; i++)
		egress = egress || lint_kube_limits_egress(docs.v[i], LINT_KUBE_DEPTH);
	for (size_t i = 0; i < docs.n; i++) {
		if (c->format == LINT_COMPOSE)
			lint_compose(c, docs.v[i]);
		else
			lint_kube(c, docs.v[i], egress, LINT_KUBE_DEPTH);
	}
	return 0;
}

static int run_json(struct check *c, struct writ_err *err)
{
	const struct node *root = NULL;
	int r = lint_json(c, &root, err);

	if (r < 0)
		return r;
	if (root->kind != NODE_MAP)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "not a JSON object");
	if (c->format == LINT_DEVCONTAINER)
		lint_devcontainer(c, root);
	else if (c->format == LINT_CLAUDE)
		lint_claude(c, root);
	else if (c->format == LINT_SRT)
		lint_srt(c, root);
	else
		lint_mcp(c, root);
	return 0;
}

static int run_format(struct check *c, struct writ_err *err)
{
	switch (c->format) {
	case LINT_DOCKER:
		lint_docker(c);
		return 0;
	case LINT_DOCKERFILE:
		lint_dockerfile(c);
		return 0;
	case LINT_COMPOSE:
	case LINT_KUBE:
		return run_yaml(c, err);
	case LINT_DEVCONTAINER:
	case LINT_CLAUDE:
	case LINT_SRT:
	case LINT_MCP:
		return run_json(c, err);
	case LINT_UNKNOWN:
	case LINT_FORMAT_COUNT:
		break;
	}
	return writ_fail(err, WRIT_E_SYNTAX, 0, "cannot tell what kind of file this is");
}

int lint_run(struct arena *arena, enum lint_format format, struct sv name, struct sv text,
	     struct lint_findings *findings, struct writ_err *err)
{
	struct check c = { .arena = arena, .format = format, .out = findings, .label = SV("") };
	int r;

	if (text.n > LINT_BYTES_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "larger than 4 MiB");
	if (lint_starts(text, "\xef\xbb\xbf"))
		text = sv_skip(text, 3);
	/*
	 * Refuse a file with a NUL or invalid UTF-8: some tools stop at a NUL or guess an encoding,
	 * and would read another text than lint.
	 */
	if (memchr(text.p, 0, text.n) || !sv_is_utf8(text))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "not UTF-8 text");
	c.text = text;
	if (format == LINT_UNKNOWN)
		c.format = lint_detect(name, text);
	r = run_format(&c, err);
	if (r < 0)
		return r;
	if (c.failed)
		return writ_fail(err, c.failed, 0, "%s", c.failed_why);
	return publish(&c, err);
}
