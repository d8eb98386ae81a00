#include "codec/json.h"

#include "base/banned.h"

static bool is_key_byte(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.' || c == '$' || c == '-';
}

static int check_key(struct sv key, struct writ_err *err)
{
	if (key.n == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "canonical JSON: empty key");
	for (size_t i = 0; i < key.n; i++)
		if (!is_key_byte(key.p[i]))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "canonical JSON: byte %zu of a key",
					 i + 1);
	return 0;
}

static int check_string(struct sv s, struct writ_err *err)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < 0x20 || s.p[i] > 0x7e)
			return writ_fail(err, WRIT_E_SYNTAX, 0,
					 "canonical JSON: byte %zu of a string", i + 1);
	return 0;
}

static int check_integer(json_int_t v, struct writ_err *err)
{
	if (v < 0 || v > CJ_INT_MAX)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "canonical JSON: number out of range");
	return 0;
}

static int check_value(const json_t *v, int depth, struct writ_err *err);

static int check_object(const json_t *v, int depth, struct writ_err *err)
{
	/*
	 * Cast away const: iterating does not modify an object, but jansson's iterators take a
	 * non-const object.
	 */
	json_t *o = (json_t *)(uintptr_t)v;

	for (void *it = json_object_iter(o); it; it = json_object_iter_next(o, it)) {
		const struct sv key = { json_object_iter_key(it), json_object_iter_key_len(it) };
		int r = check_key(key, err);

		if (r == 0)
			r = check_value(json_object_iter_value(it), depth, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_array(const json_t *v, int depth, struct writ_err *err)
{
	for (size_t i = 0; i < json_array_size(v); i++) {
		const int r = check_value(json_array_get(v, i), depth, err);

		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Checks that @v is in the canonical subset. @depth counts the containers around @v; the limit on
 * the depth also ends a reference cycle.
 */
static int check_value(const json_t *v, int depth, struct writ_err *err)
{
	if (!v)
		return writ_fail(err, WRIT_E_BUG, 0, "canonical JSON: no value");
	if ((json_is_object(v) || json_is_array(v)) && depth == CJ_DEPTH_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "canonical JSON: nested more than %d deep",
				 CJ_DEPTH_MAX);
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return check_object(v, depth + 1, err);
	case JSON_ARRAY:
		return check_array(v, depth + 1, err);
	case JSON_STRING:
		return check_string((struct sv){ json_string_value(v), json_string_length(v) },
				    err);
	case JSON_INTEGER:
		return check_integer(json_integer_value(v), err);
	case JSON_TRUE:
	case JSON_FALSE:
		return 0;
	case JSON_REAL:
		return writ_fail(err, WRIT_E_SYNTAX, 0, "canonical JSON: not an integer");
	case JSON_NULL:
		return writ_fail(err, WRIT_E_SYNTAX, 0, "canonical JSON: null");
	}
	return writ_fail(err, WRIT_E_BUG, 0, "canonical JSON: unknown type");
}

int cj_encode(const json_t *v, struct buf *b, struct writ_err *err)
{
	/* Keys are ASCII, so their order by bytes is the order by UTF-16 units of RFC 8785. */
	const size_t flags = JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY;
	const int r = check_value(v, 0, err);

	if (r < 0)
		return r;
	if (!json_put(b, v, flags) && !b->failed)
		return writ_nomem(err);
	return buf_check(b, err);
}

int cj_decode(struct sv bytes, json_t **ret_v, struct writ_err *err)
{
	scoped_json *v = NULL;
	scoped_buf again = BUF_INIT(bytes.n);
	json_error_t why;
	int r;

	v = json_loadb(bytes.p, bytes.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
	if (!v)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "canonical JSON: %s", why.text);
	/*
	 * The maximum of the buffer is the length of the input: if the canonical form does not fit,
	 * the input is not canonical.
	 */
	r = cj_encode(v, &again, err);
	if (r < 0 && !again.failed)
		return r;
	if (again.failed || !sv_eq(buf_view(&again), bytes))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "JSON is not in canonical form");
	*ret_v = v;
	v = NULL;
	return 0;
}
