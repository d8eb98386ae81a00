#include "tap.h"

#include "crypto/crypto.h"
#include "tlog/tree.h"
#include "tree_levels.h"
#include "vectors.h"

enum { SMALL = 260, LARGE = 65540, LARGE_LEVELS = 17 };

/*
 * The tree by its definition, for comparison: RFC 6962 section 2.1 as recursion over
 * ranges of entries, remembered. Shares no code with what is tested, apart from SHA-256.
 */
static struct digest naive_seen[SMALL + 1][SMALL + 1];
static bool naive_has[SMALL + 1][SMALL + 1];

static struct sv entry(unsigned i, char text[static 16])
{
	(void)snprintf(text, 16, "%u", i);
	return sv_from(text);
}

static struct digest naive_hash(const void *bytes, size_t n)
{
	return crypto_sha256((struct sv){ bytes, n });
}

static unsigned naive_split(unsigned n)
{
	unsigned k = 1;

	while (k * 2 < n)
		k *= 2;
	return k;
}

static struct digest naive_root(unsigned start, unsigned end)
{
	uint8_t bytes[65] = { 0 };
	struct digest d;

	if (naive_has[start][end])
		return naive_seen[start][end];
	if (end == start) {
		d = naive_hash("", 0);
	} else if (end - start == 1) {
		d = naive_hash(bytes, 1 + (size_t)snprintf((char *)bytes + 1, 16, "%u", start));
	} else {
		const unsigned middle = start + naive_split(end - start);
		const struct digest l = naive_root(start, middle), r = naive_root(middle, end);

		bytes[0] = 1;
		memcpy(bytes + 1, l.b, 32);
		memcpy(bytes + 33, r.b, 32);
		d = naive_hash(bytes, 65);
	}
	naive_has[start][end] = true;
	return naive_seen[start][end] = d;
}

static void naive_path(unsigned m, unsigned start, unsigned end, struct tree_proof *p)
{
	unsigned k;

	if (end - start == 1)
		return;
	k = naive_split(end - start);
	if (m < k) {
		naive_path(m, start, start + k, p);
		p->hash[p->n++] = naive_root(start + k, end);
	} else {
		naive_path(m - k, start + k, end, p);
		p->hash[p->n++] = naive_root(start, start + k);
	}
}

static void naive_growth(unsigned m, unsigned start, unsigned end, bool known, struct tree_proof *p)
{
	unsigned k;

	if (m == end - start) {
		if (!known)
			p->hash[p->n++] = naive_root(start, end);
		return;
	}
	k = naive_split(end - start);
	if (m <= k) {
		naive_growth(m, start, start + k, known, p);
		p->hash[p->n++] = naive_root(start + k, end);
	} else {
		naive_growth(m - k, start + k, end, false, p);
		p->hash[p->n++] = naive_root(start, start + k);
	}
}

/* The levels of the log whose entry i is i in decimal, grown by appending. */
static struct digest *level[TREE_LEVELS];
static struct digest roots[LARGE + 1];

static void grow(void)
{
	struct tree_frontier f = { 0 };
	struct tree_grown g;
	struct writ_err err = { 0 };
	unsigned wrong = 0;

	for (unsigned l = 0; l < LARGE_LEVELS; l++)
		level[l] = calloc((size_t)(LARGE >> l) + 1, sizeof(struct digest));
	roots[0] = tree_frontier_root(&f);
	for (unsigned i = 0; i < LARGE; i++) {
		char text[16];
		const struct digest leaf = tree_leaf(entry(i, text));

		if (tree_grow(&f, &leaf, i % 3 ? &g : NULL, &err) < 0)
			wrong++;
		if (i % 3 == 0) { /* the same as the caller would have got */
			g.n = (unsigned)__builtin_ctz(i + 1) + 1;
			g.node[0] = leaf;
			for (unsigned l = 1; l < g.n; l++)
				g.node[l] = tree_node(&level[l - 1][(i >> (l - 1)) - 1],
						      &g.node[l - 1]);
		}
		wrong += g.n != (unsigned)__builtin_ctz(i + 1) + 1;
		for (unsigned l = 0; l < g.n; l++)
			level[l][i >> l] = g.node[l];
		roots[i + 1] = tree_frontier_root(&f);
	}
	ok(wrong == 0 && f.size == LARGE, "%u entries appended", LARGE);
}

