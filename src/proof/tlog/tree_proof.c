#include "tlog/tree.h"

#include "crypto/crypto.h"

#include "base/banned.h"

/*
 * Range of leaves [start, end) below one node, which is complete or at the right edge of the tree.
 */
struct span {
	uint64_t start, end;
};

/*
 * Returns the size of the left child of a node with more than one leaf: the largest power of two
 * that leaves at least one leaf for the right child.
 */
static uint64_t left_part(struct span s)
{
	return (uint64_t)1 << (63 - __builtin_clzll(s.end - s.start - 1));
}

/*
 * Computes the root of the leaves in the range @s from its complete subtrees. s.start must be a
 * multiple of the size of each subtree.
 */
static int span_root(struct tree_nodes *from, struct span s, struct digest *ret_root,
		     struct writ_err *err)
{
	struct digest root = { 0 }, part;
	bool any = false;

	for (unsigned level = 0; s.end > s.start; level++) {
		int r;

		if (!((s.end - s.start) >> level & 1))
			continue;
		r = from->get(from, level, (s.end >> level) - 1, &part, err);
		if (r < 0)
			return r;
		root = any ? tree_node(&part, &root) : part;
		any = true;
		s.end -= (uint64_t)1 << level;
	}
	*ret_root = root;
	return 0;
}

static int add(struct tree_nodes *from, struct span s, struct tree_proof *p, struct writ_err *err)
{
	if (p->n == TREE_PROOF_MAX)
		return writ_fail(err, WRIT_E_BUG, 0, "a proof of more than 63 hashes");
	return span_root(from, s, &p->hash[p->n++], err);
}

/*
 * Reverses a proof: the functions that make proofs collect hashes from the root down, while RFC
 * 9162 orders the hashes from the leaves up.
 */
static void reverse(struct tree_proof *p)
{
	for (size_t i = 0; i < p->n / 2; i++) {
		const struct digest d = p->hash[i];

		p->hash[i] = p->hash[p->n - 1 - i];
		p->hash[p->n - 1 - i] = d;
	}
}

/*
 * Descends from @s towards the leaf @index and adds the root of each subtree that does not contain
 * the leaf. Stops at a subtree that ends at @stop, or at the leaf.
 */
static int descend(struct tree_nodes *from, struct span *s, uint64_t index, uint64_t stop,
		   struct tree_proof *p, struct writ_err *err)
{
	while (s->end - s->start > 1 && s->end != stop) {
		const uint64_t middle = s->start + left_part(*s);
		const struct span left = { s->start, middle }, right = { middle, s->end };
		const int r = add(from, index < middle ? right : left, p, err);

		if (r < 0)
			return r;
		*s = index < middle ? left : right;
	}
	return 0;
}

int tree_prove_inclusion(struct tree_nodes *from, uint64_t index, uint64_t size,
			 struct tree_proof *ret_proof, struct writ_err *err)
{
	struct tree_proof p = { 0 };
	struct span s = { 0, size };
	int r;

	if (size > TREE_SIZE_MAX || index >= size)
		return writ_fail(err, WRIT_E_LIMIT, 0, "the tree has no such entry");
	if ((r = descend(from, &s, index, 0, &p, err)) < 0)
		return r;
	reverse(&p);
	*ret_proof = p;
	return 0;
}

int tree_prove_consistency(struct tree_nodes *from, uint64_t old_size, uint64_t size,
			   struct tree_proof *ret_proof, struct writ_err *err)
{
	struct tree_proof p = { 0 };
	struct span s = { 0, size };
	int r;

	if (size > TREE_SIZE_MAX || old_size > size)
		return writ_fail(err, WRIT_E_LIMIT, 0, "a tree does not shrink");
	/*
	 * RFC 6962 SUBPROOF without recursion: descend towards the leaf where the old tree ended.
	 * If the subtree there is the whole old tree, add no hash: the verifier already has the old
	 * root.
	 */
	if (old_size > 0 && ((r = descend(from, &s, old_size - 1, old_size, &p, err)) < 0 ||
			     (s.start > 0 && (r = add(from, s, &p, err)) < 0)))
		return r;
	reverse(&p);
	*ret_proof = p;
	return 0;
}

