/*
 * fuzz_l7_http2.c - frames of clients and servers through the bridge
 *
 * The first byte says what the server speaks. The preface is given, so that the input
 * is frames from its first byte.
 */
#include "fuzz.h"
#include "l7_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz *f;
	bool h2;

	if (size < 1)
		return 0;
	h2 = data[0] & 1;
	f = fuzz_start(true);
	client_h2_start(f->client);
	fuzz_feed(f, true, SV("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"), h2);
	fuzz_records(f, data + 1, size - 1, h2);
	if (!h2 && fuzz_has(&f->to_server, "evil.test"))
		abort();
	if (!h2)
		fuzz_check_sent(buf_view(&f->to_server), true);
	fuzz_end(f);
	return 0;
}
