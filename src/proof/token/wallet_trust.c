#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "audit/realm.h"
#include "base/fd.h"
#include "token/fields.h"
#include "token/wallet.h"

#include "base/banned.h"

enum { PEM_MAX = 512 };
static const char list_prefix[] = "list.";

static int load_org(const struct wallet *w, struct sign_public *ret, bool *ret_any,
		    struct writ_err *err)
{
	struct sv pem;
	const int r = wallet_read(w, w->a, "org.pem", PEM_MAX, &pem, err);

	*ret_any = r > 0 && pem.n;
	return *ret_any ? keys_parse_public(pem, ret, err) : r < 0 ? r : 0;
}

/* Loads the trust bundle of the organisation if the bundle is still valid. */
static int load_bundle(const struct wallet *w, struct trust *ret, struct writ_err *err)
{
	struct token_why why = { 0 };
	struct sign_public org;
	struct sv text;
	bool any;
	int r = load_org(w, &org, &any, err);

	*ret = (struct trust){ 0 };
	if (r < 0 || !any)
		return r;
	r = wallet_read(w, w->a, "trust", TRUST_MAX, &text, err);
	if (r < 0 || text.n == 0)
		return r < 0 ? r : 0;
	/* A refused bundle, such as an expired one, counts as empty: no issuer of it is trusted. */
	if (token_trust_open(w->a, text, &org, w->now, 0, ret, &why) < 0) {
		*ret = (struct trust){ 0 };
		if (why.code == TOKEN_E_NONE)
			return writ_nomem(err);
	}
	return 0;
}

/* Makes the issuer entry for this realm's own key, valid in this realm only. */
static int make_self(const struct wallet *w, const struct sign_public *pub,
		     struct trust_issuer *ret, struct writ_err *err)
{
	struct sv *realm = arena_new(w->a, struct sv);
	const char *iss = arena_fmt(w->a, "urn:writ:realm:" SV_FMT, SV_ARG(w->realm));

	if (!realm || !iss)
		return writ_nomem(err);
	*realm = w->realm;
	*ret = (struct trust_issuer){ .iss = sv_from(iss),
				      .key = *pub,
				      .kid = jws_thumbprint(pub),
				      .realms = realm,
				      .realms_n = 1,
				      .exp = UINT64_MAX,
				      .self = true };
	return 0;
}

int wallet_load_trust(struct wallet *w, struct writ_err *err)
{
	struct writ_err none = { 0 };
	struct trust_issuer *all;
	struct trust bundle;
	scoped_key_pair own = { 0 };
	struct jws_kid kid;
	int r = load_bundle(w, &bundle, err);

	if (r < 0)
		return r;
	all = arena_array(w->a, struct trust_issuer, bundle.n + 1);
	if (!all)
		return writ_nomem(err);
	if (bundle.n)
		memcpy(all, bundle.issuers, bundle.n * sizeof(*all));
	w->trust = bundle;
	w->trust.issuers = all;
	r = keys_load(w->keys, KEY_ISSUE, false, &own, &none);
	if (r < 0)
		return none.sys == ENOENT ? 0 : (*err = none).code;
	kid = jws_thumbprint(&own.pub);
	/*
	 * SECURITY: if the organisation's bundle lists this realm's key, the entry of the bundle
	 * applies, including the ceiling.
	 */
	w->self = token_trust_find(&w->trust, &kid);
	if (w->self)
		return 0;
	r = make_self(w, &own.pub, &all[bundle.n], err);
	w->trust.n = bundle.n + 1;
	w->self = &all[bundle.n];
	return r;
}

int wallet_load_lists(const struct wallet *w, struct arena *a, const struct rvk **ret,
		      size_t *ret_n, struct writ_err *err)
{
	VEC(struct rvk) lists = { 0 };
	struct rvk *own = vec_push(a, &lists);
	scoped_list *d = opendir(w->dir);
	struct dirent *e;
	int r;

	if (!d)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", w->dir);
	r = own ? wallet_own_list(w, a, own, err) : writ_nomem(err);
	while (r >= 0 && (e = readdir(d))) {
		struct token_why why = { 0 };
		struct rvk list, *slot;
		struct sv text;

		if (!sv_starts(sv_from(e->d_name), sv_from(list_prefix)) ||
		    sv_ends(sv_from(e->d_name), SV(".new")))
			continue;
		r = wallet_read(w, a, e->d_name, RVK_MAX, &text, err);
		/*
		 * Skip a list that cannot be opened: its signer is no longer trusted, and neither
		 * are tokens of that signer.
		 */
		if (r < 0 || rvk_open(a, text, &w->trust, 0, &list, &why) < 0)
			continue;
		slot = vec_push(a, &lists);
		if (!slot)
			return writ_nomem(err);
		*slot = list;
	}
	if (r < 0)
		return r;
	*ret = lists.v;
	*ret_n = lists.n;
	return 0;
}

