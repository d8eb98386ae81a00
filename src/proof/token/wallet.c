#include "token/wallet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#include "base/banned.h"

enum { CLOCK_MAX = 32, RELOAD_MAX = 16 << 20, FRESH_S = 2 };

const char *wallet_path(const struct wallet *w, struct arena *a, const char *name)
{
	return arena_fmt(a, "%s/%s", w->dir, name);
}

int wallet_read(const struct wallet *w, struct arena *a, const char *name, size_t max,
		struct sv *ret, struct writ_err *err)
{
	const char *path = wallet_path(w, a, name);
	scoped_buf b = BUF_INIT(max);
	const int r = path ? fd_read_optional(path, &b, err) : writ_nomem(err);

	*ret = SV("");
	return r > 0 && !arena_sv(a, buf_view(&b), ret) ? writ_nomem(err) : r;
}

int wallet_write(const struct wallet *w, const char *name, struct sv text, struct writ_err *err)
{
	const char *path = wallet_path(w, w->a, name);

	return path ? fd_replace_file(path, text, 0600, err) : writ_nomem(err);
}

void wallet_sweep(const struct wallet *w, const char *dir, uint64_t grace)
{
	scoped_list *d = opendir(dir);
	struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' &&
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && st.st_mtime >= 0 &&
		    (uint64_t)st.st_mtime + grace < w->now)
			(void)unlinkat(dirfd(d), e->d_name, 0);
}

int wallet_lock(const struct wallet *w, int *ret_fd, struct writ_err *err)
{
	const char *path = wallet_path(w, w->a, "lock");
	scoped_fd fd = -1;

	if (!path)
		return writ_nomem(err);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return writ_fail(err, WRIT_E_SYS, errno, "lock %s", path);
	*ret_fd = fd_take(&fd);
	return 0;
}

/* Is @name a file that determines who is trusted and which tokens are revoked? */
static bool is_watched(struct sv name)
{
	return sv_is(name, "revoked") || sv_is(name, "trust") || sv_is(name, "org.pem") ||
	       sv_starts(name, SV("list."));
}

static uint64_t sum_of(const char *name, const struct stat *st)
{
	const struct {
		uint64_t dev, ino, size;
		int64_t times[4];
	} seen = { st->st_dev,
		   st->st_ino,
		   (uint64_t)st->st_size,
		   { st->st_mtim.tv_sec, st->st_mtim.tv_nsec, st->st_ctim.tv_sec,
		     st->st_ctim.tv_nsec } };
	const struct sv parts[] = { sv_from(name), { (const char *)&seen, sizeof(seen) } };
	const struct digest d = crypto_sha256_parts(parts, ARRAY_LEN(parts));
	uint64_t sum;

	memcpy(&sum, d.b, sizeof(sum));
	return sum;
}

static struct wallet_stamp stamp_of(const char *dir)
{
	struct wallet_stamp stamp = { 0 };
	scoped_list *d = opendir(dir);
	struct dirent *e;
	struct stat st;

	if (!d)
		stamp.sum = UINT64_MAX;
	while (d && (e = readdir(d))) {
		if (!is_watched(sv_from(e->d_name)))
			continue;
		/* Include a file that cannot be examined: it may have just appeared or vanished. */
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			st = (struct stat){ .st_size = -1 };
		/* Add the sums of the files, so that the order of the directory does not matter. */
		stamp.sum += sum_of(e->d_name, &st);
		if (st.st_ctim.tv_sec > stamp.newest)
			stamp.newest = st.st_ctim.tv_sec;
	}
	return stamp;
}

/*
 * Reads the latest time seen; 0 if none was stored.
 * SECURITY: fail if the time cannot be read, as if the clock were set back.
 */
static int read_floor(struct wallet *w, struct writ_err *err)
{
	struct sv rest;
	const int r = wallet_read(w, w->a, "clock", CLOCK_MAX, &rest, err);

	if (r > 0 && !sv_to_u64(sv_cut(&rest, '\n'), INT64_MAX, &w->floor))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "%s/clock is not a time", w->dir);
	return r < 0 ? r : 0;
}

