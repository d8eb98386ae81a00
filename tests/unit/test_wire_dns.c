#include "wire/dns.h"

#include "tap.h"

/* A query under construction. */
struct msg {
	char b[70000];
	size_t n;
};

static void put(struct msg *m, const char *bytes, size_t n)
{
	memcpy(m->b + m->n, bytes, n);
	m->n += n;
}

#define PUT(m, literal) put((m), (literal), sizeof(literal) - 1)

static struct msg m;

static void start(unsigned flags, unsigned qd, unsigned an, unsigned ns, unsigned ar)
{
	const unsigned v[] = { 0xbeef, flags, qd, an, ns, ar };

	m.n = 0;
	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		put(&m, (char[]){ (char)(v[i] >> 8), (char)v[i] }, 2);
}

static struct dns_query q;
static struct writ_err err;

static enum dns_verdict decode(bool tcp)
{
	char exact[sizeof(m.b)];

	memcpy(exact, m.b, m.n);
	memset(&q, 0xee, sizeof(q));
	err = (struct writ_err){ 0 };
	return dns_query_decode((struct sv){ exact, m.n }, tcp, &q, &err);
}

static bool refused(enum dns_rcode rcode)
{
	return decode(false) == DNS_REFUSE && q.rcode == rcode && err.what[0];
}

static void test_good(void)
{
	start(0x0100, 1, 0, 0, 0);
	PUT(&m, "\3ApI\7eXample\4teSt\0\0\1\0\1");
	ok(decode(false) == DNS_ASK && q.id == 0xbeef && q.type == DNS_A && q.want_recursion &&
		   !q.edns && q.udp_size == 512,
	   "a plain query");
	is_sv(wire_host_name(&q.name), SV("api.example.test"), "its name");
	ok(q.question_n == m.n - 12 && memcmp(q.question, m.b + 12, q.question_n) == 0,
	   "the question as it was");
	start(0x0120, 1, 0, 0, 1);
	PUT(&m, "\1a\4test\0\0\x1c\0\1"
		"\0\0\x29\4\xd0\0\0\x80\0\0\0");
	ok(decode(false) == DNS_ASK && q.type == DNS_AAAA && q.edns && q.udp_size == 1232, "EDNS");
	start(0x0100, 1, 0, 0, 1);
	PUT(&m, "\1a\4test\0\0\1\0\1"
		"\0\0\x29\0\0\0\0\0\0\0\x0c\0\x0a\0\x08"
		"12345678");
	ok(decode(true) == DNS_ASK && q.udp_size == 512, "EDNS with a cookie and a small size");
	start(0, 1, 0, 0, 0);
	PUT(&m, "\4_srv\1a\4test\0\0\x21\0\1");
	ok(decode(false) == DNS_ASK && q.type == 33 && !q.want_recursion, "SRV");
}

static void test_structure(void)
{
	start(0x0100, 1, 0, 0, 0);
	m.n = 11;
	ok(decode(false) == DNS_DROP && err.what[0], "11 bytes");
	m.n = 0;
	ok(decode(false) == DNS_DROP, "nothing");
	start(0x8100, 1, 0, 0, 0);
	PUT(&m, "\1a\4test\0\0\1\0\1");
	ok(decode(false) == DNS_DROP, "a response");
	start(0x0100, 1, 0, 0, 0);
	memset(m.b + 12, 0, 600);
	m.n = 513;
	ok(decode(false) == DNS_DROP, "513 bytes by UDP");
	ok(decode(true) == DNS_REFUSE, "but by TCP it is read");
	for (unsigned op = 1; op < 16; op++) {
		start(op << 11, 1, 0, 0, 0);
		PUT(&m, "\1a\4test\0\0\1\0\1");
		ok(refused(DNS_NOTIMP) && q.question_n == 0, "opcode %u", op);
	}
	for (unsigned bit = 0x0400; bit; bit >>= 1) {
		if (bit == 0x0100 || bit == 0x0020 || bit == 0x0010)
			continue;
		start(bit, 1, 0, 0, 0);
		PUT(&m, "\1a\4test\0\0\1\0\1");
		ok(refused(DNS_FORMERR), "flag %04x", bit);
	}
	for (unsigned i = 0; i < 6; i++) {
		static const unsigned counts[][4] = { { 0, 0, 0, 0 }, { 2, 0, 0, 0 },
						      { 1, 1, 0, 0 }, { 1, 0, 1, 0 },
						      { 1, 0, 0, 2 }, { 65535, 0, 0, 0 } };

		start(0, counts[i][0], counts[i][1], counts[i][2], counts[i][3]);
		PUT(&m, "\1a\4test\0\0\1\0\1");
		ok(refused(DNS_FORMERR), "counts %u", i);
	}
}

