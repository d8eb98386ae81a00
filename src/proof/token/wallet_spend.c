#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/logkey.h"
#include "base/fd.h"
#include "token/wallet.h"

#include "base/banned.h"

/* --- the realm's log --- */

static void fill_entry(struct entry *e, const struct wallet_note *v)
{
	static const struct digest none;

	entry_begin(e, v->event);
	if (v->exp)
		entry_num(e, "exp", v->exp);
	if (v->hops)
		entry_num(e, "hops", v->hops);
	if (v->iss.n)
		entry_str(e, "iss", v->iss);
	if (v->jti.n)
		entry_str(e, "jti", v->jti);
	if (memcmp(&v->key, &none, sizeof(none)) != 0)
		entry_digest(e, "key", &v->key);
	if (v->session.n)
		entry_str(e, "session", v->session);
	if (v->sid.n)
		entry_str(e, "sid", v->sid);
	if (memcmp(&v->token, &none, sizeof(none)) != 0)
		entry_digest(e, "token", &v->token);
}

/*
 * Signs the log if the log has a key already. Otherwise the first session creates and pins the key,
 * and the signature of that session then covers these entries, too.
 */
static int sign_log(const struct wallet *w, struct realm *log, struct writ_err *err)
{
	const struct log_place place = { w->state, SV(""), w->realm };

	return keys_have(w->keys, KEY_LOG) ? audit_log_sign(&place, log, false, err) : 0;
}

int wallet_log(const struct wallet *w, const struct wallet_note *v, size_t n, struct writ_err *err)
{
	scoped_realm log = REALM_INIT;
	int r = realm_open(&log, w->log, true, err);

	for (size_t i = 0; r == 0 && i < n; i++) {
		scoped_entry e = { 0 };

		fill_entry(&e, &v[i]);
		/* Sync only the last entry; the sync includes the entries before it. */
		r = realm_append(&log, &e, i + 1 == n, NULL, err);
	}
	return r < 0 ? r : sign_log(w, &log, err);
}

/* --- sessions: each token opens one --- */

static int open_spent(const struct wallet *w, const char **ret_path)
{
	*ret_path = wallet_path(w, w->a, "spent");
	return *ret_path ? open(*ret_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

/*
 * Creates the marker file of the leaf token's session.
 * SECURITY: O_EXCL decides which process opens the session: only one process can create the marker.
 */
static int claim(const struct wallet *w, const struct token *leaf, struct token_why *why)
{
	const struct timespec ends[2] = { { (time_t)leaf->exp, 0 }, { (time_t)leaf->exp, 0 } };
	const char *path;
	scoped_fd dir = open_spent(w, &path), fd = -1;

	if (!path)
		return token_nomem(why);
	/* Remove markers of expired tokens: such a token cannot be presented again. */
	wallet_sweep(w, path, 2 * (uint64_t)TOKEN_SKEW);
	fd = openat(dir, leaf->sid.s, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 && errno == EEXIST)
		return token_refuse(why, TOKEN_E_REPLAY, "its session was opened before");
	if (fd < 0 || futimens(fd, ends) < 0 || fsync(fd) < 0 || fsync(dir) < 0)
		return token_refuse(why, TOKEN_E_LOG, "%s/%s: %s", path, leaf->sid.s,
				    strerror(errno));
	return 0;
}

int wallet_claim(const struct wallet *w, const struct chain *c, struct token_why *why)
{
	struct writ_err err = { 0 };
	scoped_fd lock = -1;

	why->hop = (int)c->n - 1;
	if (wallet_lock(w, &lock, &err) < 0)
		return token_refuse(why, TOKEN_E_LOG, "%s", err.what);
	return claim(w, chain_leaf(c), why);
}

int wallet_spend(const struct wallet *w, const struct chain *c, const char *session,
		 struct token_why *why)
{
	const struct token *leaf = chain_leaf(c);
	const struct wallet_note notes[] = {
		{ .event = "token.accept",
		  .token = leaf->ath,
		  .iss = c->issuer->iss,
		  .jti = token_id_sv(&leaf->jti),
		  .sid = token_id_sv(&leaf->sid),
		  .session = sv_from(session),
		  .hops = c->n,
		  .exp = c->deadline },
		{ .event = "token.spend",
		  .key = leaf->hash,
		  .sid = token_id_sv(&leaf->sid),
		  .session = sv_from(session) },
	};
	struct writ_err err = { 0 };
	scoped_fd lock = -1;

	why->hop = (int)c->n - 1;
	if (wallet_lock(w, &lock, &err) < 0 || wallet_save_clock(w, &err) < 0 ||
	    wallet_log(w, notes, ARRAY_LEN(notes), &err) < 0)
		return token_refuse(why, TOKEN_E_LOG, "%s", err.what);
	return 0;
}

int wallet_unclaim(const struct wallet *w, const struct chain *c, const char *session, bool spent,
		   struct writ_err *err)
{
	const struct token *leaf = chain_leaf(c);
	const struct wallet_note entry = { .event = "token.unspend",
					   .key = leaf->hash,
					   .sid = token_id_sv(&leaf->sid),
					   .session = sv_from(session) };
	const char *path;
	scoped_fd dir = open_spent(w, &path), lock = -1;
	int r = path ? wallet_lock(w, &lock, err) : writ_nomem(err);

	/*
	 * Record the returned token in the log first, so that a reader of the log understands why
	 * two sessions used one token.
	 */
	if (r == 0 && spent)
		r = wallet_log(w, &entry, 1, err);
	if (r == 0 && (unlinkat(dir, leaf->sid.s, 0) < 0 || fsync(dir) < 0))
		r = writ_fail(err, WRIT_E_SYS, errno, "%s/%s", path, leaf->sid.s);
	return r;
}
