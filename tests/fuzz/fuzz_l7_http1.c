/*
 * fuzz_l7_http1.c - requests and answers of HTTP/1 through the whole of the reader
 *
 * The first byte says whether it is as inside TLS, where a secret is set. Whatever a
 * client says, a server sees only requests for the one host and below the one path.
 */
#include <stdint.h>
#include <string.h>

#include "l7_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char placeholder[] = "writ-placeholder-T-" FUZZ_ID;

/* Every head that went to the server is one we could have written. */
static void check_sent(struct sv sent)
{
	struct http1_field fields[L7_FIELDS + L7_SET_MAX];
	struct http1_find find = { 0 };
	struct http1_request q;
	struct http1_body body;
	struct writ_err err;
	struct sv piece;
	size_t n;

	while (sent.n) {
		find = (struct http1_find){ 0 };
		if (http1_head_find(&find, sent, &http1_limits_default, &n, &err) != WIRE_DONE)
			return; /* cut off, or after 101 */
		if (http1_request_parse(sv_sub(sent, 0, n), 443, fields, ARRAY_LEN(fields), &q,
					&err) < 0)
			return;
		if (!sv_starts(q.target, SV("/v1")) ||
		    !sv_is(wire_host_name(&q.host.host), "a.test"))
			abort();
		/* A body beside the secret may repeat it, a head never does. */
		if (memmem(sent.p, n, placeholder, sizeof(placeholder) - 1))
			abort();
		if (q.websocket.n)
			return;
		sent = sv_skip(sent, n);
		http1_body_init(&body, q.framing, q.length, NULL);
		while (http1_body_next(&body, &sent, &piece, &err) == WIRE_MORE)
			if (sent.n == 0)
				return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz *f;

	if (size < 1)
		return 0;
	f = fuzz_start(data[0] & 1);
	fuzz_records(f, data + 1, size - 1, false);
	check_sent(buf_view(&f->to_server));
	fuzz_end(f);
	return 0;
}