static bool same_proof(const struct tree_proof *a, const struct tree_proof *b)
{
	return a->n == b->n && memcmp(a->hash, b->hash, a->n * sizeof(a->hash[0])) == 0;
}

/* Damage of every kind: none of it may pass. Returns how many did. */
static unsigned damage_inclusion(const struct tree_proof *p, const struct digest *leaf, unsigned i,
				 unsigned n, const struct digest *root)
{
	struct writ_err err;
	struct tree_proof q = *p;
	struct digest other = *leaf;
	unsigned passed = 0;

	for (size_t h = 0; h < p->n; h++) {
		for (size_t at = 0; at < 32; at++) {
			q.hash[h].b[at] ^= (uint8_t)(1 << (at + n) % 8);
			passed += tree_check_inclusion(&q, leaf, i, n, root, &err) == 0;
			q.hash[h] = p->hash[h];
		}
	}
	other.b[n % 32] ^= 4;
	passed += tree_check_inclusion(p, &other, i, n, root, &err) == 0;
	passed += tree_check_inclusion(p, leaf, i, n, &other, &err) == 0;
	for (unsigned j = 0; j < n + 2; j++)
		passed += j != i && tree_check_inclusion(p, leaf, j, n, root, &err) == 0;
	q.n = p->n + 1;
	passed += tree_check_inclusion(&q, leaf, i, n, root, &err) == 0;
	q.n = p->n - 1; /* of an empty one: far too many */
	passed += tree_check_inclusion(&q, leaf, i, n, root, &err) == 0;
	return passed;
}

static unsigned damage_growth(const struct tree_proof *p, unsigned m, unsigned n)
{
	struct writ_err err;
	struct tree_proof q = *p;
	struct digest other = roots[n];
	unsigned passed = 0;

	for (size_t h = 0; h < p->n; h++) {
		for (size_t at = 0; at < 32; at++) {
			q.hash[h].b[at] ^= (uint8_t)(1 << (at + n) % 8);
			passed += tree_check_consistency(&q, m, &roots[m], n, &roots[n], &err) == 0;
			q.hash[h] = p->hash[h];
		}
	}
	other.b[n % 32] ^= 4;
	passed += m && tree_check_consistency(p, m, &roots[m], n, &other, &err) == 0;
	other = roots[m];
	other.b[m % 32] ^= 4;
	passed += tree_check_consistency(p, m, &other, n, &roots[n], &err) == 0;
	passed += tree_check_consistency(p, n + 1, &roots[m], n, &roots[n], &err) == 0;
	q.n = p->n + 1;
	passed += tree_check_consistency(&q, m, &roots[m], n, &roots[n], &err) == 0;
	q.n = p->n - 1;
	passed += tree_check_consistency(&q, m, &roots[m], n, &roots[n], &err) == 0;
	return passed;
}

