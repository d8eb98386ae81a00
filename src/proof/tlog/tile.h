/*
 * tile.h - the hashes and entries of a log as files: C2SP tlog-tiles
 *
 * Reads:  nodes (tree.h), names and contents of files
 * Writes: nothing; the caller owns the files
 * Next:   audit/, which writes tiles before it publishes a checkpoint
 *
 * A tile holds up to 256 neighbouring nodes: tile n of level l holds the nodes of tree level
 * 8 * l from index 256 * n on. An entry bundle holds the entries below a tile of level 0. A tile
 * with fewer than 256 nodes is partial and carries its width in its name; a full tile never
 * changes. The contents of a file are untrusted until a root computed from them equals a signed
 * one.
 */
#ifndef WRIT_TLOG_TILE_H
#define WRIT_TLOG_TILE_H

#include "base/buf.h"
#include "tlog/tree.h"

enum {
	TILE_WIDTH = 256,
	TILE_LEVELS = 8, /* levels of tiles: enough for a tree of TREE_SIZE_MAX leaves */
	TILE_BYTES_MAX = TILE_WIDTH * 32,
	TILE_NAME_MAX = 48,
	BUNDLE_ENTRY_MAX = 65535,
	BUNDLE_BYTES_MAX = TILE_WIDTH * (2 + BUNDLE_ENTRY_MAX),
};

struct tile {
	bool entries; /* the file is a bundle of entries; level is then 0 */
	uint8_t level;
	uint16_t width; /* nodes or entries in the tile, 1 to 256 */
	uint64_t index;
};

/*
 * Prints the name of a tile, such as "tile/0/x001/x234/067", "tile/1/000.p/17" or
 * "tile/entries/003".
 */
void tile_name_print(const struct tile *t, struct buf *b);

/*
 * Finds the tile (or, with @entries, the bundle) of @level and @index in a tree of @size entries.
 * Returns false if the tree has no such tile.
 */
must_check bool tile_find(bool entries, unsigned level, uint64_t index, uint64_t size,
			  struct tile *ret_t);

/*
 * Iterator over the files to write when a tree grows from @old_size to @size: each bundle and tile
 * that is new or wider, bundles first, then tiles from the lowest level up. Set both sizes and call
 * tile_growth_next() until it returns false.
 */
struct tile_growth {
	uint64_t old_size, size;
	unsigned step;	/* step of the iteration: 0 for bundles, 1 + l for tiles of level l */
	uint64_t done;	/* tiles of this step that tile_growth_next() has returned so far */
};

bool tile_growth_next(struct tile_growth *g, struct tile *ret_t);

/* Appends the bytes of a tile of nodes to @b. */
must_check int tile_encode(struct tree_nodes *from, const struct tile *t, struct buf *b,
			   struct writ_err *err);

/*
 * A tree_nodes source that reads nodes from tiles. read() returns the bytes of a tile, which must
 * stay valid until the next call. A tile of the wrong length is refused.
 */
struct tile_nodes {
	struct tree_nodes nodes;
	uint64_t size;
	int (*read)(struct tile_nodes *from, const struct tile *t, struct sv *ret_bytes,
		    struct writ_err *err);
};

void tile_nodes_init(struct tile_nodes *n, uint64_t size,
		     int (*read)(struct tile_nodes *from, const struct tile *t,
				 struct sv *ret_bytes, struct writ_err *err));

/*
 * Appends an entry to a bundle. Bundles store each entry after its length in two bytes, most
 * significant byte first.
 */
must_check int tlog_bundle_add(struct buf *b, struct sv entry, struct writ_err *err);
/* Takes one entry off the front of the bundle *@in. Returns 1 for an entry, 0 at the end. */
must_check int tlog_bundle_next(struct sv *in, struct sv *ret_entry, struct writ_err *err);
/* Checks that the bundle @bytes holds exactly as many entries as the width of @t. */
must_check int tlog_bundle_check(struct sv bytes, const struct tile *t, struct writ_err *err);

#endif
