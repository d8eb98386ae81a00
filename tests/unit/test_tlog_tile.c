#include "tap.h"

#include <stdlib.h>

#include "crypto/crypto.h"
#include "tlog/tile.h"
#include "tree_levels.h"

enum { ALL = 66100, LEVELS = 17 };

static const struct {
	const char *name;
	struct tile t;
} names[] = {
	{ "tile/0/000", { .width = 256 } },
	{ "tile/0/000.p/1", { .width = 1 } },
	{ "tile/0/000.p/255", { .width = 255 } },
	{ "tile/0/999", { .width = 256, .index = 999 } },
	{ "tile/0/x001/000", { .width = 256, .index = 1000 } },
	{ "tile/0/x001/x234/067", { .width = 256, .index = 1234067 } },
	{ "tile/3/x001/x234/067.p/9", { .level = 3, .width = 9, .index = 1234067 } },
	{ "tile/7/000.p/64", { .level = 7, .width = 64 } },
	{ "tile/entries/000", { .entries = true, .width = 256 } },
	{ "tile/entries/x001/002.p/77", { .entries = true, .width = 77, .index = 1002 } },
	{ "tile/0/x018/x014/x398/x509/x481/983", { .width = 256, .index = 18014398509481983 } },
};

static void test_names(void)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		scoped_buf b = BUF_INIT(TILE_NAME_MAX);

		tile_name_print(&names[i].t, &b);
		is_sv(buf_view(&b), sv_from(names[i].name), "printed");
	}
}

/* The log of ALL entries; entry i is i in decimal. */
static struct digest *level[TREE_LEVELS];

static struct sv entry(unsigned i, char text[static 16])
{
	(void)snprintf(text, 16, "%u", i);
	return sv_from(text);
}

static void grow(void)
{
	struct tree_frontier f = { 0 };
	struct writ_err err = { 0 };
	struct tree_grown g;

	for (unsigned l = 0; l < LEVELS; l++)
		level[l] = calloc((size_t)(ALL >> l) + 1, sizeof(struct digest));
	for (unsigned i = 0; i < ALL; i++) {
		char text[16];
		const struct digest leaf = tree_leaf(entry(i, text));

		if (tree_grow(&f, &leaf, &g, &err) < 0)
			ok(false, "append");
		for (unsigned l = 0; l < g.n; l++)
			level[l][i >> l] = g.node[l];
	}
}

/* What is on the disk: one slot per tile of each kind. A writer replaces narrower ones. */
struct slot {
	char *bytes;
	uint16_t width;
};

struct disk {
	struct tile_nodes nodes;
	struct slot slot[TILE_LEVELS][ALL / TILE_WIDTH + 1];
	unsigned reads;
	bool broken;
};

static int read_slot(struct tile_nodes *from, const struct tile *t, struct sv *ret_bytes,
		     struct writ_err *err)
{
	struct disk *d = (struct disk *)from;
	const struct slot *s = &d->slot[t->level][t->index];

	d->reads++;
	if (d->broken)
		return writ_fail(err, WRIT_E_SYS, 2, "no such tile");
	/* A log keeps the partial tiles of its checkpoints; here only the newest is there. */
	*ret_bytes =
		(struct sv){ s->bytes, (size_t)(s->width < t->width ? s->width : t->width) * 32 };
	return 0;
}

/* Grows the tiles on @d from one size to another; false if something is not as it must be. */
static bool write_growth(struct disk *d, uint64_t from, uint64_t to)
{
	struct tree_levels all = tree_levels_of((const struct digest *const *)level, to);
	struct tile_growth g = { .old_size = from, .size = to };
	struct tile t, last = { .entries = true };
	struct writ_err err = { 0 };

	while (tile_growth_next(&g, &t)) {
		scoped_buf b = BUF_INIT(TILE_BYTES_MAX);
		struct slot *s = &d->slot[t.level][t.index];

		if (t.entries ? !last.entries : last.level > t.level)
			return false; /* bundles first, then from below */
		last = t;
		if (t.entries)
			continue;
		if (tile_encode(&all.nodes, &t, &b, &err) < 0 || b.n != t.width * 32u ||
		    s->width >= t.width || (s->width && memcmp(s->bytes, b.p, s->width * 32u) != 0))
			return false; /* never narrower, never the same again, never other hashes */
		free(s->bytes);
		s->bytes = malloc(b.n);
		memcpy(s->bytes, b.p, b.n);
		s->width = t.width;
	}
	return true;
}