static void test_every_proof(void)
{
	struct tree_levels all = tree_levels_of((const struct digest *const *)level, LARGE);
	struct writ_err err = { 0 };
	unsigned wrong = 0, checked = 0, passed = 0, refused_roots = 0;

	for (unsigned n = 0; n <= SMALL; n++) {
		const struct digest want = naive_root(0, n);
		struct digest root = { 0 };

		refused_roots += !digest_eq(&want, &roots[n]) ||
				 tree_root(&all.nodes, n, &root, &err) < 0 ||
				 !digest_eq(&want, &root);
		for (unsigned i = 0; i < n; i++, checked++) {
			struct tree_proof p, q = { 0 };

			naive_path(i, 0, n, &q);
			if (tree_prove_inclusion(&all.nodes, i, n, &p, &err) < 0 ||
			    !same_proof(&p, &q) ||
			    tree_check_inclusion(&p, &level[0][i], i, n, &want, &err) < 0)
				wrong++;
			else if (n < 34 || (n > 250 && i % 32 == 1))
				passed += damage_inclusion(&p, &level[0][i], i, n, &want);
		}
		for (unsigned m = 0; m <= n; m++, checked++) {
			struct tree_proof p, q = { 0 };

			if (m)
				naive_growth(m, 0, n, true, &q);
			if (tree_prove_consistency(&all.nodes, m, n, &p, &err) < 0 ||
			    !same_proof(&p, &q) ||
			    tree_check_consistency(&p, m, &roots[m], n, &want, &err) < 0)
				wrong++;
			else if (n < 34 || (n > 250 && m % 32 == 1))
				passed += damage_growth(&p, m, n);
		}
	}
	ok(refused_roots == 0, "all roots up to %d entries", SMALL);
	ok(wrong == 0 && checked > 60000, "%u proofs are those of the definition, and hold",
	   checked);
	ok(passed == 0, "%u damaged proofs hold", passed);
}

/* A proof that goes on above the root, with roots made to fit: only its length gives it away. */
static void test_too_long(void)
{
	struct tree_levels all = tree_levels_of((const struct digest *const *)level, LARGE);
	const struct digest more = tree_empty();
	struct writ_err err = { 0 };
	unsigned wrong = 0;

	for (unsigned n = 1; n <= 40; n++) {
		const struct digest root = tree_node(&more, &roots[n]);

		for (unsigned m = 0; m < n; m++) {
			const struct digest old = tree_node(&more, &roots[m]);
			struct tree_proof p;

			if (tree_prove_inclusion(&all.nodes, m, n, &p, &err) < 0)
				wrong++;
			p.hash[p.n++] = more;
			wrong += tree_check_inclusion(&p, &level[0][m], m, n, &root, &err) !=
				 WRIT_E_DENIED;
			if (tree_prove_consistency(&all.nodes, m, n, &p, &err) < 0)
				wrong++;
			p.hash[p.n++] = more;
			wrong += tree_check_consistency(&p, m, &old, n, &root, &err) !=
				 WRIT_E_DENIED;
		}
	}
	ok(wrong == 0, "no proof goes on above the root");
}

/* A random pair of sizes, far apart or close together. */
static void test_large(void)
{
	struct tree_levels all = tree_levels_of((const struct digest *const *)level, LARGE);
	struct writ_err err = { 0 };
	uint32_t seed = 1;
	unsigned wrong = 0;

	for (unsigned round = 0; round < 3000; round++) {
		struct tree_proof p;
		struct tree_frontier f;
		unsigned n, m;

		seed = seed * 1664525 + 1013904223;
		n = round % 2 ? LARGE - (seed >> 8) % 20 : 1 + (seed >> 8) % LARGE;
		seed = seed * 1664525 + 1013904223;
		m = (seed >> 8) % n;
		if (tree_prove_inclusion(&all.nodes, m, n, &p, &err) < 0 ||
		    tree_check_inclusion(&p, &level[0][m], m, n, &roots[n], &err) < 0 ||
		    tree_prove_consistency(&all.nodes, m, n, &p, &err) < 0 ||
		    tree_check_consistency(&p, m, &roots[m], n, &roots[n], &err) < 0 ||
		    tree_frontier_load(&all.nodes, m, &f, &err) < 0 ||
		    tree_append(&f, &level[0][m], &err) < 0) {
			wrong++;
			continue;
		}
		{
			const struct digest d = tree_frontier_root(&f);

			wrong += !digest_eq(&d, &roots[m + 1]);
		}
	}
	ok(wrong == 0, "proofs and loaded frontiers up to %u entries", LARGE);
}

static struct sv next_word(struct sv *line)
{
	return sv_cut(line, ' ');
}