#define BODY(rcode, ar, literal, name)                                                             \
	do {                                                                                       \
		start(0x0100, 1, 0, 0, (ar));                                                      \
		PUT(&m, literal);                                                                  \
		ok(refused(rcode), "%s", name);                                                    \
	} while (0)

static void test_bodies(void)
{
	BODY(DNS_FORMERR, 0, "", "no question");
	BODY(DNS_FORMERR, 0, "\1a\4tes", "a label cut short");
	BODY(DNS_FORMERR, 0, "\1a\4test", "a name without its end");
	BODY(DNS_FORMERR, 0, "\1a\4test\0\0\1\0", "a class cut short");
	BODY(DNS_FORMERR, 0, "\xc0\x0c\0\1\0\1", "a pointer to itself");
	BODY(DNS_FORMERR, 0, "\1a\xc0\x0c\0\1\0\1", "a pointer loop");
	BODY(DNS_FORMERR, 0, "\1a\xc0\0\0\1\0\1", "a pointer into the header");
	BODY(DNS_FORMERR, 0,
	     "\x40"
	     "a\0\0\1\0\1",
	     "an extended label");
	BODY(DNS_FORMERR, 0,
	     "\x80"
	     "a\0\0\1\0\1",
	     "a reserved label");
	BODY(DNS_FORMERR, 0, "\3a.b\4test\0\0\1\0\1", "a dot in a label");
	BODY(DNS_FORMERR, 0, "\1a\4test\0\0\1\0\1x", "a byte behind the end");
	BODY(DNS_FORMERR, 0,
	     "\1a\4test\0\0\1\0\1"
	     "\0\0\x29\4\xd0\0\0\0\0\0\0",
	     "an uncounted OPT");
	BODY(DNS_FORMERR, 1, "\1a\4test\0\0\1\0\1", "a missing OPT");
	BODY(DNS_FORMERR, 1,
	     "\1a\4test\0\0\1\0\1"
	     "\0\0\x29\4\xd0\0\0\0\0\0",
	     "OPT cut short");
	BODY(DNS_FORMERR, 1,
	     "\1a\4test\0\0\1\0\1"
	     "\1a\0\0\x29\4\xd0\0\0\0\0\0\0",
	     "OPT with a name");
	BODY(DNS_FORMERR, 1,
	     "\1a\4test\0\0\1\0\1"
	     "\0\0\xfa\4\xd0\0\0\0\0\0\0",
	     "TSIG");
	BODY(DNS_FORMERR, 1,
	     "\1a\4test\0\0\1\0\1"
	     "\0\0\x29\4\xd0\0\0\0\0\0\1x",
	     "half an option");
	BODY(DNS_FORMERR, 1,
	     "\1a\4test\0\0\1\0\1"
	     "\0\0\x29\4\xd0\0\0\0\0\0\4\0\x0a\0\1",
	     "an option longer than the record");
	BODY(DNS_FORMERR, 1,
	     "\1a\4test\0\0\1\0\1"
	     "\0\0\x29\4\xd0\0\0\0\0\0\0x",
	     "a byte behind OPT");
	BODY(DNS_FORMERR, 1,
	     "\1a\4test\0\0\1\0\1"
	     "\0\0\x29\4\xd0\1\0\0\0\0\0",
	     "an extended rcode");
	BODY(DNS_BADVERS, 1,
	     "\1a\4test\0\0\1\0\1"
	     "\0\0\x29\4\xd0\0\1\0\0\0\0",
	     "EDNS version 1");
	ok(q.edns, "which is answered with EDNS");
	BODY(DNS_REFUSED, 0, "\1a\4test\0\0\1\0\3", "class CH");
	BODY(DNS_REFUSED, 0, "\1a\4test\0\0\1\0\xff", "class ANY");
	BODY(DNS_REFUSED, 0, "\0\0\2\0\1", "the root");
	ok(q.question_n == 5, "whose question is repeated");
	BODY(DNS_NXDOMAIN, 0, "\3a b\4test\0\0\1\0\1", "a blank in a label");
	BODY(DNS_NXDOMAIN, 0, "\3a\0b\4test\0\0\1\0\1", "a NUL in a label");
	BODY(DNS_NXDOMAIN, 0, "\2\xc3\xa9\4test\0\0\1\0\1", "UTF-8 in a label");
	BODY(DNS_NXDOMAIN, 0,
	     "\3"
	     "127\1"
	     "0\1"
	     "0\1"
	     "1\0\0\1\0\1",
	     "an address as a name");
	BODY(DNS_NXDOMAIN, 0, "\2-a\4test\0\0\1\0\1", "a hyphen first");
}

