#include "codec/json.h"
#include "lint/check_priv.h"

#include "base/banned.h"

/*
 * Writes SARIF 2.1.0 (section numbers of the standard in brackets): one run [3.14], the table of
 * rules as the driver's rules [3.19.23], one result per finding [3.27] and one notification per
 * unreadable file [3.20.21].
 */

#define SCHEMA "https://json.schemastore.org/sarif-2.1.0.json"

static const char *level(enum lint_severity s)
{
	return s == LINT_INFO ? "note" : lint_severity_name(s);
}

/* Writes a file name as a URI reference and escapes reserved characters. */
static void put_uri(struct buf *b, struct sv name)
{
	scoped_buf uri = BUF_INIT(16384);

	if (lint_starts(name, "./"))
		name = sv_skip(name, 2);
	if (lint_starts(name, "/"))
		buf_str(&uri, "file://");
	for (size_t i = 0; i < name.n; i++) {
		if (sv_is_alnum(sv_sub(name, i, 1), "-._~/"))
			buf_ch(&uri, name.p[i]);
		else
			buf_fmt(&uri, "%%%02X", (uint8_t)name.p[i]);
	}
	if (uri.failed)
		b->failed = true;
	json_put_str(b, buf_view(&uri));
}

static void put_rule(struct buf *b, const struct lint_rule *r)
{
	buf_ch(b, '{');
	json_put_member(b, "id", sv_from(r->id));
	json_put_member(b, "name", sv_from(r->name));
	buf_str(b, ",\"shortDescription\":{");
	json_put_member(b, "text", sv_from(r->title));
	buf_str(b, "},\"fullDescription\":{");
	json_put_member(b, "text", sv_from(r->why));
	buf_str(b, "},\"help\":{");
	json_put_member(b, "text", sv_from(r->fix));
	buf_str(b, "},\"defaultConfiguration\":{");
	json_put_member(b, "level", sv_from(level(r->severity)));
	buf_str(b, "},\"properties\":{\"endangers\":");
	lint_put_guarantees(b, r->endangers);
	buf_str(b, "}}");
}

static bool is_ours(const struct lint_rule *r)
{
	for (size_t i = 0; lint_rule_at(i); i++)
		if (lint_rule_at(i) == r)
			return true;
	return false;
}

/* Does a finding before number @j of file @i have the rule @r? */
static bool seen_before(const struct lint_file *files, size_t i, size_t j,
			const struct lint_rule *r)
{
	for (size_t k = 0; k <= i; k++)
		for (size_t m = 0; m < (k == i ? j : files[k].n); m++)
			if (files[k].findings[m].rule == r)
				return true;
	return false;
}

/* Writes all lint rules of rules.c, then the other rules that findings refer to. */
static void put_rules(struct buf *b, const struct lint_file *files, size_t n)
{
	for (size_t i = 0; lint_rule_at(i); i++) {
		buf_str(b, i ? ",\n" : "\n");
		put_rule(b, lint_rule_at(i));
	}
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < files[i].n; j++) {
			const struct lint_rule *r = files[i].findings[j].rule;

			if (is_ours(r) || seen_before(files, i, j, r))
				continue;
			buf_str(b, ",\n");
			put_rule(b, r);
		}
}

static void put_result(struct buf *b, const struct lint_file *file, const struct lint_finding *f)
{
	scoped_buf message = BUF_INIT(4096);

	lint_message(f, &message);
	buf_ch(b, '{');
	json_put_member(b, "ruleId", sv_from(f->rule->id));
	json_put_member(b, "level", sv_from(level(f->rule->severity)));
	buf_str(b, ",\"message\":{");
	json_put_member(b, "text", buf_view(&message));
	buf_str(b, "},\"locations\":[{\"physicalLocation\":{\"artifactLocation\":{\"uri\":");
	put_uri(b, file->name);
	buf_ch(b, '}');
	if (f->line)
		buf_fmt(b, ",\"region\":{\"startLine\":%u,\"startColumn\":%u,\"endColumn\":%u}",
			f->line, f->column, f->column + f->width);
	buf_ch(b, '}');
	if (f->where.n) {
		buf_str(b, ",\"logicalLocations\":[{");
		json_put_member(b, "fullyQualifiedName", f->where);
		buf_str(b, "}]");
	}
	buf_str(b, "}]}");
}

static void put_notifications(struct buf *b, const struct lint_file *files, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!files[i].error)
			continue;
		json_put_sep(b);
		buf_str(b, "{\"level\":\"error\",\"message\":{");
		json_put_member(b, "text", sv_from(files[i].error));
		buf_str(b,
			"},\"locations\":[{\"physicalLocation\":{\"artifactLocation\":{\"uri\":");
		put_uri(b, files[i].name);
		buf_str(b, "}}}]}");
	}
}

void lint_print_sarif(const struct lint_file *files, size_t n, struct buf *b)
{
	bool first = true, ok = true;

	for (size_t i = 0; i < n; i++)
		ok = ok && !files[i].error;
	buf_str(b, "{\"version\":\"2.1.0\",\"$schema\":\"" SCHEMA "\",\"runs\":[{");
	buf_str(b, "\"tool\":{\"driver\":{\"name\":\"writ lint\",\"rules\":[");
	put_rules(b, files, n);
	buf_str(b, "]}},\"columnKind\":\"unicodeCodePoints\",\"invocations\":[{");
	buf_fmt(b, "\"executionSuccessful\":%s,\"toolExecutionNotifications\":[",
		ok ? "true" : "false");
	put_notifications(b, files, n);
	buf_str(b, "]}],\"results\":[");
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < files[i].n; j++) {
			buf_str(b, first ? "\n" : ",\n");
			put_result(b, &files[i], &files[i].findings[j]);
			first = false;
		}
	buf_str(b, "]}]}\n");
}
