#include "audit/realm_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

/* --- tiles --- */

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
 * Fetches a tree node from the tiles or from the leaf hashes in memory. Computes a node that
 * neither stores from its two children.
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

/* --- files of wal/ --- */

void realm_wal_name(uint64_t base, char ret[static WAL_NAME])
{
	(void)snprintf(ret, WAL_NAME, "wal/%016llx", (unsigned long long)base);
}

int realm_wal_open(struct realm *r, struct writ_err *err)
{
	const int flags = r->writes ? O_RDWR | O_CREAT | O_APPEND : O_RDONLY;
	char name[WAL_NAME];

	realm_wal_name(r->nodes.base, name);
	r->wal = openat(r->dir, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	return r->wal < 0 ? writ_fail(err, WRIT_E_SYS, errno, "%s", name) : 0;
}

int realm_wal_drop(struct realm *r, uint64_t base, struct writ_err *err)
{
	char name[WAL_NAME];

	realm_wal_name(base, name);
	return unlinkat(r->dir, name, 0) < 0 ? writ_fail(err, WRIT_E_SYS, errno, "%s", name) : 0;
}

/* Appends the entries of the newest file of wal/, which is full, to @b as a bundle. */
static int bundle(const struct realm *r, struct buf *b, struct writ_err *err)
{
	scoped_buf all = BUF_INIT(BUNDLE_BYTES_MAX);
	struct sv rest;
	int n = lseek(r->wal, 0, SEEK_SET) < 0 ? writ_fail(err, WRIT_E_SYS, errno, "wal")
					       : fd_read_all(r->wal, &all, err);

	rest = buf_view(&all);
	while (n == 0 && rest.n)
		n = tlog_bundle_add(b, sv_cut(&rest, '\n'), err);
	return n;
}

static int write_tile(struct realm *r, const struct tile *t, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(BUNDLE_BYTES_MAX), name = BUF_INIT(TILE_NAME_MAX);
	int n = t->entries ? bundle(r, &b, err) : tile_encode(&r->nodes.nodes, t, &b, err);

	tile_name_print(t, &name);
	if (n == 0)
		n = buf_check(&name, err);
	if (n == 0 && t->entries)
		n = tlog_bundle_check(buf_view(&b), t, err);
	return n == 0 ? fd_replace_deep(r->dir, name.p, buf_view(&b), 0600, err) : n;
}

/* Removes the partial tile that tile @t, which is one node wider, has replaced. */
static void drop_narrower(const struct realm *r, const struct tile *t)
{
	struct tile old = *t;
	scoped_buf name = BUF_INIT(TILE_NAME_MAX);

	if (t->level == 0 || --old.width == 0)
		return;
	tile_name_print(&old, &name);
	if (!name.failed)
		(void)unlinkat(r->dir, name.p, 0);
}

int realm_roll(struct realm *r, struct writ_err *err)
{
	const uint64_t base = r->nodes.base;
	struct tile_growth g = { .old_size = base, .size = base + TILE_WIDTH };
	struct tile t;
	int n = 0;

	if (fsync(r->wal) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "sync the log");
	while (n == 0 && tile_growth_next(&g, &t))
		n = write_tile(r, &t, err);
	if (n < 0)
		return n;
	fd_scope_close(&r->wal);
	r->wal = -1;
	realm_nodes_clear(&r->nodes);
	realm_nodes_init(&r->nodes, r->dir, base + TILE_WIDTH);
	r->bytes = 0;
	n = realm_wal_open(r, err);
	if (n == 0 && fsync(r->wal) == 0)
		n = fd_sync_above(r->dir, "wal/", err);
	if (n == 0)
		n = realm_wal_drop(r, base, err);
	for (g = (struct tile_growth){ .old_size = base, .size = base + TILE_WIDTH };
	     n == 0 && tile_growth_next(&g, &t);)
		drop_narrower(r, &t);
	return n;
}
