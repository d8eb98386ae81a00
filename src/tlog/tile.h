/*
 * tile.h - the hashes and entries of a log as files: C2SP tlog-tiles
 *
 * Reads:  nodes (tree.h), names and contents of files
 * Writes: nothing; the caller has the files
 * Next:   audit/, which writes them before it publishes a checkpoint
 *
 * A tile holds up to 256 nodes side by side: tile n of level l those of tree level
 * 8 * l from 256 * n on. An entry bundle holds the entries below a tile of level 0.
 * A tile with less than 256 is partial and named with its width; a full one never
 * changes again. Contents are not to be believed before a root made of them was
 * compared with a signed one.
 */
#ifndef WRIT_TLOG_TILE_H
#define WRIT_TLOG_TILE_H

#include "base/buf.h"
#include "tlog/tree.h"

enum {
	TILE_WIDTH = 256,
	TILE_LEVELS = 8,     /* of a tree of at most TREE_SIZE_MAX leaves */
	TILE_BYTES_MAX = TILE_WIDTH * 32,
	TILE_NAME_MAX = 48,
	BUNDLE_ENTRY_MAX = 65535,
	BUNDLE_BYTES_MAX = TILE_WIDTH * (2 + BUNDLE_ENTRY_MAX),
};

struct tile {
	bool entries;	  /* a bundle of entries; level is 0 then */
	uint8_t level;
	uint16_t width;	  /* 1 to 256 */
	uint64_t index;
};

/* "tile/0/x001/x234/067", "tile/1/000.p/17", "tile/entries/003". */
void tile_name_print(const struct tile *t, struct buf *b);
must_check int tile_name_parse(struct sv name, struct tile *ret_t, struct writ_err *err);

/* The tile (or bundle) of that level and index in a tree of @size; false if there is none. */
must_check bool tile_find(bool entries, unsigned level, uint64_t index, uint64_t size,
			  struct tile *ret_t);

/*
 * What a tree that grows from @old_size to @size needs written: each bundle and
 * tile that is new or wider, bundles first, then levels from below. Fill it with
 * the two sizes and call tile_growth_next() until it says false.
 */
struct tile_growth {
	uint64_t old_size, size;
	unsigned step;	/* 0 for bundles, 1 + l for level l */
	uint64_t done;	/* tiles of this step that were given out */
};

bool tile_growth_next(struct tile_growth *g, struct tile *ret_t);

/* Appends the bytes of a tile of nodes. */
must_check int tile_encode(struct tree_nodes *from, const struct tile *t, struct buf *b,
			   struct writ_err *err);

/*
 * Nodes out of tiles. read() gives the bytes of a tile, which stay valid until it
 * is called again or the proof is made; a file of another length is refused.
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

/* Entry bundles: each entry with its length in two bytes, most significant first. */
must_check int bundle_add(struct buf *b, struct sv entry, struct writ_err *err);
/* Takes one entry off the front of *@in. Returns 1, 0 at the end, or an error. */
must_check int bundle_next(struct sv *in, struct sv *ret_entry, struct writ_err *err);
/* Are these exactly as many entries as the width of @t says? */
must_check int bundle_check(struct sv bytes, const struct tile *t, struct writ_err *err);

#endif
