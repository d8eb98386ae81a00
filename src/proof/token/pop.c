#include "token/pop.h"

#include <string.h>

#include "token/fields.h"

#include "base/banned.h"

static bool is_nonce(struct sv s)
{
	if (s.n < 16 || s.n > POP_NONCE_MAX)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		const char c = s.p[i];

		if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		      c == '-' || c == '_'))
			return false;
	}
	return true;
}

int pop_encode(const struct pop *p, struct buf *b, struct token_why *why)
{
	const struct jws_kid acth = jws_text(p->acth.b), ath = jws_text(p->ath.b);
	scoped_json *o = json_pack(
		"{s:s,s:s,s:o,s:I,s:s,s:o,s:s,s:i}", "acth", acth.s, "ath", ath.s, "aud",
		json_stringn(p->aud.p, p->aud.n), "iat", (json_int_t)p->iat, "jti", p->jti.s,
		"nonce", json_stringn(p->nonce.p, p->nonce.n), "sid", p->sid.s, "writ", 1);

	return token_fields_encode(o, b, why);
}

int pop_decode(struct arena *a, struct sv payload, struct pop *ret_pop, struct token_why *why)
{
	static const char *const keys[] = { "acth", "ath",   "aud", "iat",
					    "jti",  "nonce", "sid", "writ" };
	scoped_json *o = NULL;
	struct pop p = { 0 };
	int r;

	if ((r = token_fields_decode(payload, &o, why)) < 0 ||
	    (r = token_fields_check(o, keys, ARRAY_LEN(keys), ARRAY_LEN(keys), why)) < 0 ||
	    (r = token_field_version(o, why)) < 0 ||
	    (r = token_field_digest(o, "acth", &p.acth, why)) < 0 ||
	    (r = token_field_digest(o, "ath", &p.ath, why)) < 0 ||
	    (r = token_field_sv(a, o, "aud", TOKEN_TEXT_MAX, &p.aud, why)) < 0 ||
	    (r = token_field_u64(o, "iat", &p.iat, why)) < 0 ||
	    (r = token_field_id(o, "jti", &p.jti, why)) < 0 ||
	    (r = token_field_id(o, "sid", &p.sid, why)) < 0 ||
	    (r = token_field_sv(a, o, "nonce", POP_NONCE_MAX, &p.nonce, why)) < 0)
		return r;
	if (!is_nonce(p.nonce) || !cap_is_id(p.aud))
		return token_refuse(why, TOKEN_E_SCHEMA, "nonce or aud cannot be one");
	*ret_pop = p;
	return 0;
}

int pop_sign(struct arena *a, const struct pop *p, const struct token *leaf,
	     const struct key_pair *holder, struct buf *b, struct token_why *why)
{
	scoped_buf payload = BUF_INIT(POP_MAX);
	struct pop proof = *p, read;
	int r;

	if (memcmp(leaf->cnf.b, holder->pub.b, sizeof(leaf->cnf.b)) != 0)
		return token_refuse(why, TOKEN_E_POP, "the key is not the holder's");
	proof.ath = leaf->ath;
	proof.sid = leaf->sid;
	if ((r = pop_encode(&proof, &payload, why)) < 0 ||
	    (r = pop_decode(a, buf_view(&payload), &read, why)) < 0)
		return r;
	return jws_sign(JWS_POP, POP_MAX, buf_view(&payload), holder, b, why);
}

static int check_pop(const struct pop *p, const struct token *leaf, struct sv realm, uint64_t now,
		     struct token_why *why)
{
	if (!digest_eq(&p->ath, &leaf->ath))
		return token_refuse(why, TOKEN_E_POP, "ath is of another token");
	if (!sv_eq(p->aud, realm))
		return token_refuse(why, TOKEN_E_POP, "made for another realm");
	if (!token_id_eq(&p->sid, &leaf->sid))
		return token_refuse(why, TOKEN_E_POP, "made for another session");
	if (p->iat > now + TOKEN_SKEW || now > p->iat + TOKEN_SKEW)
		return token_refuse(why, TOKEN_E_POP, "made more than %d seconds from now",
				    TOKEN_SKEW);
	return 0;
}

int pop_verify(struct arena *a, struct sv text, const struct token *leaf, struct sv realm,
	       uint64_t now, struct pop *ret_pop, struct token_why *why)
{
	scoped_buf payload = BUF_INIT(POP_MAX);
	struct jws j;
	struct pop p;
	int r = jws_split(text, POP_MAX, JWS_POP, &j, why);

	if (r < 0)
		return r;
	if (!jws_kid_eq(&j.kid, &leaf->cnf_kid))
		return token_refuse(why, TOKEN_E_POP, "kid is not the holder of the last token");
	if ((r = jws_open(&j, &leaf->cnf, &payload, why)) < 0 ||
	    (r = pop_decode(a, buf_view(&payload), &p, why)) < 0 ||
	    (r = check_pop(&p, leaf, realm, now, why)) < 0)
		return r;
	*ret_pop = p;
	return 0;
}
