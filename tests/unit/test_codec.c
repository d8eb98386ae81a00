#include "tap.h"

#include "codec/json.h"

static const struct {
	bool good;
	const char *text;
} canonical[] = {
	{ true, "{}" },
	{ true, "[]" },
	{ true, "\"\"" },
	{ true, "0" },
	{ true, "true" },
	{ true, "{\"a\":1,\"b\":[true,false,\"x y~\"]}" },
	{ true, "{\"A\":1,\"_\":2,\"a\":3}" },
	{ true, "{\"a\":1,\"a.b\":2,\"a_b\":3,\"aa\":4}" },
	{ true, "{\"$-._09azAZ\":0}" },
	{ true, "\"\\\"\\\\/\"" },
	{ true, "9007199254740991" },
	{ true, "[[[[[[[[1]]]]]]]]" },
	{ true, "{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{}}}}}}}}" },
	{ false, "" },
	{ false, " {}" },
	{ false, "{} " },
	{ false, "{}\n" },
	{ false, "{\"a\": 1}" },
	{ false, "[1, 2]" },
	{ false, "{\"b\":1,\"a\":2}" },
	{ false, "{\"a\":1,\"a\":1}" },
	{ false, "{\"\":1}" },
	{ false, "{\"a b\":1}" },
	{ false, "{\"a/b\":1}" },
	{ false, "{\"\xc3\xa9\":1}" },
	{ false, "null" },
	{ false, "[null]" },
	{ false, "1.0" },
	{ false, "1e3" },
	{ false, "-0" },
	{ false, "-1" },
	{ false, "01" },
	{ false, "9007199254740992" },
	{ false, "9223372036854775808" },
	{ false, "\"\xc3\xa9\"" },
	{ false, "\"\\u00e9\"" },
	{ false, "\"\\u0041\"" },
	{ false, "\"\\/\"" },
	{ false, "\"\\n\"" },
	{ false, "\"\\u007f\"" },
	{ false, "\"\x7f\"" },
	{ false, "\"\\u0000\"" },
	{ false, "[[[[[[[[[]]]]]]]]]" },
	{ false, "{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{}}}}}}}}}" },
	{ false, "[1,]" },
	{ false, "[1]x" },
	{ false, "NaN" },
};

static void test_canonical(void)
{
	for (size_t i = 0; i < ARRAY_LEN(canonical); i++) {
		const struct sv text = sv_from(canonical[i].text);
		scoped_json *v = NULL;
		scoped_buf b = BUF_INIT(1000);
		struct writ_err err = { 0 };
		const int r = cj_decode(text, &v, &err);

		ok((r == 0) == canonical[i].good, "canonical: %zu %s", i,
		   canonical[i].good ? "accepted" : "refused");
		if (r == 0 && cj_encode(v, &b, &err) == 0)
			is_sv(buf_view(&b), text, "encodes to itself");
		else
			ok(!v && err.code < 0 && err.what[0], "nothing came out: %s", err.what);
	}
}

static void test_encode(void)
{
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(1000);
	scoped_buf small = BUF_INIT(5);
	scoped_json *v = json_pack("{s:i, s:[b, s], s:{}}", "z", 1, "a", 1, "q\"\\", "m");
	scoped_json *nul = json_stringn("a\0b", 3);
	scoped_json *key = json_object();
	scoped_json *real = json_real(1.0);
	scoped_json *loop = json_array();

	ok(cj_encode(v, &b, &err) == 0, "a value built in memory");
	is_sv(buf_view(&b), SV("{\"a\":[true,\"q\\\"\\\\\"],\"m\":{},\"z\":1}"),
	      "is sorted and without blanks");
	ok(cj_encode(v, &small, &err) == WRIT_E_LIMIT, "the buffer's maximum holds");
	ok(cj_encode(nul, &b, &err) == WRIT_E_SYNTAX, "a NUL inside a string is seen");
	ok(json_object_setn_new(key, "a\0b", 3, json_true()) == 0 &&
	   cj_encode(key, &b, &err) == WRIT_E_SYNTAX, "a NUL inside a key is seen");
	ok(cj_encode(real, &b, &err) == WRIT_E_SYNTAX, "a whole float is a float");
	ok(cj_encode(NULL, &b, &err) == WRIT_E_BUG, "no value at all");
	/* Too deep in memory, where no parser could have refused it. */
	for (int i = 0; i < 9; i++) {
		json_t *outer = json_array();

		(void)json_array_append_new(outer, loop);
		loop = outer;
	}
	ok(cj_encode(loop, &b, &err) == WRIT_E_LIMIT, "ten levels in memory");
}

static void nest(struct buf *b, size_t depth)
{
	buf_fill(b, '[', depth);
	buf_fill(b, ']', depth);
}

static void test_foreign(void)
{
	static const struct {
		bool good;
		const char *text;
	} cases[] = {
		{ true, " { \"b\" : [ 1.5e3 , -2 , null ] , \"\" : \"\\u00e9\" } \n" },
		{ true, "\"[[[[\\\"[[[[\"" },
		{ true, "null" },
		{ false, "{\"a\":1,\"a\":2}" },
		{ false, "{\"a\":1,}" },
		{ false, "{a:1}" },
		{ false, "// c\n{}" },
		{ false, "\"\\u0000\"" },
		{ false, "\"\xff\"" },
		{ false, "\"\\ud800\"" },
		{ false, "{} {}" },
		{ false, "'a'" },
		{ false, "" },
	};
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(10000);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		scoped_json *v = NULL;
		const int r = json_decode(sv_from(cases[i].text), 1000, &v, &err);

		ok((r == 0) == cases[i].good && (r == 0) == (v != NULL), "foreign: %zu %s", i,
		   cases[i].good ? "accepted" : "refused");
	}
	for (size_t depth = 64; depth <= 65; depth++) {
		scoped_json *v = NULL;

		b.n = 0;
		nest(&b, depth);
		ok((json_decode(buf_view(&b), 1000, &v, &err) == 0) == (depth == 64), "%zu levels",
		   depth);
	}
	json_t *none = NULL;
	ok(json_decode(SV("[1,2,3,4,5]"), 10, &none, &err) == WRIT_E_LIMIT && !none,
	   "more than the maximum");
	ok(json_decode(SV("{}\0"), 10, &none, &err) == WRIT_E_SYNTAX && !none, "a NUL behind");
}

static void test_put_str(void)
{
	scoped_buf b = BUF_INIT(1000);

	json_put_str(&b, SV("a\"b\\c/\n\t\r\b\f\v\x01\x1f\x7f\xc3\xa9"));
	is_sv(buf_view(&b), SV("\"a\\\"b\\\\c/\\n\\t\\r\\b\\f\\u000b\\u0001\\u001f\x7f\xc3\xa9\""),
	      "escapes");
	b.n = 0;
	json_put_str(&b, SV("x\xffy\xc3\xe2\x82z\xed\xa0\x80"));
	is_sv(buf_view(&b), SV("\"x\xef\xbf\xbdy\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz"
			       "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""),
	      "bytes that are not UTF-8");
	b.n = 0;
	json_put_str(&b, SV("\0"));
	is_sv(buf_view(&b), SV("\"\\u0000\""), "NUL");
	b.n = 0;
	json_put_str(&b, SV(""));
	is_sv(buf_view(&b), SV("\"\""), "nothing");
}

int main(void)
{
	test_canonical();
	test_encode();
	test_foreign();
	test_put_str();
	return tap_done();
}