static void test_long_name(void)
{
	char label[64];

	label[0] = 61;
	memset(label + 1, 'a', 63);
	start(0, 1, 0, 0, 0);
	for (int i = 0; i < 4; i++) {
		label[0] = i < 3 ? 63 : 61;
		put(&m, label, 1 + (size_t)label[0]);
	}
	PUT(&m, "\0\0\1\0\1");
	ok(decode(false) == DNS_ASK && q.name.n == 253 && q.question_n == DNS_QUESTION_MAX,
	   "a name of 253");
	start(0, 1, 0, 0, 0);
	for (int i = 0; i < 4; i++) {
		label[0] = i < 3 ? 63 : 62;
		put(&m, label, 1 + (size_t)label[0]);
	}
	PUT(&m, "\0\0\1\0\1");
	ok(refused(DNS_FORMERR), "a name of 254");
	start(0, 1, 0, 0, 0);
	for (int i = 0; i < 900; i++)
		put(&m,
		    "\x3f"
		    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		    64);
	ok(decode(true) == DNS_REFUSE && q.rcode == DNS_FORMERR, "a name of 57 KiB");
}

static void test_replies(void)
{
	static const uint8_t two[][4] = { { 198, 18, 0, 2 }, { 198, 18, 0, 3 } };
	static const char want_a[] = "\xbe\xef\x81\x80\0\1\0\2\0\0\0\0"
				     "\1A\4tesT\0\0\1\0\1"
				     "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\0\2"
				     "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\0\3";
	static const char want_ptr[] = "\xbe\xef\x80\x80\0\1\0\1\0\0\0\1"
				       "\1"
				       "2\1"
				       "0\2"
				       "18\3"
				       "198\7in-addr\4arpa\0\0\x0c\0\1"
				       "\xc0\x0c\0\x0c\0\1\0\0\0\5\0\x0c\3api\1b\4test\0"
				       "\0\0\x29\4\xd0\0\0\0\0\0\0";
	uint8_t out[600], addr[4];
	size_t n;

	start(0x0100, 1, 0, 0, 0);
	PUT(&m, "\1A\4tesT\0\0\1\0\1");
	ok(decode(false) == DNS_ASK, "asked");
	n = dns_reply_encode(&q, &(struct dns_answer){ .ttl = 60, .a = two, .a_n = 2 }, out, 512);
	ok(n == sizeof(want_a) - 1 && memcmp(out, want_a, n) == 0, "two addresses");
	n = dns_reply_encode(&q, &(struct dns_answer){ .a = two, .a_n = 2 }, out, 55);
	ok(n == 24 && out[2] == 0x83 && out[7] == 0, "no room for them: cut");
	ok(dns_reply_encode(&q, &(struct dns_answer){ .a = two, .a_n = 2 }, out, 56) == 56,
	   "just room");
	ok(dns_reply_encode(&q, &(struct dns_answer){ 0 }, out, 23) == 0,
	   "no room for the question");
	n = dns_reply_encode(&q, &(struct dns_answer){ 0 }, out, 512);
	ok(n == 24 && out[3] == 0x80 && out[7] == 0, "empty");
	for (unsigned rcode = 1; rcode < 6; rcode++) {
		n = dns_reply_encode(&q, &(struct dns_answer){ .rcode = rcode, .a = two, .a_n = 2 },
				     out, 512);
		ok(n == 24 && out[3] == (0x80 | rcode) && out[7] == 0, "rcode %u", rcode);
	}
	start(0, 1, 0, 0, 1);
	PUT(&m, "\1"
		"2\1"
		"0\2"
		"18\3"
		"198\7in-addr\4arpa\0\0\x0c\0\1"
		"\0\0\x29\4\xd0\0\0\0\0\0\0");
	ok(decode(false) == DNS_ASK && dns_ptr_v4(wire_host_name(&q.name), addr) &&
		   memcmp(addr, two[0], 4) == 0,
	   "PTR asked");
	n = dns_reply_encode(&q, &(struct dns_answer){ .ttl = 5, .ptr = SV("api.b.test") }, out,
			     512);
	ok(n == sizeof(want_ptr) - 1 && memcmp(out, want_ptr, n) == 0, "PTR answered");
	start(0, 1, 0, 0, 1);
	PUT(&m, "\1a\4test\0\0\1\0\1"
		"\0\0\x29\4\xd0\0\1\0\0\0\0");
	n = decode(false) == DNS_REFUSE
		    ? dns_reply_encode(&q, &(struct dns_answer){ .rcode = q.rcode }, out, 512)
		    : 0;
	ok(n == 35 && (out[3] & 15) == 0 && out[29] == 1, "BADVERS has its upper bits in OPT");
	start(5 << 11, 1, 0, 0, 0);
	n = decode(false) == DNS_REFUSE
		    ? dns_reply_encode(&q,
				       &(struct dns_answer){ .rcode = q.rcode, .a = two, .a_n = 2 },
				       out, 512)
		    : 0;
	ok(n == 12 && out[5] == 0 && out[3] == 0x84, "an error without a question");
}

