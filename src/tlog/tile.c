#include "tlog/tile.h"

#include <string.h>

#include "base/banned.h"

enum { HASH = sizeof(struct digest), HEIGHT = 8 };

_Static_assert(TILE_WIDTH == 1 << HEIGHT, "a tile is a subtree of this height");
_Static_assert(TILE_LEVELS == (TREE_LEVELS + HEIGHT - 1) / HEIGHT, "every level has a tile");

/* Groups of three digits, all but the last behind an x. */
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

static bool parse_group(struct sv s, uint64_t *index)
{
	uint64_t v = 0;

	if (s.n != 3 || *index > TREE_SIZE_MAX / 1000)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(s.p[i] - '0');
	}
	*index = *index * 1000 + v;
	return true;
}

/* Takes the groups off the front of *@in, up to the first without an x. */
static bool parse_index(struct sv *in, uint64_t *ret_index)
{
	uint64_t index = 0;

	while (in->n && in->p[0] == 'x') {
		if (!parse_group(sv_sub(*in, 1, 3), &index) || index == 0)
			return false; /* a first group of zeros would be a second spelling */
		*in = sv_skip(*in, 4);
		if (!sv_starts(*in, SV("/")))
			return false;
		*in = sv_skip(*in, 1);
	}
	if (!parse_group(sv_sub(*in, 0, 3), &index))
		return false;
	*in = sv_skip(*in, 3);
	*ret_index = index;
	return true;
}

static bool parse_width(struct sv rest, uint16_t *ret_width)
{
	uint64_t width = TILE_WIDTH;

	if (rest.n) {
		if (!sv_starts(rest, SV(".p/")) ||
		    !sv_to_u64(sv_skip(rest, 3), TILE_WIDTH - 1, &width) || width == 0)
			return false;
	}
	*ret_width = (uint16_t)width;
	return true;
}

/* Is there a tree that has this tile? */
static bool fits(const struct tile *t)
{
	uint64_t most;

	if (t->level >= TILE_LEVELS)
		return false;
	most = TREE_SIZE_MAX >> (HEIGHT * t->level);
	return t->index <= most / TILE_WIDTH && t->index * TILE_WIDTH + t->width <= most;
}

int tile_name_parse(struct sv name, struct tile *ret_t, struct writ_err *err)
{
	struct sv rest = name, level;
	struct tile t = { 0 };
	uint64_t l = 0;

	if (!sv_is(sv_cut(&rest, '/'), "tile"))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "not the name of a tile");
	level = sv_cut(&rest, '/');
	t.entries = sv_is(level, "entries");
	if (!t.entries && !sv_to_u64(level, TILE_LEVELS - 1, &l))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "no such level of tiles");
	t.level = (uint8_t)l;
	if (!parse_index(&rest, &t.index) || !parse_width(rest, &t.width))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "tile index or width is not well formed");
	if (!fits(&t))
		return writ_fail(err, WRIT_E_LIMIT, 0, "no log is large enough for this tile");
	*ret_t = t;
	return 0;
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

		/* Tiles before this one were full already. */
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
	if (t->entries || t->width == 0 || t->width > TILE_WIDTH || !fits(t))
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

/* The root of @n hashes side by side, a power of two of at most 128. */
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
	const unsigned count = 1u << level % HEIGHT; /* hashes of the tile below this node */
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

int bundle_add(struct buf *b, struct sv entry, struct writ_err *err)
{
	if (entry.n > BUNDLE_ENTRY_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "a log entry of more than 65535 bytes");
	buf_ch(b, (char)(entry.n >> 8));
	buf_ch(b, (char)(entry.n & 0xff));
	buf_sv(b, entry);
	return buf_check(b, err);
}

int bundle_next(struct sv *in, struct sv *ret_entry, struct writ_err *err)
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

int bundle_check(struct sv bytes, const struct tile *t, struct writ_err *err)
{
	struct sv entry;
	unsigned n = 0;
	int r;

	while ((r = bundle_next(&bytes, &entry, err)) > 0)
		if (++n > t->width)
			break;
	if (r < 0)
		return r;
	if (n != t->width)
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "a bundle has more or fewer entries than it must");
	return 0;
}
