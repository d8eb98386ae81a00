#include "tap.h"

#include "codec/base64.h"
#include "codec/json.h"
#include "token/pop.h"
#include "token_keys.h"
#include "vectors.h"

/* The vectors of tests/token/vectors.py, which knows nothing of the code under test. */

static json_t *load(const char *name)
{
	scoped_buf b = BUF_INIT(4 << 20);
	struct writ_err err = { 0 };
	json_t *v = NULL;

	vector_read(name, &b);
	if (json_decode(buf_view(&b), b.max, &v, &err) < 0)
		ok(false, "%s: %s", name, err.what);
	return v;
}

static struct sv text(const json_t *o, const char *key)
{
	return sv_from(json_string_value(json_object_get(o, key)));
}

static uint64_t number(const json_t *o, const char *key, uint64_t otherwise)
{
	const json_t *v = json_object_get(o, key);

	return v ? (uint64_t)json_integer_value(v) : otherwise;
}

struct view {
	struct token_here here;
	struct trust trust;
	struct rvk list[4];
};

static void look(struct arena *a, const json_t *doc, struct view *v)
{
	struct token_why why = { 0 };

	*v = (struct view){ .here = { .realm = text(doc, "realm"), .now = number(doc, "now", 0) } };
	if (token_trust_decode(a, text(doc, "trust"), &v->trust, &why) < 0)
		ok(false, "trust: %s", why.err.what);
	v->here.trust = &v->trust;
	v->here.lists = v->list;
	v->here.lists_n = 1;
	if (rvk_open(a, text(doc, "list"), &v->trust, 0, &v->list[0], &why) < 0)
		ok(false, "list: %s", why.err.what);
}

/* What a case says in place of what the whole file does. */
static void look_again(struct arena *a, const json_t *c, struct view *v)
{
	const json_t *lists = json_object_get(c, "rvk");
	struct token_why why = { 0 };

	v->here.now = number(c, "now", v->here.now);
	v->here.local = json_is_true(json_object_get(c, "local"));
	if (json_object_get(c, "realm"))
		v->here.realm = text(c, "realm");
	if (!lists)
		return;
	v->here.lists_n = json_array_size(lists);
	for (size_t i = 0; i < v->here.lists_n; i++)
		if (rvk_open(a, sv_from(json_string_value(json_array_get(lists, i))), &v->trust, 0,
			     &v->list[i], &why) < 0)
			ok(false, "list: %s", why.err.what);
}

static void test_chains(void)
{
	scoped_json *doc = load("token/chains.json");
	const json_t *cases = json_object_get(doc, "cases");
	bool seen[TOKEN_CODE_COUNT] = { false };

	ok(json_array_size(cases) > 150, "%zu chains", json_array_size(cases));
	for (size_t i = 0; i < json_array_size(cases); i++) {
		const json_t *c = json_array_get(cases, i);
		const struct sv expect = text(c, "expect");
		const int hop = (int)json_integer_value(json_object_get(c, "hop"));
		scoped_arena a = ARENA_INIT(4 << 20);
		struct token_why why = { 0 };
		struct chain chain;
		struct view v;
		int r;

		look(&a, doc, &v);
		look_again(&a, c, &v);
		r = chain_present(&a, text(c, "text"), &v.here, &chain, &why);
		seen[why.code] = true;
		if (r == 0)
			ok(sv_is(expect, "OK"), SV_FMT ": accepted, expected " SV_FMT,
			   SV_ARG(text(c, "name")), SV_ARG(expect));
		else
			ok(sv_is(expect, token_code_name(why.code)) && why.hop == hop,
			   SV_FMT ": " SV_FMT " at %d, got %s at %d, %s", SV_ARG(text(c, "name")),
			   SV_ARG(expect), hop, token_code_name(why.code), why.hop, why.err.what);
	}
	for (enum token_code e = TOKEN_E_SIZE; e <= TOKEN_E_POP; e++)
		ok(seen[e], "some vector gives %s: %s", token_code_name(e), token_code_text(e));
}

static void test_lists(void)
{
	scoped_json *doc = load("token/lists.json");
	const json_t *cases = json_object_get(doc, "cases");
	struct sign_public org;

	ok(base64_decode(BASE64_URL, text(doc, "org"), org.b, sizeof(org.b)), "the organisation");
	for (size_t i = 0; i < json_array_size(cases); i++) {
		const json_t *c = json_array_get(cases, i);
		const uint64_t seen = number(c, "seen", 0);
		scoped_arena a = ARENA_INIT(4 << 20);
		struct token_why why = { 0 };
		struct trust trust, made;
		struct rvk list;
		int r;

		if (token_trust_decode(&a, text(doc, "trust"), &trust, &why) < 0)
			ok(false, "trust: %s", why.err.what);
		if (sv_is(text(c, "kind"), "trust"))
			r = token_trust_open(&a, text(c, "text"), &org, number(doc, "now", 0), seen,
					     &made, &why);
		else
			r = rvk_open(&a, text(c, "text"), &trust, seen, &list, &why);
		ok(sv_is(text(c, "expect"), r == 0 ? "OK" : token_code_name(why.code)),
		   SV_FMT ", " SV_FMT ": " SV_FMT ", %s %s", SV_ARG(text(c, "kind")),
		   SV_ARG(text(c, "name")), SV_ARG(text(c, "expect")),
		   r == 0 ? "OK" : token_code_name(why.code), why.err.what);
	}
}

/* --- The action of a session --- */

static struct digest hash(const char *s)
{
	return crypto_sha256(sv_from(s));
}

static void test_action(void)
{
	static const struct sv argv[] = { SV_INIT("/usr/bin/agent"), SV_INIT("100%"),
					  SV_INIT("two words"), SV_INIT("\xc3\xa4\n") };
	scoped_json *doc = load("token/actions.json");
	const json_t *c = json_array_get(json_object_get(doc, "cases"), 0);
	struct action x = { .realm = text(doc, "realm"),
			    .salt = text(doc, "salt"),
			    .argv = argv,
			    .argc = 4,
			    .manifest = hash("man") };
	scoped_buf b = BUF_INIT(ACTION_MAX), bad = BUF_INIT(ACTION_MAX);
	struct token_why why = { 0 };
	struct digest d;

	ok(token_action_encode(&x, &b, &why) == 0, SV_FMT, SV_ARG(text(c, "kind")));
	is_sv(buf_view(&b), text(c, "text"), "its object");
	d = crypto_sha256(buf_view(&b));
	is_str(jws_text(d.b).s, json_string_value(json_object_get(c, "acth")), "its digest");
	x.salt = SV("a b");
	ok(token_action_encode(&x, &bad, &why) < 0, "a salt with a blank: %s", why.err.what);
}

int main(void)
{
	struct writ_err err = { 0 };

	if (crypto_start(&err) < 0)
		return 1;
	test_chains();
	test_lists();
	test_action();
	return tap_done();
}
