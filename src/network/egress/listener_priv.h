/* listener_priv.h - where programs of the session connect, and the names they look up */
#ifndef WRIT_EGRESS_LISTENER_PRIV_H
#define WRIT_EGRESS_LISTENER_PRIV_H

#include "egress/flow_priv.h"

struct listener {
	enum kind kind;
	int fd; /* socket of the listener; -1: not bound yet, or closed */
	struct reach_listener l;
	uint8_t way;   /* enum reach_way */
	/* the listener is on the host, for a port of the session that `listen` published */
	bool publish;
	bool paused;   /* egress is out of descriptors and accepts nothing here for PAUSE_MS */
	bool wanted;   /* egress has asked, or will ask, the supervisor to bind the listener */
	bool failed;   /* the last bind failed */
	bool reported; /* egress has recorded the failed bind */
	/* the listener is on the host's loopback and serves only connections that were announced */
	bool shared;
};

/* A connection that the mediator has announced (sessions on the host's network). */
struct expected {
	uint32_t id;
	/* source port of the connection; 0: the mediator has not bound the socket yet */
	uint16_t from;
	uint16_t port;
	uint8_t way; /* enum reach_way */
	bool git, udp;
	struct sv host;
	uint64_t due_ms;
};

/* A DNS query whose reply waits for listeners. */
struct lookup {
	struct sv name;
	/* socket to which the reply goes: a TCP connection (KIND_LOOKUP) or the UDP socket */
	int fd;
	uint8_t peer[28]; /* address of a UDP client */
	uint32_t peer_n;
	uint32_t missing; /* number of listeners that the reply still waits for */
	uint16_t query_n;
	uint8_t query[512];
};

/* listen.c: the listeners inside the session */
struct listener *egress_add_listener(struct egress *e, const struct reach_listener *l);
void egress_open_listener(struct egress *e, struct listener *l, int fd);
/* Tests whether @host has a listener at @port, even if it is not bound yet or its bind failed. */
must_check bool egress_has_listener(const struct egress *e, struct sv host, uint16_t port);
must_check bool egress_bind(struct egress *e, struct sv host, uint16_t port);
void egress_request_binds(struct egress *e);
/* Handles the supervisor's answer to a bind request; @fd is -1 if the bind failed. */
void egress_bound(struct egress *e, uint32_t id, int fd);
/* Stops accepting from @l for PAUSE_MS; clients wait in the kernel's backlog. */
void egress_pause_listener(struct egress *e, struct listener *l);
void egress_resume_listeners(struct egress *e);

/* shared_network.c: sessions on the host's network */
void egress_shared_open(struct egress *e);
void egress_shared_receive(struct egress *e);
must_check bool egress_shared_take(struct egress *e, bool udp, uint16_t from, struct expected *ret);

/* dns_server.c: answers to the session's DNS queries */
void egress_dns_datagram(struct egress *e, struct listener *l);
void egress_dns_accept(struct egress *e, struct listener *l);
void egress_dns_ready(struct egress *e, void *conn);
void egress_dns_bound(struct egress *e, struct sv host);
void egress_dns_timers(struct egress *e);

#endif
