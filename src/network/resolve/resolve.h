/*
 * resolve.h - resolve host names to addresses, in a separate process
 *
 * Theory of operation
 *
 * Egress asks for the addresses of a host name only after the policy has allowed the
 * connection, so the agent cannot send data to a name server in the names that it looks up. The
 * resolver receives struct resolve_ask packets on a socket, looks into the host's hosts file,
 * then into its cache, then sends an A and an AAAA query to the host's name servers (c-ares),
 * and answers each packet with one struct resolve_answer. When the first family has answered
 * with addresses, the resolver waits OTHER_MS for the second one: some servers never answer
 * for a family they do not have.
 *
 * SECURITY: c-ares parses packets of the network. c-ares runs in the resolver process, which drops
 * all rights but sockets and memory (confine/) before it receives the first byte. The answers of
 * the resolver are untrusted: egress checks each address (wire/address.h) whenever it connects.
 *
 * Invariants
 *   - Every ask gets exactly one answer, with the same id. At most PENDING_MAX are pending.
 *   - The host's search list is not applied; a name is asked for as it is.
 *   - The process exits when egress closes the socket. If the resolver dies, egress asks the
 *     supervisor for a new one at the next question.
 *
 * Common mistake: the hosts file is read once, at the start. Later changes have no effect.
 *
 * Reads:  the host's resolv.conf and hosts file, answers of name servers
 * Writes: DNS queries to name servers
 * Next:   egress/dial.c
 */
#ifndef WRIT_RESOLVE_RESOLVE_H
#define WRIT_RESOLVE_RESOLVE_H

#include "cap/cap.h"

enum { RESOLVE_MAX = 32 };

struct resolve_ask {
	uint32_t id;
	char name[256]; /* host name in canonical spelling */
};

struct resolve_answer {
	uint32_t id;
	uint32_t n;   /* number of addresses; 0: the name has none, or the lookup failed */
	uint32_t ttl; /* seconds for which egress may cache the answer; 0: do not cache */
	struct cap_net_addr addr[RESOLVE_MAX];
};

struct resolve_options {
	/* name servers as "192.0.2.1:53,..."; NULL: the name servers of the host */
	const char *servers;
	const char *hosts; /* path of the hosts file; NULL: none */
};

/* Serves struct resolve_ask packets on @socket until the peer closes the socket. */
_Noreturn void resolve_main(const struct resolve_options *opt, int socket);

/* --- hosts.c: the hosts file --- */

/*
 * Finds @name in the text of a hosts file and writes up to @room of its addresses. Returns the
 * number of addresses. Skips malformed lines.
 */
size_t hosts_find(struct sv file, struct sv name, struct cap_net_addr *ret, size_t room);

#endif
