#include <string.h>

#include "codec/json.h"
#include "conform/conform_priv.h"

#include "base/banned.h"

enum { JSON_BYTES = 16 << 20, ID_MAX = 32 };

/* --- Rows --- */

static struct sv text_of(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	return json_is_string(v) ? (struct sv){ json_string_value(v), json_string_length(v) }
				 : SV("");
}

static bool keep_text(struct arena *a, const json_t *object, const char *key, struct sv *ret)
{
	return arena_sv(a, text_of(object, key), ret);
}

/*
 * Parses the flags of a row. Refuses an unknown flag, which may require a way of running that this
 * version does not know.
 */
static bool read_flags(const json_t *flags, unsigned *ret)
{
	size_t i;
	json_t *v;

	*ret = 0;
	json_array_foreach(flags, i, v)
	{
		const char *s = json_string_value(v);
		unsigned k = 0;

		while (s && conform_flag_name(k) && strcmp(s, conform_flag_name(k)) != 0)
			k++;
		if (!s || !conform_flag_name(k))
			return false;
		*ret |= 1u << k;
	}
	return json_is_array(flags);
}

static const struct conform_row *find_row(const struct conform_rows *rows, struct sv id)
{
	for (size_t i = 0; i < rows->rows.n; i++)
		if (sv_eq(rows->rows.v[i].id, id))
			return &rows->rows.v[i];
	return NULL;
}

/* Tests for a valid id of a row. Ids become file names and parts of comma-separated lists. */
static bool is_id(struct sv id)
{
	return id.n > 0 && id.n <= ID_MAX && sv_is_graph(id) && sv_find(id, ',') == SIZE_MAX &&
	       sv_find(id, '/') == SIZE_MAX && id.p[0] != '-' && id.p[0] != '.';
}

static int read_row(const json_t *v, struct arena *a, struct conform_row *ret, struct writ_err *err)
{
	struct conform_row r = { .control = json_is_true(json_object_get(v, "control")),
				 .outside = sv_is(text_of(v, "judged"), "outside") };
	enum guarantee g;

	if (!keep_text(a, v, "id", &r.id) || !keep_text(a, v, "bound", &r.bound) ||
	    !keep_text(a, v, "guarantee", &r.guarantee) || !keep_text(a, v, "what", &r.what) ||
	    !keep_text(a, v, "policy", &r.policy) || !keep_text(a, v, "gap", &r.gap))
		return writ_nomem(err);
	if (!is_id(r.id) || r.bound.n == 0 || !guarantee_parse(r.guarantee, &g) ||
	    !read_flags(json_object_get(v, "flags"), &r.flags))
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "writ-escape lists a row that is not of this version: %.40s",
				 r.id.p);
	*ret = r;
	return 0;
}

int conform_read_rows(struct sv json, struct arena *a, struct conform_rows *ret,
		      struct writ_err *err)
{
	struct conform_rows rows = { 0 };
	scoped_json *list = NULL;
	size_t i;
	json_t *v;
	int r = json_decode(json, JSON_BYTES, &list, err);

	if (r < 0)
		return r;
	if (!json_is_array(list))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "writ-escape lists no rows");
	json_array_foreach(list, i, v)
	{
		struct conform_row row;

		r = read_row(v, a, &row, err);
		if (r < 0)
			return r;
		if (find_row(&rows, row.id))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "two rows are called %.40s",
					 row.id.p);
		if (!vec_add(a, &rows.rows, row))
			return writ_nomem(err);
	}
	*ret = rows;
	return 0;
}

/* --- Declared levels --- */

static bool is_weak(enum level l)
{
	return l < LEVEL_STRICTER;
}

int conform_read_declared(struct sv text, struct conform_levels *ret, struct writ_err *err)
{
	struct conform_levels l = { .tier = SV("") };

	while (text.n) {
		struct sv level = sv_trim(sv_cut(&text, ','));
		const struct sv name = sv_trim(sv_cut(&level, '='));
		enum guarantee g;
		enum level how;

		if (!guarantee_parse(name, &g))
			return writ_fail(err, WRIT_E_SYNTAX, 0,
					 "--declare: no guarantee \"%.*s\"; writ explain -v lists "
					 "them",
					 (int)(name.n < 40 ? name.n : 40), name.p);
		if (!level_parse(sv_trim(level), &how))
			return writ_fail(err, WRIT_E_SYNTAX, 0,
					 "--declare %s=LEVEL: exact, stricter, partial or none",
					 guarantee_name(g));
		l.weak[g] = is_weak(how);
	}
	*ret = l;
	return 0;
}

static int read_gaps(const json_t *gaps, struct arena *a, struct conform_levels *l,
		     struct writ_err *err)
{
	size_t i;
	json_t *v;

	json_array_foreach(gaps, i, v)
	{
		struct sv *slot = vec_push(a, &l->gaps);

		if (!slot || !keep_text(a, v, "what", slot))
			return writ_nomem(err);
	}
	return 0;
}

int conform_read_explain(struct sv json, struct arena *a, struct conform_levels *ret,
			 struct writ_err *err)
{
	struct conform_levels l = { .tier = SV("") };
	scoped_json *top = NULL;
	const json_t *guarantees, *gaps, *refused;
	int r = json_decode(json, JSON_BYTES, &top, err);

