#include "tap.h"

#include <stdlib.h>

#include "codec/base64.h"
#include "token/pop.h"
#include "token_keys.h"
#include "vectors.h"

/* What the room makes it accepts, and of everything else it accepts nothing. */

enum { HOPS = TOKEN_CHAIN_MAX, ROUNDS = 60 };

static struct key_pair key[HOPS + 2]; /* the issuer's, the holders', and one more */
static struct arena world = ARENA_INIT(1 << 20);
static struct trust trust;
static struct trust_issuer issuer;
static const struct sv realms[] = { SV_INIT("l-a"), SV_INIT(TOKEN_TEST_REALM) };
static uint64_t seed = 7;

static uint64_t dice(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

static void add(struct arena *a, struct cap_set *s, enum cap_kind kind, const char *text)
{
	struct cap_entry *e = kind == CAP_DENIAL ? vec_push(a, &s->nots) : vec_push(a, &s->caps);
	struct writ_err err = { 0 };

	if (!e || cap_parse(a, kind, sv_from(text), &e->cap, &err) < 0)
		ok(false, "%s: %s", text, err.what);
}

static void set_up(void)
{
	key[0] = token_pair("issuer");
	for (unsigned i = 1; i < ARRAY_LEN(key); i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "holder-%u", i);
		key[i] = token_pair(name);
	}
	issuer = (struct trust_issuer){ .iss = SV("https://issuer.example"),
					.key = key[0].pub,
					.kid = jws_thumbprint(&key[0].pub),
					.realms = realms,
					.realms_n = 2,
					.exp = UINT32_MAX };
	add(&world, &issuer.ceiling, CAP_GRANT, "fs.read:l-test7:/**");
	add(&world, &issuer.ceiling, CAP_GRANT, "net.connect:l-test7:tcp/**:1-65535");
	trust = (struct trust){ .issuers = &issuer, .n = 1 };
}

static const struct token_here *here(void)
{
	static struct token_here h = { .realm = SV_INIT(TOKEN_TEST_REALM),
				       .now = TOKEN_TEST_NOW,
				       .trust = &trust,
				       .local = true };

	return &h;
}

static struct token_id id(unsigned n)
{
	struct token_id made;

	(void)snprintf(made.s, sizeof(made.s), "0199f000-0000-7000-8000-%012x", n);
	return made;
}

/* The claims of hop @i; each is a little narrower than the one before. */
static struct token claims(struct arena *a, unsigned i)
{
	struct token t = { .iss = issuer.iss,
			   .sub = SV("urn:example:alice"),
			   .jti = id(i + 1),
			   .sid = id(100 + i),
			   .wf = id(255),
			   .iat = TOKEN_TEST_NOW - 100 + i,
			   .nbf = TOKEN_TEST_NOW - 100 + i,
			   .exp = TOKEN_TEST_NOW + 1000 - i,
			   .rvk = 300 - i,
			   .aud = i ? realms + 1 : realms,
			   .aud_n = i ? 1 : 2,
			   .cnf = key[i + 1].pub,
			   .max_depth = 7 };
	char text[128];

	t.set.limits[LIMIT_UP] = 1000 - i;
	t.set.require[G_NET] = i ? LEVEL_EXACT : LEVEL_STRICTER;
	(void)snprintf(text, sizeof(text), "net.connect:l-test7:tcp/db.example.com:5432;n=%u",
		       100 - i);
	add(a, &t.set, CAP_GRANT, text);
	add(a, &t.set, CAP_GRANT, i ? "fs.read:l-test7:/srv/repo/**" : "fs.read:l-test7:/srv/**");
	(void)snprintf(text, sizeof(text), "fs.read:l-test7:/srv/repo/secret%u/**", i);
	add(a, &t.set, CAP_DENIAL, text);
	return t;
}

