#include "attest/attest.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "crypto/crypto.h"

#include "base/banned.h"

struct fields attest_fields_of(const json_t *o, struct arena *a, struct writ_err *err)
{
	struct fields f = { .o = o, .a = a, .err = err };

	if (!json_is_object(o))
		f.failed = writ_fail(err, WRIT_E_SYNTAX, 0, "there is no object");
	return f;
}

struct fields attest_fields_decode(struct sv bytes, size_t max, json_t **ret_o, struct arena *a,
				   struct writ_err *err)
{
	const int r = bytes.n > max ? writ_fail(err, WRIT_E_LIMIT, 0, "it is too long")
				    : cj_decode(bytes, ret_o, err);

	return r < 0 ? (struct fields){ .a = a, .failed = r, .err = err }
		     : attest_fields_of(*ret_o, a, err);
}

static void bad(struct fields *f, const char *key, const char *what)
{
	if (f->failed == 0)
		f->failed = writ_fail(f->err, WRIT_E_SYNTAX, 0, "member %s %s", key, what);
}

static const json_t *get(struct fields *f, const char *key)
{
	const json_t *v = json_object_get(f->o, key);

	f->asked++;
	if (!v)
		bad(f, key, "is missing");
	return v;
}

struct sv attest_member_text(struct fields *f, const char *key)
{
	const json_t *v = get(f, key);
	struct sv s = SV("");

	if (v && !json_is_string(v))
		bad(f, key, "is no text");
	else if (v &&
		 !arena_sv(f->a, (struct sv){ json_string_value(v), json_string_length(v) }, &s))
		bad(f, key, "is too long");
	return s;
}

uint64_t attest_member_number(struct fields *f, const char *key)
{
	const json_t *v = get(f, key);

	if (v && (!json_is_integer(v) || json_integer_value(v) < 0))
		bad(f, key, "is no number");
	return v && json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v) : 0;
}

struct fields attest_member_object(struct fields *f, const char *key)
{
	const json_t *v = get(f, key);
	struct fields in = { .o = v, .a = f->a, .err = f->err };

	if (v && !json_is_object(v))
		bad(f, key, "is no object");
	in.failed = f->failed;
	return in;
}

void attest_member_is(struct fields *f, const char *key, struct sv text)
{
	if (!sv_eq(attest_member_text(f, key), text))
		bad(f, key, "is not what it has to be");
}

int attest_fields_end(struct fields *f)
{
	if (f->failed == 0 && json_object_size(f->o) != f->asked)
		f->failed = writ_fail(f->err, WRIT_E_SYNTAX, 0, "there are members too many");
	return f->failed;
}

static bool get_flag(struct fields *f, const char *key)
{
	const json_t *v = get(f, key);

	if (v && !json_is_boolean(v))
		bad(f, key, "is neither true nor false");
	return json_is_true(v);
}

static void get_member(struct fields *f, const struct attest_member *m, void *at)
{
	const bool text = m->type != ATTEST_NUMBER && m->type != ATTEST_FLAG;
	const struct sv s = text ? attest_member_text(f, m->key) : SV("");

	switch (m->type) {
	case ATTEST_TEXT:
	case ATTEST_WORD:
		if (m->type == ATTEST_WORD && !attest_is_word(s))
			bad(f, m->key, "is not a plain word");
		*(struct sv *)at = s;
		break;
	case ATTEST_NUMBER:
		*(uint64_t *)at = attest_member_number(f, m->key);
		break;
	case ATTEST_FLAG:
		*(bool *)at = get_flag(f, m->key);
		break;
	case ATTEST_DIGEST:
		if (!base64_decode(BASE64_URL, s, at, sizeof(struct digest)))
			bad(f, m->key, "is no digest");
		break;
	case ATTEST_CUSTODY:
		if (!attest_custody_parse(s, at))
			bad(f, m->key, "is no custody");
		break;
	}
}

void attest_get(struct fields *f, const struct attest_member *v, size_t n, void *ret)
{
	for (size_t i = 0; i < n; i++)
		get_member(f, &v[i], (char *)ret + v[i].offset);
}

int attest_decode(struct arena *a, struct sv bytes, const struct attest_member *v, size_t n,
		  void *ret, struct writ_err *err)
{
	scoped_json *o = NULL;
	struct fields in = attest_fields_decode(bytes, ATTEST_TEXT_MAX, &o, a, err);

	attest_get(&in, v, n, ret);
	return attest_fields_end(&in);
}

static json_t *value_of(const struct attest_member *m, const void *at)
{
	scoped_buf b = BUF_INIT(64);
	const struct sv *s = at;

	switch (m->type) {
	case ATTEST_TEXT:
	case ATTEST_WORD:
		return json_stringn(s->n ? s->p : "", s->n);
	case ATTEST_NUMBER:
		return json_integer((json_int_t)*(const uint64_t *)at);
	case ATTEST_FLAG:
		return json_boolean(*(const bool *)at);
	case ATTEST_DIGEST:
		base64_encode(BASE64_URL, (struct sv){ at, sizeof(struct digest) }, &b);
		return json_stringn(b.p, b.n);
	case ATTEST_CUSTODY:
		return json_string(attest_custody_name(*(const enum custody *)at));
	}
	return NULL;
}

json_t *attest_object(const struct attest_member *v, size_t n, const void *from)
{
	json_t *o = json_object();

	for (size_t i = 0; i < n; i++)
		if (json_object_set_new(o, v[i].key,
					value_of(&v[i], (const char *)from + v[i].offset)) < 0) {
			json_decref(o);
			return NULL;
		}
	return o;
}

const char *attest_differ(const struct attest_member *v, size_t n, const void *a, const void *b)
{
	for (size_t i = 0; i < n; i++) {
		scoped_json *x = value_of(&v[i], (const char *)a + v[i].offset);
		scoped_json *y = value_of(&v[i], (const char *)b + v[i].offset);

		if (!json_equal(x, y))
			return v[i].key;
	}
	return NULL;
}
