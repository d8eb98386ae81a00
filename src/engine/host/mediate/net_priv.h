/*
 * net_priv.h - addresses of sockets, for connect.c, bind.c, route.c and send.c
 */
#ifndef WRIT_MEDIATE_NET_PRIV_H
#define WRIT_MEDIATE_NET_PRIV_H

#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/attr.h"

struct call;
struct job;
struct mediator;
struct place;

/* An address that was copied from the caller's memory. */
struct peer {
	union {
		struct sockaddr sa;
		struct sockaddr_un un;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_nl nl;
		unsigned char raw[sizeof(struct sockaddr_storage)];
	} a;
	socklen_t n;
	int keep; /* O_PATH descriptor of a UNIX socket's file, which a.un then names; owned */
	/*
	 * an inet address in the session's own network namespace: connect without taking the
	 * caller's ids
	 */
	bool plain;
};
#define PEER_NONE                                                                                  \
	{                                                                                          \
		.keep = -1                                                                         \
	}
#define scoped_peer __attribute__((cleanup(mediate_peer_clear))) struct peer

void mediate_peer_clear(struct peer *p);
int mediate_peer_read(struct call *c, uint64_t at, uint64_t n, struct peer *p); /* 0 or -errno */
/*
 * Prints the address as the policy names it: "tcp/localhost:80", "tcp/10.0.0.1:80",
 * "tcp/[fd00::1]:80". Returns false if the address cannot be printed.
 */
bool mediate_peer_resource(const struct peer *p, char to[96], bool *ret_local);
/*
 * Copies the path from @p and appends a NUL: sun_path may fill its array without a NUL. Returns
 * false for an abstract or unnamed address.
 */
bool mediate_peer_unix_path(const struct peer *p,
			    char to[sizeof(((struct sockaddr_un *)0)->sun_path) + 1]);
/*
 * Resolves the path of a UNIX socket. "/proc/self/fd/7/name", which programs use for paths longer
 * than sun_path, is resolved from descriptor 7 of the caller.
 */
int mediate_peer_find_unix(struct call *c, const char *text, struct place *ret);
int mediate_sock_type(int sock); /* returns SOCK_STREAM or another type, or -1 */

/*
 * Copies and decides the destination address of a message. Does nothing for a stream socket: a
 * stream sends to its connected peer, whatever address the message names.
 */
int mediate_peer_for_send(struct call *c, struct job *j, uint64_t at, uint32_t n);

/*
 * Asks egress for the address that @sock must connect to instead of @wanted. On success @sock is
 * bound and egress expects a connection from the port of @sock. Returns 0, or an -errno for the
 * caller.
 */
must_check int mediate_route_to(const struct mediator *m, int sock, bool udp,
				const struct sockaddr_storage *wanted,
				struct sockaddr_storage *ret_to, socklen_t *ret_n);

#endif
