#include "audit/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "audit/realm_priv.h"
#include "audit/verify_priv.h"
#include "base/fd.h"

#include "base/banned.h"

const char *verify_state_name(enum verify_state s)
{
	static const char *const names[] = { [VERIFY_UNCHECKED] = "unchecked",
					     [VERIFY_SEALED] = "sealed",
					     [VERIFY_UNSIGNED] = "unsigned",
					     [VERIFY_OPEN] = "open",
					     [VERIFY_CUT] = "cut",
					     [VERIFY_GONE] = "gone",
					     [VERIFY_UNKNOWN] = "unknown",
					     [VERIFY_BROKEN] = "broken" };

	return names[s];
}

/* Fills the finding @f, which is NULL if the report has too many. */
printf_like(4, 0) static void put_finding(struct verify_report *v, struct verify_finding *f,
					  const char *place, const char *fmt, va_list ap)
{
	scoped_buf b = BUF_INIT(1024);

	if (!f)
		return;
	buf_vfmt(&b, fmt, ap);
	f->what = arena_str(v->a, buf_view(&b));
	f->place = arena_str(v->a, sv_from(place));
}

void verify_failed(struct verify_report *v, const char *place, const char *fmt, ...)
{
	const bool room = v->failures.n < VERIFY_FINDINGS;
	va_list ap;

	v->failures_n++;
	va_start(ap, fmt);
	put_finding(v, room ? vec_push(v->a, &v->failures) : NULL, place, fmt, ap);
	va_end(ap);
}

void verify_remark(struct verify_report *v, const char *place, const char *fmt, ...)
{
	const bool room = v->remarks.n < VERIFY_FINDINGS;
	va_list ap;

	va_start(ap, fmt);
	put_finding(v, room ? vec_push(v->a, &v->remarks) : NULL, place, fmt, ap);
	va_end(ap);
}

/* --- the tiles, the newest lines and the tree of the log --- */

/*
 * Reads a tile or bundle and prints its name into @name. A missing or unreadable file is a failure.
 */
static bool read_one(struct verify *s, const struct tile *t, struct buf *name, struct buf *b)
{
	struct writ_err no = { 0 };

	tile_name_print(t, name);
	if (realm_read_tile(s->log.dir, t, b, &no) == 0)
		return true;
	if (no.sys == ENOENT)
		verify_failed(s->v, name->p, "is missing");
	else
		verify_failed(s->v, name->p, "cannot be read: %s",
			      no.sys ? strerror(no.sys) : no.what);
	return false;
}

static int add_entry(struct verify *s, struct sv entry, struct digest *ret_leaf,
		     struct writ_err *err)
{
	int r;

	*ret_leaf = tree_leaf(entry);
	if ((r = verify_entry(s, entry, s->tree.size, err)) < 0 ||
	    (r = tree_append(&s->tree, ret_leaf, err)) < 0)
		return r;
	verify_check_marks(s);
	return 0;
}

/* Compares leaf hashes of a bundle with the tile of level 0, to report which entry changed. */
static void compare_leaves(struct verify *s, uint64_t index, const char *bundle,
			   const struct digest *leaf)
{
	const struct tile t = { .width = TILE_WIDTH, .index = index };
	scoped_buf b = BUF_INIT(TILE_BYTES_MAX), name = BUF_INIT(TILE_NAME_MAX);

	if (!read_one(s, &t, &name, &b))
		return;
	if (b.n != TILE_BYTES_MAX) {
		verify_failed(s->v, name.p, "has another length");
		return;
	}
	for (size_t i = 0; i < TILE_WIDTH; i++)
		if (memcmp(b.p + 32 * i, leaf[i].b, 32) != 0)
			verify_failed(s->v, bundle, "entry %llu does not have the hash in %s",
				      (unsigned long long)index * TILE_WIDTH + i, name.p);
}

/* Appends the root over the full tile @node to s->level[level]. Overwrites @node. */
static int add_node(struct verify *s, unsigned level, struct digest node[static TILE_WIDTH],
		    struct writ_err *err)
{
	struct digest *up = vec_push(s->v->a, &s->level[level]);

	if (!up)
		return writ_nomem(err);
	for (size_t n = TILE_WIDTH / 2; n > 0; n /= 2)
		for (size_t i = 0; i < n; i++)
			node[i] = tree_node(&node[2 * i], &node[2 * i + 1]);
	*up = node[0];
	return 0;
}

/*
 * Checks a bundle of entries. Returns 1 if the bundle is missing or malformed, so that the entries
 * after the bundle cannot be hashed into the tree.
 */
static int check_bundle(struct verify *s, uint64_t index, struct writ_err *err)
{
	const struct tile t = { .entries = true, .width = TILE_WIDTH, .index = index };
	scoped_buf b = BUF_INIT(BUNDLE_BYTES_MAX), name = BUF_INIT(TILE_NAME_MAX);
	struct digest leaf[TILE_WIDTH];
	struct writ_err no = { 0 };
	struct sv rest, entry;

	if (!read_one(s, &t, &name, &b))
		return 1;
	if (tlog_bundle_check(buf_view(&b), &t, &no) < 0) {
		verify_failed(s->v, name.p, "does not have %d entries", TILE_WIDTH);
		return 1;
	}
	rest = buf_view(&b);
	for (size_t i = 0; i < TILE_WIDTH; i++)
		if (tlog_bundle_next(&rest, &entry, err) < 0 ||
		    add_entry(s, entry, &leaf[i], err) < 0)
			return err->code;
	compare_leaves(s, index, name.p, leaf);
	return add_node(s, 0, leaf, err);
}

