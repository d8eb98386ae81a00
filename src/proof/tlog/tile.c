#include "tlog/tile.h"

#include <string.h>

#include "base/banned.h"

enum { HASH = sizeof(struct digest), HEIGHT = 8 };

_Static_assert(TILE_WIDTH == 1 << HEIGHT, "a tile is a subtree of this height");
_Static_assert(TILE_LEVELS == (TREE_LEVELS + HEIGHT - 1) / HEIGHT, "every level has a tile");

/* Prints the index of a tile as groups of three digits; all groups but the last begin with an x. */
static void print_index(uint64_t index, struct buf *b)
{
	uint64_t unit = 1;

	while (index / unit >= 1000)
		unit *= 1000;
	for (; unit > 1; unit /= 1000)
		buf_fmt(b, "x%03u/", (unsigned)(index / unit % 1000));
	buf_fmt(b, "%03u", (unsigned)(index % 1000));
}

void tile_name_print(const struct tile *t, struct buf *b)
{
	if (t->entries)
		buf_str(b, "tile/entries/");
	else
		buf_fmt(b, "tile/%u/", t->level);
	print_index(t->index, b);
	if (t->width < TILE_WIDTH)
		buf_fmt(b, ".p/%u", t->width);
}

/* Checks that some tree of at most TREE_SIZE_MAX leaves has the tile @t. */
static bool tile_is_possible(const struct tile *t)
{
	uint64_t most;

	if (t->level >= TILE_LEVELS)
		return false;
	most = TREE_SIZE_MAX >> (HEIGHT * t->level);
	return t->index <= most / TILE_WIDTH && t->index * TILE_WIDTH + t->width <= most;
}

bool tile_find(bool entries, unsigned level, uint64_t index, uint64_t size, struct tile *ret_t)
{
	uint64_t nodes;

	if (size > TREE_SIZE_MAX || level >= (entries ? 1 : TILE_LEVELS))
		return false;
	nodes = size >> (HEIGHT * level);
	if (index > nodes / TILE_WIDTH || index * TILE_WIDTH == nodes)
		return false;
	nodes -= index * TILE_WIDTH;
	*ret_t = (struct tile){ .entries = entries,
				.level = (uint8_t)level,
				.index = index,
				.width = nodes < TILE_WIDTH ? (uint16_t)nodes : TILE_WIDTH };
	return true;
}

bool tile_growth_next(struct tile_growth *g, struct tile *ret_t)
{
	for (; g->step <= TILE_LEVELS; g->step++, g->done = 0) {
		const unsigned level = g->step ? g->step - 1 : 0;
		const uint64_t before = g->old_size >> (HEIGHT * level);
		const uint64_t after = g->size >> (HEIGHT * level);

		/*
		 * Begin with the tile that was partial at old_size: the tiles before it were full.
		 */
		if (before < after &&
		    tile_find(g->step == 0, level, before / TILE_WIDTH + g->done, g->size, ret_t)) {
			g->done++;
			return true;
		}
	}
	return false;
}

int tile_encode(struct tree_nodes *from, const struct tile *t, struct buf *b, struct writ_err *err)
{
	if (t->entries || t->width == 0 || t->width > TILE_WIDTH || !tile_is_possible(t))
		return writ_fail(err, WRIT_E_BUG, 0, "not a tile of nodes");
	for (unsigned i = 0; i < t->width; i++) {
		struct digest d;
		const int r =
			from->get(from, HEIGHT * t->level, t->index * TILE_WIDTH + i, &d, err);

		if (r < 0)
			return r;
		buf_add(b, d.b, sizeof(d.b));
	}
	return buf_check(b, err);
}

/* Computes the root of @n neighbouring hashes; @n is a power of two, at most 128. */
static struct digest fold(const char *bytes, unsigned n)
{
	struct digest d[TILE_WIDTH / 2];

	memcpy(d, bytes, (size_t)n * HASH);
	for (; n > 1; n /= 2)
		for (unsigned i = 0; i < n / 2; i++)
			d[i] = tree_node(&d[2 * i], &d[2 * i + 1]);
	return d[0];
}

static int get_from_tile(struct tree_nodes *from, unsigned level, uint64_t index,
			 struct digest *ret_hash, struct writ_err *err)
{
	struct tile_nodes *n = (struct tile_nodes *)from;
	/* Number of hashes in the tile that are below the requested node. */
	const unsigned count = 1u << level % HEIGHT;
	const uint64_t first = index << level % HEIGHT;
	struct tile t;
	struct sv bytes;
	int r;

	if (level >= TREE_LEVELS || index >= n->size >> level ||
	    !tile_find(false, level / HEIGHT, first / TILE_WIDTH, n->size, &t))
		return writ_fail(err, WRIT_E_BUG, 0, "the tree has no such node");
	r = n->read(n, &t, &bytes, err);
	if (r < 0)
		return r;
	if (bytes.n != (size_t)t.width * HASH)
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "a tile is longer or shorter than it must be");
	*ret_hash = fold(bytes.p + first % TILE_WIDTH * HASH, count);
	return 0;
}

void tile_nodes_init(struct tile_nodes *n, uint64_t size,
		     int (*read)(struct tile_nodes *from, const struct tile *t,
				 struct sv *ret_bytes, struct writ_err *err))
{
	n->nodes.get = get_from_tile;
	n->size = size;
	n->read = read;
}

int tlog_bundle_add(struct buf *b, struct sv entry, struct writ_err *err)
{
	if (entry.n > BUNDLE_ENTRY_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "a log entry of more than 65535 bytes");
	buf_ch(b, (char)(entry.n >> 8));
	buf_ch(b, (char)(entry.n & 0xff));
	buf_sv(b, entry);
	return buf_check(b, err);
}

int tlog_bundle_next(struct sv *in, struct sv *ret_entry, struct writ_err *err)
{
	size_t n;

	if (in->n == 0)
		return 0;
	if (in->n < 2)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a bundle ends inside a length");
	n = (size_t)(uint8_t)in->p[0] << 8 | (uint8_t)in->p[1];
	if (in->n - 2 < n)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a bundle ends inside an entry");
	*ret_entry = sv_sub(*in, 2, n);
	*in = sv_skip(*in, 2 + n);
	return 1;
}

int tlog_bundle_check(struct sv bytes, const struct tile *t, struct writ_err *err)
{
	struct sv entry;
	unsigned n = 0;
	int r;

	while ((r = tlog_bundle_next(&bytes, &entry, err)) > 0)
		if (++n > t->width)
			break;
	if (r < 0)
		return r;
	if (n != t->width)
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "a bundle has more or fewer entries than it must");
	return 0;
}