int wallet_save_clock(const struct wallet *w, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(CLOCK_MAX);

	if (w->now <= w->floor)
		return 0;
	buf_fmt(&b, "%llu\n", (unsigned long long)w->now);
	return wallet_write(w, "clock", buf_view(&b), err);
}

int wallet_open(struct arena *a, struct sv state, struct sv realm, bool make, struct wallet *ret,
		struct writ_err *err)
{
	struct wallet w = { .a = a, .realm = realm, .state = state, .now = (uint64_t)time(NULL) };
	scoped_key_pair pair = { 0 };
	const char *spent;
	int r;

	w.dir = arena_fmt(a, SV_FMT "/tokens", SV_ARG(state));
	w.keys = arena_fmt(a, SV_FMT "/keys", SV_ARG(state));
	w.log = arena_fmt(a, SV_FMT "/log", SV_ARG(state));
	spent = w.dir ? wallet_path(&w, a, "spent") : NULL;
	if (!w.dir || !w.keys || !w.log || !spent)
		return writ_nomem(err);
	if (state.n == 0)
		return writ_fail(err, WRIT_E_SYS, ENOENT, "there is no place for state: set HOME");
	if ((r = fd_make_dirs(spent, err)) < 0 || (make && (r = wallet_issuer(&w, &pair, err)) < 0))
		return r;
	w.stamp = stamp_of(w.dir);
	if ((r = read_floor(&w, err)) < 0 || (r = wallet_load_trust(&w, err)) < 0 ||
	    (r = wallet_load_lists(&w, a, &w.lists, &w.lists_n, err)) < 0)
		return r;
	*ret = w;
	return 0;
}

/*
 * SECURITY: refuse tokens if the clock was set back. Expired tokens would become valid again, and
 * outdated revocation lists fresh.
 */
static int check_clock(const struct wallet *w, struct token_why *why)
{
	if (w->now + TOKEN_SKEW >= w->floor)
		return 0;
	why->hop = TOKEN_HOP_NONE;
	return token_refuse(
		why, TOKEN_E_TIME,
		"the clock went back by %llu seconds: set it right, or remove tokens/clock "
		"if the later time was the wrong one",
		(unsigned long long)(w->floor - w->now));
}

static struct token_here here_of(const struct wallet *w, struct sv realm)
{
	return (struct token_here){ .realm = realm,
				    .now = w->now,
				    .trust = &w->trust,
				    .lists = w->lists,
				    .lists_n = w->lists_n };
}

int wallet_chain(const struct wallet *w, struct sv tokens, bool anywhere, struct chain *ret,
		 struct token_why *why)
{
	struct token_here here = here_of(w, w->realm);
	int r = check_clock(w, why);

	if (r == 0)
		r = chain_open(w->a, tokens, &here, ret, why);
	for (size_t i = 0; anywhere && i < w->trust.n; i++) {
		const struct trust_issuer *t = &w->trust.issuers[i];

		for (size_t k = 0; why->code == TOKEN_E_AUD && k < t->realms_n; k++) {
			struct token_why again = { 0 };

			/*
			 * Accept outdated revocation lists of other realms: nothing runs on this
			 * machine with such a token.
			 */
			here = here_of(w, t->realms[k]);
			here.local = true;
			r = chain_open(w->a, tokens, &here, ret, &again);
			if (r == 0 || again.code != TOKEN_E_AUD)
				*why = again;
		}
	}
	return r;
}

int wallet_present(const struct wallet *w, struct sv presentation, struct chain *ret,
		   struct token_why *why)
{
	const struct token_here here = here_of(w, w->realm);
	const int r = check_clock(w, why);

	return r < 0 ? r : chain_present(w->a, presentation, &here, ret, why);
}

void wallet_close(struct wallet *w)
{
	w->trust = (struct trust){ 0 };
	w->lists_n = 0;
	arena_clear(&w->reloaded);
}

