/*
 * cap.h - canonical capabilities: one string per meaning, and their algebra
 *
 * Reads:  capability strings (docs/capabilities.md is the normative text)
 * Writes: nothing
 * Next:   cap/set.h collects them; policy/ lowers rules to them; plan/ and
 *         token/ read them
 *
 * A capability exists only by parsing its canonical text, so there is one
 * constructor and one set of checks. All memory is in the caller's arena; a
 * struct cap is const once parsed and may be copied by value.
 */
#ifndef WRIT_CAP_CAP_H
#define WRIT_CAP_CAP_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

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
	/* keep last */
	CAP_ACTION_COUNT
};

/* How a text is to be read: the three grammars share everything else. */
enum cap_kind { CAP_GRANT = 0, CAP_REQUEST, CAP_DENIAL };

/* A segment: literal bytes, or prefix * suffix. Bytes are percent-decoded. */
struct cap_seg {
	struct sv pre, suf;
	bool star;
};

/*
 * A path, argv, ref or urlpath. @tail: ends in a double star. @hole is the
 * index before which a denial's inner double star stands, or SIZE_MAX.
 */
struct cap_seq {
	const struct cap_seg *segs;
	size_t n;
	bool tail;
	size_t hole;
};

enum cap_host_kind {
	CAP_HOST_NONE = 0,
	CAP_HOST_NAME,	 /* api.example.com */
	CAP_HOST_ONE,	 /* *.example.com */
	CAP_HOST_MANY,	 /* **.example.com */
	CAP_HOST_ANY,	 /* ** */
	CAP_HOST_V4,
	CAP_HOST_V6,
};

struct cap_net_addr {
	uint8_t b[16]; /* IPv4 in the first four */
	uint8_t len;   /* prefix length; 32 or 128 for one address */
	bool v6;
};

struct cap_host {
	enum cap_host_kind kind;
	struct sv name;		  /* without the wildcard */
	struct cap_net_addr addr; /* V4 and V6 only */
};

struct cap_url {
	bool tls; /* https */
	struct cap_host host;
	uint16_t port;
	struct cap_seq path;
};

/*
 * What a request must have for a grant or denial to match it: cap_set_decide()
 * skips most entries by two comparisons. Only ever a reason to skip, never to
 * match. @need has one bit of 64 for each literal segment and host name, by
 * hash; in a request, for all it has. @want are eight bytes at one place of the
 * text, where @mask is not 0.
 */
struct cap_hint {
	uint64_t need;
	uint64_t want, mask;
	uint16_t end;  /* where they end, counted from the end of the action's name */
	uint16_t tail; /* not 0: from the end of the host's name, this many bytes back */
	uint16_t name; /* and the name has at least so many */
};

struct cap {
	enum cap_action action;
	enum cap_kind kind;
	struct cap_hint hint;
	struct sv text; /* canonical, NUL-terminated behind the view */
	struct sv realm;

	/* Resource; which member is meant follows from the action. */
	struct cap_seq path;  /* fs, exec, unix, env, secret, dev, tool, ... */
	struct cap_host host; /* net.* */
	uint16_t port_lo, port_hi;
	struct cap_url url; /* http.request */
	struct sv repo;	    /* git.use */

	/* Params; 0, empty or NULL if absent. */
	const struct sv *approve, *methods, *sha256;
	size_t approve_n, methods_n, sha256_n;
	const struct cap_net_addr *priv;
	size_t priv_n;
	bool any_method; /* m=* */
	bool no_query;	 /* q=none */
	bool has_args;
	struct cap_seq args;
	bool has_ref;
	struct cap_seq ref;
	bool op_fetch, op_push;
	bool danger;
	bool tls_pass; /* grant: tls=pass; request: tls=sni */
	bool dev_write;
	struct sv as;
	struct cap_url to;
	uint64_t n, max_in, max_out; /* 0: absent */
	uint64_t rate_n, rate_s;     /* 0: absent */
};

