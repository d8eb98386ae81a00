/* fuzz_witness_answer - what a witness says over HTTP, and where it is said to be */
#include "fuzz.h"
#include "witness/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv bytes = fuzz_bytes(data, size);
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(HTTP_REQUEST_MAX);
	struct http_url url;
	struct sv body;
	unsigned status = 0;
	uint64_t known;

	if (witness_http_answer_take(bytes, true, &status, &body, &err) == WIRE_DONE) {
		must(status >= 100 && status <= 999);
		must(body.n == 0 || (body.p >= bytes.p && body.p + body.n <= bytes.p + bytes.n));
		(void)!tlog_witness_size_parse(body, &known, &err);
	} else {
		must(err.what[0]);
	}
	/* Before its end it may be unfinished, but not another one. */
	if (witness_http_answer_take(bytes, false, &status, &body, &err) == WIRE_DONE)
		must(witness_http_answer_take(bytes, true, &status, &body, &err) == WIRE_DONE);
	if (witness_http_url_parse(bytes, &url, &err) == 0) {
		struct sv asked;

		/* What we send is what a witness reads. */
		witness_http_request_put(&url, SV("x"), &b);
		if (!b.failed && url.path.n == 0)
			must(witness_http_request_take(buf_view(&b), &asked, &status, &err) ==
				     WIRE_DONE &&
			     sv_is(asked, "x"));
	}
	return 0;
}
