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

enum { HOLD_MAX = 32 << 10, ROOM_KEPT = 64 << 10, LINES_ROOM = ENTRY_LINE_MAX + (64 << 10) };

int slog_open(struct slog *l, const char *path, bool sync, struct writ_err *err)
{
	l->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (l->fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	/* As long as it is held somebody writes it; whoever dies lets go. */
	(void)flock(l->fd, LOCK_EX | LOCK_NB);
	l->sync = sync;
	return 0;
}

void slog_close(struct slog *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	buf_clear(&l->line);
	buf_clear(&l->open);
}

static int share(struct slog *l, struct writ_err *err)
{
	const int r = l->tell ? l->tell(l->ctx, buf_view(&l->open), err) : 0;

	l->open.n = 0;
	l->broken |= r < 0;
	return r;
}

/* What was written of a line that did not fit is cut off again. */
static int put(struct slog *l, struct writ_err *err)
{
	const int r = fd_write_all(l->fd, buf_view(&l->line), err);

	if (r < 0) {
		l->broken = true;
		(void)!ftruncate(l->fd, (off_t)l->bytes);
		return r;
	}
	l->bytes += l->line.n;
	l->line.n = 0;
	if (l->line.room > ROOM_KEPT)
		buf_clear(&l->line);
	if (l->sync && fdatasync(l->fd) < 0) {
		l->broken = true; /* what the kernel had may be gone: never tried again */
		return writ_fail(err, WRIT_E_SYS, errno, "sync the log");
	}
	return share(l, err);
}

void slog_hold(struct slog *l)
{
	l->holds = true;
}

int slog_flush(struct slog *l, struct writ_err *err)
{
	l->holds = false;
	/* Others are made from us between two gatherings: none of them knows a salt to come. */
	crypto_wipe(&l->salts, sizeof(l->salts));
	return l->line.n && !l->broken ? put(l, err) : 0;
}

int slog_append(struct slog *l, const struct entry *e, struct writ_err *err)
{
	const size_t before = l->line.n, open_before = l->tell ? l->open.n : 0;
	struct digest leaf;
	int r;

	if (l->broken || l->fd < 0)
		return writ_fail(err, WRIT_E_SYS, EIO, "the log is not written any more");
	l->open.n = open_before;
	r = entry_finish_both(e, l->holds ? &l->salts : NULL, &l->line, &l->open, &leaf, err);
	buf_ch(&l->line, '\n');
	if (l->tell)
		buf_ch(&l->open, '\n');
	if (r == 0)
		r = buf_check(&l->line, err);
	if (r == 0)
		r = buf_check(&l->open, err);
	if (r < 0) {
		/* It was too large: as if it had never been. */
		l->line.n = before;
		l->open.n = open_before;
		l->line.failed = l->open.failed = false;
		return r;
	}
	r = tree_append(&l->tree, &leaf, NULL, err);
	return r == 0 && (!l->holds || l->line.n > HOLD_MAX) ? put(l, err) : r;
}

/* Lines of a file, none longer than an entry may be. */
struct lines {
	int fd;
	char *p;
	size_t from, n; /* what was read and not yet given */
};

/* 1: a line, without its newline; 0: no more, and what is left of @l has none. */
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
		n = read(l->fd, l->p + l->n, LINES_ROOM - l->n);
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
	struct lines lines = { .fd = fd, .p = malloc(LINES_ROOM) };
	struct digest leaf;
	struct sv line;
	int r = 1;

	if (!lines.p)
		return writ_nomem(err);
	while (r > 0) {
		r = next_line(&lines, &line, err);
		if (r <= 0)
			break;
		r = entry_leaf(line, &leaf, err);
		if (r == 0 && each)
			r = each(ctx, tree.size, line, err);
		if (r == 0)
			r = tree_append(&tree, &leaf, NULL, err);
		r = r < 0 ? r : 1;
	}
	if (r == 0)
		*ret = (struct slog_read){ .size = tree.size,
					   .root = tree_frontier_root(&tree),
					   .torn = lines.n };
	free(lines.p);
	return r;
}
