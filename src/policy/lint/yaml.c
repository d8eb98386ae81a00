#include <yaml.h>

#include "lint/check_priv.h"

#include "base/banned.h"

struct anchor {
	struct sv name;
	const struct node *node;
	bool open; /* the anchored node is not closed yet: an alias to it would be infinite */
};

struct frame {
	struct node *node;
	struct node *key; /* key of a map that waits for its value */
	size_t anchor;	  /* 1 + index of the anchor that the node defines, or 0 */
};

struct yaml_read {
	struct check *c;
	struct node_list *docs;
	struct frame stack[LINT_DEPTH_MAX];
	unsigned depth;
	VEC(struct anchor) anchors;
	/*
	 * Numbers of characters and bytes up to the same position: libyaml counts characters, nodes
	 * have byte offsets.
	 */
	size_t chars, bytes;
	struct writ_err *err;
};

static void scope_parser(yaml_parser_t *p)
{
	yaml_parser_delete(p);
}

static void scope_event(yaml_event_t *e)
{
	yaml_event_delete(e);
}

/*
 * Converts a position of libyaml to a byte offset. Positions mostly rise; a step back is shorter
 * than a token.
 */
static size_t byte_of(struct yaml_read *y, size_t index)
{
	const struct sv t = y->c->text;

	while (y->chars > index && y->bytes) {
		y->bytes--;
		if (((uint8_t)t.p[y->bytes] & 0xc0) != 0x80)
			y->chars--;
	}
	while (y->chars < index && y->bytes < t.n) {
		y->bytes++;
		while (y->bytes < t.n && ((uint8_t)t.p[y->bytes] & 0xc0) == 0x80)
			y->bytes++;
		y->chars++;
	}
	return y->bytes;
}

static int fail_at(struct yaml_read *y, const yaml_mark_t *m, int code, const char *why)
{
	return writ_fail(y->err, code, 0, "line %zu column %zu: %s", m->line + 1, m->column + 1,
			 why);
}

static int fail_check(struct yaml_read *y)
{
	return writ_fail(y->err, y->c->failed ? y->c->failed : WRIT_E_BUG, 0, "%s",
			 y->c->failed_why ? y->c->failed_why : "yaml");
}

static struct node *new_node(struct yaml_read *y, enum node_kind kind, const yaml_event_t *e)
{
	const size_t off = byte_of(y, e->start_mark.index);
	const size_t end = byte_of(y, e->end_mark.index);

	return lint_node(y->c, kind, off, end);
}

static int add_anchor(struct yaml_read *y, const yaml_char_t *name, const struct node *n, bool open,
		      const yaml_mark_t *m)
{
	struct anchor a = { .node = n, .open = open };

	if (!name)
		return 0;
	if (y->anchors.n >= LINT_ANCHORS_MAX)
		return fail_at(y, m, WRIT_E_LIMIT, "too many anchors");
	return arena_sv(y->c->arena, sv_from((const char *)name), &a.name) &&
			       vec_add(y->c->arena, &y->anchors, a)
		       ? 0
		       : writ_nomem(y->err);
}

/* Attaches node @n at the current position: as a document, a list item, a key or a value. */
static int add_node(struct yaml_read *y, struct node *n, const yaml_mark_t *m)
{
	struct frame *top;

	if (!y->depth)
		return vec_add(y->c->arena, y->docs, n) ? 0 : writ_nomem(y->err);
	top = &y->stack[y->depth - 1];
	if (top->node->kind == NODE_LIST) {
		lint_attach(top->node, SV(""), n);
		return 0;
	}
	if (top->key) {
		lint_attach(top->node, top->key->text, n);
		n->key_off = top->key->off;
		n->key_width = top->key->width;
		top->key = NULL;
		return 0;
	}
	if (n->kind != NODE_SCALAR && n->kind != NODE_NULL)
		return fail_at(y, m, WRIT_E_SYNTAX, "a key that is not a plain value");
	top->key = n;
	return 0;
}

static bool is_null_text(struct sv s)
{
	return !s.n || sv_is(s, "~") || lint_eq(s, "null");
}

static int on_scalar(struct yaml_read *y, const yaml_event_t *e)
{
	const struct sv text = { (const char *)e->data.scalar.value, e->data.scalar.length };
	const yaml_char_t *tag = e->data.scalar.tag;
	struct node *n = new_node(y, NODE_SCALAR, e);
	int r;

	if (!n)
		return fail_check(y);
	n->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	if (!arena_sv(y->c->arena, text, &n->text))
		return writ_nomem(y->err);
	if ((!n->quoted && is_null_text(text)) ||
	    (tag && sv_is(sv_from((const char *)tag), "!reset")))
		n->kind = NODE_NULL;
	r = add_anchor(y, e->data.scalar.anchor, n, false, &e->start_mark);
	return r < 0 ? r : add_node(y, n, &e->start_mark);
}

