#include "lint/tree_priv.h"

#include <stdlib.h>
#include <string.h>

#include "lint/check_priv.h"

#include "base/banned.h"

struct node *lint_node(struct check *c, enum node_kind kind, size_t off, size_t end)
{
	const char *eol;
	struct node *n;

	if (++c->nodes > LINT_NODES_MAX) {
		lint_fail(c, WRIT_E_LIMIT, "too many values, counting each use of an alias");
		return NULL;
	}
	n = lint_must(c, arena_new(c->arena, struct node));
	if (!n)
		return NULL;
	off = off > c->text.n ? c->text.n : off;
	end = end > c->text.n ? c->text.n : end;
	n->kind = kind;
	n->text = n->key = SV("");
	n->off = (uint32_t)off;
	if (end > off) {
		eol = memchr(c->text.p + off, '\n', end - off);
		n->width = (uint32_t)(eol ? (size_t)(eol - c->text.p) - off : end - off);
	}
	return n;
}

void lint_attach(struct node *parent, struct sv key, struct node *child)
{
	child->parent = parent;
	child->key = key;
	child->index = parent->count++;
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
}

/* Copies a node with everything below it. LINT_DEPTH_MAX bounds the recursion. */
struct node *lint_copy(struct check *c, const struct node *n, unsigned depth)
{
	struct node *copy;

	if (depth > LINT_DEPTH_MAX) {
		lint_fail(c, WRIT_E_LIMIT, "nested too deeply");
		return NULL;
	}
	copy = lint_node(c, n->kind, n->off, n->off + n->width);
	if (!copy)
		return NULL;
	copy->quoted = n->quoted;
	copy->text = n->text;
	copy->key_off = n->key_off;
	copy->key_width = n->key_width;
	for (const struct node *i = n->first; i; i = i->next) {
		struct node *child = lint_copy(c, i, depth + 1);

		if (!child)
			return NULL;
		lint_attach(copy, i->key, child);
	}
	return copy;
}

static int by_key(const void *a, const void *b)
{
	return sv_cmp((*(const struct node *const *)a)->key, (*(const struct node *const *)b)->key);
}

int lint_unique(struct check *c, const struct node *map)
{
	const struct node **sorted;
	size_t n = 0;

	if (map->count < 2)
		return 0;
	sorted = arena_array(c->arena, const struct node *, map->count);
	if (!sorted)
		return WRIT_E_NOMEM;
	for (const struct node *i = map->first; i; i = i->next)
		sorted[n++] = i;
	qsort(sorted, n, sizeof(*sorted), by_key);
	for (size_t i = 1; i < n; i++)
		if (sv_eq(sorted[i - 1]->key, sorted[i]->key))
			return WRIT_E_SYNTAX;
	return 0;
}

const struct node *lint_child(const struct node *map, struct sv key)
{
	for (const struct node *i = lint_members(map); i; i = i->next)
		if (sv_eq(i->key, key))
			return i;
	return NULL;
}

const struct node *lint_get(const struct node *map, const char *key)
{
	return lint_child(map, sv_from(key));
}

const struct node *lint_at(const struct node *map, const char *dotted)
{
	struct sv rest = sv_from(dotted);

	while (map && rest.n)
		map = lint_child(map, sv_cut(&rest, '.'));
	return map;
}

struct sv lint_text(const struct node *n)
{
	return n && n->kind == NODE_SCALAR ? n->text : SV("");
}

bool lint_is(const struct node *n, const char *text)
{
	return n && n->kind == NODE_SCALAR && lint_eq(n->text, text);
}

bool lint_true(const struct node *n)
{
	const struct sv s = lint_default(lint_text(n));

	return lint_eq(s, "true") || lint_eq(s, "yes") || lint_eq(s, "on") || lint_eq(s, "y");
}

bool lint_false(const struct node *n)
{
	const struct sv s = lint_default(lint_text(n));

	return lint_eq(s, "false") || lint_eq(s, "no") || lint_eq(s, "off") || lint_eq(s, "n");
}

const struct node *lint_members(const struct node *n)
{
	return n && n->kind == NODE_MAP ? n->first : NULL;
}

const struct node *lint_first(const struct node *n)
{
	if (!n || n->kind == NODE_NULL)
		return NULL;
	return n->kind == NODE_SCALAR ? n : n->first;
}

const struct node *lint_next(const struct node *n, const struct node *i)
{
	return n == i ? NULL : i->next;
}

const struct node *lint_key(struct check *c, const struct node *n)
{
	struct node *k;

	if (!n->key_width)
		return n;
	k = lint_node(c, n->kind, n->key_off, n->key_off + n->key_width);
	if (!k)
		return n;
	k->parent = n->parent;
	k->key = n->key;
	k->index = n->index;
	return k;
}

struct sv lint_where(struct arena *a, const struct node *n)
{
	const struct node *chain[LINT_DEPTH_MAX + 2];
	scoped_buf b = BUF_INIT(1024);
	struct sv where = SV("");
	size_t depth = 0;

	for (; n && n->parent && depth < ARRAY_LEN(chain); n = n->parent)
		chain[depth++] = n;
	while (depth) {
		n = chain[--depth];
		if (n->parent->kind == NODE_LIST)
			buf_fmt(&b, "[%u]", n->index);
		else
			buf_fmt(&b, "%s" SV_FMT, b.n ? "." : "", SV_ARG(n->key));
	}
	if (b.failed || !arena_sv(a, buf_view(&b), &where))
		return SV("");
	return where;
}