/* Parses @text, which is copied into @a. Refuses what is not canonical. */
must_check
int cap_parse(struct arena *a, enum cap_kind kind, struct sv text,
	      struct cap *ret_cap, struct writ_err *err);

/* Section 3: does grant @c match request @req? */
bool cap_matches(const struct cap *c, const struct cap *req);

/* Section 6: does denial @d match request @req? */
bool cap_denies(const struct cap *d, const struct cap *req);

/* Section 4: both are grants. */
bool cap_within(const struct cap *child, const struct cap *parent);

/*
 * Section 5: both are grants. *@ret_any says whether there is a meet; *@ret_cap
 * is only set if so.
 */
must_check
int cap_meet(struct arena *a, const struct cap *x, const struct cap *y,
	     struct cap *ret_cap, bool *ret_any, struct writ_err *err);

const char *cap_action_name(enum cap_action action); /* "fs.read" */

/* In the byte order of the keys, which is the order they must have. */
enum cap_param {
	P_APPROVE = 0,
	P_ARGS,
	P_AS,
	P_DANGER,
	P_M,
	P_MAX_IN,
	P_MAX_OUT,
	P_N,
	P_O,
	P_OP,
	P_PRIV,
	P_Q,
	P_RATE,
	P_REF,
	P_SHA256,
	P_TLS,
	P_TO,
	/* keep last */
	P_COUNT
};
struct sv cap_param_key(enum cap_param param); /* "max-in" */

/* --- Building canonical text from raw bytes; the results are parts of a cap. --- */

/* Appends one segment's canonical text for literal bytes @raw ("a b" -> "a%20b"). */
void cap_put_seg(struct buf *b, struct sv raw);

/* Appends a physical, absolute path (as realpath gives it) as canonical path text. */
must_check int cap_put_path(struct buf *b, struct sv raw, struct writ_err *err);

/*
 * Appends the canonical urlpath for the path of an HTTP request as it stood on
 * the wire (no query). Refuses what two servers might read differently:
 * encoded / \ . NUL or %, backslash, empty or dot segments, ';', control and
 * non-ASCII bytes.
 */
must_check int cap_put_http_path(struct buf *b, struct sv raw, struct writ_err *err);

/*
 * Strict parsers without any of inet_aton's leniency. Zones, 0x, octal: no.
 * cap_addr_parse() takes what a denial may name: [v6], /len from 0, loopback;
 * cap_host_parse() has a grant's restrictions.
 */
must_check bool cap_addr_parse(struct sv s, struct cap_net_addr *ret_addr); /* [v6], with /len */
void cap_addr_print(const struct cap_net_addr *addr, struct buf *b);
bool cap_addr_within(const struct cap_net_addr *child, const struct cap_net_addr *parent);
bool cap_is_id(struct sv s); /* the form of a realm, and of who approves */
must_check bool cap_name_check(struct sv name); /* a host name in canonical form */
must_check bool cap_host_parse(struct sv s, struct cap_host *ret_host); /* a grant's hostpat */
must_check bool cap_ports_parse(struct sv s, uint16_t *ret_lo, uint16_t *ret_hi);

/* The host a grant of net.connect or http.request names; NULL for others. */
const struct cap_host *cap_host_of(const struct cap *c);
/* The ports that it opens for the canonical @host, a name or an address; false: none. */
must_check bool cap_opens(const struct cap *c, struct sv host, uint16_t *ret_lo, uint16_t *ret_hi);
must_check bool cap_url_opens(const struct cap_url *u, struct sv host, uint16_t *ret_lo,
			      uint16_t *ret_hi);

/* For tests and for why: does sequence pattern @p match concrete @x? */
bool cap_seq_matches(const struct cap_seq *p, const struct cap_seq *x);
bool cap_seg_matches(const struct cap_seg *p, struct sv name);

#endif
