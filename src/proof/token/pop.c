#include "token/pop.h"

#include <string.h>

#include "audit/entry.h"
#include "token/fields.h"

#include "base/banned.h"

static bool is_nonce(struct sv s)
{
	return s.n >= 16 && s.n <= POP_NONCE_MAX && sv_is_alnum(s, "-_");
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

	if ((r = token_fields_open(payload, keys, ARRAY_LEN(keys), ARRAY_LEN(keys), &o, why)) < 0 ||
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

/* --- the action --- */

static json_t *text_of(struct sv s)
{
	return json_stringn(s.n ? s.p : "", s.n);
}

/* Returns @raw as a JSON string, percent-encoded as in log entries. */
static json_t *encoded(struct sv raw)
{
	scoped_buf b = BUF_INIT(3 * raw.n + 1);

	entry_encode(&b, raw);
	return b.failed ? NULL : text_of(buf_view(&b));
}

static json_t *argv_of(const struct action *x)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < x->argc; i++) {
		if (json_array_append_new(list, encoded(x->argv[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *object_of(const struct action *x)
{
	const struct jws_kid man = jws_text(x->manifest.b);

	return json_pack("{s:s,s:o,s:s,s:o,s:o}", "a", "session.open", "argv", argv_of(x), "man",
			 man.s, "r", text_of(x->realm), "s", text_of(x->salt));
}

int token_action_encode(const struct action *x, struct buf *b, struct token_why *why)
{
	scoped_json *o = NULL;
	struct writ_err err = { 0 };

	if (!sv_is_graph(x->realm) || !sv_is_graph(x->salt))
		return token_refuse(why, TOKEN_E_ACTH, "a part that is not canonical");
	o = object_of(x);
	if (!o)
		return token_nomem(why);
	if (cj_encode(o, b, &err) < 0)
		return token_refuse(why, b->failed ? TOKEN_E_SIZE : TOKEN_E_ACTH, "%s", err.what);
	return 0;
}
