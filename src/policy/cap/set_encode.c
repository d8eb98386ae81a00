#include "cap/set.h"

#include <stdlib.h>

#include "codec/json.h"
#include "crypto/crypto.h"

#include "base/banned.h"

/* Upper bound for the JSON of a capability set: texts, quotes and commas. */
enum { RECORD_MAX = 64 << 20 };

static int compare_texts(const void *a, const void *b)
{
	const struct sv *x = a, *y = b;

	return sv_cmp(*x, *y);
}

/* Returns the texts of the capabilities in @v in byte order, without duplicates. */
static json_t *texts_json(struct arena *a, const struct cap_entry *v, size_t n)
{
	struct sv *texts = arena_array(a, struct sv, n);
	scoped_json *list = json_array();

	if (!texts || !list)
		return NULL;
	for (size_t i = 0; i < n; i++)
		texts[i] = v[i].cap.text;
	if (n)
		qsort(texts, n, sizeof(*texts), compare_texts);
	for (size_t i = 0; i < n; i++) {
		if (i && sv_eq(texts[i - 1], texts[i]))
			continue;
		if (json_array_append_new(list, json_stringn(texts[i].p, texts[i].n)) < 0)
			return NULL;
	}
	return json_incref(list);
}

static json_t *limits_json(const struct cap_set *s)
{
	scoped_json *o = json_object();

	for (enum cap_limit l = 0; l < LIMIT_COUNT; l++)
		if (s->limits[l] && json_object_set_new(o, cap_limit_name(l),
							json_integer((json_int_t)s->limits[l])) < 0)
			return NULL;
	return json_incref(o);
}

static json_t *require_json(const struct cap_set *s)
{
	scoped_json *o = json_object();

	for (enum guarantee g = 0; g < G_COUNT; g++)
		if (s->require[g] != LEVEL_NONE &&
		    json_object_set_new(o, guarantee_name(g),
					json_string(level_name(s->require[g]))) < 0)
			return NULL;
	return json_incref(o);
}

static json_t *rt_json(const struct cap_set *s)
{
	scoped_buf hex = BUF_INIT(64);

	if (s->has_rt)
		digest_hex(&s->rt, &hex);
	return hex.failed ? NULL : json_stringn(buf_view(&hex).p, hex.n);
}

int cap_set_encode(const struct cap_set *s, struct buf *b, struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(RECORD_MAX);
	scoped_json *o = json_object();

	if (json_object_set_new(o, "caps", texts_json(&a, s->caps.v, s->caps.n)) < 0 ||
	    json_object_set_new(o, "limits", limits_json(s)) < 0 ||
	    json_object_set_new(o, "not", texts_json(&a, s->nots.v, s->nots.n)) < 0 ||
	    json_object_set_new(o, "prices", texts_json(&a, s->prices.v, s->prices.n)) < 0 ||
	    json_object_set_new(o, "require", require_json(s)) < 0 ||
	    json_object_set_new(o, "rt", rt_json(s)) < 0)
		return writ_nomem(err);
	return cj_encode(o, b, err);
}

int cap_set_digest(const struct cap_set *s, struct digest *ret_digest, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(RECORD_MAX);
	const int r = cap_set_encode(s, &b, err);

	if (r < 0)
		return r;
	*ret_digest = crypto_sha256(buf_view(&b));
	return 0;
}