/* Everything that a tree of @size must have is there in full. */
static bool complete(const struct disk *d, uint64_t size)
{
	for (unsigned l = 0; l < TILE_LEVELS; l++) {
		const uint64_t nodes = size >> (8 * l);

		for (uint64_t i = 0; i * 256 < nodes; i++) {
			const uint64_t width = nodes - i * 256 < 256 ? nodes - i * 256 : 256;

			if (d->slot[l][i].width != width ||
			    memcmp(d->slot[l][i].bytes, level[8 * l] + i * 256, width * 32) != 0)
				return false;
		}
	}
	return true;
}

static bool same_proofs(struct disk *d, uint64_t size)
{
	struct tree_levels all = tree_levels_of((const struct digest *const *)level, size);
	struct writ_err err = { 0 };
	struct tree_proof p, q;
	struct digest r, s;

	tile_nodes_init(&d->nodes, size, read_slot);
	if (tree_root(&all.nodes, size, &r, &err) < 0 ||
	    tree_root(&d->nodes.nodes, size, &s, &err) < 0 || !digest_eq(&r, &s))
		return false;
	for (uint64_t i = 0; i < size; i += 1 + size / 40) {
		if (tree_prove_inclusion(&all.nodes, i, size, &p, &err) < 0 ||
		    tree_prove_inclusion(&d->nodes.nodes, i, size, &q, &err) < 0 || p.n != q.n ||
		    memcmp(p.hash, q.hash, p.n * 32) != 0)
			return false;
		if (tree_prove_consistency(&all.nodes, i, size, &p, &err) < 0 ||
		    tree_prove_consistency(&d->nodes.nodes, i, size, &q, &err) < 0 || p.n != q.n ||
		    memcmp(p.hash, q.hash, p.n * 32) != 0)
			return false;
	}
	return true;
}

static void test_growth(void)
{
	static const unsigned sizes[] = { 1,	 2,	255,   256,   257,   511,   512,
					  513,	 65279, 65280, 65281, 65534, 65535, 65536,
					  65537, 65538, 65540, 65792, 65793, 66100 };
	struct disk *d = calloc(1, sizeof(*d));
	struct writ_err err = { 0 };
	struct tree_proof p;
	uint64_t before = 0;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		ok(write_growth(d, before, sizes[i]) && complete(d, sizes[i]),
		   "tiles for %u entries", sizes[i]);
		before = sizes[i];
		ok(same_proofs(d, before), "give the root and proofs of the tree");
	}
	ok(same_proofs(d, 40000), "and of a smaller one");
	d->slot[0][3].width = 255;
	ok(tree_prove_inclusion(&d->nodes.nodes, 3 * 256, 40000, &p, &err) == WRIT_E_SYNTAX,
	   "a tile that is too short is refused");
	d->broken = true;
	ok(tree_prove_inclusion(&d->nodes.nodes, 7, 40000, &p, &err) == WRIT_E_SYS && err.sys == 2,
	   "one that cannot be read fails the proof");
	for (unsigned l = 0; l < TILE_LEVELS; l++)
		for (size_t i = 0; i < ARRAY_LEN(d->slot[l]); i++)
			free(d->slot[l][i].bytes);
	free(d);
}

