/*
 * cap.h - canonical capabilities: one string per meaning, and their algebra
 *
 * Theory of operation
 *
 * A capability is one permission as text, "fs.write:REALM:/home/me/notes.txt" for example.
 * docs/capabilities.md is the normative description; comments of this module cite its section
 * numbers. Three kinds share the grammar: a grant (a permission), a denial (an exception to grants)
 * and a request (one concrete access, without wildcards).
 *
 * Policies, tokens and agents are sets of capabilities (set.h). The module answers three
 * questions about them, without side effects:
 *
 *   cap_matches(), cap_denies()  does a grant or a denial apply to this request?
 *   cap_within()                 is one grant contained in another? Delegation uses cap_within().
 *   cap_meet()                   what do two grants both allow? Narrowing uses cap_meet().
 *
 * Invariants
 *   - A struct cap exists only by parsing its canonical text, so there is one constructor
 *     and one set of checks. Each meaning has exactly one text; any other text is refused,
 *     not repaired, because digests and tokens compare bytes.
 *   - A struct cap is const once parsed and may be copied by value. All memory belongs to
 *     the caller's arena.
 *   - If the algebra cannot decide, the answer is the narrower one. cap_meet() checks that
 *     its result is within both arguments before it returns.
 *   - A param that limits a grant (approve, n, rate, max-in, max-out) is called its price.
 *     Every grant that matches a request must be paid for.
 *
 * Common mistakes
 *   - "**" as a host means every name with a dot, but no address and no localhost. In a
 *     denial of net.connect it means every host.
 *   - Matching is on text. Resolve links and names before building a request.
 *
 * Reads:  capability strings
 * Writes: nothing
 * Next:   cap/set.h collects capabilities; lang/ lowers rules to capabilities; plan/ and
 *         token/ read them
 */
#ifndef WRIT_CAP_CAP_H
#define WRIT_CAP_CAP_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cap/types.h"

/* Parses the capability @text, which is copied into @a. Fails if @text is not canonical. */
must_check int cap_parse(struct arena *a, enum cap_kind kind, struct sv text, struct cap *ret_cap,
			 struct writ_err *err);

/* Does grant @c match request @req? docs/capabilities.md, section 3. */
bool cap_matches(const struct cap *c, const struct cap *req);

/* Does denial @d match request @req? docs/capabilities.md, section 6. */
bool cap_denies(const struct cap *d, const struct cap *req);

/*
 * Is every request that grant @child matches also matched by grant @parent? docs/capabilities.md,
 * section 4.
 */
bool cap_within(const struct cap *child, const struct cap *parent);

/*
 * Computes the grant that allows the requests that both @x and @y allow (docs/capabilities.md,
 * section 5). If no such grant exists, *@ret_any is false and *@ret_cap is not set.
 */
must_check int cap_meet(struct arena *a, const struct cap *x, const struct cap *y,
			struct cap *ret_cap, bool *ret_any, struct writ_err *err);

/* name of the action in capability text, such as "fs.read" */
const char *cap_action_name(enum cap_action action);

/*
 * Params of capabilities, in the byte order of their keys, which is also their order in canonical
 * text.
 */
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
	/* number of values; keep last */
	P_COUNT
};
struct sv cap_param_key(enum cap_param param); /* key of the param, such as "max-in" */

/* --- Building canonical text from raw bytes --- */

/* Appends literal bytes @raw as one canonical segment ("a b" becomes "a%20b"). */
void cap_put_seg(struct buf *b, struct sv raw);

/* Appends an absolute path without links (a result of realpath) as canonical path text. */
must_check int cap_put_path(struct buf *b, struct sv raw, struct writ_err *err);

/*
 * Appends the canonical path of an HTTP request from the bytes on the wire, without the query.
 * SECURITY: refuses every path that two servers might interpret differently: encoded / \ . NUL or
 * %, unencoded backslash ; ? # blank, control and non-ASCII bytes, dot segments, and empty segments
 * before the last. Otherwise the server could serve another resource than the one that was checked.
 */
must_check int cap_put_http_path(struct buf *b, struct sv raw, struct writ_err *err);

/*
 * Strict parsers for host addresses without the leniency of inet_aton(): they refuse zones, and
 * hexadecimal or octal numbers in an IPv4 address. cap_addr_parse() accepts every address that a
 * denial may name ([v6], /len from 0, loopback); cap_host_parse() has the restrictions of a grant.
 */
must_check bool cap_addr_parse(struct sv s, struct cap_net_addr *ret_addr);
void cap_addr_print(const struct cap_net_addr *addr, struct buf *b);
bool cap_addr_within(const struct cap_net_addr *child, const struct cap_net_addr *parent);
/* does @s have the syntax of realm and approver names? */
bool cap_is_id(struct sv s);
must_check bool cap_name_check(struct sv name); /* is @name a host name in canonical form? */
/* Parses the host pattern of a grant. */
must_check bool cap_host_parse(struct sv s, struct cap_host *ret_host);
must_check bool cap_ports_parse(struct sv s, uint16_t *ret_lo, uint16_t *ret_hi);

/* Returns the host of a net.connect or http.request grant; NULL for other actions. */
const struct cap_host *cap_host_of(const struct cap *c);
/*
 * Finds the range of ports that grant @c opens for @host, a canonical name or address. Returns
 * false if the grant opens no port for @host.
 */
must_check bool cap_opens(const struct cap *c, struct sv host, uint16_t *ret_lo, uint16_t *ret_hi);
must_check bool cap_url_opens(const struct cap_url *u, struct sv host, uint16_t *ret_lo,
			      uint16_t *ret_hi);

/* Does the pattern @p match the sequence @x, which has no wildcards? */
bool cap_seq_matches(const struct cap_seq *p, const struct cap_seq *x);
bool cap_seg_matches(const struct cap_seg *p, struct sv name);

#endif
