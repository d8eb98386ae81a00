#include "token/token.h"

#include <string.h>

#include "token/fields.h"

#include "base/banned.h"

bool token_id_parse(struct sv s, struct token_id *ret_id)
{
	if (!token_field_is_id(s))
		return false;
	memcpy(ret_id->s, s.p, TOKEN_ID);
	ret_id->s[TOKEN_ID] = 0;
	return true;
}

struct sv token_id_sv(const struct token_id *id)
{
	return (struct sv){ id->s, TOKEN_ID };
}

bool token_id_eq(const struct token_id *a, const struct token_id *b)
{
	return memcmp(a->s, b->s, TOKEN_ID) == 0;
}

/* --- Reading --- */

static int read_limits(const json_t *o, struct cap_set *set, struct token_why *why)
{
	json_t *limits = json_object_get(o, "limits");

	if (!json_is_object(limits))
		return token_refuse(why, TOKEN_E_SCHEMA, "limits is not an object");
	for (void *it = json_object_iter(limits); it; it = json_object_iter_next(limits, it)) {
		const char *key = json_object_iter_key(it);
		enum cap_limit l;
		int r;

		if (!cap_limit_parse(sv_from(key), &l))
			return token_refuse(why, TOKEN_E_SCHEMA, "a limit that nobody knows");
		r = token_field_u64(limits, key, &set->limits[l], why);
		if (r < 0)
			return r;
		if (set->limits[l] == 0)
			return token_refuse(why, TOKEN_E_SCHEMA, "limit %s is 0", key);
		set->limit_rule[l] = RULE_NONE;
	}
	return 0;
}

static int read_require(const json_t *o, struct cap_set *set, struct token_why *why)
{
	json_t *all = json_object_get(o, "require");

	if (!json_is_object(all))
		return token_refuse(why, TOKEN_E_SCHEMA, "require is not an object");
	for (void *it = json_object_iter(all); it; it = json_object_iter_next(all, it)) {
		const char *level = json_string_value(json_object_iter_value(it));
		enum guarantee g;
		enum level l;

		if (!guarantee_parse(sv_from(json_object_iter_key(it)), &g) ||
		    !level_parse(sv_from(level), &l) || l == LEVEL_NONE)
			return token_refuse(why, TOKEN_E_SCHEMA, "require of what nobody knows");
		set->require[g] = l;
		set->require_rule[g] = RULE_NONE;
	}
	return 0;
}

/*
 * Reads the claim rt: empty, or the digest of the base profile in hexadecimal, as in the digest of
 * a set.
 */
static int read_rt(const json_t *o, struct cap_set *set, struct token_why *why)
{
	const json_t *v = json_object_get(o, "rt");

	if (!json_is_string(v))
		return token_refuse(why, TOKEN_E_SCHEMA, "rt is not a string");
	if (json_string_length(v) == 0)
		return 0;
	if (!digest_parse(sv_from(json_string_value(v)), &set->rt))
		return token_refuse(why, TOKEN_E_SCHEMA, "rt is not a digest");
	set->has_rt = true;
	return 0;
}

static int read_details(struct arena *a, const json_t *o, struct cap_set *set,
			struct token_why *why)
{
	static const char *const keys[] = { "caps", "limits", "not", "require", "rt", "type" };
	const json_t *list = json_object_get(o, "authorization_details");
	const json_t *d = json_array_get(list, 0);
	const char *type;
	int r;

	if (json_array_size(list) != 1)
		return token_refuse(why, TOKEN_E_SCHEMA,
				    "authorization_details is not a list of one");
	r = token_fields_check(d, keys, ARRAY_LEN(keys), ARRAY_LEN(keys), why);
	if (r < 0)
		return r;
	type = json_string_value(json_object_get(d, "type"));
	if (!type || strcmp(type, TOKEN_RAR_TYPE) != 0)
		return token_refuse(why, TOKEN_E_SCHEMA, "type is not " TOKEN_RAR_TYPE);
	if ((r = token_field_caps(a, d, "caps", CAP_GRANT, 1, set, why)) < 0 ||
	    (r = token_field_caps(a, d, "not", CAP_DENIAL, 0, set, why)) < 0 ||
	    (r = read_limits(d, set, why)) < 0 || (r = read_require(d, set, why)) < 0)
		return r;
	return read_rt(d, set, why);
}

static int read_cnf(const json_t *o, struct token *t, struct token_why *why)
{
	static const char *const keys[] = { "jwk" };
	const json_t *cnf = json_object_get(o, "cnf");
	int r = token_fields_check(cnf, keys, 1, 1, why);

	if (r == 0)
		r = token_field_jwk(cnf, "jwk", &t->cnf, why);
	if (r == 0)
		t->cnf_kid = jws_thumbprint(&t->cnf);
	return r;
}

static int read_times(const json_t *o, struct token *t, struct token_why *why)
{
	int r;

	if ((r = token_field_u64(o, "iat", &t->iat, why)) < 0 ||
	    (r = token_field_u64(o, "nbf", &t->nbf, why)) < 0 ||
	    (r = token_field_u64(o, "exp", &t->exp, why)) < 0 ||
	    (r = token_field_u64(o, "rvk", &t->rvk, why)) < 0)
		return r;
	if (t->exp <= t->nbf || t->exp <= t->iat)
		return token_refuse(why, TOKEN_E_TIME, "ends before it begins");
	return 0;
}

