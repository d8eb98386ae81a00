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
	/* Owned O_PATH descriptor of a UNIX socket's file, which a.un names by it; -1: none. */
	int keep;
	/*
	 * The socket is an IPv4 or IPv6 socket in the session's own network namespace: the mediator
	 * connects it without taking the caller's ids.
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
/* Where an IP address leads, as seen from this machine. */
enum peer_place {
	PEER_ELSEWHERE = 0, /* not a loopback address; may still be an address of this machine */
	PEER_LOOPBACK,	    /* 127.0.0.0/8 without 127.0.0.1: no name of the policy means these */
	PEER_LOCALHOST,	    /* 127.0.0.1 or ::1 */
	PEER_UNSPECIFIED,   /* 0.0.0.0 or ::, connects to localhost, listens on every address */
};

/*
 * Prints the address as the policy names it: "tcp/localhost:80", "tcp/10.0.0.1:80",
 * "tcp/[fd00::1]:80". PEER_LOCALHOST and PEER_UNSPECIFIED become "localhost". An IPv4-mapped
 * address means its IPv4 address. Returns false if the address cannot be printed.
 */
bool mediate_peer_resource(const struct peer *p, char to[96], enum peer_place *ret_place);
/*
 * Copies the path of a UNIX address and appends a NUL, which a path that fills sun_path does not
 * have. Returns false for an abstract or unnamed address.
 */
bool mediate_peer_unix_path(const struct peer *p,
			    char to[sizeof(((struct sockaddr_un *)0)->sun_path) + 1]);
/*
 * Resolves the path of a UNIX socket. "/proc/self/fd/7/name", which programs use for paths longer
 * than sun_path, is resolved from descriptor 7 of the caller.
 */
int mediate_peer_find_unix(struct call *c, const char *text, struct place *ret);
int mediate_sock_type(int sock); /* returns the type, such as SOCK_STREAM, or -1 */

/*
 * Copies the destination address of a message (@n bytes at @at) from the caller into the job @j and
 * decides about it. Returns 0 or -errno. Does nothing for a stream socket: a stream sends to its
 * connected peer, whatever address the message names.
 */
int mediate_peer_for_send(struct call *c, struct job *j, uint64_t at, uint32_t n);

/*
 * Asks egress for the address that @sock must connect to instead of @wanted. On success @sock is
 * bound to a port, and egress expects a connection from this port. Returns 0, or an -errno for the
 * caller.
 */
must_check int mediate_route_to(const struct mediator *m, int sock, bool udp,
				const struct sockaddr_storage *wanted,
				struct sockaddr_storage *ret_to, socklen_t *ret_n);

#endif
