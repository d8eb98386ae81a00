/*
 * egress.h - the session's only way to the network: accept, decide, dial, relay
 *
 * Theory of operation
 *
 * A session has no network of its own to the outside. Programs inside connect to listeners
 * that stand for the destinations their policy names (reach.h). Egress is the process that
 * owns those listeners. It runs in the host's network, with no files and few system calls.
 * For each accepted connection (a *flow*) egress
 *
 *   1. learns the destination: from the listener, from the request to the proxy port, or from
 *      the server name of a TLS hello (client_head.c);
 *   2. decides with reach_decide(), and asks a person through the supervisor if the rule says
 *      so (flow.c);
 *   3. resolves the name, checks each address, and connects to exactly the checked addresses,
 *      several at a time (dial.c), or has the operator's proxy connect;
 *   4. relays bytes until both sides have closed or a limit is used up (tunnel.c).
 *
 * If the requests to a destination must be read, egress hands its connections to l7, the *reader*
 * (reader.c), and then only dials servers on the reader's behalf. Egress answers DNS queries of the
 * session from the policy (dns_server.c). A session that shares the host's network reaches egress
 * through the mediator (shared_network.c).
 *
 * States of a flow: HEAD (destination not known yet) -> ASKED (a person decides) -> NAME
 * (resolving) -> DIAL (connecting) -> TUNNEL (relaying) -> DEAD. A connection to a published
 * port goes through INSIDE instead, waiting for a socket in the session's namespace; a flow
 * for the reader waits in UNREAD until a reader exists.
 *
 * Egress asks the supervisor for all that egress cannot do itself: bind inside, start a resolver or
 * a reader, ask a person, write the record. If the supervisor goes away, egress exits.
 *
 * Invariants
 *   - No byte of the agent leaves before a decision. Egress sends each decision to the supervisor,
 *     for the record, before it relays a byte.
 *   - Egress dials the address that it checked, and does not resolve the name again for the same
 *     connection.
 *   - Memory that an epoll event of the current round may still point to is freed only after
 *     the round (KIND_DEAD).
 *   - Counts of pending flows, lookups, binds and questions are bounded.
 *
 * Common mistakes
 *   - epoll is edge-triggered for flows: READABLE stays set until a read returns EAGAIN.
 *   - Closing a descriptor does not end its watch while another process shares the open file.
 *     Call egress_unwatch() first.
 *   - flow_refuse() and flow_close() end the flow and take its setup away; touch neither
 *     afterwards.
 *
 * Reads:  a policy's set, bytes of agents and of servers
 * Writes: connections, events to the supervisor
 * Next:   session/ starts the process and answers its requests
 */
#ifndef WRIT_EGRESS_EGRESS_H
#define WRIT_EGRESS_EGRESS_H

#include <sys/types.h>

#include "reach/quota.h"
#include "reach/reach.h"
#include "resolve/resolve.h"

enum egress_type {
	EGRESS_NOTHING = 0,
	/* from the supervisor to egress */
	/* descriptors: @count sockets, for the session's listeners from number @id on */
	EGRESS_LISTENERS,
	/* answer to EGRESS_BIND @id; descriptor: the bound socket; none: the bind failed */
	EGRESS_BOUND,
	EGRESS_RESOLVER, /* answer to EGRESS_WANT_RESOLVER; descriptor: socket to a new resolver */
	EGRESS_READER,	 /* descriptor: socket to a new reader */
	/* a person's answer to EGRESS_ASK @id; @count: 0 no, 1 yes, once, 2 yes, for the session */
	EGRESS_ANSWER,
	EGRESS_GRANT,  /* egress adds the capability in @text to the policy */
	EGRESS_REVOKE, /* egress removes the capability in @text from the policy */
	/* all programs of the session have ended; deliver their last bytes within @count ms */
	EGRESS_FINISH,
	/* from egress to the supervisor */
	EGRESS_BIND, /* request for a socket inside the session; @text is a struct egress_bind */
	EGRESS_WANT_RESOLVER,
	EGRESS_WANT_READER,
	EGRESS_ASK,	 /* question for a person; @text is a struct egress_event */
	EGRESS_EVENT,	 /* entry for the record; @text is a struct egress_event */
	/* descriptor: a client's connection, which the supervisor passes to the git helper */
	EGRESS_GIT,
	EGRESS_READY,	 /* from the reader: @text is the certificate of the session's CA, in PEM */
	EGRESS_FINISHED, /* egress has completed EGRESS_FINISH */
};

/*
 * Milliseconds for the delivery after EGRESS_FINISH. FINISH_MS: limit for the whole delivery.
 * FINISH_STILL_MS: limit for a time without progress. FINISH_LOOK_MS: interval between two checks
 * of the progress.
 */
