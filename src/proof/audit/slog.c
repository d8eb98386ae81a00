#include "audit/slog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"

#include "base/banned.h"

enum { HOLD_MAX = 32 << 10, BUFFER_KEPT = 64 << 10, READ_BUFFER = ENTRY_LINE_MAX + (64 << 10) };

int slog_open(struct slog *l, const char *path, bool sync, struct writ_err *err)
{
	l->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (l->fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	/*
	 * Hold a lock for as long as this process writes the session log. The kernel releases the
	 * lock if the process dies, so other processes can tell a running session from an
	 * interrupted one.
	 */
	(void)flock(l->fd, LOCK_EX | LOCK_NB);
	l->sync = sync;
	return 0;
}

void slog_close(struct slog *l)
{
	fd_scope_close(&l->fd);
	l->fd = -1;
	buf_clear(&l->line);
	buf_clear(&l->open);
}

static int publish_lines(struct slog *l, struct writ_err *err)
{
	const int r = l->publish ? l->publish(l->ctx, buf_view(&l->open), err) : 0;

	l->open.n = 0;
	l->broken |= r < 0;
	return r;
}

/*
 * Writes the held lines of the session log. After a short write the function cuts the partial line
 * off again.
 */
static int write_lines(struct slog *l, struct writ_err *err)
{
	const int r = fd_write_all(l->fd, buf_view(&l->line), err);

	if (r < 0) {
		l->broken = true;
		(void)!ftruncate(l->fd, (off_t)l->bytes);
		return r;
	}
	l->bytes += l->line.n;
	l->line.n = 0;
	if (l->line.room > BUFFER_KEPT)
		buf_clear(&l->line);
	if (l->sync && fdatasync(l->fd) < 0) {
		/*
		 * Stop writing: the kernel may have dropped the unsynced pages, so a later
		 * fdatasync() would falsely succeed.
		 */
		l->broken = true;
		return writ_fail(err, WRIT_E_SYS, errno, "sync the log");
	}
	return publish_lines(l, err);
}

void slog_hold(struct slog *l)
{
	l->holds = true;
}

int slog_flush(struct slog *l, struct writ_err *err)
{
	l->holds = false;
	/* Wipe unused salts: a process forked from now on must not know salts of future entries. */
	crypto_wipe(&l->salts, sizeof(l->salts));
	return l->line.n && !l->broken ? write_lines(l, err) : 0;
}

int slog_append(struct slog *l, const struct entry *e, struct writ_err *err)
{
	const size_t before = l->line.n, open_before = l->publish ? l->open.n : 0;
	struct digest leaf;
	int r;

	if (l->broken || l->fd < 0)
		return writ_fail(err, WRIT_E_SYS, EIO, "the log is not written any more");
	l->open.n = open_before;
	r = entry_finish_both(e, l->holds ? &l->salts : NULL, &l->line, &l->open, &leaf, err);
	buf_ch(&l->line, '\n');
	if (l->publish)
		buf_ch(&l->open, '\n');
	if (r < 0 || (r = buf_check(&l->line, err)) < 0 || (r = buf_check(&l->open, err)) < 0) {
		/* Drop an entry that cannot be encoded, for example because it is too large. */
		l->line.n = before;
		l->open.n = open_before;
		l->line.failed = l->open.failed = false;
		return r;
	}
	r = tree_append(&l->tree, &leaf, err);
	return r == 0 && (!l->holds || l->line.n > HOLD_MAX) ? write_lines(l, err) : r;
}

/* Reader that splits a file into lines, none longer than an entry may be. */
struct lines {
	int fd;
	char *p;
	size_t from, n; /* range of bytes in the buffer that were read but not returned yet */
};

/*
 * Returns 1 and a line without its newline, or 0 at the end of the file. Bytes after the last
 * newline stay in @l.
 */
static int next_line(struct lines *l, struct sv *ret, struct writ_err *err)
{
	for (size_t seen = 0;;) {
		const struct sv have = { l->p + l->from, l->n };
		const size_t end = sv_find(sv_skip(have, seen), '\n');
		ssize_t n;

		if (end != SIZE_MAX) {
			*ret = sv_sub(have, 0, seen + end);
			l->from += ret->n + 1;
			l->n -= ret->n + 1;
			return 1;
		}
		seen = have.n;
		if (l->n > ENTRY_LINE_MAX)
			return writ_fail(err, WRIT_E_LIMIT, 0, "a line of the log has no end");
		memmove(l->p, have.p, have.n);
		l->from = 0;
		n = read(l->fd, l->p + l->n, READ_BUFFER - l->n);
		if (n < 0 && errno != EINTR)
			return writ_fail(err, WRIT_E_SYS, errno, "read the log");
		if (n == 0)
			return 0;
		l->n += n > 0 ? (size_t)n : 0;
	}
}

int slog_read(int fd, int (*each)(void *ctx, uint64_t index, struct sv line, struct writ_err *err),
	      void *ctx, struct slog_read *ret, struct writ_err *err)
{
	struct tree_frontier tree = { 0 };
	struct lines lines = { .fd = fd, .p = malloc(READ_BUFFER) };
	struct digest leaf;
	struct sv line;
	int r;

	if (!lines.p)
		return writ_nomem(err);
	while ((r = next_line(&lines, &line, err)) > 0)
		if ((r = entry_leaf(line, &leaf, err)) < 0 ||
		    (each && (r = each(ctx, tree.size, line, err)) < 0) ||
		    (r = tree_append(&tree, &leaf, err)) < 0)
			break;
	if (r == 0)
		*ret = (struct slog_read){ .size = tree.size,
					   .root = tree_frontier_root(&tree),
					   .torn = lines.n };
	free(lines.p);
	return r;
}
