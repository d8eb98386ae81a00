/*
 * tree.h - the Merkle tree of a log: RFC 6962 hashes, RFC 9162 proofs
 *
 * Theory of operation
 *
 * The tlog module implements the C2SP transparency log formats. A log is an append-only list of
 * entries. Its Merkle tree condenses the list into one root hash, and the log's key signs that root
 * together with the number of entries. Anyone who holds the signed root can then check, without the
 * whole log, that an entry is in it (inclusion proof) and that a later root only added entries
 * (consistency proof).
 *
 * Files, from the bottom up:
 *   tree        hashes, roots and proofs (this file)
 *   tile        how hashes and entries are stored in files of 256 (C2SP tlog-tiles)
 *   note        text with lines of signatures, and the keys that verify them (C2SP signed-note)
 *   checkpoint  the note that a log signs: origin, size, root (C2SP tlog-checkpoint); a witness's
 *               dated signature under it (C2SP tlog-cosignature)
 *   policy      which logs and witnesses a verifier trusts, and how many must sign (C2SP
 *               tlog-policy)
 *   proof       an inclusion proof in one file, verified against a policy (C2SP tlog-proof)
 *   witness     the request and the response between a log and a witness (C2SP tlog-witness)
 *
 * The module computes, parses and prints. It opens no file, no socket and no clock: callers pass
 * bytes in and store the results. audit/ keeps the files, witness/ speaks HTTP.
 *
 * A node of the tree is named by its level and its index: node (l, i) is the root of the 2^l leaves
 * from i * 2^l on, and exists once the tree has all of them. Functions that make proofs fetch nodes
 * through struct tree_nodes, from memory or from files.
 *
 * Invariants
 *   - Every parser accepts one spelling per value, so parsing and printing are inverse.
 *   - Parsed structs hold views of the caller's bytes and are valid only as long as these.
 *   - Fetched nodes are untrusted. A caller believes a result only after comparing the root with a
 *     signed one.
 *   - WRIT_E_DENIED means that a signature or proof failed; other codes mean bad input or a bug.
 *
 * Common mistakes
 *   - Hashing a leaf as a node. Leaves start with byte 0 and nodes with byte 1, so that no inner
 *     node can be presented as an entry.
 *   - Comparing a key by its id alone. The id is 32 bits; compare name and id, or the key itself.
 *   - Confusing this module's policy (trusted keys) with a sandbox policy (src/policy).
 *
 * Reads:  entries, hashes
 * Writes: nothing
 * Next:   tile.h (hashes in files), checkpoint.h (the root, signed)
 */
#ifndef WRIT_TLOG_TREE_H
#define WRIT_TLOG_TREE_H

#include "base/err.h"
#include "base/id.h"
#include "base/sv.h"

/*
 * Limit the size of a tree so that a proof has at most 63 hashes, the maximum that C2SP
 * tlog-witness allows.
 */
#define TREE_SIZE_MAX ((uint64_t)1 << 62)
enum { TREE_LEVELS = 63, TREE_PROOF_MAX = 63 };

struct digest tree_leaf(struct sv entry);
struct digest tree_node(const struct digest *left, const struct digest *right);
struct digest tree_empty(void); /* root of a tree without leaves */

/*
 * State needed to append a leaf to a tree: the roots of the complete subtrees at the right edge.
 * node[l] is valid if bit l of size is set. A zeroed struct is the empty tree.
 */
struct tree_frontier {
	uint64_t size;
	struct digest node[TREE_LEVELS];
};

must_check int tree_append(struct tree_frontier *f, const struct digest *leaf,
			   struct writ_err *err);
struct digest tree_frontier_root(const struct tree_frontier *f);

/*
 * Source of tree nodes. The caller embeds struct tree_nodes as the first member of its own struct.
 * get() is only called for nodes that exist in the tree in question, and fails if it cannot supply
 * a node.
 */
struct tree_nodes {
	int (*get)(struct tree_nodes *from, unsigned level, uint64_t index,
		   struct digest *ret_hash, struct writ_err *err);
};

must_check int tree_root(struct tree_nodes *from, uint64_t size, struct digest *ret_root,
			 struct writ_err *err);
must_check int tree_frontier_load(struct tree_nodes *from, uint64_t size,
				  struct tree_frontier *ret_f, struct writ_err *err);

/* Hashes of an inclusion or consistency proof in the order of RFC 9162: from the leaves up. */
struct tree_proof {
	size_t n;
	struct digest hash[TREE_PROOF_MAX];
};

must_check int tree_prove_inclusion(struct tree_nodes *from, uint64_t index, uint64_t size,
				    struct tree_proof *ret_proof, struct writ_err *err);
/* Makes a consistency proof, which is empty if @old_size is 0 or equals @size. */
must_check int tree_prove_consistency(struct tree_nodes *from, uint64_t old_size, uint64_t size,
				      struct tree_proof *ret_proof, struct writ_err *err);

/*
 * tree_check_inclusion() and tree_check_consistency() return WRIT_E_DENIED if the proof does not
 * show the claim, or has more or fewer hashes than the claim needs.
 */
must_check int tree_check_inclusion(const struct tree_proof *proof, const struct digest *leaf,
				    uint64_t index, uint64_t size, const struct digest *root,
				    struct writ_err *err);
must_check int tree_check_consistency(const struct tree_proof *proof, uint64_t old_size,
				      const struct digest *old_root, uint64_t size,
				      const struct digest *root, struct writ_err *err);

#endif
