/*
 * fuzz_l7_http1.c - requests and answers of HTTP/1 through the whole of the reader
 *
 * The first byte says whether it is as inside TLS, where a secret is set. Whatever a
 * client says, a server sees only requests for the one host and below the one path, and no
 * placeholder but beside the secret.
 */
#include "fuzz.h"
#include "l7_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz *f;

	if (size < 1)
		return 0;
	f = fuzz_start(data[0] & 1);
	fuzz_records(f, data + 1, size - 1, false);
	fuzz_check_sent(buf_view(&f->to_server), data[0] & 1);
	fuzz_end(f);
	return 0;
}