static int on_alias(struct yaml_read *y, const yaml_event_t *e)
{
	const struct sv name = sv_from((const char *)e->data.alias.anchor);
	const struct anchor *hit = NULL;
	struct node *n;

	for (size_t i = y->anchors.n; i && !hit; i--)
		if (sv_eq(y->anchors.v[i - 1].name, name))
			hit = &y->anchors.v[i - 1];
	if (!hit)
		return fail_at(y, &e->start_mark, WRIT_E_SYNTAX, "alias without an anchor");
	if (hit->open)
		return fail_at(y, &e->start_mark, WRIT_E_SYNTAX, "alias inside its own anchor");
	n = lint_copy(y->c, hit->node, y->depth + 1);
	return n ? add_node(y, n, &e->start_mark) : fail_check(y);
}

static int on_open(struct yaml_read *y, const yaml_event_t *e, enum node_kind kind,
		   const yaml_char_t *anchor)
{
	struct node *n;
	struct frame *top;
	int r;

	if (y->depth >= LINT_DEPTH_MAX)
		return fail_at(y, &e->start_mark, WRIT_E_LIMIT, "nested too deeply");
	n = new_node(y, kind, e);
	if (!n)
		return fail_check(y);
	if ((r = add_node(y, n, &e->start_mark)) < 0 ||
	    (r = add_anchor(y, anchor, n, true, &e->start_mark)) < 0)
		return r;
	top = &y->stack[y->depth++];
	*top = (struct frame){ .node = n, .anchor = anchor ? y->anchors.n : 0 };
	return 0;
}

/* Copies into @map the pairs of @from whose keys @map lacks. */
static int merge_one(struct yaml_read *y, struct node *map, const struct node *from)
{
	if ((uint64_t)map->count * from->count > 4000000)
		return writ_fail(y->err, WRIT_E_LIMIT, 0, "merge of very large maps");
	for (const struct node *i = from->first; i; i = i->next) {
		struct node *n;

		if (lint_child(map, i->key))
			continue;
		n = lint_copy(y->c, i, y->depth + 1);
		if (!n)
			return fail_check(y);
		lint_attach(map, i->key, n);
	}
	return 0;
}

/* Expands the merge keys `<<: *a` and `<<: [*a, *b]`. Keys written in the map win. */
static int merge(struct yaml_read *y, struct node *map)
{
	const struct node *from = lint_get(map, "<<");
	int r = 0;

	if (!from || from->kind == NODE_NULL)
		return 0;
	if (from->kind == NODE_MAP)
		return merge_one(y, map, from);
	if (from->kind != NODE_LIST)
		return writ_fail(y->err, WRIT_E_SYNTAX, 0, "merge key without a map");
	for (const struct node *i = from->first; i && !r; i = i->next) {
		if (i->kind != NODE_MAP)
			return writ_fail(y->err, WRIT_E_SYNTAX, 0, "merge key without a map");
		r = merge_one(y, map, i);
	}
	return r;
}

static int on_close(struct yaml_read *y, const yaml_event_t *e)
{
	const struct frame *top = y->depth ? &y->stack[y->depth - 1] : NULL;
	int r;

	if (!top || !top->node)
		return writ_fail(y->err, WRIT_E_BUG, 0, "YAML events do not balance");
	if (top->anchor)
		y->anchors.v[top->anchor - 1].open = false;
	if (top->node->kind == NODE_MAP) {
		r = lint_unique(y->c, top->node);
		if (r == WRIT_E_NOMEM)
			return writ_nomem(y->err);
		if (r < 0)
			return fail_at(y, &e->start_mark, r,
				       "duplicate key in the map that ends here");
		r = merge(y, top->node);
		if (r < 0)
			return r;
	}
	y->depth--;
	return 0;
}

static int on_event(struct yaml_read *y, const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_SCALAR_EVENT:
		return on_scalar(y, e);
	case YAML_ALIAS_EVENT:
		return on_alias(y, e);
	case YAML_SEQUENCE_START_EVENT:
		return on_open(y, e, NODE_LIST, e->data.sequence_start.anchor);
	case YAML_MAPPING_START_EVENT:
		return on_open(y, e, NODE_MAP, e->data.mapping_start.anchor);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return on_close(y, e);
	case YAML_DOCUMENT_START_EVENT:
		y->anchors.n = 0; /* anchors are local to a document */
		return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return 0;
	}
	return 0;
}

int lint_yaml(struct check *c, struct node_list *docs, struct writ_err *err)
{
	__attribute__((cleanup(scope_parser))) yaml_parser_t parser;
	struct yaml_read y = { .c = c, .docs = docs, .err = err };
	bool done = false;

	if (!yaml_parser_initialize(&parser))
		return writ_nomem(err);
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)c->text.p, c->text.n);
	while (!done) {
		__attribute__((cleanup(scope_event))) yaml_event_t e = { 0 };
		int r;

		if (!yaml_parser_parse(&parser, &e))
			return fail_at(&y, &parser.problem_mark, WRIT_E_SYNTAX,
				       parser.problem ? parser.problem : "not YAML");
		r = on_event(&y, &e);
		if (r < 0)
			return r;
		done = e.type == YAML_STREAM_END_EVENT;
	}
	return 0;
}
