/* fuzz_attest_bundle - a statement with its signature, and keys as PEM */
#include "attest/bundle.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv in = fuzz_bytes(data, size);
	scoped_arena a = ARENA_INIT(16 << 20);
	scoped_buf b = BUF_INIT(4 << 20);
	struct writ_err err = { 0 };
	struct bundle u, v;
	struct attest_key keys[ATTEST_KEYS_MAX];
	size_t n = 0;

	if (attest_keys_parse(in, keys, &n, &err) == 0)
		must(n <= ATTEST_KEYS_MAX);
	if (bundle_parse(&a, in, &u, &err) < 0)
		return 0;
	must(u.payload.n > 0 && u.sig.n > 0 && u.sig.n <= ATTEST_SIG_MAX);
	must(bundle_print(&u, &b, &err) == 0 && sv_eq(buf_view(&b), in));
	must(bundle_parse(&a, buf_view(&b), &v, &err) == 0 && sv_eq(u.payload, v.payload));
	return 0;
}