/* A chain of @n tokens as text, and verified; false is a failed test already. */
static bool build(struct arena *a, unsigned n, struct buf *b, struct chain *c)
{
	struct token_why why = { 0 };

	for (unsigned i = 0; i < n; i++) {
		struct token t = claims(a, i);
		int r;

		if (i)
			buf_ch(b, '~');
		r = i == 0 ? token_mint(a, &t, &key[0], b, &why)
			   : token_derive(a, chain_leaf(c), &t, &key[i], b, &why);
		if (r == 0)
			r = chain_open(a, buf_view(b), here(), c, &why);
		if (r < 0)
			return ok(false, "hop %u: %s %s", i, token_code_name(why.code),
				  why.err.what);
	}
	return true;
}

static void add_proof(struct arena *a, const struct chain *c, const struct action *x, struct buf *b)
{
	struct pop p = {
		.aud = SV(TOKEN_TEST_REALM), .iat = TOKEN_TEST_NOW, .jti = id(900), .nonce = x->salt
	};
	scoped_buf object = BUF_INIT(ACTION_MAX);
	struct token_why why = { 0 };

	if (token_action_encode(x, &object, &why) < 0)
		ok(false, "action: %s", why.err.what);
	p.acth = crypto_sha256(buf_view(&object));
	buf_ch(b, '~');
	ok(pop_sign(a, &p, chain_leaf(c), &key[c->n], b, &why) == 0, "a proof: %s", why.err.what);
}

static const struct sv argv[] = { SV_INIT("agent"), SV_INIT("--go") };
static const struct action open_session = { .realm = SV_INIT(TOKEN_TEST_REALM),
					    .salt = SV_INIT("0123456789abcdef"),
					    .argv = argv,
					    .argc = 2 };

static void test_derived(void)
{
	for (unsigned n = 1; n <= HOPS; n++) {
		scoped_arena a = ARENA_INIT(1 << 20);
		scoped_buf b = BUF_INIT(TOKEN_PRESENTATION_MAX), object = BUF_INIT(ACTION_MAX);
		struct token_why why = { 0 };
		struct chain c, again;

		if (!build(&a, n, &b, &c))
			continue;
		add_proof(&a, &c, &open_session, &b);
		ok(chain_present(&a, buf_view(&b), here(), &again, &why) == 0,
		   "%u hops made here are accepted here: %s", n, why.err.what);
		ok(digest_eq(&c.digest, &again.digest), "the same tokens, the same digest");
		ok(again.deadline == TOKEN_TEST_NOW + 1000 - (n - 1) && again.rvk == 300 - (n - 1),
		   "the deadline is the smallest exp");
		if (token_action_encode(&open_session, &object, &why) < 0)
			ok(false, "action");
		ok(chain_action(&again, buf_view(&object), &why) == 0, "the session of the proof");
		ok(chain_action(&c, buf_view(&object), &why) < 0, "no proof, no session");
		ok(chain_action(&again, SV("{}"), &why) < 0 && why.code == TOKEN_E_ACTH,
		   "another action");
	}
}