/* One line of tree.txt or large.txt, against the levels in @all. */
static bool vector_line(struct tree_levels *all, const struct digest *known, struct sv line)
{
	struct writ_err err = { 0 };
	const struct sv what = next_word(&line);
	uint64_t a = 0, b = 0;
	struct digest want, got;
	struct tree_proof p, q = { 0 };

	if (!sv_to_u64(next_word(&line), LARGE, &a))
		return false;
	if (sv_is(what, "root"))
		return digest_parse(line, &want) && tree_root(&all->nodes, a, &got, &err) == 0 &&
		       digest_eq(&want, &got) && digest_eq(&want, &known[a]);
	if (!sv_to_u64(next_word(&line), LARGE, &b))
		return false;
	while (line.n)
		if (!digest_parse(next_word(&line), &q.hash[q.n++]))
			return false;
	if (sv_is(what, "inclusion"))
		return tree_prove_inclusion(&all->nodes, a, b, &p, &err) == 0 &&
		       same_proof(&p, &q) &&
		       tree_check_inclusion(&q, &all->level[0][a], a, b, &known[b], &err) == 0;
	return sv_is(what, "consistency") &&
	       tree_prove_consistency(&all->nodes, a, b, &p, &err) == 0 && same_proof(&p, &q) &&
	       tree_check_consistency(&q, a, &known[a], b, &known[b], &err) == 0;
}

static bool leaf_line(struct sv line, struct digest *ret_leaf)
{
	struct sv hex = next_word(&line);
	char bytes[32];
	size_t n = 0;
	struct digest want;

	for (; sv_is(hex, "-") ? false : 2 * n < hex.n; n++)
		bytes[n] = (char)(sv_hex_lower(hex.p[2 * n]) << 4 | sv_hex_lower(hex.p[2 * n + 1]));
	*ret_leaf = tree_leaf((struct sv){ bytes, n });
	return digest_parse(line, &want) && digest_eq(&want, ret_leaf);
}

static void test_vectors(void)
{
	scoped_buf small = BUF_INIT(1 << 20), large = BUF_INIT(1 << 20);
	struct digest l0[8], l1[4], l2[2], l3[1], known[9];
	const struct digest *const ct[TREE_LEVELS] = { l0, l1, l2, l3 };
	struct digest *const put[] = { l0, l1, l2, l3 };
	struct tree_levels eight = tree_levels_of(ct, 8);
	struct tree_levels all = tree_levels_of((const struct digest *const *)level, LARGE);
	struct tree_frontier f = { 0 };
	struct writ_err err = { 0 };
	unsigned lines = 0;
	struct sv text;

	vector_read("tlog/tree.txt", &small);
	vector_read("tlog/large.txt", &large);
	known[0] = tree_empty();
	for (text = buf_view(&small); text.n;) {
		struct sv line = sv_cut(&text, '\n');
		const struct sv whole = line;
		struct tree_grown g;

		if (sv_starts(line, SV("#")))
			continue;
		lines++;
		if (!sv_starts(line, SV("leaf "))) {
			if (!vector_line(&eight, known, line))
				ok(false, SV_FMT, SV_ARG(sv_sub(whole, 0, 60)));
			continue;
		}
		line = sv_skip(line, 5);
		if (f.size >= 8 || !leaf_line(line, &l0[f.size]) ||
		    tree_grow(&f, &l0[f.size], &g, &err) < 0)
			ok(false, SV_FMT, SV_ARG(whole));
		for (unsigned l = 0; l < g.n; l++)
			put[l][(f.size - 1) >> l] = g.node[l];
		known[f.size] = tree_frontier_root(&f);
	}
	for (text = buf_view(&large); text.n; lines++) {
		const struct sv line = sv_cut(&text, '\n');

		if (!sv_starts(line, SV("#")) && !vector_line(&all, roots, line))
			ok(false, SV_FMT, SV_ARG(sv_sub(line, 0, 60)));
	}
	ok(lines > 180 && f.size == 8, "%u lines of vectors", lines);
}

static int no_nodes(struct tree_nodes *from, unsigned l, uint64_t index, struct digest *ret_hash,
		    struct writ_err *err)
{
	(void)from;
	(void)ret_hash;
	return writ_fail(err, WRIT_E_SYS, 5, "node %u of level %u", (unsigned)index, l);
}

