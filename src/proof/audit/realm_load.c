#include "audit/realm_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

enum { WAL_MAX = TILE_WIDTH * (ENTRY_PUBLIC_MAX + 1) };

static int damaged(struct writ_err *err, const char *what)
{
	return writ_fail(err, WRIT_E_DENIED, 0, "the log of this realm is damaged: %s", what);
}

static bool parse_name(const char *name, uint64_t *ret)
{
	return sv_hex_to_u64(sv_from(name), 16, ret) && *ret % TILE_WIDTH == 0 &&
	       *ret < TREE_SIZE_MAX;
}

int realm_list(const struct realm *r, struct realm_found *ret, struct writ_err *err)
{
	scoped_list *d = fd_open_list(r->dir, "wal");
	const struct dirent *e;
	struct realm_found f = { 0 };
	uint64_t v;

	if (!d && !(errno == ENOENT && r->writes && mkdirat(r->dir, "wal", 0700) == 0))
		return writ_fail(err, WRIT_E_SYS, errno, "wal");
	while (d && (e = readdir(d)))
		if (parse_name(e->d_name, &v)) {
			f.low = f.n == 0 || v < f.low ? v : f.low;
			f.high = f.n == 0 || v > f.high ? v : f.high;
			f.n++;
		}
	*ret = f;
	return 0;
}

/*
 * Parses a signed checkpoint without verifying its signature. Appending only needs the size and the
 * root; verify.h checks the key.
 */
static int parse_mark(struct sv bytes, struct realm_mark *ret, struct writ_err *err)
{
	struct checkpoint c;

	if (checkpoint_read(bytes, NULL, &c, err) < 0)
		return damaged(err, "a checkpoint of it cannot be read");
	*ret = (struct realm_mark){ .size = c.size, .root = c.root };
	return 0;
}

static int load_marks(struct realm *r, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(NOTE_MAX);
	struct sv rest, when, boot = SV("");
	int n = realm_read(r, "checkpoint", &b, err);

	if (n < 0 || (b.n && (n = parse_mark(buf_view(&b), &r->checkpoint, err)) < 0))
		return n;
	buf_clear(&b);
	if ((n = realm_read(r, "latest", &b, err)) < 0 || b.n == 0 ||
	    (n = realm_boot_id(r, &boot, err)) < 0)
		return n;
	rest = buf_view(&b);
	when = sv_cut(&rest, '\n');
	n = parse_mark(rest, &r->latest, err);
	r->latest.lost = n == 0 && !sv_eq(when, boot);
	return n;
}

static int compare_root(const struct realm_mark *m, struct digest root, struct writ_err *err)
{
	return digest_eq(&root, &m->root)
		       ? 0
		       : damaged(err, "its entries are not those that were signed");
}

static int compare_one(const struct realm *r, const struct realm_mark *m, struct writ_err *err)
{
	return m->size == 0 || r->tree.size != m->size
		       ? 0
		       : compare_root(m, tree_frontier_root(&r->tree), err);
}

/* Compares the tree with the signed roots of checkpoint and latest, at each size of the tree. */
static int compare_marks(const struct realm *r, struct writ_err *err)
{
	const int n = compare_one(r, &r->checkpoint, err);

	return n == 0 ? compare_one(r, &r->latest, err) : n;
}

/* Is @line a whole log line? A power loss can leave zeros or garbage in place of lines. */
static bool is_whole(struct sv line)
{
	if (line.n < 2 || line.p[0] != '{' || line.p[line.n - 1] != '}')
		return false;
	for (size_t i = 0; i < line.n; i++)
		if (line.p[i] < 0x20 || line.p[i] > 0x7e)
			return false;
	return true;
}

/*
 * Is @line an entry that ends a session? The writer of such an entry signs under the same lock, so
 * an unsigned end entry shows that signing failed.
 */
static bool is_end(struct sv line)
{
	const struct sv event = entry_event(line);

	return sv_is(event, "session.end") || sv_is(event, "session.cut");
}

/*
 * Checks whether bundle @index contains the end of a session at position @skip or later. An
 * unreadable bundle counts as having no end.
 */
static bool has_end(const struct realm *r, uint64_t index, uint64_t skip)
{
	const struct tile t = { .entries = true, .width = TILE_WIDTH, .index = index };
	scoped_buf b = BUF_INIT(BUNDLE_BYTES_MAX);
	struct writ_err no = { 0 };
	struct sv rest, entry;

	if (realm_read_tile(r->dir, &t, &b, &no) < 0)
		return false;
	rest = buf_view(&b);
	for (uint64_t i = 0; rest.n && tlog_bundle_next(&rest, &entry, &no) >= 0; i++)
		if (i >= skip && is_end(entry))
			return true;
	return false;
}

