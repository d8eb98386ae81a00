#include <jansson.h>
#include <string.h>

#include "codec/json.h"
#include "lint/check_priv.h"

#include "base/banned.h"

/*
 * jansson validates the text and provides the values. The walker passes over the same text in the
 * same order, only to find the position of each value.
 */

enum { BLANK = ' ' };

size_t lint_json_comment(struct sv t, size_t i)
{
	size_t j;

	if (t.p[i] != '/' || i + 1 >= t.n)
		return 0;
	if (t.p[i + 1] == '/') {
		for (j = i; j < t.n && t.p[j] != '\n'; j++)
			;
		return j - i;
	}
	if (t.p[i + 1] != '*')
		return 0;
	for (j = i + 2; j + 1 < t.n; j++)
		if (t.p[j] == '*' && t.p[j + 1] == '/')
			return j + 2 - i;
	return SIZE_MAX;
}

size_t lint_json_string(struct sv t, size_t i)
{
	size_t j = i + 1;

	while (j < t.n && t.p[j] != '"')
		j += t.p[j] == '\\' ? 2 : 1;
	return (j < t.n ? j + 1 : t.n) - i;
}

/*
 * Overwrites comments and trailing commas in JSON with blanks, so that offsets and lines stay
 * valid. Also checks the depth, which bounds jansson's recursion.
 */
static int plain_json(char *p, size_t n, struct writ_err *err)
{
	const struct sv t = { p, n };
	size_t comma = SIZE_MAX, depth = 0, i = 0;

	while (i < n) {
		const size_t skip = lint_json_comment(t, i);
		const char ch = p[i];

		if (skip == SIZE_MAX)
			return writ_fail(err, WRIT_E_SYNTAX, 0, "a comment does not end");
		for (size_t j = 0; j < skip; j++)
			if (p[i + j] != '\n')
				p[i + j] = BLANK;
		if (skip) {
			i += skip;
			continue;
		}
		if ((ch == '}' || ch == ']') && comma != SIZE_MAX)
			p[comma] = BLANK;
		if (ch == '{' || ch == '[')
			depth++;
		if ((ch == '}' || ch == ']') && depth)
			depth--;
		if (depth > LINT_DEPTH_MAX)
			return writ_fail(err, WRIT_E_LIMIT, 0, "nested too deeply");
		if (ch == ',')
			comma = i;
		else if (ch != ' ' && ch != '\t' && ch != '\n' && ch != '\r')
			comma = SIZE_MAX;
		i += ch == '"' ? lint_json_string(t, i) : 1;
	}
	return 0;
}

struct walk {
	struct check *c;
	struct sv t; /* text being walked, valid JSON */
	size_t i;
};

static void skip_blank(struct walk *w)
{
	while (w->i < w->t.n && strchr(" \t\r\n,:", w->t.p[w->i]))
		w->i++;
}

static struct node *walk_scalar(struct walk *w, const json_t *v)
{
	const size_t off = w->i;
	const bool string = json_is_string(v);
	struct node *n;
	struct sv text;

	if (string)
		w->i += lint_json_string(w->t, off);
	else
		while (w->i < w->t.n && !strchr(" \t\r\n,:]}", w->t.p[w->i]))
			w->i++;
	n = lint_node(w->c, json_is_null(v) ? NODE_NULL : NODE_SCALAR, off, w->i);
	if (!n)
		return NULL;
	n->quoted = string;
	text = string ? (struct sv){ json_string_value(v), json_string_length(v) }
		      : sv_sub(w->t, off, w->i - off);
	return lint_keep(w->c, text, &n->text) ? n : NULL;
}

static struct node *walk_value(struct walk *w, json_t *v);

static bool walk_member(struct walk *w, struct node *map, const char *key, json_t *v)
{
	struct node *child;
	struct sv name;
	size_t off, width;

	skip_blank(w);
	off = w->i;
	width = lint_json_string(w->t, off); /* skip the key, which jansson has parsed */
	w->i += width;
	child = walk_value(w, v);
	if (!child || !lint_keep(w->c, sv_from(key), &name))
		return false;
	lint_attach(map, name, child);
	child->key_off = (uint32_t)off;
	child->key_width = (uint32_t)width;
	return true;
}

/* Makes the node of value @v and its children. Relies on jansson to preserve the order of keys. */
static struct node *walk_value(struct walk *w, json_t *v)
{
	struct node *n, *child;
	const char *key;
	json_t *item;
	size_t i;

	skip_blank(w);
	if (!json_is_object(v) && !json_is_array(v))
		return walk_scalar(w, v);
	n = lint_node(w->c, json_is_object(v) ? NODE_MAP : NODE_LIST, w->i, w->i + 1);
	if (!n)
		return NULL;
	w->i++;
	json_object_foreach(v, key, item) if (!walk_member(w, n, key, item)) return NULL;
	json_array_foreach(v, i, item)
	{
		child = walk_value(w, item);
		if (!child)
			return NULL;
		lint_attach(n, SV(""), child);
	}
	skip_blank(w);
	w->i++; /* skip the closing bracket */
	return n;
}

/*
 * Reports a JSON error.
 * SECURITY: cuts off the input that jansson quotes after " near ", which may be a secret.
 */
static int fail_json(const json_error_t *e, struct writ_err *err)
{
	const char *near = strstr(e->text, " near ");
	const size_t n = near ? (size_t)(near - e->text) : strlen(e->text);

	return writ_fail(err, WRIT_E_SYNTAX, 0, "line %d column %d: %.*s", e->line, e->column,
			 (int)n, e->text);
}

int lint_json(struct check *c, const struct node **ret_root, struct writ_err *err)
{
	char *copy = arena_str(c->arena, c->text);
	struct walk w = { .c = c };
	const struct node *root;
	json_error_t e;
	int r;

	if (!copy)
		return writ_nomem(err);
	r = plain_json(copy, c->text.n, err);
	if (r < 0)
		return r;
	scoped_json *v = json_loadb(copy, c->text.n, JSON_REJECT_DUPLICATES, &e);
	if (!v)
		return fail_json(&e, err);
	w.t = (struct sv){ copy, c->text.n };
	root = walk_value(&w, v);
	if (!root)
		return writ_fail(err, c->failed ? c->failed : WRIT_E_BUG, 0, "%s",
				 c->failed_why ? c->failed_why : "json");
	*ret_root = root;
	return 0;
}
