/*
 * component.h - parsers and algebra for the components of a capability
 *
 * Reads:  cap/cap.h
 * Writes: nothing
 * Next:   parse.c, param.c, match.c, within.c and meet.c combine the components
 *
 * Parsers return 0, WRIT_E_SYNTAX, WRIT_E_LIMIT or WRIT_E_NOMEM without a
 * message: only cap_parse() knows the whole text, and it writes the message. Every
 * x_meet function reports "no common part" separately from an error.
 */
#ifndef WRIT_CAP_COMPONENT_H
#define WRIT_CAP_COMPONENT_H

#include <stddef.h>
#include <string.h>

#include "cap/cap.h"

#define CAP_NUMBER_MAX ((uint64_t)9007199254740991)
#define CAP_BIT(x) (UINT32_C(1) << (x))

/*
 * Compares the bytes of two views. Inline for speed: cap_set_decide() compares many short strings.
 */
static inline bool same_bytes(struct sv a, struct sv b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/*
 * Returns the text before the next @sep and moves *@s past that @sep. *@ret_more tells whether *@s
 * had a @sep.
 */
static inline struct sv cut_at(struct sv *s, char sep, bool *ret_more)
{
	const char *at = s->n ? memchr(s->p, sep, s->n) : NULL;
	const struct sv head = { s->p, at ? (size_t)(at - s->p) : s->n };
	const size_t gone = head.n + (at != NULL);

	*ret_more = at;
	*s = (struct sv){ s->p + gone, s->n - gone };
	return head;
}

/*
 * Is @c a byte that canonical text does not encode? The bytes A-Z a-z 0-9 . _ ~ + @ = - are bits of
 * a bitmap.
 */
static inline bool cap_is_lit(char c)
{
	static const uint32_t lit[8] = { 0, 0x23ff6800, 0x87ffffff, 0x47fffffe };
	const unsigned char u = (unsigned char)c;

	return lit[u >> 5] >> (u & 31) & 1;
}

/* --- seq.c --- */

enum {
	SEQ_STAR = 1,  /* segments of the sequence may contain a star */
	SEQ_TAIL = 2,  /* the sequence may end in a double star */
	/* the sequence must end in a double star and may contain another double star */
	SEQ_HOLE = 4,
	SEQ_SLASH = 8, /* URL path: may end in an empty segment; "/" is one empty segment */
	SEQ_ARGS = 16, /* argv: encoded slashes and dot segments are allowed */
	SEQ_REF = 32,  /* git ref: the sequence has no leading slash and at least one segment */
	SEQ_LONG = 64, /* the number of segments is not limited */
};

must_check int cap_seq_parse(struct arena *a, struct sv text, unsigned flags,
			     struct cap_seq *ret_seq);
void cap_seq_print(const struct cap_seq *s, struct buf *b);
void cap_ref_print(const struct cap_seq *s, struct buf *b);
bool cap_seq_within(const struct cap_seq *child, const struct cap_seq *parent);
must_check int cap_seq_meet(struct arena *a, const struct cap_seq *x, const struct cap_seq *y,
			    struct cap_seq *ret_seq, bool *ret_any);

/* --- addr.c, host.c --- */

bool cap_addr_is_single(const struct cap_net_addr *a);
/* does the network @a overlap the loopback or unspecified addresses? */
bool cap_addr_is_reserved(const struct cap_net_addr *a);
bool cap_addr_is_half(const struct cap_net_addr *a, const struct cap_net_addr *b);
int cap_addr_order(const struct cap_net_addr *a, const struct cap_net_addr *b);

must_check bool cap_host_parse_for(struct sv s, enum cap_kind kind, struct cap_host *ret_host);
void cap_host_print(const struct cap_host *h, struct buf *b);
bool cap_host_is_addr(const struct cap_host *h);
bool cap_host_matches(const struct cap_host *p, const struct cap_host *x);
bool cap_host_within(const struct cap_host *child, const struct cap_host *parent);

/* --- url.c --- */

must_check
int cap_url_parse(struct arena *a, struct sv text, enum cap_kind kind, struct cap_url *ret_url);
void cap_url_print(const struct cap_url *u, struct buf *b);
bool cap_url_matches(const struct cap_url *p, const struct cap_url *x);
bool cap_url_within(const struct cap_url *child, const struct cap_url *parent);
must_check int cap_url_meet(struct arena *a, const struct cap_url *x, const struct cap_url *y,
			    struct cap_url *ret_url, bool *ret_any);
must_check int cap_repo_check(struct arena *a, struct sv text);

/* The host and ports of a net.connect, net.bind or http.request capability. */
struct cap_peer {
	const struct cap_host *host;
	uint16_t lo, hi;
};

struct cap_peer cap_peer(const struct cap *c);

/*
 * Can a grant with action @child be within a grant with action @parent? True if the actions are
 * equal, for fs.put in fs.write, and for http.request in net.connect. Defined in within.c.
 */
bool cap_action_within(enum cap_action child, enum cap_action parent);

/* --- param.c --- */

struct cap_param_rule {
	struct sv key;
	int (*parse)(struct arena *a, struct sv value, struct cap *c);
	/* prints the param of @c; returns false if @c lacks the param */
	bool (*print)(const struct cap *c, struct buf *b);
	/*
	 * A param without @parse and @print is a flag if it has @on, otherwise a number. @at is the
	 * offset of its member in struct cap. @on and @off are the values for true and false; a
	 * flag without @off is absent if false.
	 */
	size_t at;
	const char *on, *off;
};

extern const struct cap_param_rule cap_params[P_COUNT];
must_check int cap_param_parse(struct arena *a, enum cap_param p, struct sv value, struct cap *c);
/* Appends the value of a param; returns false if @c lacks the param. */
bool cap_param_print(const struct cap *c, enum cap_param p, struct buf *b);

/* --- parse.c --- */

/* Returns the bits of the actions whose grants or denials can match a request of @action. */
uint32_t cap_reached_by(enum cap_action action);
struct sv cap_action_text(enum cap_action action);

/* Prints the capability @c from its components without using @c->text. */
void cap_print(const struct cap *c, struct buf *b);

#endif
