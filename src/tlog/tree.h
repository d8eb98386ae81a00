/*
 * tree.h - the Merkle tree of a log: RFC 6962 hashes, RFC 9162 proofs
 *
 * Reads:  entries, hashes
 * Writes: nothing
 * Next:   tile.h (hashes in files), checkpoint.h (the root, signed)
 *
 * A node is named by its level and its index: node (l, i) is the root of the 2^l
 * leaves from i * 2^l on, and exists once the tree has all of them. Whoever makes
 * proofs hands such nodes in through struct tree_nodes, from memory or from files.
 */
#ifndef WRIT_TLOG_TREE_H
#define WRIT_TLOG_TREE_H

#include "base/err.h"
#include "base/id.h"
#include "base/sv.h"

/* With no more leaves than this, a proof has at most 63 hashes: what a witness takes. */
#define TREE_SIZE_MAX ((uint64_t)1 << 62)
enum { TREE_LEVELS = 63, TREE_PROOF_MAX = 63 };

struct digest tree_leaf(struct sv entry);
struct digest tree_node(const struct digest *left, const struct digest *right);
struct digest tree_empty(void); /* the root of no leaves */

/* What appending needs to know: node[l] counts if bit l of size is set. Zero is the empty tree. */
struct tree_frontier {
	uint64_t size;
	struct digest node[TREE_LEVELS];
};

/* The nodes that one more leaf completes, level 0 (itself) to n - 1: each the last of its level. */
struct tree_grown {
	unsigned n;
	struct digest node[TREE_LEVELS];
};

/* @ret_grown may be NULL. */
must_check int tree_append(struct tree_frontier *f, const struct digest *leaf,
			   struct tree_grown *ret_grown, struct writ_err *err);
struct digest tree_frontier_root(const struct tree_frontier *f);

/*
 * Where nodes come from: the first member of a struct of the caller's. get() is
 * only asked for nodes of the tree at hand, and fails if it does not have one.
 */
struct tree_nodes {
	int (*get)(struct tree_nodes *from, unsigned level, uint64_t index,
		   struct digest *ret_hash, struct writ_err *err);
};

/* Nodes from arrays: level[l] holds the size >> l nodes of that level. */
struct tree_levels {
	struct tree_nodes nodes;
	const struct digest *const *level;
	uint64_t size;
};

struct tree_levels tree_levels_of(const struct digest *const *level, uint64_t size);

must_check int tree_root(struct tree_nodes *from, uint64_t size, struct digest *ret_root,
			 struct writ_err *err);
must_check int tree_frontier_load(struct tree_nodes *from, uint64_t size,
				  struct tree_frontier *ret_f, struct writ_err *err);

/* Hashes in the order of RFC 9162: from the leaves up. */
struct tree_proof {
	size_t n;
	struct digest hash[TREE_PROOF_MAX];
};

must_check int tree_prove_inclusion(struct tree_nodes *from, uint64_t index, uint64_t size,
				    struct tree_proof *ret_proof, struct writ_err *err);
/* Empty if @old_size is 0 or @size. */
must_check int tree_prove_consistency(struct tree_nodes *from, uint64_t old_size, uint64_t size,
				      struct tree_proof *ret_proof, struct writ_err *err);

/* WRIT_E_DENIED if the proof does not show it, or is longer or shorter than it must be. */
must_check int tree_check_inclusion(const struct tree_proof *proof, const struct digest *leaf,
				    uint64_t index, uint64_t size, const struct digest *root,
				    struct writ_err *err);
must_check int tree_check_consistency(const struct tree_proof *proof, uint64_t old_size,
				      const struct digest *old_root, uint64_t size,
				      const struct digest *root, struct writ_err *err);

#endif
