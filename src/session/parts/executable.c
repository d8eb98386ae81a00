#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "parts/commands.h"
#include "parts/record.h"

#include "base/banned.h"

/*
 * Records the program that a session was made for, by the digest of its file. Reading the whole
 * file takes longer than starting the program, so digests are cached. A cached digest is valid as
 * long as the file has the same device, inode, size and times. A file above HASHED_MAX is recorded
 * by its size only.
 */

enum { HASHED_MAX = 8 << 20, KEPT_MAX = 64 << 10, FRESH_S = 2, HEX = 64 };

/* Opens the regular file @path on the host; -1: there is none. */
static int open_named(const char *path, struct stat *ret)
{
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd >= 0 && fstat(fd, ret) == 0 && S_ISREG(ret->st_mode) ? fd_take(&fd) : -1;
}

static int find(const struct session *s, char path[static PATH_MAX], struct stat *ret)
{
	const struct sv name = s->opt->program.n ? s->opt->program : sv_from(s->opt->argv[0]);
	const bool given = sv_find(name, '/') != SIZE_MAX;
	struct sv dirs = environ_get(s->opt->environ, SV("PATH"));
	int fd = -1;

	if (given) {
		(void)snprintf(path, PATH_MAX, SV_FMT "%s" SV_FMT,
			       SV_ARG(name.p[0] == '/' ? SV("") : s->opt->cwd),
			       name.p[0] == '/' ? "" : "/", SV_ARG(name));
		return open_named(path, ret);
	}
	while (fd < 0 && dirs.n) {
		const struct sv dir = sv_cut(&dirs, ':');

		(void)snprintf(path, PATH_MAX, SV_FMT "/" SV_FMT, SV_ARG(dir), SV_ARG(name));
		if (dir.n && dir.p[0] == '/' && access(path, X_OK) == 0)
			fd = open_named(path, ret);
	}
	return fd;
}

/* Appends the identity of a file, followed by a blank. */
static void put_key(struct buf *b, const struct stat *st)
{
	buf_fmt(b, "%llu %llu %llu %lld.%09ld %lld.%09ld ", (unsigned long long)st->st_dev,
		(unsigned long long)st->st_ino, (unsigned long long)st->st_size,
		(long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, (long long)st->st_ctim.tv_sec,
		st->st_ctim.tv_nsec);
}

static bool is_kept(struct sv kept, struct sv key, struct digest *ret)
{
	while (kept.n) {
		const struct sv line = sv_cut(&kept, '\n');

		if (line.n == key.n + HEX && sv_starts(line, key))
			return digest_parse(sv_skip(line, key.n), ret);
	}
	return false;
}

static void keep(const char *path, const struct buf *key, const struct digest *d, bool anew)
{
	scoped_buf line = BUF_INIT(512);
	struct writ_err err = { 0 };
	scoped_fd fd = open(
		path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (anew ? O_TRUNC : 0),
		0600);

	buf_sv(&line, buf_view(key));
	digest_hex(d, &line);
	buf_ch(&line, '\n');
	/* A digest that cannot be cached is computed again by the next session. */
	if (fd >= 0)
		(void)!fd_write_all(fd, buf_view(&line), &err);
}

/*
 * SECURITY: a file can be changed through a writable mapping without a trace in its times. So
 * digests are cached only for files that no agent can write: files that only root can write and, if
 * root runs the session, of these only files below /usr.
 */
static bool is_steady(int fd, const struct stat *st)
{
	char link[32], real[PATH_MAX];
	ssize_t n;

	if (st->st_uid != 0 || st->st_mode & (S_IWGRP | S_IWOTH))
		return false;
	if (geteuid() != 0)
		return true;
	/* Check the path that the descriptor refers to: a name may lead anywhere through links. */
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, real, sizeof(real));
	return n > 0 && sv_starts((struct sv){ real, (size_t)n }, SV("/usr/"));
}

static bool digest_of(const struct session *s, int fd, const struct stat *st, bool steady,
		      struct digest *ret)
{
	scoped_buf key = BUF_INIT(256), kept = BUF_INIT(2 * KEPT_MAX),
		   bytes = BUF_INIT(HASHED_MAX + 1);
	const char *path = arena_fmt(s->a, SV_FMT "/programs", SV_ARG(s->opt->state));
	struct writ_err err = { 0 };
	bool known = false;

	if (!path || st->st_size > HASHED_MAX)
		return false;
	put_key(&key, st);
	if (steady)
		(void)!fd_read_file(path, &kept, &err);
	known = steady && !key.failed && is_kept(buf_view(&kept), buf_view(&key), ret);
	if (!known && fd_read_all(fd, &bytes, &err) == 0) {
		*ret = crypto_sha256(buf_view(&bytes));
		known = true;
		/*
		 * Cache no digest of a file that changed just now: within one tick of the file
		 * system's clock the file could change again and keep the same times.
		 */
		if (steady && st->st_ctim.tv_sec + FRESH_S < time(NULL))
			keep(path, &key, ret, kept.n > KEPT_MAX);
	}
	return known;
}

void executable_record(const struct session *s, struct entry *e)
{
	char path[PATH_MAX];
	struct digest d;
	struct stat st;
	scoped_fd fd = s->opt->argv[0] ? find(s, path, &st) : -1;

	if (fd < 0)
		return;
	record_str(e, "program", sv_from(path));
	record_num(e, "executable_bytes", st.st_size);
	if (digest_of(s, fd, &st, is_steady(fd, &st), &d))
		entry_digest(e, "executable", &d);
}
