/* fuzz_token_payload - the claims of a token and of a proof */
#include "fuzz.h"
#include "token/pop.h"

static void again(struct sv payload)
{
	scoped_arena a = ARENA_INIT(4 << 20);
	scoped_buf b = BUF_INIT(payload.n);
	struct token_why why = { 0 };
	struct token t;
	struct pop p;

	if (token_decode(&a, payload, &t, &why) == 0) {
		must(t.set.caps.n >= 1 && t.set.caps.n <= TOKEN_CAPS_MAX && t.aud_n >= 1);
		must(token_encode(&t, &b, &why) == 0 && sv_eq(buf_view(&b), payload));
	} else {
		must(why.err.what[0] != 0);
	}
	buf_clear(&b);
	if (pop_decode(&a, payload, &p, &why) == 0)
		must(pop_encode(&p, &b, &why) == 0 && sv_eq(buf_view(&b), payload));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size <= TOKEN_MAX)
		again(fuzz_bytes(data, size));
	return 0;
}
