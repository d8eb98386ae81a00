/* flow_priv.h - one connection through egress, from accept() to close() */
#ifndef WRIT_EGRESS_FLOW_PRIV_H
#define WRIT_EGRESS_FLOW_PRIV_H

#include "egress/egress.h"
#include "wire/upstream.h"

struct egress;
struct listener;

enum {
	ATTEMPTS = 4, /* most addresses of a destination that egress tries at the same time */
	VIA_MAX = 4,  /* addresses of the operator's proxy */
};

/* Type of a struct that epoll points to, in its first member; dispatch() switches on it. */
enum kind {
	KIND_FLOW = 0, /* a flow; the lowest bit of the pointer is the side of the flow */
	KIND_LISTENER,
	KIND_ATTEMPT,
	KIND_SUPERVISOR,
	KIND_RESOLVER,
	KIND_READER,
	KIND_LOOKUP, /* a TCP connection that carries DNS queries; not a flow */
	KIND_ROUTE,  /* the socket to the mediator of a session on the host's network */
	KIND_DEAD,   /* a struct that the loop frees after this round of events */
};

enum flow_state {
	FLOW_HEAD = 0, /* state of a new flow: egress waits for the client's first bytes */
	FLOW_ASKED,    /* a person decides about the flow */
	FLOW_NAME,     /* the resolver resolves the name */
	FLOW_DIAL,     /* egress connects to the destination */
	FLOW_INSIDE,   /* the flow waits for a socket that can connect inside the session */
	FLOW_UNREAD,   /* the flow waits for a reader */
	FLOW_TUNNEL,
	FLOW_DEAD,
};

/* Bytes that egress has read from one side and that the other side does not accept yet. */
struct transfer {
	char *bytes;
	size_t at, n;
	int pipe[2]; /* pipe for splice(); -1: none */
	size_t in_pipe;
};

/* A connect() in progress to one address. */
struct attempt {
	enum kind kind;
	int fd; /* socket that connects; -1: the attempt is unused */
	struct flow *flow;
	struct cap_net_addr to;
	bool requested; /* egress has sent CONNECT for @to to the operator's proxy */
};

/* State that a flow needs only until it is a tunnel. */
struct setup {
	struct setup *next_dead;
	uint64_t due_ms;   /* monotonic time of the flow's next timer */
	uint64_t limit_ms; /* monotonic time at which the current step of the flow times out */
	struct cap_net_addr addrs[RESOLVE_MAX];
	uint32_t addrs_n, next;
	struct attempt attempts[ATTEMPTS];
	struct cap_net_addr via[VIA_MAX]; /* addresses of the operator's proxy */
	uint32_t via_n;
	bool by_proxy; /* the flow goes through the operator's proxy */
	/* the flow waits for the addresses of the operator's proxy, not of the destination */
	bool resolving_proxy;
	unsigned proxy_status; /* HTTP status of the proxy's last answer to CONNECT; 0: no answer */
	char *head;	       /* bytes that egress has read from the client and not consumed yet */
	size_t head_n;
	/* enum wire_protocol of a client of the proxy port; 0: not known, or not such a client */
	uint8_t protocol;
	uint8_t stage;	  /* enum head_stage, the progress of client_head.c */
	bool replied;	  /* the client of the proxy port has received its answer */
	/* text of the host that the client requested; @host of the flow may point here */
	char host[256];
	bool half_closed; /* the client has half-closed and sends no more bytes */
	/* egress has asked the resolver for the name, or the supervisor for a socket */
	bool sent;
	uint8_t resolvers_lost; /* number of resolvers that ended before they answered this flow */
	char dropped[256];	/* resolved addresses that the address check refused, as text */
};

/*
 * Flags of flow.side[]. READABLE: a read may return bytes. HUNG_UP: the peer may have closed,
 * half-closed or failed, because epoll reported it or the end of the session requires a check.
 * AT_END: a read has returned the end of the stream. SHUT: nothing is left to do about that end:
 * egress has passed it on or discarded it, or the close of the flow passes it on.
 */
enum { READABLE = 1u << 0, HUNG_UP = 1u << 1, AT_END = 1u << 2, SHUT = 1u << 3 };

