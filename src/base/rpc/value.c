#include <string.h>

#include "codec/base64.h"
#include "rpc/rpc.h"

#include "base/banned.h"

json_t *rpc_bytes(struct sv bytes)
{
	scoped_buf b = BUF_INIT(RPC_FILE_MAX);

	if (bytes.n == 0)
		return json_string("");
	if (!memchr(bytes.p, 0, bytes.n) && sv_is_utf8(bytes))
		return json_stringn(bytes.p, bytes.n);
	base64_encode(BASE64_PADDED, bytes, &b);
	return b.failed ? NULL : json_pack("{s:s%}", "base64", b.p, b.n);
}

json_t *rpc_strings(char *const *list)
{
	json_t *v = json_array();

	for (; v && list && *list; list++)
		if (json_array_append_new(v, rpc_bytes(sv_from(*list))) < 0) {
			json_decref(v);
			return NULL;
		}
	return v;
}

bool rpc_get_bytes(struct arena *a, const json_t *v, struct sv *ret)
{
	const json_t *coded = json_object_get(v, "base64");
	const struct sv text = { json_string_value(coded), json_string_length(coded) };
	char *room;
	size_t n;

	if (json_is_string(v))
		return arena_sv(a, (struct sv){ json_string_value(v), json_string_length(v) }, ret);
	if (!json_is_string(coded) || !base64_check(BASE64_PADDED, text, &n))
		return false;
	room = arena_alloc(a, n + 1, 1);
	if (!room || !base64_decode(BASE64_PADDED, text, room, n))
		return false;
	*ret = (struct sv){ room, n };
	return true;
}

bool rpc_get_strings(struct arena *a, const json_t *v, char ***ret, size_t *ret_n)
{
	const size_t n = json_array_size(v);
	char **list = json_is_array(v) ? arena_array(a, char *, n + 1) : NULL;
	struct sv text;

	if (!list)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!rpc_get_bytes(a, json_array_get(v, i), &text) || memchr(text.p, 0, text.n))
			return false;
		/* Cast away const: the text is a copy in the arena, which the caller may change. */
		list[i] = (char *)(uintptr_t)text.p;
	}
	*ret = list;
	*ret_n = n;
	return true;
}

bool rpc_get_number(const json_t *object, const char *name, uint64_t max, uint64_t *ret)
{
	const json_t *v = json_object_get(object, name);
	const json_int_t n = json_integer_value(v);

	if (v && (!json_is_integer(v) || n < 0 || (uint64_t)n > max))
		return false;
	*ret = (uint64_t)n;
	return true;
}

bool rpc_get_flag(const json_t *object, const char *name, bool *ret)
{
	const json_t *v = json_object_get(object, name);

	if (v && !json_is_boolean(v))
		return false;
	*ret = json_is_true(v);
	return true;
}