static int read_who(struct arena *a, const json_t *o, struct token *t, struct token_why *why)
{
	int r;

	if ((r = token_field_sv(a, o, "iss", TOKEN_TEXT_MAX, &t->iss, why)) < 0 ||
	    (r = token_field_sv(a, o, "sub", TOKEN_TEXT_MAX, &t->sub, why)) < 0 ||
	    (r = token_field_id(o, "jti", &t->jti, why)) < 0 ||
	    (r = token_field_id(o, "sid", &t->sid, why)) < 0 ||
	    (r = token_field_id(o, "wf", &t->wf, why)) < 0)
		return r;
	return token_field_list(a, o, "aud", 1, TOKEN_AUD_MAX, cap_is_id, &t->aud, &t->aud_n, why);
}

static int read_depth(const json_t *o, struct token *t, struct token_why *why)
{
	int r;

	if ((r = token_field_u64(o, "del_depth", &t->depth, why)) < 0 ||
	    (r = token_field_u64(o, "del_max_depth", &t->max_depth, why)) < 0)
		return r;
	if (t->depth > t->max_depth || t->max_depth >= TOKEN_CHAIN_MAX)
		return token_refuse(why, TOKEN_E_DEPTH, "depth %llu of %llu",
				    (unsigned long long)t->depth, (unsigned long long)t->max_depth);
	if (!json_object_get(o, "par_hash"))
		return 0;
	t->has_parent = true;
	return token_field_digest(o, "par_hash", &t->par_hash, why);
}

int token_decode(struct arena *a, struct sv payload, struct token *ret_t, struct token_why *why)
{
	static const char *const keys[] = {
		"aud",		 "authorization_details",
		"cnf",		 "del_depth",
		"del_max_depth", "exp",
		"iat",		 "iss",
		"jti",		 "nbf",
		"rvk",		 "sid",
		"sub",		 "wf",
		"writ",		 "par_hash", /* the claim par_hash is optional */
	};
	struct token t = { 0 };
	scoped_json *o = NULL;
	int r;

	r = token_fields_open(payload, keys, ARRAY_LEN(keys), ARRAY_LEN(keys) - 1, &o, why);
	if (r < 0 || (r = read_who(a, o, &t, why)) < 0 || (r = read_times(o, &t, why)) < 0 ||
	    (r = read_depth(o, &t, why)) < 0 || (r = read_cnf(o, &t, why)) < 0 ||
	    (r = read_details(a, o, &t.set, why)) < 0)
		return r;
	*ret_t = t;
	return 0;
}

/* --- Writing --- */

static json_t *string_of(struct sv s)
{
	return json_stringn(s.p, s.n);
}

static json_t *caps_list(const struct cap_entry *v, size_t n)
{
	return token_list(n ? &v->cap.text : NULL, n, sizeof(*v));
}

/*
 * Makes the JSON of the limits.
 * SECURITY: returns NULL rather than a part of the limits. A token that lost a limit would allow
 * more.
 */
static json_t *limits_of(const struct cap_set *s)
{
	json_t *o = json_object();
	int r = 0;

	for (enum cap_limit l = 0; l < LIMIT_COUNT; l++)
		if (s->limits[l])
			r |= json_object_set_new(o, cap_limit_name(l),
						 json_integer((json_int_t)s->limits[l]));
	if (r == 0)
		return o;
	json_decref(o);
	return NULL;
}

static json_t *require_of(const struct cap_set *s)
{
	json_t *o = json_object();
	int r = 0;

	for (enum guarantee g = 0; g < G_COUNT; g++)
		if (s->require[g] != LEVEL_NONE)
			r |= json_object_set_new(o, guarantee_name(g),
						 json_string(level_name(s->require[g])));
	if (r == 0)
		return o;
	json_decref(o);
	return NULL;
}

static json_t *details_of(const struct cap_set *s)
{
	scoped_buf rt = BUF_INIT(64);

	if (s->has_rt)
		digest_hex(&s->rt, &rt);
	return json_pack("[{s:o,s:o,s:o,s:o,s:s,s:s}]", "caps", caps_list(s->caps.v, s->caps.n),
			 "not", caps_list(s->nots.v, s->nots.n), "limits", limits_of(s), "require",
			 require_of(s), "rt", rt.n ? rt.p : "", "type", TOKEN_RAR_TYPE);
}

int token_encode(const struct token *t, struct buf *b, struct token_why *why)
{
	const struct jws_kid x = jws_text(t->cnf.b), parent = jws_text(t->par_hash.b);
	scoped_json *o = json_pack(
		"{s:o,s:o,s:{s:{s:s,s:s,s:s}},s:I,s:I,s:I,s:I,s:o,s:s,s:I,s:I,s:s,s:o,s:s,s:i}",
		"aud", token_list(t->aud, t->aud_n, sizeof(*t->aud)), "authorization_details",
		details_of(&t->set), "cnf", "jwk", "crv", "Ed25519", "kty", "OKP", "x", x.s,
		"del_depth", (json_int_t)t->depth, "del_max_depth", (json_int_t)t->max_depth,
		"exp", (json_int_t)t->exp, "iat", (json_int_t)t->iat, "iss", string_of(t->iss),
		"jti", t->jti.s, "nbf", (json_int_t)t->nbf, "rvk", (json_int_t)t->rvk, "sid",
		t->sid.s, "sub", string_of(t->sub), "wf", t->wf.s, "writ", 1);

	if (o && t->has_parent && json_object_set_new(o, "par_hash", json_string(parent.s)) < 0)
		return token_nomem(why);
	return token_fields_encode(o, b, why);
}
