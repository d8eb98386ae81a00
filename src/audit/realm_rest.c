#include "audit/realm_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

/*
 * SECURITY: what is kept is in our own memory, was checked, and is signed as it was. Who
 * changes the files meanwhile, and makes them look untouched, has a log that does not fit
 * its next signature: everybody who opens or verifies it sees that.
 */

static struct realm_file file_of(const struct stat *st)
{
	return (struct realm_file){ .dev = st->st_dev,
				    .ino = st->st_ino,
				    .size = (uint64_t)st->st_size,
				    .links = st->st_nlink,
				    .written = st->st_mtim,
				    .changed = st->st_ctim };
}

/* One that is not there is all zeros. */
static bool look_at(int dir, const char *name, struct realm_file *ret)
{
	struct stat st;

	*ret = (struct realm_file){ 0 };
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	*ret = file_of(&st);
	return true;
}

/* Of the directory only which one it is: what else changes in it is nobody's business here. */
static bool look(const struct realm *r, struct realm_seen *ret)
{
	struct realm_seen seen = { .known = false };
	struct stat dir, wal;

	if (fstat(r->dir, &dir) < 0 || fstat(r->wal, &wal) < 0 || wal.st_nlink != 1 ||
	    (uint64_t)wal.st_size != r->bytes || !look_at(r->dir, "wal", &seen.list) ||
	    !look_at(r->dir, "checkpoint", &seen.checkpoint) ||
	    !look_at(r->dir, "latest", &seen.latest))
		return false;
	seen.dir = (struct realm_file){ .dev = dir.st_dev, .ino = dir.st_ino };
	seen.wal = file_of(&wal);
	seen.known = true;
	*ret = seen;
	return true;
}

static bool is_file(const struct realm_file *a, const struct realm_file *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->links == b->links &&
	       a->written.tv_sec == b->written.tv_sec && a->written.tv_nsec == b->written.tv_nsec &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static bool is_same(const struct realm_seen *a, const struct realm_seen *b)
{
	return a->known && b->known && is_file(&a->dir, &b->dir) && is_file(&a->list, &b->list) &&
	       is_file(&a->wal, &b->wal) && is_file(&a->checkpoint, &b->checkpoint) &&
	       is_file(&a->latest, &b->latest);
}

static void let_go(struct realm *r)
{
	/* Tiles are read again: they are not among what is looked at. */
	realm_nodes_clear(&r->nodes);
	scope_close(&r->wal);
	scope_close(&r->lock);
	scope_close(&r->dir);
	r->wal = r->lock = r->dir = r->nodes.dir = -1;
}

void realm_rest(struct realm *r)
{
	r->seen.known = false;
	if (r->writes && r->wal >= 0)
		(void)!look(r, &r->seen);
	let_go(r);
}

/* What is open when it fails is for realm_close(). */
static bool go_on(struct realm *r, const char *path)
{
	struct writ_err none = { 0 };
	struct realm_seen now;
	char name[WAL_NAME];

	if (!r->seen.known || realm_lock(r, path, &none) < 0)
		return false;
	/* Never made here: it may have become tiles. */
	realm_wal_name(r->nodes.base, name);
	r->wal = openat(r->dir, name, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	r->nodes.dir = r->dir;
	return r->wal >= 0 && look(r, &now) && is_same(&now, &r->seen);
}

int realm_again(struct realm *r, const char *path, bool *ret_same, struct writ_err *err)
{
	int n;

	if (go_on(r, path)) {
		*ret_same = true;
		return 0;
	}
	realm_close(r);
	n = realm_open(r, path, true, err);
	if (n == 0)
		*ret_same = false;
	return n;
}
