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

/* --- Links of a chain --- */

bool token_has_realm(const struct sv *realms, size_t n, struct sv realm)
{
	for (size_t i = 0; i < n; i++)
		if (sv_eq(realms[i], realm))
			return true;
	return false;
}

/*
 * Checks that the child token requires every guarantee of the parent token at least as strictly,
 * and that it has the parent's base profile, if the parent has one.
 */
static int check_require(const struct cap_set *parent, const struct cap_set *child,
			 enum token_code code, struct token_why *why)
{
	for (enum guarantee g = 0; g < G_COUNT; g++)
		if (child->require[g] < parent->require[g])
			return token_refuse(why, code, "require %s is weaker", guarantee_name(g));
	if (parent->has_rt && (!child->has_rt || !digest_eq(&parent->rt, &child->rt)))
		return token_refuse(why, code, "rt is another one");
	return 0;
}

int token_set_check(const struct cap_set *parent, const struct cap_set *child, enum token_code code,
		    struct token_why *why)
{
	size_t culprit = 0;

	if (!cap_set_within(child, parent, &culprit)) {
		if (culprit == SIZE_MAX)
			return token_refuse(why, code, "a limit is larger or missing");
		return token_refuse(why, code, "not within: " SV_FMT,
				    SV_ARG(sv_sub(child->caps.v[culprit].cap.text, 0, 96)));
	}
	return check_require(parent, child, code, why);
}

int token_root_check(const struct token *t, struct token_why *why)
{
	const uint64_t start = t->iat < t->nbf ? t->iat : t->nbf;

	if (t->has_parent)
		return token_refuse(why, TOKEN_E_ROOT, "a first token that was derived");
	if (t->depth != 0)
		return token_refuse(why, TOKEN_E_DEPTH, "a first token of depth %llu",
				    (unsigned long long)t->depth);
	if (t->exp - start > TOKEN_LIFE_MAX)
		return token_refuse(why, TOKEN_E_TIME, "valid for more than %d seconds",
				    TOKEN_LIFE_MAX);
	return 0;
}

/* Checks rules I1, I2 and I5 between parent and child token: issuer, parent and depth. */
static int check_origin(const struct token *p, const struct token *c, struct token_why *why)
{
	if (!jws_kid_eq(&c->kid, &p->cnf_kid) || !sv_starts(c->iss, SV(TOKEN_ISS_PREFIX)) ||
	    !sv_eq(sv_skip(c->iss, sizeof(TOKEN_ISS_PREFIX) - 1), jws_kid_sv(&p->cnf_kid)))
		return token_refuse(why, TOKEN_E_LINK_ISS, "iss is not the holder before");
	if (!c->has_parent || !digest_eq(&c->par_hash, &p->hash))
		return token_refuse(why, TOKEN_E_LINK_HASH, "par_hash is not of the token before");
	if (c->depth != p->depth + 1 || c->max_depth > p->max_depth)
		return token_refuse(why, TOKEN_E_DEPTH, "depth %llu of %llu after %llu of %llu",
				    (unsigned long long)c->depth, (unsigned long long)c->max_depth,
				    (unsigned long long)p->depth, (unsigned long long)p->max_depth);
	return 0;
}

int token_link_check(const struct token *parent, const struct token *child, struct token_why *why)
{
	const int r = check_origin(parent, child, why);

	if (r < 0)
		return r;
	/* Rule I3: check the lifetime. */
	if (child->iat < parent->iat || child->nbf < parent->nbf || child->exp > parent->exp)
		return token_refuse(why, TOKEN_E_TIME, "valid when the token before is not");
	for (size_t i = 0; i < child->aud_n; i++)
		if (!token_has_realm(parent->aud, parent->aud_n, child->aud[i]))
			return token_refuse(why, TOKEN_E_AUD, "realm " SV_FMT " was not given",
					    SV_ARG(child->aud[i]));
	if (!sv_eq(child->sub, parent->sub) || !token_id_eq(&child->wf, &parent->wf))
		return token_refuse(why, TOKEN_E_SUB, "sub or wf is another one");
	if (child->rvk > parent->rvk)
		return token_refuse(why, TOKEN_E_WIDEN, "rvk is larger");
	/*
	 * Rule I4: check the authority. Denials are not compared, because the denials of every
	 * token in the chain apply.
	 */
	return token_set_check(&parent->set, &child->set, TOKEN_E_WIDEN, why);
}

/* --- making tokens --- */

/*
 * Encodes the token @t and decodes it again, so that writ signs no token that a verifier would
 * refuse.
 */
static int round_trip(struct arena *a, const struct token *t, struct buf *payload,
		      struct token *ret_t, struct token_why *why)
{
	int r = token_encode(t, payload, why);

	if (r == 0)
		r = token_decode(a, buf_view(payload), ret_t, why);
	if (r == 0)
		ret_t->kid = t->kid;
	return r;
}

/* SECURITY: refuse a token for the key that signs it. Each key has one role. */
static int check_role(const struct token *t, const struct key_pair *key, struct token_why *why)
{
	if (memcmp(t->cnf.b, key->pub.b, sizeof(t->cnf.b)) == 0)
		return token_refuse(why, TOKEN_E_LINK_ISS,
				    "the holder's key is the one that signs");
	return 0;
}

int token_mint(struct arena *a, const struct token *t, const struct key_pair *issuer, struct buf *b,
	       struct token_why *why)
{
	scoped_buf payload = BUF_INIT(TOKEN_MAX);
	struct token root = *t, read;
	int r;

	root.depth = 0;
	root.has_parent = false;
	if ((r = check_role(&root, issuer, why)) < 0 ||
	    (r = round_trip(a, &root, &payload, &read, why)) < 0 ||
	    (r = token_root_check(&read, why)) < 0)
		return r;
	return jws_sign(JWS_CAP, TOKEN_MAX, buf_view(&payload), issuer, b, why);
}

int token_derive(struct arena *a, const struct token *parent, const struct token *t,
		 const struct key_pair *holder, struct buf *b, struct token_why *why)
{
	scoped_buf payload = BUF_INIT(TOKEN_MAX);
	struct token child = *t, read;
	char *iss;
	int r;

	if (memcmp(parent->cnf.b, holder->pub.b, sizeof(parent->cnf.b)) != 0)
		return token_refuse(why, TOKEN_E_LINK_ISS, "the key is not the holder's");
	iss = arena_fmt(a, TOKEN_ISS_PREFIX "%s", parent->cnf_kid.s);
	if (!iss)
		return token_nomem(why);
	child.iss = sv_from(iss);
	child.sub = parent->sub;
	child.wf = parent->wf;
	child.kid = parent->cnf_kid;
	child.depth = parent->depth + 1;
	child.has_parent = true;
	child.par_hash = parent->hash;
	if ((r = check_role(&child, holder, why)) < 0 ||
	    (r = round_trip(a, &child, &payload, &read, why)) < 0 ||
	    (r = token_link_check(parent, &read, why)) < 0)
		return r;
	return jws_sign(JWS_CAP, TOKEN_MAX, buf_view(&payload), holder, b, why);
}
