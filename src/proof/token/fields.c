#include "token/fields.h"

#include <string.h>

#include "codec/base64.h"

#include "base/banned.h"

int token_fields_encode(const json_t *v, struct buf *b, struct token_why *why)
{
	struct writ_err err = { 0 };

	if (!v)
		return token_nomem(why);
	if (cj_encode(v, b, &err) < 0)
		return b->failed ? token_refuse(why, TOKEN_E_SIZE, "more than %zu bytes", b->max)
				 : token_refuse(why, TOKEN_E_SCHEMA, "%s", err.what);
	return 0;
}

int token_by_bytes(const void *a, const void *b)
{
	return sv_cmp(*(const struct sv *)a, *(const struct sv *)b);
}

json_t *token_list(const struct sv *v, size_t n, size_t step)
{
	struct sv *sorted = calloc(n + 1, sizeof(*v));
	json_t *list = sorted ? json_array() : NULL;

	for (size_t i = 0; sorted && i < n; i++)
		memcpy(&sorted[i], (const char *)v + i * step, sizeof(*v));
	if (list && n)
		qsort(sorted, n, sizeof(*v), token_by_bytes);
	for (size_t i = 0; list && i < n; i++)
		if ((i == 0 || !sv_eq(sorted[i - 1], sorted[i])) &&
		    json_array_append_new(list, json_stringn(sorted[i].p, sorted[i].n)) < 0) {
			json_decref(list);
			list = NULL;
		}
	free(sorted);
	return list;
}

int token_fields_check(const json_t *o, const char *const *keys, size_t n, size_t must,
		       struct token_why *why)
{
	size_t found = 0;

	if (!json_is_object(o))
		return token_refuse(why, TOKEN_E_SCHEMA, "not an object");
	for (size_t i = 0; i < n; i++) {
		if (json_object_get(o, keys[i]))
			found++;
		else if (i < must)
			return token_refuse(why, TOKEN_E_SCHEMA, "%s is missing", keys[i]);
	}
	if (found != json_object_size(o))
		return token_refuse(why, TOKEN_E_SCHEMA, "a member that nobody knows");
	return 0;
}

int token_fields_open(struct sv bytes, const char *const *keys, size_t n, size_t must,
		      json_t **ret_o, struct token_why *why)
{
	struct writ_err err = { 0 };
	const json_t *v;
	int r;

	if (cj_decode(bytes, ret_o, &err) < 0)
		return err.code == WRIT_E_NOMEM
			       ? token_nomem(why)
			       : token_refuse(why, TOKEN_E_NONCANON, "%s", err.what);
	r = token_fields_check(*ret_o, keys, n, must, why);
	if (r < 0)
		return r;
	v = json_object_get(*ret_o, "writ");
	if (!json_is_integer(v) || json_integer_value(v) != 1)
		return token_refuse(why, TOKEN_E_SCHEMA, "writ is not 1");
	return 0;
}

int token_field_u64(const json_t *o, const char *key, uint64_t *ret_v, struct token_why *why)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return token_refuse(why, TOKEN_E_SCHEMA, "%s is not a number", key);
	*ret_v = (uint64_t)json_integer_value(v);
	return 0;
}

static struct sv view(const json_t *v)
{
	return json_is_string(v) ? (struct sv){ json_string_value(v), json_string_length(v) }
				 : SV("");
}

int token_field_sv(struct arena *a, const json_t *o, const char *key, size_t max, struct sv *ret_s,
		   struct token_why *why)
{
	const struct sv s = view(json_object_get(o, key));

	if (s.n == 0 || s.n > max || !sv_is_graph(s))
		return token_refuse(why, TOKEN_E_SCHEMA, "%s is not 1 to %zu bytes without blanks",
				    key, max);
	return arena_sv(a, s, ret_s) ? 0 : token_nomem(why);
}

bool token_field_is_id(struct sv s)
{
	if (s.n != TOKEN_ID || s.p[14] != '7' || !memchr("89ab", s.p[19], 4))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		const bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? s.p[i] != '-' : sv_hex_lower(s.p[i]) < 0)
			return false;
	}
	return true;
}

bool token_field_is_digest(struct sv s)
{
	size_t n;

	return base64_check(BASE64_URL, s, &n) && n == sizeof(struct digest);
}

int token_field_id(const json_t *o, const char *key, struct token_id *ret_id, struct token_why *why)
{
	if (!token_id_parse(view(json_object_get(o, key)), ret_id))
		return token_refuse(why, TOKEN_E_SCHEMA, "%s is not a version 7 UUID", key);
	return 0;
}

