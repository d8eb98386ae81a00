#include "tap.h"

#include "codec/base64.h"
#include "codec/json.h"
#include "token/action.h"
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

static bool same_list(const json_t *want, const struct sv *got, size_t n)
{
	if (json_array_size(want) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!sv_is(got[i], json_string_value(json_array_get(want, i))))
			return false;
	return true;
}

static uint64_t at(const json_t *row, size_t i)
{
	return (uint64_t)json_integer_value(json_array_get(row, i));
}

static bool same_debits(const json_t *want, const struct chain *c, const struct chain_price *p)
{
	if (json_array_size(want) != p->debits.n)
		return false;
	for (size_t i = 0; i < p->debits.n; i++) {
		const json_t *row = json_array_get(want, i);
		const struct chain_debit *d = &p->debits.v[i];

		if (!digest_eq(&d->token, &c->token[at(row, 0)].hash) ||
		    !sv_is(d->cap, json_string_value(json_array_get(row, 1))) ||
		    d->n != at(row, 2) || d->rate_n != at(row, 3) || d->rate_s != at(row, 4))
			return false;
	}
	return true;
}

static void test_decide(void)
{
	scoped_json *doc = load("token/decide.json");
	const json_t *cases = json_object_get(doc, "cases");

	for (size_t i = 0; i < json_array_size(cases); i++) {
		const json_t *c = json_array_get(cases, i),
			     *refused = json_object_get(c, "refused");
		const char depth[2] = { (char)('0' + number(c, "depth", 0)), 0 };
		const struct sv request = text(c, "request");
		scoped_arena a = ARENA_INIT(1 << 20);
		struct token_why why = { 0 };
		struct writ_err err = { 0 };
		struct chain_price p = { 0 };
		struct chain chain;
		struct cap req;
		struct view v;
		int r;

		look(&a, doc, &v);
		if (chain_present(&a, text(json_object_get(doc, "chains"), depth), &v.here, &chain,
				  &why) < 0 ||
		    cap_parse(&a, CAP_REQUEST, request, &req, &err) < 0) {
			ok(false, SV_FMT ": %s%s", SV_ARG(request), why.err.what, err.what);
			continue;
		}
		r = chain_decide(&a, &chain, &req, &p, &why);
		if (refused)
			ok(r == WRIT_E_DENIED && why.code == TOKEN_E_NOCAP &&
				   why.hop == json_integer_value(refused),
			   SV_FMT " refused at %d: %s", SV_ARG(request), why.hop, why.err.what);
		else
			ok(r == 0 &&
				   same_list(json_object_get(c, "approve"), p.approve.v,
					     p.approve.n) &&
				   same_debits(json_object_get(c, "debits"), &chain, &p),
			   SV_FMT " by %s tokens: %zu approvals, %zu debits", SV_ARG(request),
			   depth, p.approve.n, p.debits.n);
	}
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

/* --- Actions --- */

static struct digest hash(const char *s)
{
	return crypto_sha256(sv_from(s));
}

static void test_actions(void)
{
	static const struct sv argv[] = { SV_INIT("/usr/bin/agent"), SV_INIT("100%"),
					  SV_INIT("two words"), SV_INIT("\xc3\xa4\n") };
	static const struct sv git[] = { SV_INIT("git"), SV_INIT("-C"), SV_INIT("/srv/repo"),
					 SV_INIT("status") };
	const struct digest body = hash("body");
	struct action x[] = {
		{ .kind = ACTION_SESSION, .argv = argv, .argc = 4, .manifest = hash("man") },
		{ .kind = ACTION_FS, .fs = CAP_FS_READ, .path = SV("/srv/repo/a%20b") },
		{ .kind = ACTION_HTTP,
		  .method = SV("GET"),
		  .query = SV(""),
		  .url = SV("https://api.example.com:443/v1/items/42") },
		{ .kind = ACTION_HTTP,
		  .method = SV("POST"),
		  .query = SV("a=1&b=%2"),
		  .url = SV("https://api.example.com:443/v1/"),
		  .body = &body },
		{ .kind = ACTION_NET, .host = SV("db.example.com"), .port = 5432 },
		{ .kind = ACTION_EXEC,
		  .path = SV("/usr/bin/git"),
		  .argv = git,
		  .argc = 4,
		  .env = hash("{}"),
		  .program = hash("git") },
	};
	scoped_json *doc = load("token/actions.json");
	const json_t *cases = json_object_get(doc, "cases");

	ok(json_array_size(cases) == ARRAY_LEN(x), "as many actions as vectors");
	for (size_t i = 0; i < ARRAY_LEN(x); i++) {
		const json_t *c = json_array_get(cases, i);
		scoped_arena a = ARENA_INIT(1 << 20);
		scoped_buf b = BUF_INIT(ACTION_MAX);
		struct token_why why = { 0 };
		struct digest d;
		struct cap req;
		int r;

		x[i].realm = text(doc, "realm");
		x[i].salt = text(doc, "salt");
		ok(token_action_encode(&x[i], &b, &why) == 0, SV_FMT, SV_ARG(text(c, "kind")));
		is_sv(buf_view(&b), text(c, "text"), "its object");
		d = crypto_sha256(buf_view(&b));
		is_str(jws_text(d.b).s, json_string_value(json_object_get(c, "acth")),
		       "its digest");
		r = token_action_request(&a, &x[i], &req, &why);
		if (text(c, "request").n == 0)
			ok(r < 0, "no request: %s", why.err.what);
		else if (ok(r == 0, "a request"))
			is_sv(req.text, text(c, "request"), "which is");
	}
}

static void test_bad_actions(void)
{
	static const struct sv empty[] = { SV_INIT("git"), SV_INIT("") };
	const struct action bad[] = {
		{ .kind = ACTION_NONE },
		{ .kind = ACTION_FS, .fs = CAP_NET_BIND, .path = SV("/a") },
		{ .kind = ACTION_EXEC, .path = SV("/bin/x;args=/y") },
		{ .kind = ACTION_HTTP, .url = SV("https://h.test:443/;q"), .method = SV("GET") },
		{ .kind = ACTION_NET, .host = SV("a b"), .port = 1 },
	};
	struct action x = { .kind = ACTION_EXEC,
			    .realm = SV("r"),
			    .salt = SV("s"),
			    .path = SV("/bin/x"),
			    .argv = empty,
			    .argc = 2 };
	scoped_arena a = ARENA_INIT(1 << 20);
	struct token_why why = { 0 };
	struct cap req;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		scoped_buf b = BUF_INIT(ACTION_MAX);

		ok(token_action_encode(&bad[i], &b, &why) < 0 &&
			   token_action_request(&a, &bad[i], &req, &why) < 0,
		   "bad action %zu: %s", i, why.err.what);
	}
	ok(token_action_request(&a, &x, &req, &why) == 0 && !req.has_args,
	   "an empty argument leaves a request without args");
}

int main(void)
{
	struct writ_err err = { 0 };

	if (crypto_start(&err) < 0)
		return 1;
	test_chains();
	test_decide();
	test_lists();
	test_actions();
	test_bad_actions();
	return tap_done();
}
