/*
 * egress_priv.h - what the files of the egress process share
 *
 * Reads:  egress/egress.h
 * Writes: nothing
 * Next:   main.c has the loop
 */
#ifndef WRIT_EGRESS_EGRESS_PRIV_H
#define WRIT_EGRESS_EGRESS_PRIV_H

#include "egress/egress.h"
#include "wire/upstream.h"

enum {
	CHUNK = 256 << 10, /* bytes moved at once */
	BULK = 64 << 10,   /* from here on the kernel moves them without us */
	TURN = 1 << 20,	   /* bytes before somebody else has a turn */
	FLOWS_MAX = 20000,
	WAITING_MAX = 2048, /* of them not connected yet */
	ATTEMPTS = 4,	    /* addresses tried at once */
	STAGGER_MS = 250,
	STAGGER_VIA_MS = 3000, /* through a proxy that dials by itself */
	VIA_MAX = 4,
	TARGETS_VIA = 4, /* addresses that it is asked for */
	DIAL_MS = 30000,
	HEAD_MS = 10000, /* to say where to */
	HEAD_MAX = 64 << 10,
	LOOKUPS_MAX = 256, /* names asked for whose listeners are being made */
	TCP_LOOKUPS = 64,
	REST_MS = 50,
	LOST_MAX = 2,	/* resolvers that one name may cost */
	BINDS_MAX = 32, /* sockets asked for and not there yet */
	EXPECTED_MAX = 512,
	PIPES = 64, /* kept for the next one */
	KNOWN = 64, /* names whose addresses are kept */
	KNOWN_ADDRS = 8,
	ASKED_MAX = 512,  /* names that are being looked up */
	ASKERS_MAX = 256, /* that wait for one of them */
};

/* First member of all that epoll points to. Flows are told apart by their lowest bit. */
enum kind {
	KIND_FLOW = 0,
	KIND_LISTENER,
	KIND_ATTEMPT,
	KIND_BOSS,
	KIND_RESOLVER,
	KIND_READER,
	KIND_LOOKUP, /* a connection that asks for names */
	KIND_ROUTE,  /* the mediator, where the network is shared */
	KIND_DEAD,   /* to be freed after this round */
};

struct listener {
	enum kind kind;
	int fd; /* -1: not yet */
	struct reach_listener l;
	uint8_t way;  /* enum reach_way */
	bool publish; /* outside, for `listen` */
	bool resting; /* nobody is accepted for a moment */
	bool wanted;  /* the supervisor is, or will be, asked for it */
	bool failed;  /* and could not get it */
	bool told;    /* which is on record */
	bool shared;  /* on the host's loopback: only for who is expected */
};

/* A connection that the mediator has announced. */
struct expected {
	uint32_t id;
	uint16_t from; /* the port it comes from; 0: not known yet */
	uint16_t port;
	uint8_t way;
	bool git, udp;
	struct sv host;
	uint64_t due_ms;
};

enum flow_state {
	FLOW_HEAD = 0, /* what it wants is still being read */
	FLOW_ASKED,    /* a person decides */
	FLOW_NAME,     /* its addresses are being looked up */
	FLOW_DIAL,
	FLOW_INSIDE, /* waits for a socket that can connect inside */
	FLOW_UNREAD, /* waits for somebody who reads its requests */
	FLOW_TUNNEL,
	FLOW_DEAD,
};

/* Bytes on their way in one direction, only while they cannot be passed on. */
struct transfer {
	char *bytes;
	size_t at, n;
	int pipe[2]; /* or -1 */
	size_t in_pipe;
};

struct attempt {
	enum kind kind;
	int fd; /* -1: free */
	struct flow *flow;
	struct cap_net_addr to;
	bool speaking; /* with the upstream proxy, which was asked for @to */
};

/* Addresses of a name, as they were answered: each is checked whenever it is dialled. */
struct known {
	struct sv host; /* tied to the listeners' or reach's */
	uint64_t until_ms;
	uint32_t n;
	struct cap_net_addr addr[KNOWN_ADDRS];
};

