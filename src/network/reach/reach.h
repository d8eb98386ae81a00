/*
 * reach.h - decide which hosts, ports and requests a policy lets a session reach
 *
 * Theory of operation
 *
 * A session has no route to the network. Each destination that its policy names gets a
 * listener inside the session; egress owns those listeners and decides about every
 * connection that arrives. This module holds the parts of that scheme which are pure
 * functions of the policy:
 *
 *   - Addresses for names. DNS inside the session answers a name with an address of
 *     198.18.0.0/15 (reserved for benchmarks, so no real host has it). A name keeps its
 *     address for the whole session, in the order of first use, so a cached answer stays
 *     correct. The address alone then identifies the name that a connection is for.
 *   - Listeners. reach_start() lists those that must exist before the first program runs: DNS,
 *     the proxy, every exact name, address and port of the policy. Names that match only a
 *     pattern get theirs when they are looked up (reach_listener_for()).
 *   - The decision. reach_decide() turns a connection or request into a capability and asks
 *     cap/. Every caller decides with this function and the same key.
 *   - The treatment of a connection, enum reach_way: forwarded as it is, forwarded after its
 *     TLS server name was checked, or decrypted and judged request by request.
 *   - Limits. quota.h counts uses, rates and bytes against the limits of the rules that a decision
 *     used.
 *
 * Invariants
 *   - Names are canonical (wire/name.h) before they get here; comparison is by bytes.
 *   - A use that cannot be counted is denied.
 *   - Live grants append to the set, and revoking one clears its entry in place. Indexes into
 *     the set therefore stay valid.
 *
 * Common mistakes
 *   - A verdict of CAP_ALLOW does not charge anything. Call quota_use() with its bill.
 *   - The path in the key is the one from the wire. cap_put_http_path() normalises it; do not
 *     normalise it a second time.
 *
 * Reads:  cap/set.h
 * Writes: nothing
 * Next:   compile/ puts the first listeners into the jail program; egress/ and l7/ ask for
 *         each connection and request
 */
#ifndef WRIT_REACH_REACH_H
#define WRIT_REACH_REACH_H

#include "cap/set.h"
#include "reach/quota.h"

enum {
	REACH_NAMES_MAX = 4096,
	REACH_PORTS_MAX = 1024, /* most ports of one name */
	REACH_LISTENERS_MAX = 4096,
	REACH_POOL = 0xc6120000, /* 198.18.0.0, the base of the session's pool of addresses */
	REACH_OWN = REACH_POOL + 1,
	/*
	 * address of listeners that reserve ports for names that are looked up
	 * later; see reach_start()
	 */
	REACH_TAKEN = REACH_POOL + 2,
	REACH_FIRST = REACH_POOL + 16,
	REACH_DNS_PORT = 53,
	REACH_PROXY_PORT = 1080,
};

/*
 * Names that writ defines. REACH_HOST_NAME leads to the host's own loopback, and REACH_PROXY_NAME
 * to the session's own address, which has the proxy port. REACH_TAKEN_NAME is the host of the
 * listeners at REACH_TAKEN.
 */
#define REACH_HOST_NAME "host.writ"
#define REACH_PROXY_NAME "proxy.writ"
#define REACH_TAKEN_NAME "taken.writ"

/* Treatment of a connection, in the order of how much egress examines it. */
enum reach_way {
	REACH_CLOSED = 0,
	REACH_RAW,  /* forward all bytes unread */
	REACH_SNI,  /* check the server name of the TLS hello, then forward all bytes encrypted */
	REACH_READ, /* decrypt TLS, if any, and decide about each request */
};

/* A listener inside the session, and the destination of connections to it. */
struct reach_listener {
	enum reach_what { REACH_DNS_UDP = 0, REACH_DNS_TCP, REACH_PROXY, REACH_HOST } what;
	/* canonical name, or address as in a capability; empty for DNS and the proxy */
	struct sv host;
	uint16_t port;
	uint8_t addr[16];
	bool v6;
};

/* Returns the IPv4 address @b as a number. */
static inline uint32_t reach_v4(const uint8_t b[static 4])
{
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

struct reach {
	struct arena *a;
	const struct cap_set *set;
	struct sv realm;
	VEC(struct sv) names; /* names that have an address; index: the address minus REACH_FIRST */
};

/* Tests whether @set contains a grant to connect, to send requests or to publish a port. */
bool reach_any(const struct cap_set *set);

/* Initialises *@ret. @set and @realm must outlive *@ret; @set may grow meanwhile. */
must_check int reach_init(struct arena *a, const struct cap_set *set, struct sv realm,
			  struct reach *ret, struct writ_err *err);

/*
 * Returns the address inside the session for the canonical @name, and assigns an address at first
 * use. 0: too many names.
 */
must_check uint32_t reach_intern(struct reach *r, struct sv name);
/* Returns the name that @address is assigned to; empty: no name. */
struct sv reach_name_of(const struct reach *r, uint32_t address);

/* Writes the ports that any grant opens for @host, in ascending order. Returns their number. */
size_t reach_ports(const struct reach *r, struct sv host, uint16_t ret[REACH_PORTS_MAX]);

/*
 * Lists the listeners that must exist before the first program runs: for exact names, addresses,
 * and the host's ports. SECURITY: a port that only patterns name gets a listener on REACH_TAKEN.
 * Without this listener, a program inside could bind the port on all addresses and receive
 * connections meant for a name that is looked up later.
 */
typedef VEC(struct reach_listener) reach_listeners;
must_check int reach_start(struct reach *r, reach_listeners *ret, struct writ_err *err);
/*
 * Describes the listener for one port of @host, and assigns an address if @host is a name without
 * an address. Returns false if there are too many names.
 */
must_check bool reach_listener_for(struct reach *r, struct sv host, uint16_t port,
				   struct reach_listener *ret);

/* --- The decision: every caller uses one function and one key. --- */

enum reach_proto { REACH_TCP = 0, REACH_TLS, REACH_HTTP, REACH_HTTPS };

struct reach_key {
	struct sv host;
	uint16_t port;
	enum reach_proto proto;
	/* for HTTP: the method, and the path as received, without the query */
	struct sv method, path;
	bool query;
	/* the resolved address, if it is not public; else NULL */
	const struct cap_net_addr *special;
};

/* A decision about a connection or request, and the reason of a denial. */
struct reach_verdict {
	enum cap_answer answer;
	uint32_t rule;
	struct quota_bill bill; /* the rules to charge if the caller proceeds */
	enum cap_reason reason; /* class of the denial's reason */
	enum cap_cause cause;	/* reason of the denial; CAUSE_NONE: allowed, or a person decides */
	const char *detail;	/* detail of @cause; NULL: none */
};
struct reach_verdict reach_decide(const struct reach *r, const struct reach_key *key);

/* Returns how egress treats connections to @host and @port. */
enum reach_way reach_way(const struct reach *r, struct sv host, uint16_t port);

/* Tests whether a rule names an https URL of @host and @port, so that requests to it use TLS. */
bool reach_is_tls(const struct reach *r, struct sv host, uint16_t port);

/* Tests whether @c allows every https request to its host, so that TLS need not be decrypted. */
bool reach_is_open(const struct cap *c);

/* Tests whether a rule lets requests to @host and @port reach the non-public address @to. */
bool reach_private(const struct reach *r, struct sv host, uint16_t port,
		   const struct cap_net_addr *to);

#endif
