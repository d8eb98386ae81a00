#include "audit/realm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/realm_priv.h"
#include "base/fd.h"

#include "base/banned.h"

static int lock_log(struct realm *r, const char *path, struct writ_err *err)
{
	struct stat st;

	r->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->dir < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	/*
	 * SECURITY: refuse a log directory that every user can write to. Anyone could have replaced
	 * files in such a directory.
	 */
	if (fstat(r->dir, &st) < 0 || (st.st_mode & S_IWOTH))
		return writ_fail(err, WRIT_E_DENIED, 0, "%s can be written by others", path);
	r->lock =
		openat(r->dir, "lock", (r->writes ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0600);
	if (r->lock < 0 || flock(r->lock, r->writes ? LOCK_EX : LOCK_SH) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "lock %s", path);
	return 0;
}

int realm_open(struct realm *r, const char *path, bool writes, struct writ_err *err)
{
	int n;

	*r = (struct realm)REALM_INIT;
	r->writes = writes;
	if ((writes && (n = fd_make_dirs(path, err)) < 0) || (n = lock_log(r, path, err)) < 0 ||
	    (n = realm_load(r, err)) < 0)
		realm_close(r);
	return n;
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

void realm_close(struct realm *r)
{
	close_files(r);
	*r = (struct realm)REALM_INIT;
}

/*
 * SECURITY: the state of the log that realm_resume() reuses stayed in this process's memory after
 * realm_open() checked it. An attacker who changes the files and forges their times only produces
 * files that contradict the next signature, which every later realm_open() and every verifier
 * detects.
 */

/*
 * Reads the state of the file @name in @dir, or of @dir itself if @name is empty; all zeros if the
 * file does not exist.
 */
static bool stat_file(int dir, const char *name, struct realm_file *ret)
{
	struct stat st;

	*ret = (struct realm_file){ 0 };
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
		return errno == ENOENT;
	*ret = (struct realm_file){ .dev = st.st_dev,
				    .ino = st.st_ino,
				    .size = (uint64_t)st.st_size,
				    .links = st.st_nlink,
				    .written = st.st_mtim,
				    .changed = st.st_ctim };
	return true;
}

/*
 * Takes the state of all files of the log. For the directory it keeps only the identity, because
 * unrelated files come and go in the directory.
 */
static bool take_snapshot(const struct realm *r, struct realm_seen *ret)
{
	struct realm_seen seen;

	if (!stat_file(r->dir, "", &seen.dir) || !stat_file(r->wal, "", &seen.wal) ||
	    seen.wal.links != 1 || seen.wal.size != r->bytes ||
	    !stat_file(r->dir, "wal", &seen.list) ||
	    !stat_file(r->dir, "checkpoint", &seen.checkpoint) ||
	    !stat_file(r->dir, "latest", &seen.latest))
		return false;
	seen.dir = (struct realm_file){ .dev = seen.dir.dev, .ino = seen.dir.ino };
	*ret = seen;
	return true;
}

void realm_suspend(struct realm *r)
{
	r->seen = (struct realm_seen){ 0 };
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

	if (r->seen.dir.ino == 0 || lock_log(r, path, &none) < 0)
		return false;
	/* Open without O_CREAT: another process may have turned this file of wal/ into tiles. */
	realm_wal_name(r->nodes.base, name);
	r->wal = openat(r->dir, name, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	r->nodes.dir = r->dir;
	return r->wal >= 0 && take_snapshot(r, &now) && memcmp(&now, &r->seen, sizeof(now)) == 0;
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

/*
 * Appends a line to the newest file of wal/. After a short write the function cuts the partial line
 * off again; if cutting fails, too, the next realm_open() cuts the line off.
 */
static int append_line(struct realm *r, struct sv line, bool sync, struct writ_err *err)
{
	const int n = fd_write_all(r->wal, line, err);

	if (n < 0) {
		(void)!ftruncate(r->wal, (off_t)r->bytes);
		return n;
	}
	if (sync && fdatasync(r->wal) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "sync the log");
	r->bytes += line.n;
	return 0;
}

int realm_append(struct realm *r, const struct entry *e, bool sync, uint64_t *ret_index,
		 struct writ_err *err)
{
	scoped_buf line = BUF_INIT(ENTRY_PUBLIC_MAX + 1);
	const uint64_t index = r->tree.size;
	struct digest leaf;
	int n;

	for (size_t i = 0; i < e->n; i++)
		if (e->members[i].hidden)
			return writ_fail(err, WRIT_E_BUG, 0, "the realm's log has nothing private");
	if (!r->writes || r->nodes.n == TILE_WIDTH)
		return writ_fail(err, WRIT_E_BUG, 0, "the log is not open for appending");
	n = entry_finish(e, &line, &leaf, err);
	buf_ch(&line, '\n');
	if (n < 0 || (n = buf_check(&line, err)) < 0 ||
	    (n = append_line(r, buf_view(&line), sync, err)) < 0 ||
	    (n = tree_append(&r->tree, &leaf, err)) < 0)
		return n;
	r->nodes.leaf[r->nodes.n++] = leaf;
	if (ret_index)
		*ret_index = index;
	return r->nodes.n == TILE_WIDTH ? realm_roll(r, err) : 0;
}

int realm_read_boot_id(struct buf *b, struct writ_err *err)
{
	const int n = fd_read_file("/proc/sys/kernel/random/boot_id", b, err);

	while (b->n && b->p[b->n - 1] == '\n')
		b->p[--b->n] = 0;
	return n;
}

int realm_boot_id(struct realm *r, struct sv *ret, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(REALM_BOOT - 1);

	if (!r->boot[0]) {
		const int n = realm_read_boot_id(&b, err);

		if (n < 0)
			return n;
		if (b.n)
			memcpy(r->boot, b.p, b.n + 1);
	}
	*ret = sv_from(r->boot);
	return 0;
}

/*
 * Replaces the file latest. Renaming a new file over an old file makes ext4 and other file systems
 * flush the new file to disk at once, which an unsynced signature does not need. Therefore write
 * into the previous file and exchange the two names. A process killed in between leaves one
 * complete file or the other.
 */
static int exchange_latest(const struct realm *r, struct sv bytes, struct writ_err *err)
{
	scoped_fd fd =
		openat(r->dir, "latest.new", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;
	int n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "latest.new");
	n = fd_write_all(fd, bytes, err);
	if (n < 0)
		return n;
	if ((uint64_t)st.st_size > bytes.n && ftruncate(fd, (off_t)bytes.n) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "latest.new");
	/* Use a plain rename for the first file, and on file systems without RENAME_EXCHANGE. */
	if ((r->latest.size == 0 ||
	     renameat2(r->dir, "latest.new", r->dir, "latest", RENAME_EXCHANGE) < 0) &&
	    renameat(r->dir, "latest.new", r->dir, "latest") < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "latest");
	return 0;
}

static int put_latest(struct realm *r, struct sv note, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(NOTE_MAX);
	struct sv boot = SV("");
	int n = realm_boot_id(r, &boot, err);

	buf_fmt(&b, SV_FMT "\n" SV_FMT, SV_ARG(boot), SV_ARG(note));
	return n < 0 || (n = buf_check(&b, err)) < 0 ? n : exchange_latest(r, buf_view(&b), err);
}

/*
 * Records once that the end of a session was not signed at the time. The first process that can
 * sign again appends the entry log.unsigned; if that append fails, the flag stays for the next
 * process.
 */
static int log_unsigned_end(struct realm *r, bool sync, struct writ_err *err)
{
	scoped_entry e = { 0 };
	const uint64_t size =
		r->checkpoint.size > r->latest.size ? r->checkpoint.size : r->latest.size;
	int n;

	if (!r->unsigned_end)
		return 0;
	entry_begin(&e, "log.unsigned");
	entry_num(&e, "size", size);
	n = realm_append(r, &e, sync, NULL, err);
	r->unsigned_end = n < 0;
	return n;
}

int realm_sign(struct realm *r, const struct note_key *key, const struct sign_secret *sec,
	       bool sync, struct writ_err *err)
{
	int n = log_unsigned_end(r, sync, err);
	const struct checkpoint c = { .origin = key->name,
				      .size = r->tree.size,
				      .root = tree_frontier_root(&r->tree) };
	scoped_buf b = BUF_INIT(NOTE_MAX);

	if (n == 0)
		n = checkpoint_sign(&c, key, sec, &b, err);
	/*
	 * SECURITY: sync the log before publishing the checkpoint. A signature that others may see
	 * must never cover entries that a crash could remove.
	 */
	if (n == 0 && sync && fdatasync(r->wal) < 0)
		n = writ_fail(err, WRIT_E_SYS, errno, "sync the log");
	if (n == 0)
		n = sync ? fd_replace_deep(r->dir, "checkpoint", buf_view(&b), 0600, err)
			 : put_latest(r, buf_view(&b), err);
	if (n < 0)
		return n;
	if (sync)
		/*
		 * Remove latest, which is older than the checkpoint just written, or equal to it.
		 */
		(void)unlinkat(r->dir, "latest", 0);
	*(sync ? &r->checkpoint : &r->latest) =
		(struct realm_mark){ .size = c.size, .root = c.root };
	return 0;
}

int realm_read(const struct realm *r, const char *name, struct buf *b, struct writ_err *err)
{
	scoped_fd fd = openat(r->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return errno == ENOENT ? 0 : writ_fail(err, WRIT_E_SYS, errno, "%s", name);
	return fd_read_all(fd, b, err);
}

int realm_checkpoint(const struct realm *r, struct buf *b, struct writ_err *err)
{
	scoped_buf latest = BUF_INIT(NOTE_MAX);
	int n = realm_read(r, "latest", &latest, err);
	struct sv rest = buf_view(&latest);

	if (n < 0)
		return n;
	if (latest.n == 0)
		return realm_read(r, "checkpoint", b, err);
	(void)sv_cut(&rest, '\n');
	buf_sv(b, rest);
	return buf_check(b, err);
}

static int from_wal(struct realm *r, uint64_t skip, struct buf *b, struct writ_err *err)
{
	scoped_buf all = BUF_INIT(BUNDLE_BYTES_MAX);
	struct sv rest, line;
	int n = lseek(r->wal, 0, SEEK_SET) < 0 ? writ_fail(err, WRIT_E_SYS, errno, "wal")
					       : fd_read_all(r->wal, &all, err);

	if (n < 0)
		return n;
	rest = buf_view(&all);
	do
		line = sv_cut(&rest, '\n');
	while (skip--);
	buf_sv(b, line);
	return buf_check(b, err);
}

int realm_entry(struct realm *r, uint64_t index, struct buf *b, struct writ_err *err)
{
	scoped_buf all = BUF_INIT(BUNDLE_BYTES_MAX);
	struct tile t = { .entries = true, .width = TILE_WIDTH, .index = index / TILE_WIDTH };
	struct sv rest, entry = SV("");
	int n;

	if (index >= r->tree.size)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the log has only %llu entries",
				 (unsigned long long)r->tree.size);
	if (index >= r->nodes.base)
		return from_wal(r, index - r->nodes.base, b, err);
	n = realm_read_tile(r->dir, &t, &all, err);
	if (n == 0)
		n = tlog_bundle_check(buf_view(&all), &t, err);
	rest = buf_view(&all);
	for (uint64_t i = 0; n >= 0 && i <= index % TILE_WIDTH; i++)
		n = tlog_bundle_next(&rest, &entry, err);
	if (n < 0)
		return n;
	buf_sv(b, entry);
	return buf_check(b, err);
}
