/*
 * dns.h - the questions a session asks, and the answers it gets
 *
 * Reads:  DNS queries of the session
 * Writes: DNS replies, into the caller's bytes
 * Next:   the caller answers from policy alone; nothing is forwarded
 *
 * A query has one question, of class IN, uncompressed, and at most an OPT record;
 * anything else is answered with an error or, if it is no query at all, not at
 * all. The question is repeated byte for byte, so that a resolver that mixes
 * upper and lower case finds its own mixture again.
 */
#ifndef WRIT_WIRE_DNS_H
#define WRIT_WIRE_DNS_H

#include "wire/name.h"

enum {
	DNS_UDP_MAX = 512,
	DNS_TCP_MAX = 65535,
	DNS_QUESTION_MAX = 255 + 4,
	DNS_REPLY_ROOM = 1232, /* what we say we would take; ours are far smaller */
};

enum dns_type {
	DNS_A = 1,
	DNS_NS = 2,
	DNS_CNAME = 5,
	DNS_SOA = 6,
	DNS_PTR = 12,
	DNS_TXT = 16,
	DNS_AAAA = 28,
	DNS_OPT = 41,
	DNS_SVCB = 64,
	DNS_HTTPS = 65,
	DNS_ANY = 255,
};

/* Numbers of the protocol; 16 needs an OPT record in the reply. */
enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16,
};

enum dns_verdict {
	DNS_DROP = 0, /* no query: say nothing */
	DNS_REFUSE,   /* answer with @rcode */
	DNS_ASK,      /* a good question about @name */
};

struct dns_query {
	uint16_t id;
	uint16_t type;	   /* enum dns_type, or any other */
	uint16_t udp_size; /* how long a reply by UDP may be, 512 to 65535 */
	bool want_recursion, edns;
	enum dns_rcode rcode;  /* of DNS_REFUSE */
	struct wire_host name; /* of DNS_ASK */
	uint16_t question_n;   /* 0: not repeated */
	uint8_t question[DNS_QUESTION_MAX];
};

/*
 * @msg is one datagram, or one message of a TCP stream without its length. With
 * DNS_DROP *@ret_query is untouched; otherwise it is what dns_reply_encode() needs.
 * @err says what is wrong unless it is DNS_ASK.
 */
enum dns_verdict dns_query_decode(struct sv msg, bool tcp, struct dns_query *ret_query,
				  struct writ_err *err);

/* Nothing but @rcode: an empty answer if it is DNS_NOERROR. */
struct dns_answer {
	enum dns_rcode rcode;
	uint32_t ttl;
	const uint8_t (*a)[4]; /* IPv4 addresses */
	size_t a_n;
	struct sv ptr; /* a canonical host name, or empty */
};

/*
 * Writes the reply to @q and returns its length; 0 if not even the question has
 * @room. Records that have none are left out and the reply says that it is cut.
 */
size_t dns_reply_encode(const struct dns_query *q, const struct dns_answer *a, uint8_t *out,
			size_t room);

/* The address that "4.3.2.1.in-addr.arpa" asks for. */
must_check bool dns_ptr_v4(struct sv name, uint8_t ret_addr[static 4]);

/*
 * TCP: is there a whole message at the start of @bytes? *@ret_msg is then a view
 * of it, 2 bytes behind the start.
 */
enum wire_state dns_frame(struct sv bytes, struct sv *ret_msg, struct writ_err *err);
void dns_frame_put(uint8_t out[static 2], size_t n);

#endif
