#include "token/rvk.h"

#include <stdlib.h>

#include "token/fields.h"

#include "base/banned.h"

/* Bound for allocations: more items than fit into a list of RVK_MAX bytes. */
enum { RVK_ITEMS_MAX = 2048 };

int rvk_encode(const struct rvk *l, struct buf *b, struct token_why *why)
{
	scoped_json *o = json_pack(
		"{s:I,s:I,s:o,s:o,s:o,s:I,s:o,s:i}", "exp", (json_int_t)l->exp, "iat",
		(json_int_t)l->iat, "iss", json_stringn(l->iss.p, l->iss.n), "jti",
		token_list(l->jti, l->jti_n, sizeof(*l->jti)), "kid",
		token_list(l->kids, l->kids_n, sizeof(*l->kids)), "seq", (json_int_t)l->seq, "sid",
		token_list(l->sid, l->sid_n, sizeof(*l->sid)), "writ", 1);

	return token_fields_encode(o, b, why);
}

int rvk_decode(struct arena *a, struct sv payload, struct rvk *ret_list, struct token_why *why)
{
	static const char *const keys[] = {
		"exp", "iat", "iss", "jti", "kid", "seq", "sid", "writ"
	};
	struct rvk l = { 0 };
	scoped_json *o = NULL;
	int r;

	if (payload.n > RVK_MAX)
		return token_refuse(why, TOKEN_E_SIZE, "more than %d bytes", RVK_MAX);
	if ((r = token_fields_open(payload, keys, ARRAY_LEN(keys), ARRAY_LEN(keys), &o, why)) < 0 ||
	    (r = token_field_sv(a, o, "iss", TOKEN_TEXT_MAX, &l.iss, why)) < 0 ||
	    (r = token_field_u64(o, "seq", &l.seq, why)) < 0 ||
	    (r = token_field_u64(o, "iat", &l.iat, why)) < 0 ||
	    (r = token_field_u64(o, "exp", &l.exp, why)) < 0 ||
	    (r = token_field_list(a, o, "jti", 0, RVK_ITEMS_MAX, token_field_is_id, &l.jti,
				  &l.jti_n, why)) < 0 ||
	    (r = token_field_list(a, o, "kid", 0, RVK_ITEMS_MAX, token_field_is_digest, &l.kids,
				  &l.kids_n, why)) < 0 ||
	    (r = token_field_list(a, o, "sid", 0, RVK_ITEMS_MAX, token_field_is_id, &l.sid,
				  &l.sid_n, why)) < 0)
		return r;
	*ret_list = l;
	return 0;
}

int rvk_sign(struct arena *a, const struct rvk *l, const struct key_pair *issuer, struct buf *b,
	     struct token_why *why)
{
	scoped_buf payload = BUF_INIT(RVK_MAX);
	struct rvk read;
	int r;

	if ((r = rvk_encode(l, &payload, why)) < 0 ||
	    (r = rvk_decode(a, buf_view(&payload), &read, why)) < 0)
		return r;
	return jws_sign(JWS_RVK, RVK_MAX, buf_view(&payload), issuer, b, why);
}

int rvk_open(struct arena *a, struct sv text, const struct trust *trust, uint64_t seen,
	     struct rvk *ret_list, struct token_why *why)
{
	scoped_buf payload = BUF_INIT(RVK_MAX);
	const struct trust_issuer *issuer;
	struct rvk l;
	struct jws j;
	int r = jws_split(text, RVK_MAX, JWS_RVK, &j, why);

	if (r < 0)
		return r;
	issuer = token_trust_find(trust, &j.kid);
	if (!issuer)
		return token_refuse(why, TOKEN_E_ROOT, "a list of nobody who is trusted");
	if ((r = jws_open(&j, &issuer->key, &payload, why)) < 0 ||
	    (r = rvk_decode(a, buf_view(&payload), &l, why)) < 0)
		return r;
	if (!sv_eq(l.iss, issuer->iss))
		return token_refuse(why, TOKEN_E_ROOT, "iss is not who signed");
	/*
	 * SECURITY: refuse a list older than the newest list seen. A replayed old list would undo
	 * revocations.
	 */
	if (l.seq < seen)
		return token_refuse(why, TOKEN_E_REPLAY, "list %llu after %llu",
				    (unsigned long long)l.seq, (unsigned long long)seen);
	l.kid = j.kid;
	*ret_list = l;
	return 0;
}

static bool has(const struct sv *v, size_t n, struct sv s)
{
	return n && bsearch(&s, v, n, sizeof(*v), token_by_bytes);
}

int rvk_check(const struct rvk *l, const struct token *t, struct token_why *why)
{
	if (has(l->jti, l->jti_n, token_id_sv(&t->jti)))
		return token_refuse(why, TOKEN_E_REVOKED, "token %s", t->jti.s);
	if (has(l->kids, l->kids_n, jws_kid_sv(&t->cnf_kid)))
		return token_refuse(why, TOKEN_E_REVOKED, "holder %s", t->cnf_kid.s);
	if (has(l->sid, l->sid_n, token_id_sv(&t->sid)))
		return token_refuse(why, TOKEN_E_REVOKED, "session %s", t->sid.s);
	return 0;
}

int rvk_fresh(const struct rvk *l, uint64_t now, uint64_t age, struct token_why *why)
{
	if (l->iat > now + TOKEN_SKEW || now >= l->exp)
		return token_refuse(why, TOKEN_E_RVK_STALE, "the list is not valid now");
	if (now > l->iat && now - l->iat > age)
		return token_refuse(why, TOKEN_E_RVK_STALE,
				    "the list is %llu seconds old, at most %llu",
				    (unsigned long long)(now - l->iat), (unsigned long long)age);
	return 0;
}