static void test_ptr(void)
{
	static const char *const bad[] = {
		"",
		"in-addr.arpa",
		"1.in-addr.arpa",
		"1.2.3.in-addr.arpa",
		"1.2.3.4.5.in-addr.arpa",
		"256.2.3.4.in-addr.arpa",
		"01.2.3.4.in-addr.arpa",
		"1.2.3.4.in-addr.arpa.test",
		"1.2.3.4.in-addr",
		"a.2.3.4.in-addr.arpa",
		"1.2.3.4.ip6.arpa",
	};
	uint8_t a[4] = { 9, 9, 9, 9 };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(!dns_ptr_v4(sv_from(bad[i]), a) && a[0] == 9, "no address: %s", bad[i]);
}

static void test_frames(void)
{
	static const char bytes[] = "\0\x0c"
				    "abcdefghijkl"
				    "\0\x0c";
	struct sv msg;
	uint8_t len[2];

	for (size_t n = 0; n < 14; n++)
		ok(dns_frame((struct sv){ bytes, n }, &msg, &err) == WIRE_MORE, "%zu bytes", n);
	ok(dns_frame((struct sv){ bytes, 16 }, &msg, &err) == WIRE_DONE && msg.n == 12 &&
		   msg.p == bytes + 2,
	   "a whole one");
	ok(dns_frame(SV("\0\x0b"), &msg, &err) == WIRE_BAD, "too short to be a message");
	dns_frame_put(len, 0x1234);
	ok(len[0] == 0x12 && len[1] == 0x34, "a length");
}

int main(void)
{
	test_good();
	test_structure();
	test_bodies();
	test_long_name();
	test_replies();
	test_ptr();
	test_frames();
	return tap_done();
}
