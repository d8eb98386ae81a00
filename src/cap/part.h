/*
 * part.h - the parts of a capability, for the files of this room only
 *
 * Reads:  cap/cap.h
 * Writes: nothing
 * Next:   parse.c, param.c, match.c, within.c, meet.c put the parts together
 *
 * Parsers return 0, WRIT_E_SYNTAX, WRIT_E_LIMIT or WRIT_E_NOMEM without a
 * message: the driver knows which part of which text it was reading. Every
 * x_meet gives false if there is none.
 */
#ifndef WRIT_CAP_PART_H
#define WRIT_CAP_PART_H

#include <string.h>

#include "cap/cap.h"

#define CAP_NUMBER_MAX ((uint64_t)9007199254740991)
#define CAP_BIT(x) (UINT32_C(1) << (x))

/* Inline because deciding compares a great many short strings. */
static inline bool same_bytes(struct sv a, struct sv b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* The text before the next @sep, and whether there was one: *@s goes on behind it. */
static inline struct sv cut_at(struct sv *s, char sep, bool *ret_more)
{
	const char *at = s->n ? memchr(s->p, sep, s->n) : NULL;
	const struct sv head = { s->p, at ? (size_t)(at - s->p) : s->n };
	const size_t gone = head.n + (at != NULL);

	*ret_more = at;
	*s = (struct sv){ s->p + gone, s->n - gone };
	return head;
}

/* One bit per ASCII byte: A-Z a-z 0-9 . _ ~ + @ = - */
static inline bool cap_is_lit(char c)
{
	static const uint32_t lit[8] = { 0, 0x23ff6800, 0x87ffffff, 0x47fffffe };
	const unsigned char u = (unsigned char)c;

	return lit[u >> 5] >> (u & 31) & 1;
}

/* --- seq.c --- */

enum {
	SEQ_STAR = 1,	/* segments may have a star */
	SEQ_TAIL = 2,	/* may end in a double star */
	SEQ_HOLE = 4,	/* must end in a double star and may have another one */
	SEQ_SLASH = 8,	/* urlpath: may end in an empty segment, "/" is one */
	SEQ_ARGS = 16,	/* encoded slashes and dot segments are fine */
	SEQ_REF = 32,	/* no leading slash, at least one segment */
	SEQ_LONG = 64,	/* no maximum of segments */
};

must_check
int cap_seq_parse(struct arena *a, struct sv text, unsigned flags, struct cap_seq *ret_seq);
void cap_seq_print(const struct cap_seq *s, struct buf *b);
void cap_ref_print(const struct cap_seq *s, struct buf *b);
bool cap_seq_within(const struct cap_seq *child, const struct cap_seq *parent);
must_check
int cap_seq_meet(struct arena *a, const struct cap_seq *x, const struct cap_seq *y,
		 struct cap_seq *ret_seq, bool *ret_any);

/* --- addr.c, host.c --- */

bool cap_addr_is_single(const struct cap_net_addr *a);
bool cap_addr_is_reserved(const struct cap_net_addr *a); /* loopback or unspecified */
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
must_check
int cap_url_meet(struct arena *a, const struct cap_url *x, const struct cap_url *y,
		 struct cap_url *ret_url, bool *ret_any);
must_check int cap_repo_check(struct arena *a, struct sv text);

/* What net.connect, net.bind and http.request have in common. */
struct cap_peer {
	const struct cap_host *host;
	uint16_t lo, hi;
};

struct cap_peer cap_peer(const struct cap *c);

/* within.c: equal, or fs.put under fs.write and http.request under net.connect. */
bool cap_action_within(enum cap_action child, enum cap_action parent);

/* --- param.c --- */

struct cap_param_rule {
	struct sv key;
	int (*parse)(struct arena *a, struct sv value, struct cap *c);
	bool (*print)(const struct cap *c, struct buf *b); /* false: absent */
};

extern const struct cap_param_rule cap_params[P_COUNT];

/* --- parse.c --- */

/* Bits of the actions whose grants or denials can reach a request of @action. */
uint32_t cap_reached_by(enum cap_action action);
struct sv cap_action_text(enum cap_action action);

/* Prints @c from its parts, without looking at @c->text; parse.c has the order. */
void cap_print(const struct cap *c, struct buf *b);

#endif