/*
 * Climbs from the leaf @index to the root of a tree whose last leaf is @last, with the hashes of
 * @proof from hash[@i] on, as RFC 9162 sections 2.1.3.2 and 2.1.4.2 do for a proof of the given
 * @kind. The RFC's variable fn is @index here, and sn is @last. *@n becomes the root; *@o, which
 * may be NULL, becomes the root of the tree that ends with @index.
 */
static int climb(const char *kind, const struct tree_proof *proof, size_t i, uint64_t index,
		 uint64_t last, struct digest *o, struct digest *n, struct writ_err *err)
{
	for (; i < proof->n; i++) {
		if (last == 0)
			return writ_fail(err, WRIT_E_DENIED, 0, "%s proof is too long", kind);
		if (index & 1 || index == last) {
			if (o)
				*o = tree_node(&proof->hash[i], o);
			*n = tree_node(&proof->hash[i], n);
			/*
			 * Skip levels at which this node has no right sibling: the proof has no
			 * hash for such levels.
			 */
			for (; !(index & 1) && index != 0; index >>= 1)
				last >>= 1;
		} else {
			*n = tree_node(n, &proof->hash[i]);
		}
		index >>= 1;
		last >>= 1;
	}
	return last == 0 ? 0 : writ_fail(err, WRIT_E_DENIED, 0, "%s proof is too short", kind);
}

int tree_check_inclusion(const struct tree_proof *proof, const struct digest *leaf, uint64_t index,
			 uint64_t size, const struct digest *root, struct writ_err *err)
{
	struct digest n = *leaf;
	int r;

	if (size > TREE_SIZE_MAX || index >= size || proof->n > TREE_PROOF_MAX)
		return writ_fail(err, WRIT_E_DENIED, 0, "the tree has no such entry");
	if ((r = climb("inclusion", proof, 0, index, size - 1, NULL, &n, err)) < 0)
		return r;
	if (!digest_eq(&n, root))
		return writ_fail(err, WRIT_E_DENIED, 0, "entry is not in the tree at this index");
	return 0;
}

/* Checks a consistency proof for 0 < old < size, given the last leaf of each tree. */
static int check_growth(const struct tree_proof *proof, uint64_t old_last,
			const struct digest *old_root, uint64_t last, const struct digest *root,
			struct writ_err *err)
{
	/*
	 * A proof omits the first hash if the old tree is one complete subtree: the hash would be
	 * the old root.
	 */
	const bool whole = (old_last & (old_last + 1)) == 0;
	struct digest o = *old_root, n = *old_root;
	size_t i = 0;
	int r;

	for (; old_last & 1; old_last >>= 1)
		last >>= 1;
	if (!whole && proof->n)
		o = n = proof->hash[i++];
	if ((r = climb("consistency", proof, i, old_last, last, &o, &n, err)) < 0)
		return r;
	if (!digest_eq(&o, old_root) || !digest_eq(&n, root))
		return writ_fail(err, WRIT_E_DENIED, 0, "the tree is not the old one grown");
	return 0;
}

int tree_check_consistency(const struct tree_proof *proof, uint64_t old_size,
			   const struct digest *old_root, uint64_t size, const struct digest *root,
			   struct writ_err *err)
{
	const struct digest nothing = tree_empty();

	if (size > TREE_SIZE_MAX || old_size > size || proof->n > TREE_PROOF_MAX)
		return writ_fail(err, WRIT_E_DENIED, 0, "a tree does not shrink");
	if (old_size > 0 && old_size < size)
		return check_growth(proof, old_size - 1, old_root, size - 1, root, err);
	if (proof->n)
		return writ_fail(err, WRIT_E_DENIED, 0, "consistency proof is too long");
	if (old_size == 0 && !digest_eq(old_root, &nothing))
		return writ_fail(err, WRIT_E_DENIED, 0, "the old root is not that of no entries");
	if (old_size == size && !digest_eq(old_root, root))
		return writ_fail(err, WRIT_E_DENIED, 0, "two roots for trees of one size");
	return 0;
}
