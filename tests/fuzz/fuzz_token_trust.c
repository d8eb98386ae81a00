/* fuzz_token_trust - whose tokens count */
#include "fuzz.h"
#include "token/trust.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv payload = fuzz_bytes(data, size);
	scoped_arena a = ARENA_INIT(16 << 20);
	struct token_why why = { 0 };
	struct writ_err err = { 0 };
	struct trust t;

	if (token_trust_decode(&a, payload, &t, &why) < 0) {
		must(why.err.what[0] != 0);
		return 0;
	}
	for (size_t i = 0; i < t.n; i++) {
		must(token_trust_find(&t, &t.issuers[i].kid) == &t.issuers[i]);
		must(sign_public_check(&t.issuers[i].key, &err) == 0);
		must(t.issuers[i].ceiling.caps.n >= 1 && t.issuers[i].realms_n >= 1);
	}
	return 0;
}