/* Checks a tile above level 0 and, if the tile is full, computes the node above it. */
static int check_upper_tile(struct verify *s, const struct tile *t, struct writ_err *err)
{
	const struct digest *have = s->level[t->level - 1].v + t->index * TILE_WIDTH;
	scoped_buf b = BUF_INIT(TILE_BYTES_MAX), name = BUF_INIT(TILE_NAME_MAX);
	struct digest node[TILE_WIDTH];

	if (read_one(s, t, &name, &b) &&
	    (b.n != (size_t)t->width * 32 || memcmp(b.p, have, b.n) != 0))
		verify_failed(s->v, name.p, "does not fit the entries below it");
	if (t->width != TILE_WIDTH || t->level == TILE_LEVELS)
		return 0;
	memcpy(node, have, sizeof(node));
	return add_node(s, t->level, node, err);
}

static int check_wal(struct verify *s, uint64_t base, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(TILE_WIDTH * (ENTRY_PUBLIC_MAX + 1));
	struct writ_err no = { 0 };
	struct digest leaf;
	char name[32];
	struct sv rest, line;
	int r = 0;

	(void)snprintf(name, sizeof(name), "wal/%016llx", (unsigned long long)base);
	if (realm_read(&s->log, name, &b, &no) < 0) {
		verify_failed(s->v, name, "cannot be read: %s", no.what);
		return 0;
	}
	rest = buf_view(&b);
	while (r == 0 && rest.n) {
		if (!tlog_line_take(&rest, &line)) {
			verify_remark(s->v, name, "ends with half a line, which is no entry");
			break;
		}
		r = add_entry(s, line, &leaf, err);
	}
	if (r == 0 && s->tree.size > base + TILE_WIDTH)
		verify_failed(s->v, name, "has too many entries");
	return r;
}

static int check_tree(struct verify *s, struct writ_err *err)
{
	struct realm_found f = { 0 };
	struct tile_growth g = { 0 };
	struct tile t;
	int r = realm_list(&s->log, &f, err);

	if (r < 0 && err->sys == ENOENT) {
		verify_failed(s->v, "wal", "is not there");
		return 0;
	}
	if (r == 0 && f.n == 0)
		verify_failed(s->v, "wal", "the newest entries are gone");
	if (f.n > 2 || (f.n == 2 && f.high - f.low != TILE_WIDTH))
		verify_failed(s->v, "wal", "has files that do not belong together");
	for (uint64_t i = 0; r == 0 && i < f.high / TILE_WIDTH; i++)
		r = check_bundle(s, i, err);
	g.size = f.high;
	while (r == 0 && tile_growth_next(&g, &t))
		if (!t.entries && t.level > 0)
			r = check_upper_tile(s, &t, err);
	if (r == 0 && f.n)
		r = check_wal(s, f.high, err);
	/*
	 * A missing bundle (1) was reported as a finding; entries after the bundle cannot be
	 * checked without it.
	 */
	return r > 0 ? 0 : r;
}

/* --- all of it --- */

static int lock(struct verify *s, struct writ_err *err)
{
	s->log.dir = open(s->opt->log, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->log.dir < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", s->opt->log);
	/*
	 * Continue without the lock file: every writer creates the lock file, so no writ process
	 * can be writing to this log.
	 */
	s->log.lock = openat(s->log.dir, "lock", O_RDONLY | O_CLOEXEC);
	if (s->log.lock < 0 && errno == ENOENT)
		verify_failed(s->v, "lock", "is not there");
	else if (s->log.lock < 0 || flock(s->log.lock, LOCK_SH) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "lock %s", s->opt->log);
	return 0;
}

static int check_log(struct verify *s, struct writ_err *err)
{
	int r;

	if ((r = lock(s, err)) < 0 || (r = verify_load_marks(s, err)) < 0 ||
	    (r = check_tree(s, err)) < 0 || (r = verify_keys(s, err)) < 0)
		return r;
	return verify_find_running(s, err);
}

int realm_verify(const struct verify_options *opt, struct arena *a, struct verify_report *ret,
		 struct writ_err *err)
{
	struct verify s = { .opt = opt, .v = ret, .log = REALM_INIT };
	int r;

	*ret = (struct verify_report){ .a = a };
	r = check_log(&s, err);
	/*
	 * Release the lock of the realm's log before reading the session files, which takes long.
	 * Sessions may start and end after the release.
	 */
	fd_scope_close(&s.log.lock);
	fd_scope_close(&s.log.dir);
	if (r == 0)
		verify_sessions(&s);
	ret->size = s.tree.size;
	ret->root = tree_frontier_root(&s.tree);
	return r;
}
