/* egress_priv.h - the state of the egress process, and the functions of its event loop */
#ifndef WRIT_EGRESS_EGRESS_PRIV_H
#define WRIT_EGRESS_EGRESS_PRIV_H

#include "egress/flow_priv.h"
#include "egress/listener_priv.h"

enum {
	CHUNK = 256 << 10, /* most bytes that one recv() or splice() moves */
	BULK = 64 << 10,   /* bytes that a direction moves in a turn before it uses splice() */
	/* bytes that a direction moves in a turn, before other flows get theirs */
	TURN = 1 << 20,
	FLOWS_MAX = 20000,
	WAITING_MAX = 2048, /* most flows that are not connected yet */
	STAGGER_MS = 250,   /* delay before egress also tries the next address of a destination */
	/* the same delay through the operator's proxy, which tries addresses itself */
	STAGGER_VIA_MS = 3000,
	/* most addresses of a destination that egress asks the operator's proxy for */
	TARGETS_VIA = 4,
	DIAL_MS = 30000, /* time limit for resolving a name, and again for connecting */
	/* time that a client has to name its destination; also the limit of similar short steps */
	HEAD_MS = 10000,
	HEAD_MAX = 64 << 10,
	LOOKUPS_MAX = 256, /* most DNS replies that wait for listeners */
	TCP_LOOKUPS = 64,  /* most TCP connections with DNS queries */
	PAUSE_MS = 50,
	LOST_MAX = 2,	/* most resolvers that may end before a flow's name is resolved */
	BINDS_MAX = 32, /* most bind requests without an answer */
	EXPECTED_MAX = 512,
	PIPES = 64, /* most idle pipes that egress keeps for reuse */
	KNOWN = 64, /* most names with cached addresses */
	KNOWN_ADDRS = 8,
	ASKED_MAX = 512,  /* most questions to the resolver without an answer, one per name */
	ASKERS_MAX = 256, /* most flows that wait for one name */
};

/* A socket to another process of writ. */
struct peer {
	enum kind kind;
	int fd;	     /* the socket; -1 means none, and for the mediator 0 means none */
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

/* State of dial.c, which connects flows to their destinations. */
struct dialer {
	const struct upstream *upstream; /* the operator's proxy; NULL: connect directly */
	int route[2];			 /* datagram sockets of is_local_address(): IPv4, IPv6 */
	struct asked asked[ASKED_MAX];
	size_t asked_n;
	struct known known[KNOWN];
	size_t known_next;
};

/* State of dns_server.c, the DNS server of the session. */
struct dns_server {
	VEC(struct lookup) lookups;
	struct dns_client *clients; /* open TCP connections of clients */
	size_t clients_n;
};

/* State of shared_network.c, for a session on the host's network. */
struct shared_network {
	uint16_t git_port;
	struct listener *listeners[3];
	struct expected expected[EXPECTED_MAX];
};

/* State of finish.c, which delivers the last bytes of a session. */
struct finish {
	bool begun, done;
	bool last_sent;	   /* egress has told the reader that no more clients will come */
	uint64_t limit_ms; /* monotonic time at which egress gives up delivering */
	/* time of the last progress: a peer acknowledged bytes, or a flow stopped waiting */
	uint64_t moved_ms;
	uint64_t acked;
};

/* State of tunnel.c, which relays bytes. */
struct relay {
	int pipes[PIPES][2]; /* idle pipes */
	size_t pipes_n;
	char chunk[CHUNK];
};

/* A question to a person about a host and port, or the person's yes for the rest of the session. */
struct answer {
	struct sv host;
	uint16_t port;
	uint32_t pending; /* id of the open question; 0: a person answered yes for the session */
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
	/* index of the next listener to request, and number of bind requests without an answer */
	size_t bind_next, binding;
	struct flow *flows;	   /* flows that are tunnels */
	struct flow *waiting;	   /* flows that are not tunnels yet */
	/* tunnels that have used up their turn and have more bytes to move */
	struct flow *queue;
	struct flow *dead;	   /* flows to free after this round of events */
	struct setup *dead_setups; /* setups to free after this round of events */
	size_t flows_n, waiting_n, half_closed_n;
	uint32_t ids;
	uint64_t now_ms, now_us; /* monotonic clock, read once per round */
	uint64_t due_ms;	 /* monotonic time at which the next timer is due */
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
/* Makes the loop run all timers at @at_ms, or earlier. */
void egress_wake(struct egress *e, uint64_t at_ms);
void egress_copy_text(char *to, size_t room, struct sv from);

/* finish.c: the end of the session */
void egress_finish_begin(struct egress *e, uint32_t ms);
void egress_finish_listeners(struct egress *e, bool take);
void egress_finish_check(struct egress *e);

#endif