/* The example of the specification: which tiles a tree of 70,000 has. */
static void test_find(void)
{
	struct tile_growth g = { .size = 70000 };
	unsigned full[3] = { 0 }, bundles = 0, other = 0;
	struct tile t;

	while (tile_growth_next(&g, &t)) {
		if (t.entries)
			bundles++;
		else if (t.level < 3 && t.width == 256)
			full[t.level]++;
		else if (!(t.level == 0 && t.width == 112) && !(t.level == 1 && t.width == 17) &&
			 !(t.level == 2 && t.width == 1))
			other++;
	}
	ok(full[0] == 273 && full[1] == 1 && full[2] == 0 && bundles == 274 && other == 0,
	   "70000 entries: 273 full tiles and one of 112, one and one of 17, one of 1");
	ok(!tile_growth_next(&g, &t), "and no more after the end");
	g = (struct tile_growth){ .old_size = 300, .size = 300 };
	ok(!tile_growth_next(&g, &t), "no growth, no tiles");
	g = (struct tile_growth){ .old_size = 300, .size = 299 };
	ok(!tile_growth_next(&g, &t), "nor for a tree that shrinks");
	ok(!tile_find(false, 0, 2, 512, &t) && tile_find(false, 0, 1, 512, &t) && t.width == 256,
	   "no empty tile at the end");
	ok(!tile_find(false, 0, 0, 0, &t) && !tile_find(true, 1, 0, 70000, &t), "nor elsewhere");
	ok(!tile_find(false, 8, 0, TREE_SIZE_MAX, &t), "nor a level that no tree reaches");
	ok(tile_find(false, 7, 0, TREE_SIZE_MAX, &t) && t.width == 64, "the topmost tile there is");
}

static void test_bundles(void)
{
	scoped_buf b = BUF_INIT(BUNDLE_BYTES_MAX);
	struct writ_err err = { 0 };
	char *large = calloc(1, BUNDLE_ENTRY_MAX + 1);
	struct tile t = { .entries = true, .width = 4 };
	struct sv in, e;

	ok(tlog_bundle_add(&b, SV("one"), &err) == 0 && tlog_bundle_add(&b, SV(""), &err) == 0 &&
		   tlog_bundle_add(&b, (struct sv){ large, BUNDLE_ENTRY_MAX }, &err) == 0 &&
		   tlog_bundle_add(&b, SV("\n\0"), &err) == 0,
	   "entries of all lengths");
	ok(tlog_bundle_add(&b, (struct sv){ large, BUNDLE_ENTRY_MAX + 1 }, &err) == WRIT_E_LIMIT,
	   "but not longer");
	ok(b.n == 4 * 2 + 3 + 65535 + 2 && memcmp(b.p, "\0\3one\0\0\xff\xff", 9) == 0,
	   "their bytes");
	ok(tlog_bundle_check(buf_view(&b), &t, &err) == 0, "as many as the width says");
	t.width = 3;
	ok(tlog_bundle_check(buf_view(&b), &t, &err) < 0, "one too many");
	t.width = 5;
	ok(tlog_bundle_check(buf_view(&b), &t, &err) < 0, "one too few");
	in = buf_view(&b);
	ok(tlog_bundle_next(&in, &e, &err) == 1 && sv_is(e, "one") &&
		   tlog_bundle_next(&in, &e, &err) == 1 && e.n == 0 &&
		   tlog_bundle_next(&in, &e, &err) == 1 && e.n == BUNDLE_ENTRY_MAX &&
		   tlog_bundle_next(&in, &e, &err) == 1 && sv_eq(e, SV("\n\0")) &&
		   tlog_bundle_next(&in, &e, &err) == 0,
	   "come back in order");
	in = sv_sub(buf_view(&b), 0, b.n - 1);
	t.width = 4;
	ok(tlog_bundle_check(in, &t, &err) == WRIT_E_SYNTAX, "cut inside an entry");
	in = SV("\0\0\0");
	ok(tlog_bundle_next(&in, &e, &err) == 1 && tlog_bundle_next(&in, &e, &err) == WRIT_E_SYNTAX,
	   "cut inside a length");
	free(large);
}

int main(void)
{
	struct writ_err err = { 0 };

	ok(crypto_start(&err) == 0, "starts");
	test_names();
	grow();
	test_growth();
	test_find();
	test_bundles();
	for (unsigned l = 0; l < LEVELS; l++)
		free(level[l]);
	return tap_done();
}
