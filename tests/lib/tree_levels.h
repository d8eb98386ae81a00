/*
 * tree_levels.h - a Merkle tree in memory, grown leaf by leaf
 *
 * Reads:  leaves
 * Writes: the caller's arrays
 * Next:   tests and benchmarks of the modules that make proofs
 */
#ifndef WRIT_TESTS_TREE_LEVELS_H
#define WRIT_TESTS_TREE_LEVELS_H

#include "tlog/tree.h"

/*
 * Nodes that appending one leaf completes, from level 0 (the leaf itself) to level n - 1. Each node
 * is the last node of its level.
 */
struct tree_grown {
	unsigned n;
	struct digest node[TREE_LEVELS];
};

/* Appends @leaf to the tree @f like tree_append(). @ret_grown may be NULL. */
static inline int tree_grow(struct tree_frontier *f, const struct digest *leaf,
			    struct tree_grown *ret_grown, struct writ_err *err)
{
	const struct tree_frontier before = *f;
	const int r = tree_append(f, leaf, err);

	if (r < 0 || !ret_grown)
		return r;
	ret_grown->node[0] = *leaf;
	for (ret_grown->n = 1; before.size >> (ret_grown->n - 1) & 1; ret_grown->n++)
		ret_grown->node[ret_grown->n] = tree_node(&before.node[ret_grown->n - 1],
							  &ret_grown->node[ret_grown->n - 1]);
	return 0;
}

/*
 * A tree_nodes source that reads nodes from arrays: level[l] holds the size >> l nodes of level l.
 */
struct tree_levels {
	struct tree_nodes nodes;
	const struct digest *const *level;
	uint64_t size;
};

static inline int tree_levels_get(struct tree_nodes *from, unsigned level, uint64_t index,
				  struct digest *ret_hash, struct writ_err *err)
{
	const struct tree_levels *a = (const struct tree_levels *)from;

	if (level >= TREE_LEVELS || index >= a->size >> level)
		return writ_fail(err, WRIT_E_BUG, 0, "the tree has no such node");
	*ret_hash = a->level[level][index];
	return 0;
}

static inline struct tree_levels tree_levels_of(const struct digest *const *level, uint64_t size)
{
	return (struct tree_levels){ { tree_levels_get }, level, size };
}

#endif
