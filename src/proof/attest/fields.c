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

struct sv attest_member_word(struct fields *f, const char *key)
{
	const struct sv s = attest_member_text(f, key);

	if (!attest_is_word(s))
		bad(f, key, "is not a plain word");
	return s;
}

uint64_t attest_member_number(struct fields *f, const char *key)
{
	const json_t *v = get(f, key);

	if (v && (!json_is_integer(v) || json_integer_value(v) < 0))
		bad(f, key, "is no number");
	return v && json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v) : 0;
}

bool attest_member_bool(struct fields *f, const char *key)
{
	const json_t *v = get(f, key);

	if (v && !json_is_boolean(v))
		bad(f, key, "is neither true nor false");
	return json_is_true(v);
}

struct digest attest_member_digest(struct fields *f, const char *key)
{
	const struct sv s = attest_member_text(f, key);
	struct digest d = { 0 };

	if (!base64_decode(BASE64_URL, s, d.b, sizeof(d.b)))
		bad(f, key, "is no digest");
	return d;
}

enum custody attest_member_custody(struct fields *f, const char *key)
{
	enum custody c = CUSTODY_NONE;

	if (!attest_custody_parse(attest_member_text(f, key), &c))
		bad(f, key, "is no custody");
	return c;
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

void attest_put_digest(json_t *o, const char *key, const struct digest *d)
{
	struct buf b = BUF_INIT(64);

	base64_encode(BASE64_URL, (struct sv){ (const char *)d->b, sizeof(d->b) }, &b);
	(void)json_object_set_new(o, key, json_stringn(b.p, b.n));
	buf_clear(&b);
}
