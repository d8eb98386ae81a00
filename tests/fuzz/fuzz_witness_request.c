/* fuzz_witness_request - what comes to a witness over HTTP, in one piece and in two */
#include "fuzz.h"
#include "witness/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv bytes = fuzz_bytes(data, size);
	struct writ_err err = { 0 };
	struct witness_request req;
	struct sv body, part;
	unsigned status = 0;
	const enum wire_state s = witness_http_request_take(bytes, &body, &status, &err);

	if (s == WIRE_BAD)
		must(status >= 400 && status < 500 && err.what[0]);
	if (s == WIRE_DONE) {
		must(body.n <= WITNESS_REQUEST_MAX && body.p + body.n == bytes.p + bytes.n);
		(void)!tlog_witness_request_parse(body, &req, &err);
		/* Whatever is missing of it, it is not whole. */
		for (size_t n = 0; n < size; n += 1 + size / 16)
			must(witness_http_request_take(sv_sub(bytes, 0, n), &part, &status, &err) ==
			     WIRE_MORE);
	}
	return 0;
}
