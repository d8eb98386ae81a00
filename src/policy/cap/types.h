/*
 * types.h - the parsed form of a capability
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   cap/cap.h has the functions
 */
#ifndef WRIT_CAP_TYPES_H
#define WRIT_CAP_TYPES_H

#include "base/sv.h"

enum { CAP_TEXT_MAX = 4096, CAP_SEGS_MAX = 128 };

enum cap_action {
	CAP_NONE = 0,
	CAP_FS_READ,
	CAP_FS_WRITE,
	CAP_FS_PUT,
	CAP_PROC_EXEC,
	CAP_NET_CONNECT,
	CAP_NET_BIND,
	CAP_HTTP_REQUEST,
	CAP_UNIX_CONNECT,
	CAP_ENV_PASS,
	CAP_SECRET_USE,
	CAP_DEV_USE,
	CAP_GIT_USE,
	CAP_TOOL_CALL,
	CAP_AGENT_SPAWN,
	CAP_KERNEL_USE,
	CAP_STATE_USE,
	/* number of values; keep last */
	CAP_ACTION_COUNT
};

/*
 * The grammars of grants, requests and denials differ in wildcards, params and the addresses that
 * may be named.
 */
enum cap_kind { CAP_GRANT = 0, CAP_REQUEST, CAP_DENIAL };

/*
 * A segment of a resource: literal bytes in @pre, or @pre * @suf if @star. Bytes are
 * percent-decoded.
 */
struct cap_seg {
	struct sv pre, suf;
	bool star;
};

/*
 * The segments of a path, argv, git ref or URL path. @tail: the sequence ends in a double star.
 * @hole: index of the segment before which a denial has its inner double star, or SIZE_MAX.
 */
struct cap_seq {
	const struct cap_seg *segs;
	size_t n;
	bool tail;
	size_t hole;
};

enum cap_host_kind {
	CAP_HOST_NONE = 0,
	CAP_HOST_NAME, /* a name, such as api.example.com */
	CAP_HOST_ONE,  /* *.example.com */
	CAP_HOST_MANY, /* **.example.com */
	CAP_HOST_ANY,  /* ** */
	CAP_HOST_V4,
	CAP_HOST_V6,
};

struct cap_net_addr {
	uint8_t b[16]; /* address bytes; IPv4 uses the first four */
	uint8_t len;   /* prefix length; 32 or 128 for a single address */
	bool v6;
};

struct cap_host {
	enum cap_host_kind kind;
	/* host name, or the domain after the wildcard; empty for CAP_HOST_ANY and addresses */
	struct sv name;
	struct cap_net_addr addr; /* address or network, for CAP_HOST_V4 and CAP_HOST_V6 */
};

struct cap_url {
	bool tls; /* the scheme is https */
	struct cap_host host;
	uint16_t port;
	struct cap_seq path;
};

/*
 * A quick test that lets cap_set_decide() skip most entries with two comparisons. A hint is only
 * ever a reason to skip an entry, never a reason to match the entry. @need has hash bits (out of
 * 64) for each literal segment and host name of the entry; a request has the bits of all its
 * segments, so an entry with a bit that the request lacks cannot match. @want are eight bytes of
 * the entry's text at one position, compared where @mask is not 0.
 */
struct cap_hint {
	uint64_t need;
	uint64_t want, mask;
	/* position of the end of the @want bytes, counted from the end of the action's name */
	uint16_t end;
	/*
	 * If not 0, the @want bytes end (tail - 1) bytes before the end of the host name instead.
	 */
	uint16_t tail;
	uint16_t name; /* minimum length of the request's host name, if tail is not 0 */
};

struct cap {
	enum cap_action action;
	enum cap_kind kind;
	struct cap_hint hint;
	struct sv text; /* canonical text of the capability; followed by a NUL */
	struct sv realm;

	/* The resource of the capability. The action decides which member is used. */
	struct cap_seq path;  /* path of every action without a member below */
	struct cap_host host; /* host of net.connect and net.bind */
	uint16_t port_lo, port_hi;
	struct cap_url url; /* host, port and path of http.request */
	struct sv repo;	    /* repository of git.use */

	/* Params of the capability; 0, empty or NULL if absent. */
	const struct sv *approve, *methods, *sha256;
	size_t approve_n, methods_n, sha256_n;
	const struct cap_net_addr *priv;
	size_t priv_n;
	bool any_method; /* the capability has m=* */
	bool no_query;	 /* the capability has q=none */
	bool has_args;
	struct cap_seq args;
	bool has_ref;
	struct cap_seq ref;
	bool op_fetch, op_push;
	bool danger;
	bool tls_pass; /* a grant has tls=pass, or a request has tls=sni */
	bool dev_write;
	struct sv as;
	struct cap_url to;
	uint64_t n, max_in, max_out; /* 0: the param is absent */
	uint64_t rate_n, rate_s;     /* 0: the param is absent */
};

#endif