	if (r < 0)
		return r;
	guarantees = json_object_get(top, "guarantees");
	gaps = json_object_get(top, "gaps");
	refused = json_object_get(top, "refused");
	if (!json_is_object(guarantees) || !json_is_array(gaps) || !json_is_integer(refused))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "this is not a plan");
	for (unsigned g = 0; g < G_COUNT; g++) {
		const json_t *v = json_object_get(guarantees, guarantee_name((enum guarantee)g));
		enum level how;

		/* A guarantee that the plan does not mention is not declared weak. */
		l.weak[g] = level_parse(text_of(v, "level"), &how) && is_weak(how);
	}
	l.refused = json_integer_value(refused) > 0;
	if (!keep_text(a, top, "tier", &l.tier))
		return writ_nomem(err);
	r = read_gaps(gaps, a, &l, err);
	if (r == 0)
		*ret = l;
	return r;
}

bool conform_declared(const struct conform_levels *l, const struct conform_row *row)
{
	enum guarantee g;

	if (guarantee_parse(row->guarantee, &g) && l->weak[g])
		return true;
	for (size_t i = 0; i < l->gaps.n; i++)
		if (row->gap.n && sv_eq(l->gaps.v[i], row->gap))
			return true;
	return false;
}

/* --- Trials --- */

static bool seen_parse(struct sv s, enum conform_seen *ret)
{
	for (enum conform_seen i = 0; i < SEEN_COUNT; i++)
		if (sv_is(s, conform_seen_name(i))) {
			*ret = i;
			return true;
		}
	return false;
}

void conform_copy_text(char to[CONFORM_TEXT], struct sv s)
{
	const size_t n = s.n < CONFORM_TEXT - 1 ? s.n : CONFORM_TEXT - 1;

	memcpy(to, s.p, n);
	to[n] = 0;
}

void conform_read_judged(struct sv text, const struct conform_rows *rows,
			 struct conform_trial *trials)
{
	while (text.n) {
		struct sv line = sv_cut(&text, '\n');
		const struct conform_row *row = find_row(rows, sv_cut(&line, '\t'));
		struct conform_trial t = { 0 };

		if (!row || !seen_parse(sv_cut(&line, '\t'), &t.seen))
			continue;
		conform_copy_text(t.why, sv_cut(&line, '\t'));
		conform_copy_text(t.said, sv_cut(&line, '\t'));
		trials[row - rows->rows.v] = t;
	}
}

int conform_read_bare(struct sv json, const struct conform_rows *rows, struct conform_trial *trials,
		      struct writ_err *err)
{
	scoped_json *top = NULL;
	int r = json_decode(json, JSON_BYTES, &top, err);

	if (r < 0)
		return r;
	if (!json_is_object(top))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "this file does not keep trials");
	for (size_t i = 0; i < rows->rows.n; i++) {
		const json_t *v = json_object_get(top, rows->rows.v[i].id.p);
		struct conform_trial t = { 0 };

		if (!v)
			return 0;
		if (json_array_size(v) != 3 || !json_is_string(json_array_get(v, 0)) ||
		    !json_is_string(json_array_get(v, 1)) ||
		    !json_is_string(json_array_get(v, 2)) ||
		    !seen_parse(sv_from(json_string_value(json_array_get(v, 0))), &t.seen))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "this file does not keep trials");
		conform_copy_text(t.why, sv_from(json_string_value(json_array_get(v, 1))));
		conform_copy_text(t.said, sv_from(json_string_value(json_array_get(v, 2))));
		trials[i] = t;
	}
	return 1;
}

void conform_put_bare(struct buf *b, const struct conform_rows *rows,
		      const struct conform_trial *trials)
{
	buf_str(b, "{");
	for (size_t i = 0; i < rows->rows.n; i++) {
		buf_str(b, i ? ",\n" : "\n");
		json_put_str(b, rows->rows.v[i].id);
		buf_str(b, ":[");
		json_put_item(b, sv_from(conform_seen_name(trials[i].seen)));
		json_put_item(b, sv_from(trials[i].why));
		json_put_item(b, sv_from(trials[i].said));
		buf_ch(b, ']');
	}
	buf_str(b, "\n}\n");
}

/* --- Command line --- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Appends one word without its quotes and moves *@s past it. */
static int take_word(struct sv *s, struct buf *b, struct writ_err *err)
{
	char quote = 0;

	for (; s->n && (quote || !is_blank(s->p[0])); *s = sv_skip(*s, 1)) {
		const char c = s->p[0];
		/* Inside double quotes a backslash escapes only a quote or a backslash. */
		const bool escapes =
			c == '\\' && s->n > 1 &&
			(!quote || (quote == '"' && (s->p[1] == '"' || s->p[1] == '\\')));

		if (escapes) {
			*s = sv_skip(*s, 1);
			buf_ch(b, s->p[0]);
		} else if (quote ? c == quote : c == '"' || c == '\'') {
			quote = quote ? 0 : c;
		} else {
			buf_ch(b, c);
		}
	}
	return quote ? writ_fail(err, WRIT_E_SYNTAX, 0, "a quote %c is not closed", quote) : 0;
}

int conform_split(struct sv text, struct arena *a, struct conform_words *ret, struct writ_err *err)
{
	struct conform_words words = { 0 };

	for (;;) {
		scoped_buf b = BUF_INIT(1 << 16);
		const char **slot;

		while (text.n && is_blank(text.p[0]))
			text = sv_skip(text, 1);
		if (text.n == 0)
			break;
		if (take_word(&text, &b, err) < 0 || buf_check(&b, err) < 0)
			return err->code;
		slot = vec_push(a, &words.words);
		if (!slot || !(*slot = arena_str(a, buf_view(&b))))
			return writ_nomem(err);
	}
	*ret = words;
	return 0;
}
