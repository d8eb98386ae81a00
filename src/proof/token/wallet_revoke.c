#include <stdlib.h>
#include <string.h>

#include "audit/realm.h"
#include "base/fd.h"
#include "token/fields.h"
#include "token/wallet.h"

#include "base/banned.h"

/*
 * Revocations by this realm, one line each with the time of revocation. A line can be dropped when
 * every token that the line could revoke has expired: no token of a chain lives longer than a root
 * may.
 */

enum {
	KNOWN_MAX = 4096,
	ENTRY_ROOM = 64 << 10,
	REVOKED_MAX = 256 << 10,
	KEPT = TOKEN_LIFE_MAX + 2 * TOKEN_SKEW
};

int wallet_own_list(const struct wallet *w, struct arena *a, struct rvk *ret, struct writ_err *err)
{
	VEC(struct sv) ids = { 0 };
	struct sv text, line;
	const int r = wallet_read(w, a, "revoked", REVOKED_MAX, &text, err);

	if (r < 0)
		return r;
	*ret = (struct rvk){ .iss = w->self ? w->self->iss : SV(""),
			     .kid = w->self ? w->self->kid : (struct jws_kid){ "" },
			     .iat = w->now,
			     .exp = w->now + WALLET_RVK };
	line = sv_cut(&text, '\n');
	if (line.n && (!sv_is(sv_cut(&line, ' '), "seq") || !sv_to_u64(line, INT64_MAX, &ret->seq)))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the list of what was revoked");
	while (text.n) {
		struct token_id id;
		struct sv *slot;

		line = sv_cut(&text, '\n');
		slot = vec_push(a, &ids);
		if (!slot)
			return writ_nomem(err);
		*slot = sv_cut(&line, ' ');
		/*
		 * SECURITY: refuse the whole file of revocations if a line is malformed. The line
		 * might have revoked the token in question.
		 */
		if (!token_id_parse(*slot, &id))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "the list of what was revoked");
	}
	if (ids.n)
		qsort(ids.v, ids.n, sizeof(ids.v[0]), token_by_bytes);
	ret->jti = ids.v;
	ret->jti_n = ids.n;
	return 0;
}

static void copy_lines(const struct wallet *w, struct sv old, struct sv jti, struct buf *b)
{
	while (old.n) {
		struct sv line = sv_cut(&old, '\n'), rest = line;
		const struct sv id = sv_cut(&rest, ' ');
		uint64_t when = 0;

		if (sv_eq(id, jti) || (sv_to_u64(rest, INT64_MAX, &when) && when + KEPT < w->now))
			continue;
		buf_sv(b, line);
		buf_ch(b, '\n');
	}
	buf_fmt(b, SV_FMT " %llu\n", SV_ARG(jti), (unsigned long long)w->now);
}

int wallet_revoke(const struct wallet *w, const struct token_id *jti, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(REVOKED_MAX);
	struct sv rest, head;
	scoped_fd lock = -1;
	uint64_t seq = 0;
	int r;

	if ((r = wallet_lock(w, &lock, err)) < 0 ||
	    (r = wallet_read(w, w->a, "revoked", REVOKED_MAX, &rest, err)) < 0)
		return r;
	if (rest.n) {
		head = sv_cut(&rest, '\n');
		(void)sv_cut(&head, ' ');
		if (!sv_to_u64(head, INT64_MAX - 1, &seq))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "the list of what was revoked");
	}
	buf_fmt(&b, "seq %llu\n", (unsigned long long)seq + 1);
	copy_lines(w, rest, token_id_sv(jti), &b);
	r = buf_check(&b, err);
	return r < 0 ? r : wallet_write(w, "revoked", buf_view(&b), err);
}

bool wallet_has_logged(const struct wallet *w, const struct token_id *jti)
{
	struct writ_err err = { 0 };
	scoped_realm log = REALM_INIT;

	if (realm_open(&log, w->log, false, &err) < 0)
		return false;
	/* Search the log from the end: a token that is still valid was made recently. */
	for (uint64_t i = log.tree.size, n = 0; i > 0 && n < KNOWN_MAX; i--, n++) {
		scoped_buf b = BUF_INIT(ENTRY_ROOM);

		if (realm_entry(&log, i - 1, &b, &err) == 0 &&
		    memmem(b.p, b.n, jti->s, TOKEN_ID))
			return true;
	}
	return false;
}

int wallet_sign_list(const struct wallet *w, struct buf *b, struct token_why *why)
{
	scoped_key_pair issuer = { 0 };
	struct rvk list;
	int r;

	if ((r = wallet_own_list(w, w->a, &list, &why->err)) < 0 ||
	    (r = wallet_issuer(w, &issuer, &why->err)) < 0)
		return r;
	list.exp = w->now + TOKEN_LIFE_MAX;
	return rvk_sign(w->a, &list, &issuer, b, why);
}