enum { FINISH_MS = 5000, FINISH_STILL_MS = 2000, FINISH_LOOK_MS = 10 };

enum { EGRESS_TEXT = CAP_TEXT_MAX, EGRESS_FDS = 64 };

struct egress_message {
	uint32_t type;
	uint32_t id, count;
	uint32_t text_n;
	char text[EGRESS_TEXT]; /* only the first @text_n bytes are sent */
};

struct egress_bind {
	uint8_t addr[16];
	uint16_t port;
	uint8_t v6;
	/* 1: request a socket that can connect inside the session; 0: request a listener */
	uint8_t dial;
};

enum egress_what {
	EGRESS_LOOKUP = 0, /* egress refused to resolve a name that the session looked up */
	/* egress refused a connection, or allowed and dialled it, or failed to dial it */
	EGRESS_OPEN,
	EGRESS_CLOSE,	   /* a connection has ended */
	EGRESS_REQUEST,	   /* the reader decided about a request */
	/* a client outside the session connected to a port that `listen` published */
	EGRESS_PUBLISH,
};

/*
 * An entry of the record, or a question to a person (EGRESS_ASK). The agent chooses some of the
 * texts, so the supervisor escapes them before a person sees them.
 */
struct egress_event {
	uint32_t what;	 /* enum egress_what */
	uint32_t answer; /* enum cap_answer */
	uint32_t rule, flow;
	uint32_t status; /* HTTP status of a response, for EGRESS_REQUEST */
	uint16_t port;
	uint8_t way; /* enum reach_way */
	/* the client named the host to the proxy, instead of connecting to an address */
	uint8_t proxy;
	uint8_t reason; /* enum cap_reason, of a denial */
	uint64_t up, down;
	/*
	 * microseconds from the start of the connection or request until a person answered, until
	 * the server was reached, and until the event
	 */
	uint64_t asked_us, dialled_us, lasted_us;
	char host[256];
	char address[64];  /* the address that egress dialled */
	char dropped[256]; /* resolved addresses that the address check refused, as text */
	struct cap_why why; /* reason of a denial or failure */
	char method[20], path[512], credential[64];
};

/* A port of the session that is published on the host's loopback. */
struct egress_port {
	uint16_t port;
	int fd; /* socket that listens at this port of the host */
};

struct upstream;

struct egress_options {
	const struct cap_set *set;
	struct sv realm, session;
	const struct reach_listener *listeners; /* listeners that reach_start() described */
	size_t listeners_n;
	/* names that already have an address of the session's pool */
	const struct reach *names;
	const struct egress_port *ports; /* ports of the session that are published on the host */
	size_t ports_n;
	/* the operator's proxy, through which public addresses are reached; NULL: none */
	const struct upstream *upstream;
	/*
	 * the session's byte and request totals, shared with the reader and the git helper; NULL:
	 * the policy has no such limit
	 */
	struct quota_total *totals;
	/* counters shared with other sessions; without cells and pools: none */
	struct quota_shared counters;
	/*
	 * port of the git helper at the session's own address, for a session on
	 * the host's network; 0: none
	 */
	uint16_t git_port;
	/*
	 * socket to the mediator of a session on the host's network; 0: the
	 * session has its own network
	 */
	int route;
};

/* Runs egress until the supervisor closes @supervisor. */
_Noreturn void egress_main(const struct egress_options *opt, int supervisor);

/*
 * Send or receive one message. The caller closes @fds. egress_send() returns 1, or -1 on failure.
 * egress_receive() returns 1 on success, 0 at the end of the stream and after an error or an
 * invalid message, or -1 if no message is waiting.
 */
must_check int egress_send(int socket, const struct egress_message *m, const int *fds, size_t n);
must_check int egress_receive(int socket, struct egress_message *ret, int fds[EGRESS_FDS],
			      size_t *ret_n);
/*
 * Receives a packet of at most @room bytes and up to @most descriptors. Returns the number of bytes
 * received, which is 0 at the end of the stream and after an error, or -1 for EAGAIN.
 */
must_check ssize_t egress_receive_packet(int socket, void *ret_bytes, size_t room, int *ret_fds,
					 size_t most, size_t *ret_n);

/*
 * Adds the capability of an EGRESS_GRANT to @set, or removes that of an EGRESS_REVOKE from the live
 * grants in @set. Entries of the set keep their index, because flows and calls refer to entries by
 * index. Returns false if the capability cannot be parsed.
 */
must_check bool egress_rule_apply(const struct egress_message *m, struct arena *a,
				  struct cap_set *set);

#endif
