#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"
#include "base/remove.h"
#include "signer/signer.h"

#include "base/banned.h"

/*
 * The user cannot enter the directory of the log that writ-signer keeps, so writ-signer sends the
 * files as messages.
 */

enum { FILE_NAME_MAX = 256, KEPT_SECONDS = 86400 };

/* Accepts only file names that occur in a log: no "..", no hidden files, no absolute paths. */
static bool is_name(struct sv name)
{
	for (size_t i = 0; i < name.n; i++) {
		const char c = name.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '/' && c != '.')
			return false;
		if (c == '.' && (i == 0 || name.p[i - 1] == '/' || name.p[i - 1] == '.'))
			return false;
	}
	return name.n > 0 && name.n < FILE_NAME_MAX && name.p[0] != '/';
}

static int store_part(int dir, struct sv message, struct writ_err *err)
{
	const struct sv name = sv_cut(&message, '\n');
	char path[FILE_NAME_MAX];
	scoped_fd fd = -1;
	int r;

	if (!is_name(name))
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "writ-signer sends what is no part of a log");
	(void)snprintf(path, sizeof(path), SV_FMT, SV_ARG(name));
	r = fd_make_above(dir, path, err);
	if (r < 0)
		return r;
	fd = openat(dir, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? writ_fail(err, WRIT_E_SYS, errno, "%s", path)
		      : fd_write_all(fd, message, err);
}

/* Creates an empty log/ directory for the copy, replacing an older directory. */
static int make_log_dir(const struct signer_copy *c, int *ret_fd, struct writ_err *err)
{
	scoped_fd top = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), fd = -1;
	scoped_fd lock = -1;

	if (top >= 0)
		remove_tree(top, "log");
	if (top < 0 || mkdirat(top, "log", 0700) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", c->dir);
	fd = openat(top, "log", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	lock = fd < 0 ? -1 : openat(fd, "lock", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", c->dir);
	*ret_fd = fd_take(&fd);
	return 0;
}

int signer_copy_fetch(void *ctx, struct writ_err *err)
{
	struct signer_copy *c = ctx;
	const struct signer_question q = { .realm = c->realm,
					   .sign = c->sign,
					   .entries = c->entries };
	scoped_buf b = BUF_INIT(SIGNER_MESSAGE_MAX), text = BUF_INIT(1024);
	struct writ_err gone = { 0 };
	scoped_fd fd = -1, dir = -1;
	char letter = SIGNER_FILE;
	int r;

	c->there = false;
	if ((r = make_log_dir(c, &dir, err)) < 0 ||
	    (r = signer_encode(signer_log_members, SIGNER_LOG_N, &q, &text, err)) < 0 ||
	    (r = signer_start(&c->in, "log", -1, &fd, err)) < 0)
		return r;
	(void)!signer_send(fd, SIGNER_LOG, buf_view(&text), &gone);
	while (r == 0 && letter == SIGNER_FILE) {
		r = signer_answer_next(fd, &b, &letter, err);
		if (r == 0 && letter == SIGNER_FILE)
			r = store_part(dir, buf_view(&b), err);
	}
	c->there = r == 0 && letter == SIGNER_DONE;
	return r;
}

/* Removes copies of more than a day ago, which interrupted processes left behind. */
static void sweep(struct sv state)
{
	char path[PATH_MAX];
	const int n = snprintf(path, sizeof(path), SV_FMT, SV_ARG(state));
	scoped_list *d = n > 0 && (size_t)n < sizeof(path) ? opendir(path) : NULL;
	const struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d)))
		if (sv_starts(sv_from(e->d_name), SV("copy.")) &&
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_mtime < time(NULL) - KEPT_SECONDS)
			remove_tree(dirfd(d), e->d_name);
}

int signer_copy_open(struct signer_copy *c, struct sv state, struct writ_err *err)
{
	const int n = snprintf(c->dir, sizeof(c->dir), SV_FMT "/copy.XXXXXX", SV_ARG(state));
	int r;

	sweep(state);
	if (n < 0 || (size_t)n >= sizeof(c->dir) || !mkdtemp(c->dir)) {
		c->dir[0] = 0;
		return writ_fail(err, WRIT_E_SYS, errno, "a copy of writ-signer's log");
	}
	c->state = sv_from(c->dir);
	r = signer_copy_fetch(c, err);
	if (r < 0)
		signer_copy_close(c);
	return r;
}

void signer_copy_close(struct signer_copy *c)
{
	if (c->dir[0])
		remove_tree(AT_FDCWD, c->dir);
	c->dir[0] = 0;
	c->there = false;
}

int signer_copy_store(void *ctx, struct sv note, struct writ_err *err)
{
	const struct signer_copy *c = ctx;
	scoped_buf b = BUF_INIT(SIGNER_MESSAGE_MAX), text = BUF_INIT(SIGNER_MESSAGE_MAX);
	struct writ_err gone = { 0 };
	scoped_fd fd = -1;
	char letter = 0;
	int r;

	buf_fmt(&text, SV_FMT "\n", SV_ARG(c->realm));
	buf_sv(&text, note);
	if ((r = buf_check(&text, err)) < 0 ||
	    (r = signer_start(&c->in, "log", -1, &fd, err)) < 0)
		return r;
	(void)!signer_send(fd, SIGNER_COSIGN, buf_view(&text), &gone);
	r = signer_answer_next(fd, &b, &letter, err);
	return r == 0 && letter != SIGNER_DONE
		       ? writ_fail(err, WRIT_E_SYS, 0, "writ-signer does not know this log")
		       : r;
}