/* What was good once is asked about again, by what is known then. */
static void test_again(void)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_buf b = BUF_INIT(TOKEN_PRESENTATION_MAX);
	struct trust_issuer other = issuer, less = issuer, late = issuer;
	const struct trust without = { .issuers = &other, .n = 1, .exp = UINT32_MAX };
	const struct trust narrower = { .issuers = &less, .n = 1, .exp = UINT32_MAX };
	const struct trust ended = { .issuers = &late, .n = 1, .exp = UINT32_MAX };
	const struct trust same = { .issuers = &issuer, .n = 1, .exp = UINT32_MAX };
	const struct trust old = { .issuers = &issuer, .n = 1, .exp = TOKEN_TEST_NOW };
	struct token_here h = *here();
	struct token_why why = { 0 };
	struct chain c;

	if (!build(&a, 3, &b, &c))
		return;
	other.kid.s[0] ^= 1;
	memset(&less.ceiling, 0, sizeof(less.ceiling));
	late.exp = TOKEN_TEST_NOW;
	h.trust = &same;
	ok(chain_recheck(&c, &h, true, &why) == 0, "nothing has changed: %s", why.err.what);
	h.trust = &without;
	ok(chain_recheck(&c, &h, false, &why) < 0 && why.code == TOKEN_E_ROOT, "another issuer");
	h.trust = &narrower;
	ok(chain_recheck(&c, &h, true, &why) < 0 && why.code == TOKEN_E_CEILING, "a lower ceiling");
	h.trust = &ended;
	ok(chain_recheck(&c, &h, false, &why) < 0 && why.code == TOKEN_E_ROOT,
	   "an issuer that ended");
	h.trust = &old;
	ok(chain_recheck(&c, &h, false, &why) < 0 && why.code == TOKEN_E_ROOT,
	   "a bundle that ended");
	h.trust = &same;
	h.local = false;
	h.lists_n = 0;
	ok(chain_recheck(&c, &h, false, &why) < 0 && why.code == TOKEN_E_RVK_STALE,
	   "no list any more");
	h = *here();
	h.trust = &same;
	h.now += 5000;
	ok(chain_recheck(&c, &h, false, &why) < 0, "later");
}

static void test_longest(void)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_buf b = BUF_INIT(TOKEN_PRESENTATION_MAX), one = BUF_INIT(TOKEN_MAX);
	struct token t = claims(&a, HOPS);
	struct token_why why = { 0 };
	struct chain c;

	if (!build(&a, HOPS, &b, &c))
		return;
	ok(token_derive(&a, chain_leaf(&c), &t, &key[HOPS], &one, &why) < 0 &&
		   why.code == TOKEN_E_DEPTH && one.n == 0,
	   "no ninth token: %s", why.err.what);
	buf_str(&b, "~e30.e30.e30");
	ok(chain_open(&a, buf_view(&b), here(), &c, &why) < 0 && why.code == TOKEN_E_SIZE,
	   "nor one that somebody else put there: %s", why.err.what);
}

/* Every bit of every byte flipped alone, or with a @step of 9 one bit of every byte. */
static void test_flips(unsigned hops, size_t step)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_buf b = BUF_INIT(TOKEN_PRESENTATION_MAX);
	size_t flips = 0, accepted = 0;
	struct chain c;

	if (!build(&a, hops, &b, &c))
		return;
	add_proof(&a, &c, &open_session, &b);
	for (size_t i = 0; i < b.n * 8; i += step) {
		scoped_arena mine = ARENA_INIT(1 << 20);
		struct token_why why = { 0 };

		b.p[i / 8] = (char)(b.p[i / 8] ^ 1 << i % 8);
		accepted += chain_present(&mine, buf_view(&b), here(), &c, &why) == 0 ||
			    why.code == TOKEN_E_NONE;
		b.p[i / 8] = (char)(b.p[i / 8] ^ 1 << i % 8);
		flips++;
	}
	ok(accepted == 0 && flips >= b.n * 8 / step, "%zu of %zu flips accepted", accepted, flips);
}

/* Every front and every rest of a presentation. */
static void test_cuts(void)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_buf b = BUF_INIT(TOKEN_PRESENTATION_MAX);
	size_t accepted = 0;
	struct chain c;

	if (!build(&a, 1, &b, &c))
		return;
	add_proof(&a, &c, &open_session, &b);
	for (size_t i = 1; i < b.n; i++) {
		scoped_arena mine = ARENA_INIT(1 << 20);
		struct token_why why = { 0 };

		accepted += chain_present(&mine, sv_sub(buf_view(&b), 0, i), here(), &c, &why) == 0;
		accepted += chain_present(&mine, sv_skip(buf_view(&b), i), here(), &c, &why) == 0;
	}
	ok(accepted == 0, "%zu cuts accepted", accepted);
}

