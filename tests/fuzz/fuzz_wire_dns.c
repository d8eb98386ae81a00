/* fuzz_wire_dns - a DNS message behind a byte that says whether it came by TCP */
#include <string.h>

#include "fuzz.h"
#include "wire/dns.h"

static void reply(const struct dns_query *q, const struct dns_answer *a, size_t room)
{
	uint8_t *out = malloc(room ? room : 1);
	size_t n;

	must(out != NULL);
	n = dns_reply_encode(q, a, out, room);
	must(n <= room && (n == 0 || n >= 12));
	if (n) {
		must(out[0] == q->id >> 8 && out[2] & 0x80 && n >= 12u + q->question_n);
		must(memcmp(out + 12, q->question, q->question_n) == 0);
	}
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t some[][4] = { { 198, 18, 0, 1 },
					   { 198, 18, 0, 2 },
					   { 198, 18, 0, 3 } };
	struct sv msg = { (const char *)data + 1, size - 1 };
	struct writ_err err = { 0 };
	enum dns_verdict v;
	struct dns_query q;
	struct sv part;

	if (size == 0)
		return 0;
	if (dns_frame(msg, &part, &err) == WIRE_DONE)
		must(part.n >= 12 && part.p == msg.p + 2 && part.n <= msg.n - 2);
	v = dns_query_decode(msg, data[0] & 1, &q, &err);
	must(v == DNS_ASK || err.what[0]);
	if (v == DNS_DROP)
		return 0;
	for (size_t room = data[0]; room < 600; room += 256) {
		reply(&q,
		      &(struct dns_answer){ .rcode = v == DNS_ASK ? DNS_NOERROR : q.rcode,
					    .ttl = 60,
					    .a = some,
					    .a_n = 3 },
		      room);
		reply(&q,
		      &(struct dns_answer){ .ptr = v == DNS_ASK ? wire_host_name(&q.name)
								: SV("") },
		      room);
	}
	if (v == DNS_ASK)
		must(q.name.kind == WIRE_HOST_NAME && q.question_n == q.name.n + 6u);
	return 0;
}
