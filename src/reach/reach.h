/*
 * reach.h - where a policy lets a session go: names, the addresses that stand
 * for them inside, ports, and one decision function
 *
 * Reads:  cap/set.h
 * Writes: nothing
 * Next:   adapter/ puts the first listeners into the jail program; egress/ and
 *         l7/ ask for each connection and request
 *
 * Names get addresses of 198.18.0.0/15 in the order in which they are first
 * named, and keep them: an answer that a program remembers stays right.
 */
#ifndef WRIT_REACH_REACH_H
#define WRIT_REACH_REACH_H

#include "cap/set.h"
#include "reach/quota.h"

enum {
	REACH_NAMES_MAX = 4096,
	REACH_PORTS_MAX = 1024, /* of one name */
	REACH_LISTENERS_MAX = 4096,
	REACH_POOL = 0xc6120000, /* 198.18.0.0 */
	REACH_OWN = REACH_POOL + 1,
	REACH_TAKEN = REACH_POOL + 2, /* nobody's: see reach_start() */
	REACH_FIRST = REACH_POOL + 16,
	REACH_DNS_PORT = 53,
	REACH_PROXY_PORT = 1080,
};

/* The host's own loopback, under a name that programs inside can look up. */
#define REACH_HOST_NAME "host.writ"
#define REACH_PROXY_NAME "proxy.writ"
#define REACH_TAKEN_NAME "taken.writ"

/* What may be done with a connection; the more is read of it, the later in the list. */
enum reach_way {
	REACH_CLOSED = 0,
	REACH_RAW,  /* any bytes */
	REACH_SNI,  /* TLS to exactly that name, not opened */
	REACH_READ, /* each request is read and decided on */
};

/* One listener: who is meant by a connection to it. */
struct reach_listener {
	enum reach_what { REACH_DNS_UDP = 0, REACH_DNS_TCP, REACH_PROXY, REACH_HOST } what;
	struct sv host; /* canonical: a name, or an address as in a capability */
	uint16_t port;
	uint8_t addr[16];
	bool v6;
};

struct reach {
	struct arena *a;
	const struct cap_set *set;
	struct sv realm;
	VEC(struct sv) names; /* by index */
};

/* Does anything in @set have to do with the network? */
bool reach_any(const struct cap_set *set);

/* @set and @realm must outlive it; @set may grow meanwhile. */
must_check int reach_init(struct arena *a, const struct cap_set *set, struct sv realm,
			  struct reach *ret, struct writ_err *err);

/* The address that stands for @name, which is canonical. 0: there are too many names. */
must_check uint32_t reach_intern(struct reach *r, struct sv name);
/* The name behind an address of the pool; empty: none. */
struct sv reach_name_of(const struct reach *r, uint32_t address);

/* Ports that some grant opens for @host, ascending. */
size_t reach_ports(const struct reach *r, struct sv host, uint16_t ret[REACH_PORTS_MAX]);

/*
 * What has to listen before anything runs: exact names, addresses, the host's ports. And
 * somebody at each port that only patterns name: so no program inside can take that port
 * of all addresses, and with it those of names that come up later.
 */
typedef VEC(struct reach_listener) reach_listeners;
must_check int reach_start(struct reach *r, reach_listeners *ret, struct writ_err *err);
/* The listener for one port of a name, after reach_intern(). */
must_check bool reach_listener_for(struct reach *r, struct sv host, uint16_t port,
				   struct reach_listener *ret);

/* --- the decision: one function, one key --- */

enum reach_proto { REACH_TCP = 0, REACH_TLS, REACH_HTTP, REACH_HTTPS };

struct reach_key {
	struct sv host;
	uint16_t port;
	enum reach_proto proto;
	struct sv method, path; /* HTTP only; the path as it stood on the wire, no query */
	bool query;
	const struct cap_net_addr *special; /* a name's address, if it is not a public one */
};

/* Why it is not to be had, in a word for records; NULL in a verdict that allows. */
struct reach_verdict {
	enum cap_answer answer;
	uint32_t rule;
	struct quota_bill bill; /* the grant, and what it costs */
	const char *why;
};
struct reach_verdict reach_decide(const struct reach *r, const struct reach_key *key);

/* How connections to @host and @port are treated. */
enum reach_way reach_way(const struct reach *r, struct sv host, uint16_t port);

/* Do requests to @host and @port come inside TLS? */
bool reach_is_tls(const struct reach *r, struct sv host, uint16_t port);

/* Does @c let TLS to its host through without reading it? */
bool reach_is_open(const struct cap *c);

/* May requests to @host and @port go to the special address @to? */
bool reach_private(const struct reach *r, struct sv host, uint16_t port,
		   const struct cap_net_addr *to);

#endif