static const char *const wider[] = {
	"fs.read:l-test7:/**",
	"fs.read:l-test7:/srv/*/x",
	"fs.read:l-a:/srv/repo/**",
	"fs.write:l-test7:/srv/repo/x",
	"net.connect:l-test7:tcp/db.example.com:5432",
	"net.connect:l-test7:tcp/db.example.com:5432;n=101",
	"net.connect:l-test7:tcp/*.example.com:5432;n=1",
	"net.connect:l-test7:tcp/db.example.com:5431-5432;n=1",
	"http.request:l-test7:https://db.example.com:443/**;m=*;q=any",
};

/* One field of @t becomes wider than @p has it. */
static const char *widen(struct arena *a, const struct token *p, struct token *t)
{
	switch (dice(10)) {
	case 0:
		t->exp = p->exp + 1 + dice(1000);
		return "exp";
	case 1:
		t->nbf = p->nbf - 1 - dice(1000);
		return "nbf";
	case 2:
		t->iat = p->iat - 1 - dice(1000);
		return "iat";
	case 3:
		t->rvk = p->rvk + 1 + dice(1000);
		return "rvk";
	case 4:
		t->max_depth = p->max_depth + 1;
		return "del_max_depth";
	case 5:
		t->aud = realms;
		t->aud_n = 2;
		return "aud";
	case 6:
		t->set.limits[LIMIT_UP] = dice(2) ? 0 : p->set.limits[LIMIT_UP] + 1 + dice(1000);
		return "limits";
	case 7:
		t->set.require[G_NET] = LEVEL_PARTIAL;
		return "require";
	case 8:
		t->cnf = p->cnf;
		return "cnf";
	default:
		add(a, &t->set, CAP_GRANT, wider[dice(ARRAY_LEN(wider))]);
		return "caps";
	}
}

/* SECURITY: signed as the holder could sign it, without the checks of token_derive(). */
static bool forge(const struct token *p, struct token *t, unsigned i, struct buf *b)
{
	scoped_buf payload = BUF_INIT(TOKEN_MAX), iss = BUF_INIT(128);
	struct token_why why = { 0 };

	buf_fmt(&iss, TOKEN_ISS_PREFIX "%s", p->cnf_kid.s);
	t->iss = buf_view(&iss);
	t->depth = p->depth + 1;
	t->has_parent = true;
	t->par_hash = p->hash;
	buf_ch(b, '~');
	return token_encode(t, &payload, &why) == 0 &&
	       jws_sign(JWS_CAP, TOKEN_MAX, buf_view(&payload), &key[i], b, &why) == 0;
}

static void test_widened(void)
{
	unsigned refused = 0, derived = 0, forged = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		const unsigned n = 2 + (unsigned)dice(2);
		scoped_arena a = ARENA_INIT(1 << 20);
		scoped_buf b = BUF_INIT(TOKEN_PRESENTATION_MAX);
		scoped_buf honest = BUF_INIT(TOKEN_PRESENTATION_MAX);
		struct token_why why = { 0 };
		struct chain c, got;
		const char *what;
		struct token t;

		if (!build(&a, n, &b, &c))
			return;
		t = claims(&a, n);
		what = widen(&a, chain_leaf(&c), &t);
		derived += token_derive(&a, chain_leaf(&c), &t, &key[n], &honest, &why) == 0;
		forged += forge(chain_leaf(&c), &t, n, &b);
		if (chain_open(&a, buf_view(&b), here(), &got, &why) == 0)
			ok(false, "a chain with a wider %s", what);
		else
			refused++;
	}
	ok(forged == ROUNDS && refused == ROUNDS && derived == 0,
	   "%u of %u wider tokens refused, %u derived", refused, forged, derived);
}

