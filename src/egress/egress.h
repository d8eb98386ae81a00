/*
 * egress.h - the one way out: a process that accepts what the jail's listeners
 * get, decides, dials and relays
 *
 * Reads:  a policy's set, bytes of agents and of servers
 * Writes: connections, events to the supervisor
 * Next:   session/net.c starts it and answers it
 *
 * It lives in the host's network with no files and few system calls. What it
 * cannot do itself (bind inside, resolve a name, open TLS, ask a person) it asks
 * the supervisor for.
 */
#ifndef WRIT_EGRESS_EGRESS_H
#define WRIT_EGRESS_EGRESS_H

#include "reach/quota.h"
#include "reach/reach.h"
#include "resolve/resolve.h"

enum egress_type {
	EGRESS_NOTHING = 0,
	/* from the supervisor */
	EGRESS_LISTENERS, /* descriptors: @count listeners from number @id on */
	EGRESS_BOUND,	  /* descriptor for EGRESS_BIND @id; none: it could not be had */
	EGRESS_RESOLVER,  /* descriptor: whom to ask for addresses */
	EGRESS_READER,	  /* descriptor: who reads requests */
	EGRESS_ANSWER,	  /* to EGRESS_ASK @id: @count is not 0 if allowed */
	EGRESS_GRANT,	  /* @text is a capability */
	EGRESS_REVOKE,
	EGRESS_FINISH, /* nobody inside is alive: what they sent is passed on, for @count ms */
	/* to the supervisor */
	EGRESS_BIND, /* @text is a struct egress_bind */
	EGRESS_WANT_RESOLVER,
	EGRESS_WANT_READER,
	EGRESS_ASK,	 /* @text is a struct egress_event: what a person is asked */
	EGRESS_EVENT,	 /* @text is a struct egress_event */
	EGRESS_GIT,	 /* descriptor: a connection for the git helper */
	EGRESS_READY,	 /* from the reader: @text is the certificate of its authority, PEM */
	EGRESS_FINISHED, /* nothing is left of what EGRESS_FINISH was for */
};

/* How long the last bytes of a session may take, and how long none of them may move. */
enum { FINISH_MS = 5000, FINISH_STILL_MS = 2000, FINISH_LOOK_MS = 10 };

enum { EGRESS_TEXT = CAP_TEXT_MAX, EGRESS_FDS = 64 };

struct egress_message {
	uint32_t type;
	uint32_t id, count;
	uint32_t text_n;
	char text[EGRESS_TEXT]; /* only what is used of it is sent */
};

struct egress_bind {
	uint8_t addr[16];
	uint16_t port;
	uint8_t v6;
	uint8_t dial; /* no listener: a socket that can connect inside */
};

enum egress_what {
	EGRESS_LOOKUP = 0, /* a name was asked for */
	EGRESS_OPEN,	   /* a connection was decided on, and dialled if allowed */
	EGRESS_CLOSE,	   /* it is over */
	EGRESS_REQUEST,	   /* a request was read and decided on */
	EGRESS_PUBLISH,	   /* somebody outside came to a port that `listen` published */
};

/* What is on record; all of it made harmless before a person sees it. */
struct egress_event {
	uint32_t what;	 /* enum egress_what */
	uint32_t answer; /* enum cap_answer */
	uint32_t rule, flow;
	uint32_t status; /* of a request */
	uint16_t port;
	uint8_t way;   /* enum reach_way */
	uint8_t proxy; /* asked for by name, not by address */
	uint64_t up, down;
	uint64_t asked_us, dialled_us, lasted_us; /* each counted from the start */
	char host[256];
	char address[64];  /* dialled */
	char dropped[256]; /* addresses that were not */
	char why[96];
	char method[20], path[512], credential[64];
};

/* A port of the session's that the host's own loopback has, too. */
struct egress_port {
	uint16_t port;
	int fd; /* listens there */
};

struct upstream;

struct egress_options {
	const struct cap_set *set;
	struct sv realm, session;
	const struct reach_listener *listeners; /* as reach_start() gave them */
	size_t listeners_n;
	const struct reach *names;	 /* the ones given addresses so far */
	const struct egress_port *ports; /* published outside */
	size_t ports_n;
	const struct upstream *upstream; /* a proxy that everything public goes through; NULL */
	struct quota_total *totals;	 /* shared with the reader; NULL: nothing is limited */
	struct quota_shared counters;	 /* of its tokens; no cells: there are none */
	uint16_t git_port; /* of the session's own address, where the network is shared; 0: none */
	int route; /* to the mediator of a session that shares our network; 0: it has its own */
};

/* Runs until the supervisor goes away. */
_Noreturn void egress_main(const struct egress_options *opt, int boss);

/* One message either way; fds are closed by the caller. Returns 1, 0 at the end, -1 for EAGAIN. */
must_check int egress_send(int socket, const struct egress_message *m, const int *fds, size_t n);
must_check int egress_receive(int socket, struct egress_message *ret, int fds[EGRESS_FDS],
			      size_t *ret_n);

#endif
