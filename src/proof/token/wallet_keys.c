#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "keys/keys.h"
#include "token/wallet.h"

#include "base/banned.h"

enum { PEM_MAX = 512, DAY = 86400 };

static const char *holders(const struct wallet *w)
{
	return arena_fmt(w->a, "%s/holder", w->keys);
}

int wallet_issuer(const struct wallet *w, struct jws_pair *ret, struct writ_err *err)
{
	struct key_pair pair;
	const int r = keys_load(w->keys, KEY_ISSUE, true, &pair, err);

	if (r < 0)
		return r;
	*ret = (struct jws_pair){ pair.pub, pair.sec };
	crypto_wipe(&pair, sizeof(pair));
	return 0;
}

/*
 * Removes holder keys whose tokens expired a day ago. The mtime of each key file is the expiry of
 * its token.
 */
static void sweep(const struct wallet *w, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' &&
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && st.st_mtime >= 0 && (uint64_t)st.st_mtime + DAY < w->now)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

static int write_key(const char *path, const uint8_t seed[static 32], uint64_t exp,
		     struct writ_err *err)
{
	const struct timespec times[2] = { { (time_t)exp, 0 }, { (time_t)exp, 0 } };
	scoped_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct buf b = BUF_INIT(PEM_MAX);
	int r;

	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	keys_print_secret(seed, &b);
	r = buf_check(&b, err);
	if (r == 0)
		r = fd_write_all(fd, buf_view(&b), err);
	if (r == 0 && (fsync(fd) < 0 || futimens(fd, times) < 0))
		r = writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	if (b.n)
		crypto_wipe(b.p, b.n);
	buf_clear(&b);
	return r;
}

int wallet_holder_new(const struct wallet *w, uint64_t exp, struct jws_pair *ret,
		      struct writ_err *err)
{
	const char *dir = holders(w), *path;
	struct jws_pair pair;
	uint8_t seed[32];
	int r;

	if (!dir)
		return writ_nomem(err);
	r = fd_make_dirs(dir, err);
	if (r == 0)
		r = crypto_random(seed, sizeof(seed), err);
	if (r < 0)
		return r;
	sweep(w, dir);
	sign_keypair(seed, &pair.pub, &pair.sec);
	path = arena_fmt(w->a, "%s/%s.pem", dir, jws_thumbprint(&pair.pub).s);
	r = path ? write_key(path, seed, exp, err) : writ_nomem(err);
	if (r == 0)
		*ret = pair;
	crypto_wipe(seed, sizeof(seed));
	crypto_wipe(&pair, sizeof(pair));
	return r;
}

int wallet_holder(const struct wallet *w, const struct jws_kid *kid, struct jws_pair *ret,
		  struct writ_err *err)
{
	const char *dir = holders(w);
	const char *path = dir ? arena_fmt(w->a, "%s/%s.pem", dir, kid->s) : NULL;
	scoped_fd fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	struct buf b = BUF_INIT(PEM_MAX);
	uint8_t seed[32];
	struct stat st;
	int r;

	if (!path)
		return writ_nomem(err);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "the key of holder %.12s...", kid->s);
	/* SECURITY: refuse a key file that other users can read or write, or that belongs to
	 * another user. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_mode & 077) ||
	    st.st_uid != geteuid())
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "the key of holder %.12s... can be read or written by others",
				 kid->s);
	r = fd_read_all(fd, &b, err);
	if (r == 0)
		r = keys_parse_secret(buf_view(&b), seed, err);
	if (b.n)
		crypto_wipe(b.p, b.n);
	buf_clear(&b);
	if (r == 0)
		sign_keypair(seed, &ret->pub, &ret->sec);
	crypto_wipe(seed, sizeof(seed));
	return r;
}

void wallet_holder_remove(const struct wallet *w, const struct jws_kid *kid)
{
	const char *dir = holders(w);
	const char *path = dir ? arena_fmt(w->a, "%s/%s.pem", dir, kid->s) : NULL;

	/* If removing the key file fails, sweep() removes it a day after its token expired. */
	if (path)
		(void)unlink(path);
}

int wallet_new_id(const struct wallet *w, struct token_id *ret, struct writ_err *err)
{
	uint64_t ms;
	uint8_t b[16];
	int r = crypto_random(b, sizeof(b), err);

	(void)w;
	if (r < 0)
		return r;
	ms = clock_real_us() / 1000;
	for (int i = 0; i < 6; i++)
		b[i] = (uint8_t)(ms >> (40 - 8 * i));
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x70);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	(void)snprintf(ret->s, sizeof(ret->s),
		       "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
		       b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		       b[13], b[14], b[15]);
	return 0;
}