static void test_roles(void)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_buf b = BUF_INIT(TOKEN_PRESENTATION_MAX), none = BUF_INIT(TOKEN_MAX);
	struct token t = claims(&a, 0);
	struct token_why why = { 0 };
	struct pop p = { .aud = SV("r"), .jti = id(1), .nonce = SV("0123456789abcdef") };
	struct chain c;

	t.cnf = key[0].pub;
	ok(token_mint(&a, &t, &key[0], &none, &why) < 0, "to oneself: %s", why.err.what);
	if (!build(&a, 1, &b, &c))
		return;
	t = claims(&a, 1);
	ok(token_derive(&a, chain_leaf(&c), &t, &key[2], &none, &why) < 0 &&
		   why.code == TOKEN_E_LINK_ISS,
	   "by somebody else: %s", why.err.what);
	ok(pop_sign(&a, &p, chain_leaf(&c), &key[2], &none, &why) < 0 && why.code == TOKEN_E_POP,
	   "a proof by somebody else: %s", why.err.what);
	ok(none.n == 0, "nothing was written");
}

static void test_rvk(void)
{
	const struct token_id ids[] = { id(1), id(2) };
	const struct sv jti[] = { token_id_sv(&ids[0]), token_id_sv(&ids[1]) };
	struct rvk l = { .iss = issuer.iss, .seq = 1, .iat = 5, .exp = 9, .jti = jti, .jti_n = 2 };
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_buf b = BUF_INIT(RVK_MAX);
	struct token t = claims(&a, 1);
	struct token_why why = { 0 };
	struct rvk got;

	ok(rvk_sign(&a, &l, &key[0], &b, &why) == 0 &&
		   rvk_open(&a, buf_view(&b), &trust, 1, &got, &why) == 0,
	   "a list made here is read here: %s", why.err.what);
	ok(got.jti_n == 2 && got.seq == 1 && rvk_check(&got, &t, &why) < 0, "and revokes");
	t.jti = id(3);
	ok(rvk_check(&got, &t, &why) == 0, "only what it names");
	ok(rvk_fresh(&got, 8, 3, &why) == 0 && rvk_fresh(&got, 8, 2, &why) < 0 &&
		   rvk_fresh(&got, 9, 9, &why) < 0,
	   "for as long as it may");
}

static void test_thumbprint(void)
{
	/* The key and the thumbprint of RFC 8037, appendices A.2 and A.3. */
	static const uint8_t x[32] = { 0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7,
				       0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a,
				       0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25,
				       0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a };
	struct sign_public pub;

	memcpy(pub.b, x, sizeof(x));
	is_str(jws_text(x).s, "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "x");
	is_str(jws_thumbprint(&pub).s, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", "its kid");
}

/* A type that is none is signed by nobody and read by nobody. */
static void test_no_type(void)
{
	scoped_buf b = BUF_INIT(TOKEN_MAX), head = BUF_INIT(JWS_HEADER_MAX);
	const struct jws_kid kid = jws_thumbprint(&key[0].pub);
	struct token_why why = { 0 };
	struct jws j;

	ok(jws_sign(JWS_NONE, TOKEN_MAX, SV("{}"), &key[0], &b, &why) < 0 && b.n == 0,
	   "not signed");
	buf_fmt(&head, "{\"alg\":\"EdDSA\",\"kid\":\"%s\",\"typ\":\"%s\"}", kid.s,
		jws_type_name(JWS_NONE));
	base64_encode(BASE64_URL, buf_view(&head), &b);
	buf_str(&b, ".e30.");
	buf_fill(&b, 'A', 86);
	ok(jws_split(buf_view(&b), TOKEN_MAX, JWS_NONE, &j, &why) < 0 && why.code == TOKEN_E_TYP,
	   "not read: %s", why.err.what);
}

int main(void)
{
	struct writ_err err = { 0 };

	if (crypto_start(&err) < 0)
		return 1;
	set_up();
	test_thumbprint();
	test_no_type();
	test_derived();
	test_longest();
	test_again();
	test_flips(1, 1);
	test_flips(3, 9);
	test_cuts();
	test_widened();
	test_roles();
	test_rvk();
	arena_clear(&world);
	return tap_done();
}