static int any_nodes(struct tree_nodes *from, unsigned l, uint64_t index, struct digest *ret_hash,
		     struct writ_err *err)
{
	(void)from;
	(void)err;
	memset(ret_hash->b, (int)(l + index), sizeof(ret_hash->b));
	return 0;
}

static void test_limits(void)
{
	struct tree_levels all = tree_levels_of((const struct digest *const *)level, 5);
	struct tree_nodes none = { no_nodes }, any = { any_nodes };
	struct tree_frontier f = { .size = TREE_SIZE_MAX };
	struct tree_proof p = { .n = 99 };
	struct writ_err err = { 0 };
	struct digest d = tree_empty();

	ok(tree_append(&f, &d, &err) == WRIT_E_LIMIT && f.size == TREE_SIZE_MAX,
	   "a full tree does not grow");
	ok(tree_prove_inclusion(&all.nodes, 5, 5, &p, &err) == WRIT_E_LIMIT,
	   "no entry behind the last");
	ok(tree_prove_inclusion(&all.nodes, 0, 0, &p, &err) == WRIT_E_LIMIT,
	   "none in the empty tree");
	ok(tree_prove_consistency(&all.nodes, 6, 5, &p, &err) == WRIT_E_LIMIT, "nothing shrinks");
	ok(tree_prove_inclusion(&all.nodes, 0, 6, &p, &err) == WRIT_E_BUG,
	   "a node that is not there");
	ok(tree_prove_inclusion(&none, 3, 7, &p, &err) == WRIT_E_SYS && err.sys == 5 && p.n == 99,
	   "a failing source fails the proof");
	ok(tree_root(&none, 7, &d, &err) == WRIT_E_SYS, "and the root");
	ok(tree_root(&none, 0, &d, &err) == 0, "no node is needed for nothing");
	ok(tree_root(&any, TREE_SIZE_MAX + 1, &d, &err) == WRIT_E_LIMIT, "a size above the limit");
	ok(tree_prove_consistency(&any, 3, TREE_SIZE_MAX, &p, &err) == 0 && p.n == 63,
	   "the longest proof has 63 hashes");
	ok(tree_prove_consistency(&any, TREE_SIZE_MAX - 1, TREE_SIZE_MAX, &p, &err) == 0 &&
		   p.n == 63,
	   "also at the other end");
	ok(tree_prove_inclusion(&any, 3, TREE_SIZE_MAX, &p, &err) == 0 && p.n == 62,
	   "62 for an entry");
	p.n = 64;
	ok(tree_check_inclusion(&p, &d, 0, 1, &d, &err) == WRIT_E_DENIED,
	   "too many hashes for anything");
	p.n = 0;
	ok(tree_check_inclusion(&p, &d, 0, 0, &d, &err) == WRIT_E_DENIED, "nothing is in no tree");
	ok(tree_check_inclusion(&p, &d, 0, TREE_SIZE_MAX + 1, &d, &err) == WRIT_E_DENIED,
	   "nor in one above the limit");
}

/* Two parts give the same as one: what leaf hashes rest on. */
static void test_parts(void)
{
	const struct sv text =
		SV("a text of some length, which is cut in two at every place, for 64"
		   " bytes are a block and more than one is wanted here: two of them");
	const struct digest want = crypto_sha256(text);
	unsigned wrong = 0;

	for (size_t i = 0; i <= text.n; i++) {
		const struct sv parts[] = { sv_sub(text, 0, i), sv_skip(text, i) };
		const struct digest d = crypto_sha256_parts(parts, ARRAY_LEN(parts));

		wrong += !digest_eq(&d, &want);
	}
	ok(text.n > 128 && wrong == 0, "a hash of parts is that of the whole");
}

int main(void)
{
	struct writ_err err = { 0 };

	ok(crypto_start(&err) == 0, "starts");
	test_parts();
	grow();
	test_every_proof();
	test_too_long();
	test_large();
	test_vectors();
	test_limits();
	for (unsigned l = 0; l < LARGE_LEVELS; l++)
		free(level[l]);
	return tap_done();
}
