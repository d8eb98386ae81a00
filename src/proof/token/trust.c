#include "token/trust.h"

#include "token/fields.h"

#include "base/banned.h"

const struct trust_issuer *token_trust_find(const struct trust *t, const struct jws_kid *kid)
{
	for (size_t i = 0; i < t->n; i++)
		if (jws_kid_eq(&t->issuers[i].kid, kid))
			return &t->issuers[i];
	return NULL;
}

/*
 * Refuses a counter in a ceiling. Uses of a ceiling are not counted, so the counter would limit
 * nothing.
 */
static int check_ceiling(const struct cap_set *s, struct token_why *why)
{
	for (size_t i = 0; i < s->caps.n; i++) {
		const struct cap *c = &s->caps.v[i].cap;

		if (c->n || c->rate_n || c->max_in || c->max_out)
			return token_refuse(why, TOKEN_E_SCHEMA, "a ceiling with a counter");
	}
	return 0;
}

static int read_issuer(struct arena *a, const json_t *o, struct trust_issuer *i,
		       struct token_why *why)
{
	static const char *const keys[] = { "ceiling", "exp", "iss", "jwk", "nbf", "realms" };
	int r;

	if ((r = token_fields_check(o, keys, ARRAY_LEN(keys), ARRAY_LEN(keys), why)) < 0 ||
	    (r = token_field_sv(a, o, "iss", TOKEN_TEXT_MAX, &i->iss, why)) < 0 ||
	    (r = token_field_u64(o, "nbf", &i->nbf, why)) < 0 ||
	    (r = token_field_u64(o, "exp", &i->exp, why)) < 0 ||
	    (r = token_field_jwk(o, "jwk", &i->key, why)) < 0 ||
	    (r = token_field_list(a, o, "realms", 1, TRUST_REALMS_MAX, cap_is_id, &i->realms,
				  &i->realms_n, why)) < 0 ||
	    (r = token_field_caps(a, o, "ceiling", CAP_GRANT, 1, &i->ceiling, why)) < 0)
		return r;
	i->kid = jws_thumbprint(&i->key);
	/*
	 * SECURITY: the prefix of iss is reserved for holders; an issuer with this prefix could be
	 * confused with a holder.
	 */
	if (sv_starts(i->iss, SV(TOKEN_ISS_PREFIX)))
		return token_refuse(why, TOKEN_E_SCHEMA, "iss has the form of a holder's");
	return check_ceiling(&i->ceiling, why);
}

static int read_issuers(struct arena *a, const json_t *o, struct trust *t, struct token_why *why)
{
	const json_t *list = json_object_get(o, "issuers");
	const size_t n = json_array_size(list);
	struct trust_issuer *v = arena_array(a, struct trust_issuer, n + 1);

	if (!json_is_array(list))
		return token_refuse(why, TOKEN_E_SCHEMA, "issuers is not a list");
	if (n > TRUST_ISSUERS_MAX)
		return token_refuse(why, TOKEN_E_SIZE, "more than %d issuers", TRUST_ISSUERS_MAX);
	if (!v)
		return token_nomem(why);
	t->issuers = v;
	for (size_t i = 0; i < n; i++) {
		const int r = read_issuer(a, json_array_get(list, i), &v[i], why);

		if (r < 0)
			return r;
		/* SECURITY: refuse two issuers with one key: a signature must name one issuer. */
		if (token_trust_find(t, &v[i].kid))
			return token_refuse(why, TOKEN_E_SCHEMA, "two issuers with one key");
		t->n = i + 1;
	}
	return 0;
}

int token_trust_decode(struct arena *a, struct sv payload, struct trust *ret_trust,
		       struct token_why *why)
{
	static const char *const keys[] = { "exp", "iat", "issuers", "ver", "writ" };
	struct trust t = { 0 };
	scoped_json *o = NULL;
	int r;

	if (payload.n > TRUST_MAX)
		return token_refuse(why, TOKEN_E_SIZE, "more than %d bytes", TRUST_MAX);
	if ((r = token_fields_open(payload, keys, ARRAY_LEN(keys), ARRAY_LEN(keys), &o, why)) < 0 ||
	    (r = token_field_u64(o, "ver", &t.ver, why)) < 0 ||
	    (r = token_field_u64(o, "iat", &t.iat, why)) < 0 ||
	    (r = token_field_u64(o, "exp", &t.exp, why)) < 0 ||
	    (r = read_issuers(a, o, &t, why)) < 0)
		return r;
	*ret_trust = t;
	return 0;
}

int token_trust_open(struct arena *a, struct sv text, const struct sign_public *org, uint64_t now,
		     uint64_t seen, struct trust *ret_trust, struct token_why *why)
{
	const struct jws_kid kid = jws_thumbprint(org);
	scoped_buf payload = BUF_INIT(TRUST_MAX);
	struct trust t;
	struct jws j;
	int r = jws_split(text, TRUST_MAX, JWS_TRUST, &j, why);

	if (r < 0)
		return r;
	if (!jws_kid_eq(&j.kid, &kid))
		return token_refuse(why, TOKEN_E_ROOT, "not signed by the organisation's key");
	if ((r = jws_open(&j, org, &payload, why)) < 0 ||
	    (r = token_trust_decode(a, buf_view(&payload), &t, why)) < 0)
		return r;
	if (token_trust_find(&t, &kid))
		return token_refuse(why, TOKEN_E_SCHEMA, "the organisation's key as an issuer's");
	/*
	 * SECURITY: refuse a bundle older than the newest one seen. A replayed old bundle would
	 * restore issuers that were removed since.
	 */
	if (t.ver < seen)
		return token_refuse(why, TOKEN_E_REPLAY, "version %llu after %llu",
				    (unsigned long long)t.ver, (unsigned long long)seen);
	if (t.iat > now + TOKEN_SKEW || now >= t.exp)
		return token_refuse(why, TOKEN_E_TIME, "the bundle is not valid now");
	*ret_trust = t;
	return 0;
}
