#include "audit/realm_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"

#include "base/banned.h"

/*
 * SECURITY: the state of the log that realm_resume() reuses stayed in this process's memory after
 * realm_open() checked it. An attacker who changes the files and forges their times only produces
 * files that contradict the next signature, which every later realm_open() and every verifier
 * detects.
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

/* Reads the state of the file @name; all zeros if the file does not exist. */
static bool stat_file(int dir, const char *name, struct realm_file *ret)
{
	struct stat st;

	*ret = (struct realm_file){ 0 };
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	*ret = file_of(&st);
	return true;
}

/*
 * Takes the state of all files of the log. For the directory it keeps only the identity, because
 * unrelated files come and go in the directory.
 */
static bool take_snapshot(const struct realm *r, struct realm_seen *ret)
{
	struct realm_seen seen = { .known = false };
	struct stat dir, wal;

	if (fstat(r->dir, &dir) < 0 || fstat(r->wal, &wal) < 0 || wal.st_nlink != 1 ||
	    (uint64_t)wal.st_size != r->bytes || !stat_file(r->dir, "wal", &seen.list) ||
	    !stat_file(r->dir, "checkpoint", &seen.checkpoint) ||
	    !stat_file(r->dir, "latest", &seen.latest))
		return false;
	seen.dir = (struct realm_file){ .dev = dir.st_dev, .ino = dir.st_ino };
	seen.wal = file_of(&wal);
	seen.known = true;
	*ret = seen;
	return true;
}

static bool same_file(const struct realm_file *a, const struct realm_file *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->links == b->links &&
	       a->written.tv_sec == b->written.tv_sec && a->written.tv_nsec == b->written.tv_nsec &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static bool same_snapshot(const struct realm_seen *a, const struct realm_seen *b)
{
	return a->known && b->known && same_file(&a->dir, &b->dir) &&
	       same_file(&a->list, &b->list) && same_file(&a->wal, &b->wal) &&
	       same_file(&a->checkpoint, &b->checkpoint) && same_file(&a->latest, &b->latest);
}

static void close_files(struct realm *r)
{
	/* Drop cached tiles: the comparison in realm_resume() does not cover their files. */
	realm_nodes_clear(&r->nodes);
	fd_scope_close(&r->wal);
	fd_scope_close(&r->lock);
	fd_scope_close(&r->dir);
	r->wal = r->lock = r->dir = r->nodes.dir = -1;
}

void realm_suspend(struct realm *r)
{
	r->seen.known = false;
	if (r->writes && r->wal >= 0)
		(void)!take_snapshot(r, &r->seen);
	close_files(r);
}

/*
 * Reopens a suspended log if its files are unchanged. On failure the caller must use realm_close()
 * to close the opened descriptors.
 */
static bool reopen_unchanged(struct realm *r, const char *path)
{
	struct writ_err none = { 0 };
	struct realm_seen now;
	char name[WAL_NAME];

	if (!r->seen.known || realm_lock(r, path, &none) < 0)
		return false;
	/* Open without O_CREAT: another process may have turned this file of wal/ into tiles. */
	realm_wal_name(r->nodes.base, name);
	r->wal = openat(r->dir, name, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	r->nodes.dir = r->dir;
	return r->wal >= 0 && take_snapshot(r, &now) && same_snapshot(&now, &r->seen);
}

int realm_resume(struct realm *r, const char *path, bool *ret_same, struct writ_err *err)
{
	int n;

	if (reopen_unchanged(r, path)) {
		*ret_same = true;
		return 0;
	}
	realm_close(r);
	n = realm_open(r, path, true, err);
	if (n == 0)
		*ret_same = false;
	return n;
}
