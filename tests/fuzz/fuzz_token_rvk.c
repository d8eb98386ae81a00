/* fuzz_token_rvk - lists of what was revoked */
#include "fuzz.h"
#include "token/rvk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv payload = fuzz_bytes(data, size);
	scoped_arena a = ARENA_INIT(4 << 20);
	scoped_buf b = BUF_INIT(size);
	struct token_why why = { 0 };
	struct token t = { 0 };
	struct rvk l;

	if (rvk_decode(&a, payload, &l, &why) < 0) {
		must(why.err.what[0] != 0);
		return 0;
	}
	must(rvk_encode(&l, &b, &why) == 0 && sv_eq(buf_view(&b), payload));
	for (size_t i = 0; i < l.jti_n; i++) {
		must(token_id_parse(l.jti[i], &t.jti));
		must(rvk_check(&l, &t, &why) < 0 && why.code == TOKEN_E_REVOKED);
	}
	return 0;
}
