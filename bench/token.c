/*
 * token.c - cost of verifying a chain of tokens, relative to its bare signatures
 *
 * Prints lines of name, measured, unit and budget for bench/run.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "token_keys.h"

enum { HOPS = 3, ROUNDS = 400 };

static struct key_pair key[HOPS + 1];
static struct arena world = ARENA_INIT(1 << 20);
static const struct sv realm = SV_INIT(TOKEN_TEST_REALM);

/* CPU time of this process, so that other load does not count. */
static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void must(bool yes, const char *what)
{
	if (yes)
		return;
	(void)fprintf(stderr, "token: %s\n", what);
	exit(1);
}

static void add(struct cap_set *s, const char *text)
{
	struct cap_entry *e = vec_push(&world, &s->caps);
	struct writ_err err = { 0 };

	must(e && cap_parse(&world, CAP_GRANT, sv_from(text), &e->cap, &err) == 0, err.what);
}

static void fill(struct cap_set *s)
{
	add(s, "fs.read:l-test7:/srv/repo/**");
	add(s, "fs.write:l-test7:/srv/repo/**");
	add(s, "http.request:l-test7:https://api.example.com:443/v1/**;m=GET,POST;q=any");
	add(s, "proc.exec:l-test7:/usr/bin/git;args=/git/**");
}

static struct token_id id(unsigned n)
{
	struct token_id made;

	(void)snprintf(made.s, sizeof(made.s), "0199f000-0000-7000-8000-%012x", n);
	return made;
}

static void make(const struct token_here *here, struct buf *b)
{
	struct pop pop = {
		.aud = realm, .iat = here->now, .jti = id(900), .nonce = SV("0123456789abcdef")
	};
	struct token_why why = { 0 };
	struct chain c;
	int r = 0;

	for (unsigned i = 0; i < HOPS; i++) {
		struct token t = { .iss = here->trust->issuers[0].iss,
				   .sub = SV("urn:example:alice"),
				   .jti = id(i + 1),
				   .sid = id(100),
				   .wf = id(255),
				   .iat = here->now,
				   .nbf = here->now,
				   .exp = here->now + 100,
				   .aud = &realm,
				   .aud_n = 1,
				   .cnf = key[i + 1].pub,
				   .max_depth = 7 };

		fill(&t.set);
		if (i)
			buf_ch(b, '~');
		r = i == 0 ? token_mint(&world, &t, &key[0], b, &why)
			   : token_derive(&world, chain_leaf(&c), &t, &key[i], b, &why);
		must(r == 0 && chain_open(&world, buf_view(b), here, &c, &why) == 0, why.err.what);
	}
	buf_ch(b, '~');
	must(pop_sign(&world, &pop, chain_leaf(&c), &key[HOPS], b, &why) == 0, why.err.what);
}

static double verify_us(struct sv text, const struct token_here *here)
{
	const double start = now_us();

	for (unsigned i = 0; i < ROUNDS; i++) {
		scoped_arena a = ARENA_INIT(1 << 20);
		struct token_why why = { 0 };
		struct chain c;

		must(chain_present(&a, text, here, &c, &why) == 0, why.err.what);
	}
	return (now_us() - start) / ROUNDS;
}

static double raw_us(struct sv text)
{
	const struct signature sig = sign_bytes(&key[0].sec, sv_sub(text, 0, 1200));
	struct writ_err err = { 0 };
	const double start = now_us();

	for (unsigned i = 0; i < ROUNDS * (HOPS + 1); i++)
		must(sign_verify(&key[0].pub, sv_sub(text, 0, 1200), &sig, &err) == 0, err.what);
	return (now_us() - start) / ROUNDS;
}

int main(void)
{
	static const char *const names[] = { "issuer", "agent-a", "agent-b", "agent-c" };
	scoped_buf b = BUF_INIT(TOKEN_PRESENTATION_MAX);
	struct writ_err err = { 0 };
	struct trust_issuer issuer;
	struct trust trust;
	struct token_here here;
	double whole, raw;

	must(crypto_start(&err) == 0, err.what);
	for (size_t i = 0; i <= HOPS; i++)
		key[i] = token_pair(names[i]);
	issuer = (struct trust_issuer){ .iss = SV("https://issuer.example"),
					.key = key[0].pub,
					.kid = jws_thumbprint(&key[0].pub),
					.realms = &realm,
					.realms_n = 1,
					.exp = UINT32_MAX };
	fill(&issuer.ceiling);
	trust = (struct trust){ .issuers = &issuer, .n = 1 };
	here = (struct token_here){
		.realm = realm, .now = TOKEN_TEST_NOW, .trust = &trust, .local = true
	};
	make(&here, &b);
	whole = verify_us(buf_view(&b), &here);
	raw = raw_us(buf_view(&b));
	printf("chain of 3 tokens and proof, verified\t%.1f\tus\t%.1f\n", whole, 6 * raw);
	printf("the same against 4 bare signatures\t%.2f\tx\t6.0\n", whole / raw);
	arena_clear(&world);
	return 0;
}