int token_field_digest(const json_t *o, const char *key, struct digest *ret_d,
		       struct token_why *why)
{
	struct digest d;

	if (!base64_decode(BASE64_URL, view(json_object_get(o, key)), d.b, sizeof(d.b)))
		return token_refuse(why, TOKEN_E_SCHEMA, "%s is not a SHA-256 digest in base64url",
				    key);
	*ret_d = d;
	return 0;
}

int token_field_jwk(const json_t *o, const char *key, struct sign_public *ret_key,
		    struct token_why *why)
{
	static const char *const keys[] = { "crv", "kty", "x" };
	const json_t *jwk = json_object_get(o, key);
	struct writ_err err = { 0 };
	struct sign_public pub;
	int r = token_fields_check(jwk, keys, ARRAY_LEN(keys), ARRAY_LEN(keys), why);

	if (r < 0)
		return r;
	if (!sv_is(view(json_object_get(jwk, "crv")), "Ed25519") ||
	    !sv_is(view(json_object_get(jwk, "kty")), "OKP"))
		return token_refuse(why, TOKEN_E_SCHEMA, "%s is not an Ed25519 key", key);
	if (!base64_decode(BASE64_URL, view(json_object_get(jwk, "x")), pub.b, sizeof(pub.b)))
		return token_refuse(why, TOKEN_E_SCHEMA, "%s is not 32 bytes in base64url", key);
	/*
	 * SECURITY: the maker of a token chooses the holder key. For some weak keys anybody can
	 * make signatures that verify, so check the point.
	 */
	if (sign_public_check(&pub, &err) < 0)
		return token_refuse(why, TOKEN_E_SCHEMA, "%s: %s", key, err.what);
	*ret_key = pub;
	return 0;
}

/* Finds the list at member @key and checks its length and order. */
static int list_of(const json_t *o, const char *key, size_t min, size_t max, const json_t **ret_v,
		   struct token_why *why)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_array(v) || json_array_size(v) < min)
		return token_refuse(why, TOKEN_E_SCHEMA, "%s is not a list of %zu or more", key,
				    min);
	if (json_array_size(v) > max)
		return token_refuse(why, TOKEN_E_SIZE, "%s has more than %zu members", key, max);
	for (size_t i = 1; i < json_array_size(v); i++)
		if (sv_cmp(view(json_array_get(v, i - 1)), view(json_array_get(v, i))) >= 0)
			return token_refuse(why, TOKEN_E_NONCANON, "%s is not in byte order", key);
	*ret_v = v;
	return 0;
}

int token_field_list(struct arena *a, const json_t *o, const char *key, size_t min, size_t max,
		     bool (*ok)(struct sv), const struct sv **ret_v, size_t *ret_n,
		     struct token_why *why)
{
	const json_t *v = NULL;
	struct sv *list;
	int r = list_of(o, key, min, max, &v, why);

	if (r < 0)
		return r;
	list = arena_array(a, struct sv, json_array_size(v) + 1);
	if (!list)
		return token_nomem(why);
	for (size_t i = 0; i < json_array_size(v); i++) {
		const struct sv s = view(json_array_get(v, i));

		if (!ok(s))
			return token_refuse(why, TOKEN_E_SCHEMA, "%s: member %zu cannot be one",
					    key, i + 1);
		if (!arena_sv(a, s, &list[i]))
			return token_nomem(why);
	}
	*ret_v = list;
	*ret_n = json_array_size(v);
	return 0;
}

int token_field_caps(struct arena *a, const json_t *o, const char *key, enum cap_kind kind,
		     size_t min, struct cap_set *set, struct token_why *why)
{
	const json_t *v = NULL;
	int r = list_of(o, key, min, TOKEN_CAPS_MAX, &v, why);

	for (size_t i = 0; r == 0 && i < json_array_size(v); i++) {
		struct cap_entry *e =
			kind == CAP_DENIAL ? vec_push(a, &set->nots) : vec_push(a, &set->caps);
		struct writ_err err = { 0 };

		if (!e)
			return token_nomem(why);
		e->rule = RULE_NONE;
		if (cap_parse(a, kind, view(json_array_get(v, i)), &e->cap, &err) < 0)
			r = err.code == WRIT_E_NOMEM
				    ? token_nomem(why)
				    : token_refuse(why, TOKEN_E_CAP_SYNTAX, "%s %zu: %s", key,
						   i + 1, err.what);
	}
	return r;
}
