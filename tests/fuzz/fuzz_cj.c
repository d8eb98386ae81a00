/*
 * fuzz_cj - JSON from outside: the canonical form, foreign files, and strings
 * that we print ourselves.
 */
#include "codec/json.h"
#include "fuzz.h"

static void canonical(struct sv bytes)
{
	struct writ_err err = { 0 };
	scoped_json *v = NULL;
	scoped_buf b = BUF_INIT(bytes.n);

	if (cj_decode(bytes, &v, &err) < 0)
		return;
	must(cj_encode(v, &b, &err) == 0);
	must(sv_eq(buf_view(&b), bytes));
}

/* Whatever others wrote: if it is in the subset, its encoding is canonical. */
static void foreign(struct sv bytes)
{
	struct writ_err err = { 0 };
	scoped_json *v = NULL, *again = NULL;
	scoped_buf b = BUF_INIT(1 << 20);

	if (json_decode(bytes, 1 << 16, &v, &err) < 0 || cj_encode(v, &b, &err) < 0)
		return;
	must(cj_decode(buf_view(&b), &again, &err) == 0);
	must(json_equal(v, again));
}

/* Any bytes as a string are JSON, and the bytes themselves if they are UTF-8. */
static void string(struct sv bytes)
{
	struct writ_err err = { 0 };
	scoped_json *v = NULL;
	scoped_buf b = BUF_INIT(1 << 20);

	json_put_str(&b, bytes);
	if (b.failed || sv_find(bytes, 0) != SIZE_MAX)
		return;
	must(json_decode(buf_view(&b), b.n, &v, &err) == 0);
	if (sv_is_utf8(bytes))
		must(sv_eq((struct sv){ json_string_value(v), json_string_length(v) }, bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv bytes = fuzz_bytes(data, size);

	canonical(bytes);
	foreign(bytes);
	string(bytes);
	return 0;
}
