/* fuzz_base64 - what decodes is what its bytes encode to, in both forms */
#include "codec/base64.h"
#include "fuzz.h"

static void one(enum base64_form form, struct sv text)
{
	scoped_buf bytes = BUF_INIT(text.n), again = BUF_INIT(text.n);
	char *exact;
	size_t n;

	if (!base64_check(form, text, &n)) {
		must(!base64_decode_to(form, text, &bytes) && bytes.n == 0);
		return;
	}
	must(base64_decode_to(form, text, &bytes) && !bytes.failed && bytes.n == n);
	exact = malloc(n ? n : 1);
	must(exact && base64_decode(form, text, exact, n));
	must(sv_eq((struct sv){ exact, n }, buf_view(&bytes)));
	free(exact);
	base64_encode(form, buf_view(&bytes), &again);
	must(sv_eq(buf_view(&again), text) && base64_length(form, n) == text.n);
}

/* Any bytes can be encoded and come back. */
static void encode(enum base64_form form, struct sv bytes)
{
	scoped_buf text = BUF_INIT(2 * bytes.n + 4), again = BUF_INIT(bytes.n);

	base64_encode(form, bytes, &text);
	must(base64_decode_to(form, buf_view(&text), &again) && sv_eq(buf_view(&again), bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv bytes = fuzz_bytes(data, size);

	for (unsigned form = BASE64_PADDED; form <= BASE64_URL; form++) {
		one(form, bytes);
		encode(form, bytes);
	}
	return 0;
}
