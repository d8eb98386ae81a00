#include "wire/target.h"

#include "cap/cap.h"
#include "tap.h"

struct row {
	struct sv raw;
	enum target_state state;
	const char *path, *query;
};

static const struct row rows[] = {
	{ SV_INIT("/"), TARGET_OK, "/", "" },
	{ SV_INIT("/v1/x"), TARGET_OK, "/v1/x", "" },
	{ SV_INIT("/v1/x/"), TARGET_OK, "/v1/x/", "" },
	{ SV_INIT("/%41%7e%2D%5f"), TARGET_OK, "/A~-_", "" },
	{ SV_INIT("/a%3ab:c"), TARGET_OK, "/a%3Ab:c", "" },
	{ SV_INIT("/%c3%a9"), TARGET_OK, "/%C3%A9", "" },
	{ SV_INIT("/a{b}|\"<>^`[]"), TARGET_OK, "/a%7Bb%7D%7C%22%3C%3E%5E%60%5B%5D", "" },
	{ SV_INIT("/!$&'()*+,=:@~"), TARGET_OK, "/!$&'()*+,=:@~", "" },
	{ SV_INIT("/%20%3f%23"), TARGET_OK, "/%20%3F%23", "" },
	{ SV_INIT("/a..%20b/a..%3f/%20a"), TARGET_OK, "/a..%20b/a..%3F/%20a", "" },
	{ SV_INIT("/...a/a../.a/a."), TARGET_OK, "/...a/a../.a/a.", "" },
	{ SV_INIT("/.../x"), TARGET_OK, "/.../x", "" },
	{ SV_INIT("/a?b=c"), TARGET_OK, "/a", "b=c" },
	{ SV_INIT("/a?"), TARGET_OK, "/a", "" },
	{ SV_INIT("/a?b?c/../%2e%2F;x"), TARGET_OK, "/a", "b?c/../%2e%2F;x" },
	/* two servers, two paths */
	{ SV_INIT("/v1/../admin"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1/.."), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/./v1"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/."), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1/%2e%2e/admin"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1/.%2e/admin"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1/%2E./admin"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/a%2eb"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("//v1"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1//x"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1//"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1%2f..%2Fadmin"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1%5cadmin"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1\\admin"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1;jsessionid=1"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1%3bjsessionid=1"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1/..%3B/admin"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1/..%20/admin"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1/%20../admin"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1/..%3Fx/admin"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1/..%23"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1/.%20%3f"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1%00"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1%0d%0a"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/v1%7f"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/%252e%252e/"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/100%25"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/%c0%ae%c0%ae/"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/%c0%af"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/%e9"), TARGET_AMBIGUOUS, NULL, NULL },
	{ SV_INIT("/%ed%a0%80"), TARGET_AMBIGUOUS, NULL, NULL },
	/* no target at all */
	{ SV_INIT(""), TARGET_BAD, NULL, NULL },
	{ SV_INIT("*"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("a"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("?a"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("http://a/"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("/a b"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("/a\tb"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("/a\0b"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("/a\r\nb"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("/\xc3\xa9"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("/a\x7f"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("/a#b"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("/%"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("/%4"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("/%4g"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("/%u002e"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("/a?%"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("/a?b#c"), TARGET_BAD, NULL, NULL },
	{ SV_INIT("/a?b\xc3"), TARGET_BAD, NULL, NULL },
};

/* The path that is sent and the path as it came are one capability. */
static void test_cap(struct sv raw, struct sv path)
{
	scoped_buf x = BUF_INIT(4096), y = BUF_INIT(4096);
	struct writ_err err = { 0 };
	struct sv rest = raw;

	ok(cap_put_http_path(&x, sv_cut(&rest, '?'), &err) == 0 &&
		   cap_put_http_path(&y, path, &err) == 0,
	   "a rule can judge it");
	is_sv(buf_view(&x), buf_view(&y), "and judges what is sent");
}

static void test_rows(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		scoped_buf b = BUF_INIT(4096);
		struct writ_err err = { 0 };
		struct target t = { .path = SV("untouched") };
		enum target_state state;

		buf_str(&b, "before");
		state = target_parse(rows[i].raw, &b, &t, &err);
		ok(state == rows[i].state && (state == TARGET_OK || err.what[0]), "target %zu %s",
		   i, err.what);
		if (state != TARGET_OK) {
			ok(sv_is(t.path, "untouched") && sv_is(buf_view(&b), "before"),
			   "left alone");
			continue;
		}
		is_sv(t.path, sv_from(rows[i].path), "its path");
		is_sv(t.query, sv_from(rows[i].query), "its query");
		ok(t.text.n == t.path.n + (t.query.n ? t.query.n + 1 : 0) && t.text.p == b.p + 6 &&
			   t.text.n == b.n - 6,
		   "its text");
		test_cap(rows[i].raw, t.path);
	}
}

static void test_room(void)
{
	scoped_buf b = BUF_INIT(5);
	struct writ_err err = { 0 };
	struct target t;

	ok(target_parse(SV("/abcdefgh"), &b, &t, &err) == TARGET_BAD && err.code == WRIT_E_LIMIT,
	   "no room");
}

static void test_methods(void)
{
	static const char *const bad[] = { "",
					   "get",
					   "Get",
					   "G T",
					   "M-SEARCH",
					   "GET1",
					   "G\tT",
					   "ABCDEFGHIJKLMNOPQ",
					   ("\xc7"
					    "ET") };

	ok(target_method_check(SV("GET")) && target_method_check(SV("PROPPATCH")) &&
		   target_method_check(SV("ABCDEFGHIJKLMNOP")),
	   "methods");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(!target_method_check(sv_from(bad[i])), "no method: %s", bad[i]);
	ok(!target_method_check(SV("GE\0T")), "no method: NUL");
}

static void test_overrides(void)
{
	ok(target_is_override(SV("X-HTTP-Method-Override")) &&
		   target_is_override(SV("x_http_method_override")) &&
		   target_is_override(SV("X-HTTP-Method")) &&
		   target_is_override(SV("X-Method-Override")) &&
		   target_is_override(SV("X-Original-URL")) &&
		   target_is_override(SV("X-Rewrite-URL")) &&
		   target_is_override(SV("x-forwarded-host")) &&
		   target_is_override(SV("Forwarded")),
	   "fields that replace what was judged");
	ok(!target_is_override(SV("")) && !target_is_override(SV("X-Http")) &&
		   !target_is_override(SV("X-Request-Id")) && !target_is_override(SV("From")),
	   "others");
}

int main(void)
{
	test_rows();
	test_room();
	test_methods();
	test_overrides();
	return tap_done();
}