static int replay(struct realm *r, struct sv all, struct writ_err *err)
{
	const uint64_t covered =
		r->checkpoint.size > r->latest.size ? r->checkpoint.size : r->latest.size;
	struct sv line;
	int n = compare_marks(r, err);

	for (uint64_t i = covered; i < r->nodes.base && !r->unsigned_end;
	     i += TILE_WIDTH - i % TILE_WIDTH)
		r->unsigned_end = has_end(r, i / TILE_WIDTH, i % TILE_WIDTH);

	while (n == 0 && tlog_line_take(&all, &line) && is_whole(line)) {
		if (r->nodes.n == TILE_WIDTH)
			return damaged(err, "a file of wal/ is too long");
		r->unsigned_end |= r->tree.size >= covered && is_end(line);
		r->nodes.leaf[r->nodes.n] = tree_leaf(line);
		n = tree_append(&r->tree, &r->nodes.leaf[r->nodes.n], err);
		r->nodes.n += n == 0;
		r->bytes += line.n + 1;
		if (n == 0)
			n = compare_marks(r, err);
	}
	return n;
}

/*
 * Cuts off a torn last line and records the cut in the log. The writer of the line died before it
 * reported success, so nobody relies on the line.
 */
static int drop_torn_line(struct realm *r, struct sv torn, struct writ_err *err)
{
	const struct digest d = crypto_sha256(torn);
	scoped_entry e = { 0 };

	if (torn.n == 0 || !r->writes)
		return 0;
	if (ftruncate(r->wal, (off_t)r->bytes) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "repair the log");
	entry_begin(&e, "log.recovered");
	entry_num(&e, "bytes", torn.n);
	entry_digest(&e, "sha256", &d);
	return realm_append(r, &e, true, NULL, err);
}

/* Records once that entries signed before this boot are gone, and removes their signature. */
static int log_loss(struct realm *r, struct writ_err *err)
{
	scoped_entry e = { 0 };
	int n;

	if (!r->writes)
		return 0;
	entry_begin(&e, "log.lost");
	entry_num(&e, "size", r->latest.size);
	entry_digest(&e, "root", &r->latest.root);
	n = realm_append(r, &e, true, NULL, err);
	if (n == 0 && unlinkat(r->dir, "latest", 0) < 0)
		n = writ_fail(err, WRIT_E_SYS, errno, "latest");
	r->latest = (struct realm_mark){ 0 };
	return n;
}

static int load_wal(struct realm *r, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(WAL_MAX);
	uint64_t size, whole;
	int n = fd_read_all(r->wal, &b, err);

	if (n == 0)
		n = replay(r, buf_view(&b), err);
	if (n < 0)
		return n;
	size = r->tree.size;
	whole = r->bytes;
	/*
	 * SECURITY: refuse to append to a log that lacks signed entries, or the next signature
	 * would cover the manipulation. Only a signature from before this boot may cover more
	 * entries than the log has, after a power loss.
	 */
	if (size < r->checkpoint.size || (size < r->latest.size && !r->latest.lost))
		return damaged(err, "it is shorter than what was signed");
	/*
	 * Write the tiles of a full file of wal/: a crash happened after its last line and before
	 * its tiles were complete.
	 */
	if (r->nodes.n == TILE_WIDTH && r->writes)
		n = realm_roll(r, err);
	if (n == 0)
		n = drop_torn_line(r, sv_skip(buf_view(&b), whole), err);
	return n == 0 && size < r->latest.size ? log_loss(r, err) : n;
}

/* Compares the signed root @m with the tiles, if it is older than the newest file of wal/. */
static int compare_old(struct realm *r, const struct realm_mark *m, struct writ_err *err)
{
	struct digest root;
	int n;

	if (m->size == 0 || m->size >= r->nodes.base)
		return 0;
	n = tree_root(&r->nodes.nodes, m->size, &root, err);
	return n < 0 ? n : compare_root(m, root, err);
}

int realm_load(struct realm *r, struct writ_err *err)
{
	struct realm_found f = { 0 };
	uint64_t base;
	int n;

	if ((n = realm_list(r, &f, err)) < 0 || (n = load_marks(r, err)) < 0)
		return n;
	if (f.n > 2 || (f.n == 2 && f.high - f.low != TILE_WIDTH))
		return damaged(err, "there are files in wal/ that do not belong together");
	if (f.n == 0 &&
	    (r->checkpoint.size || r->latest.size || faccessat(r->dir, "tile", F_OK, 0) == 0))
		return damaged(err, "its newest entries are gone");
	if (f.n == 0 && !r->writes)
		return writ_fail(err, WRIT_E_SYS, ENOENT, "there is nothing in the log yet");
	base = f.n ? f.high : 0;
	realm_nodes_init(&r->nodes, r->dir, base);
	n = tree_frontier_load(&r->nodes.tiles.nodes, base, &r->tree, err);
	if (n < 0)
		return damaged(err, "a tile is missing or has another length");
	if ((n = realm_wal_open(r, err)) < 0 ||
	    (f.n == 2 && r->writes && (n = realm_wal_drop(r, f.low, err)) < 0) ||
	    (n = compare_old(r, &r->checkpoint, err)) < 0 ||
	    (n = compare_old(r, &r->latest, err)) < 0)
		return n;
	return load_wal(r, err);
}
