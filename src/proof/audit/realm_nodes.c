#include "audit/realm_priv.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fd.h"

#include "base/banned.h"

static bool same(const struct tile *a, const struct tile *b)
{
	return a->entries == b->entries && a->level == b->level && a->width == b->width &&
	       a->index == b->index;
}

static int read_tile(struct tile_nodes *from, const struct tile *t, struct sv *ret,
		     struct writ_err *err)
{
	struct realm_nodes *n =
		(struct realm_nodes *)((char *)from - offsetof(struct realm_nodes, tiles));
	struct buf *b = &n->tile[t->level];
	int r;

	if (b->n && same(&n->which[t->level], t)) {
		*ret = buf_view(b);
		return 0;
	}
	buf_clear(b);
	b->max = TILE_BYTES_MAX;
	r = realm_read_tile(n->dir, t, b, err);
	if (r < 0)
		return r;
	n->which[t->level] = *t;
	*ret = buf_view(b);
	return 0;
}

/*
 * Fetches a tree node from the tiles, or computes a node that no tile stores from its two children.
 */
static int get(struct tree_nodes *from, unsigned level, uint64_t index, struct digest *ret,
	       struct writ_err *err)
{
	struct realm_nodes *n = (struct realm_nodes *)from;
	struct digest left, right;
	int r;

	if ((index + 1) << level <= n->base)
		return n->tiles.nodes.get(&n->tiles.nodes, level, index, ret, err);
	if (level == 0 && index - n->base >= n->n)
		return writ_fail(err, WRIT_E_BUG, 0, "there is no entry %llu",
				 (unsigned long long)index);
	if (level == 0) {
		*ret = n->leaf[index - n->base];
		return 0;
	}
	if ((r = get(from, level - 1, 2 * index, &left, err)) < 0 ||
	    (r = get(from, level - 1, 2 * index + 1, &right, err)) < 0)
		return r;
	*ret = tree_node(&left, &right);
	return 0;
}

void realm_nodes_init(struct realm_nodes *n, int dir, uint64_t base)
{
	n->nodes.get = get;
	n->base = base;
	n->n = 0;
	n->dir = dir;
	tile_nodes_init(&n->tiles, base, read_tile);
}

void realm_nodes_clear(struct realm_nodes *n)
{
	for (size_t i = 0; i < TILE_LEVELS; i++)
		buf_clear(&n->tile[i]);
}

int realm_read_tile(int dir, const struct tile *t, struct buf *b, struct writ_err *err)
{
	scoped_buf name = BUF_INIT(TILE_NAME_MAX);
	scoped_fd fd = -1;

	tile_name_print(t, &name);
	if (buf_check(&name, err) < 0)
		return err->code;
	fd = openat(dir, name.p, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", name.p);
	return fd_read_all(fd, b, err);
}