/* What a flow needs until it is a tunnel. */
struct setup {
	struct setup *next_dead;
	uint64_t due_ms;   /* when something has to happen */
	uint64_t limit_ms; /* when it is too late */
	struct cap_net_addr addrs[RESOLVE_MAX];
	uint32_t addrs_n, next;
	struct attempt attempts[ATTEMPTS];
	struct cap_net_addr via[VIA_MAX]; /* of the upstream proxy, if it goes through that */
	uint32_t via_n;
	bool by_proxy, naming_via; /* its addresses are being looked up */
	unsigned proxy_said;
	char *head; /* bytes of the agent's that were read already */
	size_t head_n;
	uint8_t speaks; /* enum wire_protocol of a proxy's client; 0: none */
	uint8_t stage;	/* enum head_stage */
	bool told;	/* that it may go ahead */
	char host[256]; /* as it was asked for, while nobody knows it */
	bool left;	/* who came sends no more */
	bool sent;	/* the resolver was asked, or for a socket inside */
	uint8_t lost;	/* and went away before it answered, so many times */
	char dropped[256];
};

enum { READABLE = 1u << 0, HUNG_UP = 1u << 1, AT_END = 1u << 2, SHUT = 1u << 3 };

struct flow {
	enum kind kind;
	uint8_t state; /* enum flow_state */
	uint8_t way;
	uint8_t side[2]; /* READABLE and so on: 0 is who came, 1 whom we dialled */
	bool queued, proxy, publish, for_reader;
	int fd[2];
	uint16_t port;
	uint32_t id;
	struct quota_bill bill; /* its entry is SIZE_MAX: none */
	uint32_t reader_id;
	struct sv host;
	uint64_t bytes[2]; /* by whom they were sent */
	uint64_t started_us;
	struct transfer *moving[2];
	struct setup *setup;
	struct flow *next, *prev; /* all flows; or those still in setup */
	struct flow *queue;	  /* has more to do */
};

/* A name that somebody waits for while its listeners are made. */
struct lookup {
	struct sv name;
	int fd; /* where the answer goes; a connection of KIND_LOOKUP, or the datagram socket */
	uint8_t peer[28]; /* sockaddr, for datagrams */
	uint32_t peer_n;
	uint32_t missing; /* listeners */
	uint16_t query_n;
	uint8_t query[512];
};

struct egress {
	struct arena arena;
	struct cap_set set; /* ours: it grows with live grants */
	struct reach reach;
	struct quota quota;
	struct sv session;
	int epoll, boss, resolver, reader;
	enum kind boss_kind, resolver_kind, reader_kind;
	const struct upstream *upstream; /* NULL: what may be dialled is dialled directly */
	int route[2]; /* sockets that tell which way an address lies: IPv4, IPv6 */
	VEC(struct listener *) listeners;
	size_t bind_next, binding;
	struct flow *flows, *waiting, *queue, *dead;
	struct setup *dead_setups; /* freed after this round, as dead flows are */
	size_t flows_n, waiting_n, left_n;
	uint32_t ids;
	uint64_t now_ms, now_us, due_ms;
	bool wants_resolver, wants_reader, starved; /* out of descriptors: accept later */
	bool finishing, finished, last_told;
	bool deaf;			     /* the mediator is gone */
	uint64_t finish_ms, moved_ms, acked; /* when it is too late; when something last moved */
	VEC(struct lookup) lookups;
	struct asker *askers;
	size_t tcp_lookups;
	VEC(struct answer) answers;
	uint16_t git_port;
	int route_socket; /* to the mediator, where the network is shared; else 0 */
	enum kind route_kind;
	struct listener *shared[3];
	struct expected expected[EXPECTED_MAX];
	struct asked {
		uint32_t id; /* of the flow that was first */
		uint32_t askers;
		struct sv host; /* all that wait for it have the answer */
	} asked[ASKED_MAX];
	size_t asked_n;
	struct known known[KNOWN];
	size_t known_next;
	int pipes[PIPES][2];
	size_t pipes_n;
	char chunk[CHUNK];
};

/* A person said yes for the whole session. */
struct answer {
	struct sv host;
	uint16_t port;
	uint32_t pending; /* not 0: still being asked, under this number */
};

/* main.c */
void egress_watch(struct egress *e, int fd, uint32_t events, void *what);
/*
 * SECURITY: closing alone does not end the watch while another process has the same open
 * file, and what it leads to is freed.
 */
