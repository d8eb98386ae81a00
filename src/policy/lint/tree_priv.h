/*
 * tree_priv.h - one tree with positions for YAML and JSON
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   every format reads this tree
 *
 * Shell words are nodes without a parent, so that a rule reports them like any
 * other node. Nodes are allocated in the check's arena.
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
	bool quoted;	     /* the scalar was quoted, so the scalar is a string */
	uint32_t off, width; /* byte range of the node in the file, cut at its first newline */
	uint32_t index;	     /* position of the node among the children of its parent */
	uint32_t count;	     /* number of children of the node */
	struct sv text;	     /* value of the node, if it is a scalar */
	struct sv key;	     /* key of the node, if its parent is a map */
	uint32_t key_off, key_width;
	struct node *parent, *first, *last, *next;
};

struct node_list {
	const struct node **v;
	size_t n, room;
};

/*
 * Makes a node. Returns NULL above the node limit or without memory, and records the failure in @c.
 */
struct node *lint_node(struct check *c, enum node_kind kind, size_t off, size_t end);
void lint_attach(struct node *parent, struct sv key, struct node *child);
/*
 * Copies node @n with everything below @n; @depth is the depth of the copy. Returns NULL like
 * lint_node().
 */
struct node *lint_copy(struct check *c, const struct node *n, unsigned depth);
/* Returns WRIT_E_SYNTAX if two children of @map have the same key. */
must_check int lint_unique(struct check *c, const struct node *map);

/* The following functions accept a NULL node and return NULL, false or the empty view for it. */
const struct node *lint_child(const struct node *map, struct sv key);
const struct node *lint_get(const struct node *map, const char *key);
const struct node *lint_at(const struct node *map, const char *dotted);
struct sv lint_text(const struct node *n);
bool lint_true(const struct node *n);		      /* is @n true, yes or on, also as a string? */
/* is @n false, no or off, also as a string? */
bool lint_false(const struct node *n);
/* is the text of @n equal to @text, ignoring case? */
bool lint_is(const struct node *n, const char *text);

/* Returns the first member of a map, and NULL for other nodes; .next is the next member. */
const struct node *lint_members(const struct node *n);

/*
 * Iterates over a setting that takes one value or a list of values:
 *   for (i = lint_first(n); i; i = lint_next(n, i))
 */
const struct node *lint_first(const struct node *n);
const struct node *lint_next(const struct node *n, const struct node *i);

/*
 * Returns a copy of node @n positioned at the key of @n, to report a setting that is missing inside
 * @n.
 */
const struct node *lint_key(struct check *c, const struct node *n);

/*
 * Returns the path of node @n, such as "services.agent.volumes[0]"; empty for a node without a
 * parent.
 */
struct sv lint_where(struct arena *a, const struct node *n);

/* Parses YAML and appends the root of each document to *@docs. */
must_check int lint_yaml(struct check *c, struct node_list *docs, struct writ_err *err);
/*
 * Returns the length of the comment at @i, 0 if no comment starts at @i, or SIZE_MAX if the comment
 * is unterminated.
 */
size_t lint_json_comment(struct sv t, size_t i);
/*
 * Returns the length of the string at @i with its quotes, or of the rest of @t if the string is
 * unterminated.
 */
size_t lint_json_string(struct sv t, size_t i);
/* Parses JSON, with or without comments and trailing commas. */
must_check int lint_json(struct check *c, const struct node **ret_root, struct writ_err *err);

#endif
