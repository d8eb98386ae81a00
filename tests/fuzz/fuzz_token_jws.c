/* fuzz_token_jws - signed text: its three parts and the fixed header */
#include "fuzz.h"
#include "token/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv text = fuzz_bytes(data, size);

	for (enum jws_type type = JWS_NONE; type < JWS_TYPE_COUNT; type++) {
		struct token_why why = { 0 };
		struct sign_public nobody = { { 2 } };
		scoped_buf b = BUF_INIT(TOKEN_MAX);
		struct jws j;

		if (jws_split(text, TOKEN_MAX, type, &j, &why) < 0) {
			must(why.code != TOKEN_E_NONE && why.err.what[0] != 0);
			continue;
		}
		must(type != JWS_NONE && size <= TOKEN_MAX);
		must(sv_starts(text, j.input) && j.input.n < text.n);
		must(jws_open(&j, &nobody, &b, &why) < 0 && b.n == 0);
	}
	return 0;
}