static int reload(struct wallet *w, uint64_t now, struct writ_err *err)
{
	struct arena fresh = ARENA_INIT(RELOAD_MAX);
	struct wallet next = *w;
	int r;

	next.a = &fresh;
	next.now = now;
	next.self = NULL;
	if ((r = wallet_load_trust(&next, err)) < 0 ||
	    (r = wallet_load_lists(&next, &fresh, &next.lists, &next.lists_n, err)) < 0) {
		arena_clear(&fresh);
		return r;
	}
	arena_clear(&w->reloaded);
	w->reloaded = fresh;
	w->trust = next.trust;
	w->self = next.self;
	w->lists = next.lists;
	w->lists_n = next.lists_n;
	return 0;
}

int wallet_recheck(struct wallet *w, const struct chain *c, uint64_t now, struct token_why *why)
{
	const struct wallet_stamp stamp = stamp_of(w->dir);
	/*
	 * A file of the wallet that changed within the last seconds could change again without a
	 * visible difference in its times. Read the file again.
	 */
	const bool fresh = stamp.newest + FRESH_S >= time(NULL);
	const bool again = fresh || stamp.sum != w->stamp.sum;
	struct token_here here;
	struct writ_err err = { 0 };

	why->hop = TOKEN_HOP_NONE;
	if (again && reload(w, now, &err) < 0)
		return token_refuse(why, TOKEN_E_ROOT, "who is trusted cannot be read: %s",
				    err.what);
	w->stamp = stamp;
	here = here_of(w, w->realm);
	here.now = now;
	/*
	 * The revocation list of this realm is always fresh: wallet_recheck() reads it again
	 * whenever its file changes.
	 */
	here.local = c->issuer->self || (w->self && jws_kid_eq(&w->self->kid, &c->issuer->kid));
	return chain_recheck(c, &here, again, why);
}

/* --- keys of the issuer and of holders --- */

enum { DAY = 86400 };

static const char *key_path(const struct wallet *w, const struct jws_kid *kid)
{
	return arena_fmt(w->a, "%s/holder/%s.pem", w->keys, kid->s);
}

int wallet_issuer(const struct wallet *w, struct key_pair *ret, struct writ_err *err)
{
	return keys_load(w->keys, KEY_ISSUE, true, ret, err);
}

int wallet_holder_new(const struct wallet *w, uint64_t exp, struct key_pair *ret,
		      struct writ_err *err)
{
	const struct timespec times[2] = { { (time_t)exp, 0 }, { (time_t)exp, 0 } };
	const char *dir = arena_fmt(w->a, "%s/holder", w->keys), *path;
	struct jws_kid kid;
	uint8_t seed[32];
	int r;

	if (!dir)
		return writ_nomem(err);
	if ((r = fd_make_dirs(dir, err)) < 0 || (r = crypto_random(seed, sizeof(seed), err)) < 0)
		return r;
	/* Remove the keys of tokens that expired more than a day ago. */
	wallet_sweep(w, dir, DAY);
	sign_keypair(seed, &ret->pub, &ret->sec);
	kid = jws_thumbprint(&ret->pub);
	path = key_path(w, &kid);
	r = path ? keys_write(AT_FDCWD, path, seed, err) : writ_nomem(err);
	crypto_wipe(seed, sizeof(seed));
	if (r == 0 && utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	if (r < 0)
		keys_wipe(ret);
	return r;
}

int wallet_holder(const struct wallet *w, const struct jws_kid *kid, struct key_pair *ret,
		  struct writ_err *err)
{
	const char *path = key_path(w, kid);
	struct writ_err why = { 0 };
	int r;

	if (!path)
		return writ_nomem(err);
	r = keys_load_file(path, ret, &why);
	if (r == WRIT_E_DENIED)
		return writ_fail(err, r, 0,
				 "the key of holder %.12s... can be read or written by others",
				 kid->s);
	return r < 0 ? writ_fail(err, r, why.sys, "the key of holder %.12s...%s%s", kid->s,
				 why.sys ? "" : ": ", why.sys ? "" : why.what)
		     : 0;
}

void wallet_holder_remove(const struct wallet *w, const struct jws_kid *kid)
{
	const char *path = key_path(w, kid);

	/* If unlink() fails, wallet_sweep() removes the key file a day after its token expired. */
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