struct flow {
	enum kind kind;
	uint8_t state;	 /* enum flow_state */
	uint8_t way;	 /* enum reach_way */
	uint8_t reason;	 /* enum cap_reason of the decision about the flow */
	uint8_t side[2]; /* flags such as READABLE, for the client [0] and the server [1] */
	bool queued, proxy, publish, for_reader;
	int fd[2];
	uint16_t port;
	uint32_t id;
	struct quota_bill bill; /* rules to which the bytes are charged; entry SIZE_MAX: none */
	/* for a flow that the reader requested: the id that the reader chose */
	uint32_t reader_id;
	struct sv host;
	uint64_t bytes[2]; /* bytes sent by the client [0] and the server [1] */
	uint64_t started_us;
	struct transfer *moving[2];
	struct setup *setup;	  /* state until the flow is a tunnel; NULL: it is one */
	struct flow *next, *prev; /* next and previous flow in egress.flows or egress.waiting */
	struct flow *queue;	  /* next flow in egress.queue */
};

/* Returns the side of the flow that is inside the session. */
static inline unsigned flow_inner(const struct flow *f)
{
	return f->publish ? 1 : 0;
}

/* flow.c */
void flow_accept(struct egress *e, struct listener *l);
void flow_ready(struct egress *e, struct flow *f, unsigned side, uint32_t events);
/* Decides about a flow whose host, port and way are known. */
void flow_decide(struct egress *e, struct flow *f);
void flow_refuse(struct egress *e, struct flow *f, enum cap_answer answer, uint32_t rule,
		 enum cap_cause cause);
void flow_refuse_detail(struct egress *e, struct flow *f, enum cap_answer answer, uint32_t rule,
			enum cap_cause cause, const char *detail);
void flow_answered(struct egress *e, uint32_t id, uint32_t answer);
void flow_connected(struct egress *e, struct flow *f, int fd, const struct cap_net_addr *to);
/*
 * Ends a flow and records the end. @reset: both sides get a reset. @cause: the denial that ends the
 * flow; CAUSE_NONE: no denial.
 */
void flow_close(struct egress *e, struct flow *f, bool reset, enum cap_cause cause);
/* Resets a flow and records the end, for a cause that is not a denial. */
void flow_cut(struct egress *e, struct flow *f, enum cap_cause cause);
void flow_timers(struct egress *e);
void flow_inside(struct egress *e, uint32_t id, int fd);
void flow_set_due(struct egress *e, struct flow *f, uint64_t due_ms);
struct flow *flow_for_reader(struct egress *e, uint32_t reader_id);
/*
 * Ends and records the flows that a reader requested before it ended. SECURITY: the next reader
 * chooses its ids from 1 again, and must not get a connection that the old reader requested.
 */
void flow_reader_lost(struct egress *e);
/* Closes a flow without recording it. free_dead() frees it later: epoll may still report it. */
void flow_drop(struct egress *e, struct flow *f, bool reset);
struct flow *flow_by_id(struct egress *e, uint32_t id);

/* tunnel.c */
void tunnel_run(struct egress *e, struct flow *f);
void tunnel_free(struct egress *e, struct flow *f);

/* dial.c */
void dial_start(struct egress *e, struct flow *f);
void dial_resolved(struct egress *e, const struct resolve_answer *a);
void dial_event(struct egress *e, struct attempt *a, uint32_t events);
void dial_timer(struct egress *e, struct flow *f);
void dial_stop(struct egress *e, struct flow *f);
void dial_ask_all(struct egress *e);
void dial_ask_again(struct egress *e);

/* client_head.c: the client's first bytes, which name the destination */
void egress_head_read(struct egress *e, struct flow *f);
void egress_head_refuse(struct egress *e, struct flow *f, enum cap_answer answer,
			const struct cap_why *why);
void egress_head_accepted(struct flow *f);
/*
 * Returns the name or address that a client asks for; writes an address to @room. An address of the
 * session's pool becomes the name that it was assigned to, and REACH_HOST_NAME becomes "localhost".
 */
struct sv egress_head_host(const struct egress *e, const struct wire_host *h, char *room,
			   size_t room_n);
/* Returns a permanent copy of @host, a host that some rule reaches. Empty: too many names. */
struct sv egress_head_intern(struct egress *e, struct sv host);

/* reader.c: flows whose requests the reader reads */
void reader_hand_over(struct egress *e, struct flow *f);
void reader_receive(struct egress *e);
void reader_attached(struct egress *e);
/*
 * Handles the end of the reader, which closed the connections that it held. The supervisor starts
 * another reader and sends its socket.
 */
void reader_lost(struct egress *e);
void reader_send_last(struct egress *e); /* tells the reader that no more clients will come */
void reader_dialled(struct egress *e, struct flow *f, int fd, const struct cap_net_addr *to,
		    const struct cap_why *why);

#endif
