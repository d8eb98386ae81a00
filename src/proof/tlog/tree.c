#include "tlog/tree.h"

#include <string.h>

#include "crypto/crypto.h"

#include "base/banned.h"

struct digest tree_leaf(struct sv entry)
{
	const struct sv parts[] = { { "\0", 1 }, entry };

	return crypto_sha256_parts(parts, ARRAY_LEN(parts));
}

struct digest tree_node(const struct digest *left, const struct digest *right)
{
	char bytes[1 + 2 * sizeof(left->b)];

	bytes[0] = 1;
	memcpy(bytes + 1, left->b, sizeof(left->b));
	memcpy(bytes + 1 + sizeof(left->b), right->b, sizeof(right->b));
	return crypto_sha256((struct sv){ bytes, sizeof(bytes) });
}

struct digest tree_empty(void)
{
	return crypto_sha256(SV(""));
}

int tree_append(struct tree_frontier *f, const struct digest *leaf, struct writ_err *err)
{
	struct digest d = *leaf;
	unsigned level = 0;

	if (f->size >= TREE_SIZE_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "the log is full");
	for (; f->size >> level & 1; level++)
		d = tree_node(&f->node[level], &d);
	f->node[level] = d;
	f->size++;
	return 0;
}

struct digest tree_frontier_root(const struct tree_frontier *f)
{
	struct digest root = { 0 };
	bool any = false;

	for (unsigned level = 0; level < TREE_LEVELS; level++) {
		if (!(f->size >> level & 1))
			continue;
		root = any ? tree_node(&f->node[level], &root) : f->node[level];
		any = true;
	}
	return any ? root : tree_empty();
}

int tree_frontier_load(struct tree_nodes *from, uint64_t size, struct tree_frontier *ret_f,
		       struct writ_err *err)
{
	struct tree_frontier f = { .size = size };

	if (size > TREE_SIZE_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "tree size above 2^62");
	for (unsigned level = 0; level < TREE_LEVELS; level++) {
		const uint64_t n = size >> level;

		if (n & 1) {
			const int r = from->get(from, level, n - 1, &f.node[level], err);

			if (r < 0)
				return r;
		}
	}
	*ret_f = f;
	return 0;
}

int tree_root(struct tree_nodes *from, uint64_t size, struct digest *ret_root, struct writ_err *err)
{
	struct tree_frontier f;
	const int r = tree_frontier_load(from, size, &f, err);

	if (r < 0)
		return r;
	*ret_root = tree_frontier_root(&f);
	return 0;
}
