/*
 * route.h - connections of a session without a network of its own
 *
 * Reads:  mediate/mediate_priv.h
 * Writes: the agent's sockets
 * Next:   net.c connects them
 */
#ifndef WRIT_MEDIATE_ROUTE_H
#define WRIT_MEDIATE_ROUTE_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/attr.h"

struct mediator;

/*
 * Where @sock is to be connected instead of @wanted. Afterwards it is bound, and
 * egress expects it. 0, or a negative errno for the agent.
 */
must_check int route_to(const struct mediator *m, int sock, bool udp,
			const struct sockaddr_storage *wanted, struct sockaddr_storage *ret_to,
			socklen_t *ret_n);

#endif
