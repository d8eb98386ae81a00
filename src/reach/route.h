/*
 * route.h - what the mediator and egress say to each other where a session shares
 * the host's network
 *
 * Reads:  nothing
 * Writes: nothing; both sides share only this layout
 * Next:   mediate/route.c asks, egress/shared.c answers
 *
 * The mediator asks where a connection may go. The answer is a port of egress on
 * the loopback. It binds the agent's socket there, says which port that got, and
 * connects it: so egress knows whom it talks to, and turns everybody else away.
 */
#ifndef WRIT_REACH_ROUTE_H
#define WRIT_REACH_ROUTE_H

#include <stdint.h>

enum route_type { ROUTE_NOTHING = 0, ROUTE_ASK, ROUTE_ANSWER, ROUTE_BOUND };

struct route_message {
	uint32_t type; /* enum route_type */
	uint32_t id;   /* of an answer and what was bound for it */
	int32_t err;   /* ANSWER: 0, or an errno */
	uint16_t port; /* ASK: wanted; ANSWER: of egress; BOUND: the agent's */
	uint8_t v6, udp;
	uint8_t addr[16]; /* ASK; IPv4 in the first four */
};

#endif
