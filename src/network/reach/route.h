/*
 * route.h - messages between the mediator and egress in sessions on the host's network
 *
 * Reads:  nothing
 * Writes: nothing; only the layout is shared
 * Next:   mediate/route.c sends requests, egress/shared_network.c answers them
 *
 * A session on the host's network has no network namespace of its own, so the mediator redirects
 * its connect() calls. The mediator sends ASK with the wanted destination. Egress answers with one
 * of its ports on the host's loopback. The mediator binds the agent's socket to a local port,
 * reports that port as BOUND, and connects the socket.
 *
 * SECURITY: any program of the host can connect to that loopback port. Egress serves only
 * connections that come from a port announced by BOUND, and rejects all others.
 */
#ifndef WRIT_REACH_ROUTE_H
#define WRIT_REACH_ROUTE_H

#include <stdint.h>

enum route_type { ROUTE_NOTHING = 0, ROUTE_ASK, ROUTE_ANSWER, ROUTE_BOUND };

struct route_message {
	uint32_t type; /* enum route_type */
	/* number that egress chooses for an ANSWER; the BOUND for the same socket repeats it */
	uint32_t id;
	int32_t err;   /* in an ANSWER: 0, or an errno for the agent */
	/*
	 * ASK: port that the agent wants; ANSWER: port of egress on the host's loopback; BOUND:
	 * local port of the agent's socket
	 */
	uint16_t port;
	uint8_t v6, udp;
	uint8_t addr[16]; /* in an ASK: destination address; IPv4 uses the first four bytes */
};

#endif
