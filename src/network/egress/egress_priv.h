/* egress_priv.h - the state of the egress process, and the functions of its event loop */
#ifndef WRIT_EGRESS_EGRESS_PRIV_H
#define WRIT_EGRESS_EGRESS_PRIV_H

#include "egress/flow_priv.h"
#include "egress/listener_priv.h"

enum {
	CHUNK = 256 << 10, /* bytes moved by one call */
	BULK = 64 << 10,   /* bytes after which a transfer uses splice() */
	TURN = 1 << 20,	   /* bytes of one flow after which other flows get their turn */
	FLOWS_MAX = 20000,
	WAITING_MAX = 2048, /* flows that are not connected yet */
	STAGGER_MS = 250,   /* delay between attempts to connect to the addresses of a name */
	/* delay between attempts through the operator's proxy, which tries addresses itself */
	STAGGER_VIA_MS = 3000,
	/* most addresses of a destination that egress asks the operator's proxy for */
	TARGETS_VIA = 4,
	DIAL_MS = 30000, /* limit for connecting to the destination */
	HEAD_MS = 10000, /* limit for a client to name its destination */
	HEAD_MAX = 64 << 10,
	LOOKUPS_MAX = 256, /* DNS replies that wait for listeners */
	TCP_LOOKUPS = 64,  /* TCP connections with DNS queries */
	PAUSE_MS = 50,
	LOST_MAX = 2,	/* resolvers that may end before a flow's name is resolved */
	BINDS_MAX = 32, /* bind requests without an answer */
	EXPECTED_MAX = 512,
	PIPES = 64, /* idle pipes kept for reuse */
	KNOWN = 64, /* names with cached addresses */
	KNOWN_ADDRS = 8,
	ASKED_MAX = 512,  /* names that are being resolved */
	ASKERS_MAX = 256, /* flows that wait for one name */
};

/* A socket to another process of writ. */
struct peer {
	enum kind kind;
	int fd;	     /* -1: no socket; for the mediator, 0: no socket */
	bool wanted; /* egress has asked the supervisor to start the process */
	bool gone;   /* the mediator has ended */
};

/* Cached addresses of a name. Egress checks each address again whenever it dials the address. */
struct known {
	struct sv host; /* points to memory of a listener or of struct reach */
	uint64_t until_ms;
	uint32_t n;
	struct cap_net_addr addr[KNOWN_ADDRS];
};

/* A question to the resolver that is not answered yet. */
struct asked {
	uint32_t id; /* id of the first flow that asked for the name */
	uint32_t askers;
	struct sv host; /* name to resolve; all flows that wait for this name get the answer */
};

/* State of dial.c. */
struct dialer {
	const struct upstream *upstream; /* the operator's proxy; NULL: connect directly */
	int route[2];			 /* datagram sockets of is_local_address(): IPv4, IPv6 */
	struct asked asked[ASKED_MAX];
	size_t asked_n;
	struct known known[KNOWN];
	size_t known_next;
};

/* State of dns_server.c. */
struct dns_server {
	VEC(struct lookup) lookups;
	struct dns_client *clients; /* TCP connections */
	size_t clients_n;
};

/* State of shared_network.c. */
struct shared_network {
	uint16_t git_port;
	struct listener *listeners[3];
	struct expected expected[EXPECTED_MAX];
};

/* State of finish.c. */
struct finish {
	bool begun, done;
	bool last_sent;	   /* the reader has been told that no more clients will come */
	uint64_t limit_ms; /* when to give up delivering */
	uint64_t moved_ms; /* when a peer last acknowledged bytes */
	uint64_t acked;
};

/* State of tunnel.c. */
struct relay {
	int pipes[PIPES][2]; /* idle pipes */
	size_t pipes_n;
	char chunk[CHUNK];
};

/* A question to a person about a host and port. */
struct answer {
	struct sv host;
	uint16_t port;
	uint32_t pending; /* id of the open question; 0: answered yes for the session */
};

struct egress {
	struct arena arena;
	struct cap_set set; /* egress's own copy of the policy, which grows with live grants */
	struct reach reach;
	struct quota quota;
	struct sv session;
	int epoll;
	struct peer supervisor, resolver, reader, mediator;
	VEC(struct listener *) listeners;
	size_t bind_next, binding; /* next listener to request; bind requests without an answer */
	struct flow *flows;	   /* flows that are tunnels */
	struct flow *waiting;	   /* flows with a setup */
	struct flow *queue;	   /* tunnels that have used up their turn */
	struct flow *dead;	   /* flows to free after this round of events */
	struct setup *dead_setups; /* setups to free after this round of events */
	size_t flows_n, waiting_n, half_closed_n;
	uint32_t ids;
	uint64_t now_ms, now_us; /* monotonic clock, read once per round */
	uint64_t due_ms;	 /* when the next timer is due */
	bool starved;		 /* egress is out of descriptors, and listeners are paused */
	VEC(struct answer) answers;
	struct dialer dial;
	struct dns_server dns;
	struct shared_network shared;
	struct finish finish;
	struct relay relay;
};

/* main.c */
void egress_watch(struct egress *e, int fd, uint32_t events, void *what);
/*
 * Ends the watch of @fd. SECURITY: close() alone does not end the watch while another process
 * shares the open file; later events would then point to freed memory.
 */
void egress_unwatch(struct egress *e, int fd);
void egress_rewatch(struct egress *e, int fd, uint32_t events, void *what);
void egress_notify(struct egress *e, uint32_t type, uint32_t id, const void *text, size_t n);
void egress_event(struct egress *e, const struct egress_event *ev);
void egress_wake(struct egress *e, uint64_t at_ms); /* run timers at @at_ms or earlier */
void egress_copy_text(char *to, size_t room, struct sv from);

/* finish.c: the end of the session */
void egress_finish_begin(struct egress *e, uint32_t ms);
void egress_finish_listeners(struct egress *e, bool take);
void egress_finish_check(struct egress *e);

#endif
