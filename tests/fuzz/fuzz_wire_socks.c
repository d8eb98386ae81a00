/* fuzz_wire_socks - SOCKS 5 and 4: a message is never decided before it is whole */
#include "fuzz.h"
#include "wire/socks.h"

static enum wire_state parse(unsigned kind, struct sv bytes, struct socks_request *ret_q,
			     size_t *ret_used)
{
	struct writ_err err = { 0 };
	enum socks_reply reply = SOCKS_OK;
	enum wire_state s;
	bool none;

	if (kind == 0)
		s = socks5_greeting_parse(bytes, &none, ret_used, &err);
	else if (kind == 1)
		s = socks5_request_parse(bytes, ret_q, ret_used, &reply, &err);
	else
		s = socks4_request_parse(bytes, ret_q, ret_used, &err);
	must((s == WIRE_BAD) == (err.what[0] != 0));
	must(s != WIRE_BAD || kind != 1 || reply != SOCKS_OK);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv all = { (const char *)data, size };
	struct socks_request q = { 0 }, part;

	if (size)
		(void)wire_protocol_of(data[0]);
	for (unsigned kind = 0; kind < 3; kind++) {
		size_t used = 0, n;
		const enum wire_state s = parse(kind, all, &q, &used);

		if (s != WIRE_DONE)
			continue;
		must(used > 0 && used <= size);
		for (size_t i = 0; i < used; i++)
			must(parse(kind, sv_sub(all, 0, i), &part, &n) == WIRE_MORE);
		must(parse(kind, sv_sub(all, 0, used), &part, &n) == WIRE_DONE && n == used);
		if (kind)
			must(q.host.kind != WIRE_HOST_NONE &&
			     (q.port || q.command != SOCKS_CONNECT));
	}
	return 0;
}