void egress_unwatch(struct egress *e, int fd);
void egress_rewatch(struct egress *e, int fd, uint32_t events, void *what);
void egress_tell(struct egress *e, uint32_t type, uint32_t id, const void *text, size_t n);
void egress_event(struct egress *e, const struct egress_event *ev);
void egress_wake(struct egress *e, uint64_t at_ms);
void copy_text(char *to, size_t room, struct sv from);

/* listen.c: where those inside connect to */
struct listener *egress_add_listener(struct egress *e, const struct reach_listener *l);
void egress_open_listener(struct egress *e, struct listener *l, int fd);
struct listener *egress_listener(struct egress *e, const struct reach_listener *l,
				 int fd); /* both */
/* Has @host a listener at @port, or will it get one? */
must_check bool egress_has_listener(const struct egress *e, struct sv host, uint16_t port);
must_check bool egress_bind(struct egress *e, struct sv host, uint16_t port);
void egress_bind_more(struct egress *e);		  /* asks for what has to wait no longer */
void egress_bound(struct egress *e, uint32_t id, int fd); /* and here it is; -1: it is not */
/* There is no room for one more: those who come to @l wait in the kernel. */
void egress_rest(struct egress *e, struct listener *l);
void egress_end_rest(struct egress *e);

/* shared.c: sessions without a network of their own */
void shared_open(struct egress *e);
void shared_heard(struct egress *e);
must_check bool shared_take(struct egress *e, bool udp, uint16_t from, struct expected *ret);
void shared_forget(struct egress *e, uint32_t id);

/* flow.c */
void flow_accept(struct egress *e, struct listener *l);
void flow_ready(struct egress *e, struct flow *f, unsigned side, uint32_t events);
void flow_decide(struct egress *e, struct flow *f); /* host, port and way are known */
void flow_refuse(struct egress *e, struct flow *f, enum cap_answer answer, uint32_t rule,
		 const char *why);
void flow_answered(struct egress *e, uint32_t id, uint32_t answer);
void flow_connected(struct egress *e, struct flow *f, int fd, const struct cap_net_addr *to);
void flow_close(struct egress *e, struct flow *f, bool reset, const char *why);
void flow_cut(struct egress *e, struct flow *f, const char *why); /* nobody denied it */
void flow_timers(struct egress *e);
void flow_inside(struct egress *e, uint32_t id, int fd);
void flow_set_due(struct egress *e, struct flow *f, uint64_t due_ms);
struct flow *flow_for_reader(struct egress *e, uint32_t reader_id);
void flow_forget(struct egress *e, struct flow *f); /* without a word */
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

/* upstream.c: through a proxy of the operator's */
must_check bool upstream_takes(const struct egress *e, struct setup *s);
must_check bool upstream_ask(const struct egress *e, struct attempt *a);
enum upstream_state { UPSTREAM_FAILED = 0, UPSTREAM_WAIT, UPSTREAM_OPEN };
must_check enum upstream_state upstream_heard(struct egress *e, struct attempt *a, uint32_t events);

/* finish.c: the end of the session */
void finish_begin(struct egress *e, uint32_t ms);
void finish_listeners(struct egress *e, bool take);
void finish_look(struct egress *e);
/* Which of its sides is the session's? */
static inline unsigned flow_inner(const struct flow *f)
{
	return f->publish ? 1 : 0;
}

/* head.c: what a client says before it is known where it goes */
void head_read(struct egress *e, struct flow *f);
void head_refuse(struct egress *e, struct flow *f, enum cap_answer answer, const char *why);
void head_accepted(struct flow *f);
/* @host, which some rule reaches, in memory that lasts. Empty: there are too many. */
struct sv head_lasting(struct egress *e, struct sv host);

/* name.c: names asked for */
void name_datagram(struct egress *e, struct listener *l);
void name_accept(struct egress *e, struct listener *l);
void name_ready(struct egress *e, void *conn, uint32_t events);
void name_bound(struct egress *e, struct sv host);
void name_timers(struct egress *e);

/* reader.c: flows whose requests are read */
void reader_pass(struct egress *e, struct flow *f);
void reader_heard(struct egress *e);
void reader_came(struct egress *e);
void reader_last(struct egress *e); /* nobody more comes for it */
void reader_dialled(struct egress *e, struct flow *f, int fd, const struct cap_net_addr *to,
		    const char *why);

#endif