/* --- importing bundles and lists --- */

/* Loads the highest bundle version ever accepted, even if that bundle has expired since. */
static int load_version(const struct wallet *w, uint64_t *ret, struct writ_err *err)
{
	struct sv text;
	const int r = wallet_read(w, w->a, "trust.version", 32, &text, err);

	*ret = 0;
	if (r > 0 && text.n && !sv_to_u64(sv_cut(&text, '\n'), INT64_MAX, ret))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "trust.version is not a number");
	return r < 0 ? r : 0;
}

static int store_bundle(const struct wallet *w, struct sv text, const struct sign_public *org,
			uint64_t version, struct writ_err *err)
{
	scoped_buf pem = BUF_INIT(PEM_MAX), number = BUF_INIT(32);
	int r;

	keys_print_public(org, &pem);
	buf_fmt(&number, "%llu\n", (unsigned long long)version);
	/*
	 * Store the version before the bundle: after a crash in between, an older bundle must not
	 * be accepted again.
	 */
	if ((r = buf_check(&pem, err)) < 0 ||
	    (r = wallet_write(w, "trust.version", buf_view(&number), err)) < 0 ||
	    (r = wallet_write(w, "org.pem", buf_view(&pem), err)) < 0)
		return r;
	return wallet_write(w, "trust", text, err);
}

static int import_bundle(const struct wallet *w, struct sv text, const struct sign_public *org,
			 struct token_why *why, struct writ_err *err)
{
	struct sign_public known;
	struct trust fresh;
	uint64_t seen = 0;
	bool any = false;
	int r = load_org(w, &known, &any, err);

	if (r < 0)
		return r;
	if (any && org && memcmp(known.b, org->b, sizeof(known.b)) != 0)
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "another organisation is trusted here: remove %s/org.pem first",
				 w->dir);
	if (!any && !org)
		return writ_fail(err, WRIT_E_DENIED, 0, "whose bundle? name its key with --org");
	if ((r = load_version(w, &seen, err)) < 0)
		return r;
	r = token_trust_open(w->a, text, org ? org : &known, w->now, seen, &fresh, why);
	if (r < 0 && why->code == TOKEN_E_REPLAY)
		return token_refuse(
			why, TOKEN_E_REPLAY,
			"version %llu was taken: get the newest; if they began anew, remove "
			"tokens/trust* and use --org KEY",
			(unsigned long long)seen);
	return r < 0 ? r : store_bundle(w, text, org ? org : &known, fresh.ver, err);
}

static int import_list(const struct wallet *w, struct sv text, struct token_why *why,
		       struct writ_err *err)
{
	struct rvk list;
	uint64_t seen = 0;
	const char *name;
	int r = rvk_open(w->a, text, &w->trust, 0, &list, why);

	for (size_t i = 0; r == 0 && i < w->lists_n; i++)
		if (jws_kid_eq(&w->lists[i].kid, &list.kid))
			seen = w->lists[i].seq;
	if (r == 0 && w->self && jws_kid_eq(&w->self->kid, &list.kid))
		return writ_fail(err, WRIT_E_DENIED, 0, "that is our own list");
	if (r == 0)
		r = rvk_open(w->a, text, &w->trust, seen, &list, why);
	if (r < 0)
		return r;
	name = arena_fmt(w->a, "%s%s", list_prefix, list.kid.s);
	return name ? wallet_write(w, name, text, err) : writ_nomem(err);
}

int wallet_import(const struct wallet *w, struct sv text, const struct sign_public *org,
		  const char **ret_what, struct token_why *why, struct writ_err *err)
{
	struct token_why none = { 0 };
	scoped_fd lock = -1;
	struct jws j;
	const bool list = jws_split(text, RVK_MAX, JWS_RVK, &j, &none) == 0;
	int r = wallet_lock(w, &lock, err);

	if (r == 0)
		r = list ? import_list(w, text, why, err) : import_bundle(w, text, org, why, err);
	if (r == 0)
		*ret_what = list ? "what an issuer has revoked" : "whose tokens count";
	return r;
}

/* --- our own revocations --- */

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
