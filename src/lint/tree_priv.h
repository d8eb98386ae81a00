/*
 * tree_priv.h - one tree for YAML and JSON, with positions
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   every format walks this and nothing else
 *
 * Shell words are nodes too, without a parent, so that a rule can point at one
 * in the same way. Nodes live in the check's arena.
 */
#ifndef WRIT_LINT_TREE_PRIV_H
#define WRIT_LINT_TREE_PRIV_H

#include "base/arena.h"
#include "base/err.h"

struct check;

enum node_kind {
	NODE_NULL = 0,
	NODE_SCALAR,
	NODE_LIST,
	NODE_MAP,
};

struct node {
	enum node_kind kind;
	bool quoted;	     /* a string by its quotes */
	uint32_t off, width; /* bytes of the file; width ends with the line */
	uint32_t index;	     /* among the parent's children */
	uint32_t count;	     /* children */
	struct sv text;	     /* of a scalar */
	struct sv key;	     /* if the parent is a map */
	uint32_t key_off, key_width;
	struct node *parent, *first, *last, *next;
};

struct node_list {
	const struct node **v;
	size_t n, room;
};

/* NULL above the node budget or without memory; the check remembers why. */
struct node *lint_node(struct check *c, enum node_kind kind, size_t off, size_t end);
void lint_attach(struct node *parent, struct sv key, struct node *child);
/* A copy of @n and everything below, @depth levels down; NULL as lint_node(). */
struct node *lint_copy(struct check *c, const struct node *n, unsigned depth);
/* Fails with WRIT_E_SYNTAX if two children of @map have the same key. */
must_check int lint_unique(struct check *c, const struct node *map);

/* All of these take NULL and answer NULL, false or the empty view. */
const struct node *lint_get(const struct node *map, const char *key);
const struct node *lint_at(const struct node *map, const char *dotted);
struct sv lint_text(const struct node *n);
bool lint_true(const struct node *n);		      /* true, yes, on; also as a string */
bool lint_false(const struct node *n);		      /* false, no, off; also as a string */
bool lint_is(const struct node *n, const char *text); /* without case */

/*
 * For settings that take one value or a list of them:
 * for (i = lint_first(n); i; i = lint_next(n, i))
 */
const struct node *lint_first(const struct node *n);
const struct node *lint_next(const struct node *n, const struct node *i);

/* The same node, but pointing at its key: for what is missing inside it. */
const struct node *lint_key(struct check *c, const struct node *n);

/* "services.agent.volumes[0]"; empty for a node without a parent. */
struct sv lint_where(struct arena *a, const struct node *n);

/* Each document's root is appended to *@docs. */
must_check int lint_yaml(struct check *c, struct node_list *docs, struct writ_err *err);
/* JSON, or JSON with comments and trailing commas. */
must_check int lint_json(struct check *c, const struct node **ret_root, struct writ_err *err);

#endif
