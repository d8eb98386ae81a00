/* fuzz_token_chain - presentations, by an issuer whose key is known to everybody */
#include "fuzz.h"
#include "token/chain.h"

#include "token_keys.h"

static struct trust_issuer issuer_here(struct arena *a)
{
	static const struct sv realms[] = { SV_INIT(TOKEN_TEST_REALM), SV_INIT("l-test8") };
	static const char *const ceiling[] = {
		"fs.read:l-test7:/srv/**",
		"fs.write:l-test7:/srv/**",
		"http.request:l-test7:https://**.example.com:443/**;m=*;q=any",
		"net.connect:l-test7:tcp/**.example.com:1-65535",
		"proc.exec:l-test7:/usr/**",
	};
	const struct key_pair key = token_pair("issuer");
	struct trust_issuer i = { .iss = SV("https://issuer.example"),
				  .key = key.pub,
				  .kid = jws_thumbprint(&key.pub),
				  .realms = realms,
				  .realms_n = 2,
				  .exp = UINT32_MAX };

	for (size_t k = 0; k < ARRAY_LEN(ceiling); k++) {
		struct cap_entry *e = vec_push(a, &i.ceiling.caps);
		struct writ_err err = { 0 };

		must(e && cap_parse(a, CAP_GRANT, sv_from(ceiling[k]), &e->cap, &err) == 0);
	}
	return i;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv text = fuzz_bytes(data, size);
	scoped_arena a = ARENA_INIT(16 << 20);
	const struct trust_issuer issuer = issuer_here(&a);
	const struct trust trust = { .issuers = &issuer, .n = 1 };
	const struct token_here here = {
		.realm = SV(TOKEN_TEST_REALM), .now = TOKEN_TEST_NOW, .trust = &trust, .local = true
	};
	struct token_why why = { 0 };
	struct chain c;

	if (chain_present(&a, text, &here, &c, &why) < 0)
		must(why.code != TOKEN_E_NONE && why.err.what[0] != 0);
	else
		must(c.n >= 1 && c.n <= TOKEN_CHAIN_MAX && c.proved && c.deadline > here.now);
	return 0;
}
