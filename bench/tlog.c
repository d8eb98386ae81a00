/*
 * tlog.c - cost of the log per entry, and of a proof among ten million entries
 *
 * Prints lines of name, measured, unit and budget for bench/run.py.
 *
 *     tlog [ENTRIES]
 *
 * The levels of the tree of ten million entries are zero memory, of which a proof touches
 * a few pages; hashing and fetching cost the same as with real hashes. With ENTRIES the
 * tree is a real one of that size (64 bytes of memory each), and each proof is verified.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "crypto/crypto.h"
#include "tree_levels.h"

enum { APPENDS = 1 << 20, MANY = 10000000, PROOFS = 2000, ENTRY = 300, LEAVES = 200000 };

static struct digest *level[TREE_LEVELS];

/* CPU time of this process, so that other load does not count. */
static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void make_levels(uint64_t size)
{
	for (unsigned l = 0; l < TREE_LEVELS; l++) {
		free(level[l]);
		level[l] = size >> l ? calloc(size >> l, sizeof(struct digest)) : NULL;
		if (size >> l && !level[l])
			exit(1);
	}
}

/* Hashes, appends and stores @n entries. Returns microseconds per entry. */
static double append(uint64_t n, struct tree_frontier *f)
{
	char text[ENTRY] = "";
	struct writ_err err = { 0 };
	struct tree_grown g;
	const double start = now_us();

	for (uint64_t i = 0; i < n; i++) {
		struct digest leaf;

		(void)snprintf(text, 21, "%020" PRIu64, i);
		leaf = tree_leaf((struct sv){ text, sizeof(text) });
		if (tree_grow(f, &leaf, &g, &err) < 0)
			exit(1);
		for (unsigned l = 0; l < g.n; l++)
			level[l][i >> l] = g.node[l];
	}
	return (now_us() - start) / (double)n;
}

static double leaf_cost(void)
{
	char text[ENTRY] = "";
	unsigned sum = 0;
	const double start = now_us();

	for (unsigned i = 0; i < LEAVES; i++) {
		text[0] = (char)i;
		sum += tree_leaf((struct sv){ text, sizeof(text) }).b[0];
	}
	/* Use the hashes, so that the compiler keeps the loop. */
	return (now_us() - start) / LEAVES + (sum > 255u * LEAVES);
}

/* Returns the mean time of a proof in milliseconds. Verifies all proofs if @root is given. */
static double prove(uint64_t size, const struct digest *root)
{
	struct tree_levels all = tree_levels_of((const struct digest *const *)level, size);
	struct writ_err err = { 0 };
	double sum = 0;
	uint64_t seed = 1;

	for (unsigned i = 0; i < PROOFS; i++) {
		struct tree_proof p;
		uint64_t at;
		double start;

		seed = seed * 6364136223846793005 + 1442695040888963407;
		at = (seed >> 16) % size;
		start = now_us();
		if (tree_prove_inclusion(&all.nodes, at, size, &p, &err) < 0)
			exit(1);
		sum += now_us() - start;
		if (root && tree_check_inclusion(&p, &level[0][at], at, size, root, &err) < 0)
			exit(1);
	}
	return sum / PROOFS / 1e3;
}

int main(int argc, char **argv)
{
	struct tree_frontier f = { 0 };
	struct writ_err err = { 0 };
	struct digest root;
	uint64_t size = APPENDS;
	double each;

	if (crypto_start(&err) < 0 || (argc > 1 && !sv_to_u64(sv_from(argv[1]), 1 << 30, &size)) ||
	    size == 0)
		return 1;
	printf("hash of an entry of 300 bytes\t%.3f\tus\t5.0\n", leaf_cost());
	make_levels(size);
	each = append(size, &f);
	printf("hash, append and keep an entry\t%.3f\tus\t10.0\n", each);
	root = tree_frontier_root(&f);
	printf("inclusion proof, %" PRIu64 " entries\t%.3f\tms\t1.0\n", size, prove(size, &root));
	if (argc == 1) {
		make_levels(MANY);
		printf("inclusion proof, 10000000 entries\t%.3f\tms\t1.0\n", prove(MANY, NULL));
	}
	make_levels(0);
	return 0;
}
