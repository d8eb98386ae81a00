#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "token/wallet.h"

#include "base/banned.h"

enum { PEM_MAX = 512, DAY = 86400 };

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
	/* Keep each key for a day after its token expired. */
	wallet_sweep(w, dir, DAY);
	sign_keypair(seed, &ret->pub, &ret->sec);
	kid = jws_thumbprint(&ret->pub);
	path = key_path(w, &kid);
	r = path ? keys_write(AT_FDCWD, path, seed, err) : writ_nomem(err);
	crypto_wipe(seed, sizeof(seed));
	if (r == 0 && path && utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) < 0)
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

	/* If this fails, wallet_sweep() removes the key file a day after its token expired. */
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
