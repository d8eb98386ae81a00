/*
 * dns.h - decode the DNS queries of a session and encode the replies
 *
 * Reads:  DNS queries of the session
 * Writes: DNS replies, into the caller's bytes
 * Next:   egress/dns_server.c answers from the policy alone; no query is forwarded
 *
 * SECURITY: forwarding queries would let the agent send data out in the names it asks for.
 * A reply therefore depends only on the policy and on addresses that writ itself assigns.
 *
 * A query has one question of class IN, uncompressed, and at most one OPT record. Any other
 * query is answered with an error; a message that is not a query, or has a wrong length, is
 * dropped. The reply repeats the question byte for byte: resolvers that randomise the case of
 * names (0x20) compare the question with their own.
 */
#ifndef WRIT_WIRE_DNS_H
#define WRIT_WIRE_DNS_H

#include "wire/name.h"

enum {
	DNS_UDP_MAX = 512,
	DNS_TCP_MAX = 65535,
	DNS_QUESTION_MAX = 255 + 4,
	/* UDP size that the OPT record of a reply announces; writ's replies are far smaller */
	DNS_REPLY_ROOM = 1232,
};

enum dns_type {
	DNS_A = 1,
	DNS_PTR = 12,
	DNS_AAAA = 28,
	DNS_OPT = 41,
};

/* RCODE values of the protocol. Values above 15 need an OPT record in the reply. */
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
	DNS_DROP = 0, /* the message is not a query, or has a wrong length: send no reply */
	DNS_REFUSE,   /* reply with the error @rcode */
	DNS_ASK,      /* the query is a valid question about @name */
};

struct dns_query {
	uint16_t id;
	uint16_t type;	   /* enum dns_type or any other value */
	uint16_t udp_size; /* longest UDP reply that the client accepts, 512 to 65535 bytes */
	bool want_recursion, edns;
	enum dns_rcode rcode;  /* error code, for DNS_REFUSE */
	struct wire_host name; /* requested name, for DNS_ASK */
	uint16_t question_n;   /* length of @question; 0: the reply does not repeat the question */
	uint8_t question[DNS_QUESTION_MAX];
};

/*
 * Decodes the query @msg: one datagram, or one message of a TCP stream without its length prefix.
 * With DNS_DROP, *@ret_query is unchanged; with any other result, dns_reply_encode() accepts
 * *@ret_query. Sets @err unless the result is DNS_ASK.
 */
enum dns_verdict dns_query_decode(struct sv msg, bool tcp, struct dns_query *ret_query,
				  struct writ_err *err);

/* The content of a reply. Without addresses and @ptr, DNS_NOERROR gives an empty answer. */
struct dns_answer {
	enum dns_rcode rcode;
	uint32_t ttl;
	const uint8_t (*a)[4]; /* IPv4 addresses */
	size_t a_n;
	struct sv ptr; /* canonical name that answers a PTR question; empty: none */
};

/*
 * Writes the reply to query @q and returns the length of the reply, or 0 if @room cannot hold even
 * the question. If the records do not fit, the reply omits all records and sets TC, so that the
 * client retries over TCP.
 */
size_t dns_reply_encode(const struct dns_query *q, const struct dns_answer *a, uint8_t *out,
			size_t room);

/* Parses the address in a reverse name such as "4.3.2.1.in-addr.arpa". */
must_check bool dns_ptr_v4(struct sv name, uint8_t ret_addr[static 4]);

/*
 * Splits a TCP stream into messages: after WIRE_DONE, *@ret_msg is the first message of @bytes,
 * without its two-byte length prefix.
 */
enum wire_state dns_frame(struct sv bytes, struct sv *ret_msg, struct writ_err *err);
void dns_frame_put(uint8_t out[static 2], size_t n);

#endif
