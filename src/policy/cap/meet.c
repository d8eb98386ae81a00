#include "cap/component.h"

#include <stdlib.h>

#include "base/banned.h"

/*
 * Two grants and the draft of their meet; x is the grant with the narrower action. Only the text of
 * the draft leaves this file: cap_meet() parses that text like any other text. The draft may
 * therefore point into both grants and the scratch arena.
 */
struct meeting {
	struct arena *scratch;
	const struct cap *x, *y;
	/* y; or x if the actions of x and y differ, because y then lacks components of x */
	const struct cap *like_x;
	struct cap out;
};

/* result of a function if the grants have no meet, distinct from 0 and the negative error codes */
enum { NO_MEET = 1 };

/* Returns the lower of two limits; 0 means no limit. */
static uint64_t least(uint64_t x, uint64_t y)
{
	if (x == 0 || y == 0)
		return x | y;
	return x < y ? x : y;
}

static int seq_meet(struct meeting *m, const struct cap_seq *x, const struct cap_seq *y,
		    struct cap_seq *ret_seq)
{
	bool any;
	const int r = cap_seq_meet(m->scratch, x, y, ret_seq, &any);

	return r < 0 || any ? r : NO_MEET;
}

static int path_meet(struct meeting *m)
{
	return seq_meet(m, &m->x->path, &m->y->path, &m->out.path);
}

static int url_meet(struct meeting *m)
{
	bool any;
	const int r = cap_url_meet(m->scratch, &m->x->url, &m->like_x->url, &m->out.url, &any);

	return r < 0 || any ? r : NO_MEET;
}

/*
 * Meets host and ports. Runs after url_meet() and replaces the host of the URL, because the meet of
 * an http.request with a net.connect takes the narrower host.
 */
static int peer_meet(struct meeting *m)
{
	const struct cap_peer x = cap_peer(m->x), y = cap_peer(m->y);
	const uint16_t lo = x.lo > y.lo ? x.lo : y.lo;
	const uint16_t hi = x.hi < y.hi ? x.hi : y.hi;
	const struct cap_host *host = y.host;

	if (lo > hi)
		return NO_MEET;
	if (!cap_host_within(y.host, x.host)) {
		host = x.host;
		if (!cap_host_within(x.host, y.host))
			return NO_MEET;
	}
	m->out.port_lo = lo;
	m->out.port_hi = hi;
	m->out.host = m->out.url.host = *host;
	return 0;
}

static int repo_meet(struct meeting *m)
{
	m->out.repo = m->x->repo;
	return same_bytes(m->x->repo, m->y->repo) ? 0 : NO_MEET;
}

/* Merges two ordered lists into their union (@either) or their intersection. */
static int list_merge(struct meeting *m, const struct sv *x, size_t xn, const struct sv *y,
		      size_t yn, bool either, const struct sv **ret_list, size_t *ret_n)
{
	struct sv *out = arena_array(m->scratch, struct sv, xn + yn);
	size_t i = 0, j = 0, n = 0;

	if (!out)
		return WRIT_E_NOMEM;
	while (i < xn || j < yn) {
		const int d = i == xn ? 1 : j == yn ? -1 : sv_cmp(x[i], y[j]);

		if (d == 0 || either)
			out[n++] = d <= 0 ? x[i] : y[j];
		i += d <= 0;
		j += d >= 0;
	}
	*ret_list = out;
	*ret_n = n;
	return 0;
}

/* Merges the approvers: the approvers of both grants must approve. */
static int approve_meet(struct meeting *m)
{
	return list_merge(m, m->x->approve, m->x->approve_n, m->y->approve, m->y->approve_n, true,
			  &m->out.approve, &m->out.approve_n);
}

static int counts_meet(struct meeting *m)
{
	const struct cap *x = m->x, *y = m->y;

	m->out.n = least(x->n, y->n);
	m->out.max_in = least(x->max_in, y->max_in);
	m->out.max_out = least(x->max_out, y->max_out);
	m->out.rate_n = least(x->rate_n, y->rate_n);
	m->out.rate_s = x->rate_s > y->rate_s ? x->rate_s : y->rate_s;
	return 0;
}

static int args_meet(struct meeting *m)
{
	const struct cap *x = m->x, *y = m->y;

	m->out.has_args = x->has_args || y->has_args;
	if (x->has_args && y->has_args)
		return seq_meet(m, &x->args, &y->args, &m->out.args);
	m->out.args = x->has_args ? x->args : y->args;
	return 0;
}

/* Meets the lists of program digests; a grant without digests allows any program. */
static int sha256_meet(struct meeting *m)
{
	const struct cap *x = m->x, *y = m->y;
	int r;

	if (x->sha256_n && y->sha256_n) {
		r = list_merge(m, x->sha256, x->sha256_n, y->sha256, y->sha256_n, false,
			       &m->out.sha256, &m->out.sha256_n);
		return r < 0 || m->out.sha256_n ? r : NO_MEET;
	}
	m->out.sha256 = x->sha256_n ? x->sha256 : y->sha256;
	m->out.sha256_n = x->sha256_n ? x->sha256_n : y->sha256_n;
	return 0;
}

static int m_meet(struct meeting *m)
{
	const struct cap *x = m->x, *y = m->like_x;
	int r;

	m->out.any_method = x->any_method && y->any_method;
	if (!x->any_method && !y->any_method) {
		r = list_merge(m, x->methods, x->methods_n, y->methods, y->methods_n, false,
			       &m->out.methods, &m->out.methods_n);
		return r < 0 || m->out.methods_n ? r : NO_MEET;
	}
	m->out.methods = x->any_method ? y->methods : x->methods;
	m->out.methods_n = x->any_method ? y->methods_n : x->methods_n;
	return 0;
}

/*
 * Meets the flags: a restriction applies if either grant has it, a permission only if both grants
 * have it.
 */
static int flags_meet(struct meeting *m)
{
	const struct cap *x = m->x, *y = m->y;

	m->out.no_query = x->no_query || m->like_x->no_query;
	m->out.tls_pass = x->tls_pass && y->tls_pass;
	m->out.danger = x->danger && y->danger;
	m->out.dev_write = x->dev_write && y->dev_write;
	return 0;
}

static int secret_meet(struct meeting *m)
{
	bool any;
	int r;

	m->out.as = m->x->as;
	if (!same_bytes(m->x->as, m->y->as))
		return NO_MEET;
	r = cap_url_meet(m->scratch, &m->x->to, &m->y->to, &m->out.to, &any);
	return r < 0 || any ? r : NO_MEET;
}

static int op_meet(struct meeting *m)
{
	const struct cap *x = m->x, *y = m->y;

	m->out.op_fetch = x->op_fetch && y->op_fetch;
	m->out.op_push = m->out.has_ref = x->op_push && y->op_push;
	if (m->out.op_push)
		return seq_meet(m, &x->ref, &y->ref, &m->out.ref);
	return m->out.op_fetch ? 0 : NO_MEET;
}

struct addr_text {
	struct cap_net_addr addr;
	struct sv text;
};

static int compare_texts(const void *a, const void *b)
{
	const struct addr_text *x = a, *y = b;

	return sv_cmp(x->text, y->text);
}

/*
 * Collects the smaller network of each nested pair of private networks. The meet of two minimal
 * lists is minimal.
 */
static int priv_collect(struct meeting *m, struct addr_text *list, size_t *ret_n)
{
	size_t n = 0;

	for (size_t i = 0; i < m->x->priv_n; i++) {
		for (size_t j = 0; j < m->y->priv_n; j++) {
			const struct cap_net_addr *a = &m->x->priv[i], *b = &m->y->priv[j];
			scoped_buf text = BUF_INIT(64);

			if (cap_addr_within(b, a))
				a = b;
			else if (!cap_addr_within(a, b))
				continue;
			cap_addr_print(a, &text);
			if (text.failed || !arena_sv(m->scratch, buf_view(&text), &list[n].text))
				return WRIT_E_NOMEM;
			list[n++].addr = *a;
		}
	}
	*ret_n = n;
	return 0;
}

static int priv_meet(struct meeting *m)
{
	/*
	 * Upper bound for the result: each network is inside a network of the other grant, or
	 * contains some of the other grant's networks.
	 */
	const size_t most = m->x->priv_n + m->y->priv_n;
	struct addr_text *list = arena_array(m->scratch, struct addr_text, most);
	struct cap_net_addr *out = arena_array(m->scratch, struct cap_net_addr, most);
	int r;

	if (!list || !out)
		return WRIT_E_NOMEM;
	r = priv_collect(m, list, &m->out.priv_n);
	if (r < 0)
		return r;
	if (m->out.priv_n)
		qsort(list, m->out.priv_n, sizeof(*list), compare_texts);
	for (size_t i = 0; i < m->out.priv_n; i++)
		out[i] = list[i].addr;
	m->out.priv = out;
	return 0;
}

#define ON(action) CAP_BIT(CAP_##action)
#define ANY_ACTION UINT32_MAX
#define NOT_PATHS (ON(NET_CONNECT) | ON(NET_BIND) | ON(HTTP_REQUEST) | ON(GIT_USE))
#define NET (ON(NET_CONNECT) | ON(HTTP_REQUEST))

/*
 * Components to meet (docs/capabilities.md, section 5), each with the actions whose capabilities
 * have the component.
 */
/* clang-format off */
static const struct {
	uint32_t actions;
	int (*meet)(struct meeting *m);
} parts[] = {
	{ ~NOT_PATHS,         path_meet },
	{ ON(HTTP_REQUEST),   url_meet },
	{ NET | ON(NET_BIND), peer_meet },
	{ ON(GIT_USE),        repo_meet },
	{ ANY_ACTION,         approve_meet },
	{ ANY_ACTION,         counts_meet },
	{ ANY_ACTION,         flags_meet },
	{ ON(PROC_EXEC),      args_meet },
	{ ON(PROC_EXEC),      sha256_meet },
	{ ON(HTTP_REQUEST),   m_meet },
	{ ON(SECRET_USE),     secret_meet },
	{ ON(GIT_USE),        op_meet },
	{ NET,                priv_meet },
};
/* clang-format on */

/* Builds the text of the meet of @x and @y. Returns 0 with the text in @b, NO_MEET, or an error. */
static int meet_text(const struct cap *x, const struct cap *y, struct buf *b)
{
	scoped_arena scratch = ARENA_INIT(1 << 20);
	struct meeting m = { .scratch = &scratch, .x = x, .y = y };

	m.like_x = x->action == y->action ? y : x;
	m.out.action = x->action;
	m.out.realm = x->realm;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		int r = 0;

		if (parts[i].actions & CAP_BIT(x->action))
			r = parts[i].meet(&m);
		if (r != 0)
			return r;
	}
	cap_print(&m.out, b);
	/*
	 * Treat a result longer than CAP_TEXT_MAX as no meet: allowing nothing is the safe answer.
	 */
	return b->failed ? NO_MEET : 0;
}

/* Returns the smaller of two grants if one grant is within the other, or NULL. */
static const struct cap *smaller(const struct cap *x, const struct cap *y)
{
	const bool x_in_y = cap_within(x, y), y_in_x = cap_within(y, x);

	if (x_in_y && y_in_x)
		return sv_cmp(x->text, y->text) <= 0 ? x : y;
	return x_in_y ? x : y_in_x ? y : NULL;
}

static bool can_meet(const struct cap *x, const struct cap *y)
{
	return x->kind == CAP_GRANT && y->kind == CAP_GRANT && same_bytes(x->realm, y->realm) &&
	       (cap_action_within(x->action, y->action) || cap_action_within(y->action, x->action));
}

int cap_meet(struct arena *a, const struct cap *x, const struct cap *y, struct cap *ret_cap,
	     bool *ret_any, struct writ_err *err)
{
	scoped_buf text = BUF_INIT(CAP_TEXT_MAX);
	const struct cap *least_of = NULL;
	struct cap c;
	int r = NO_MEET;

	if (can_meet(x, y)) {
		least_of = smaller(x, y);
		if (least_of) {
			buf_sv(&text, least_of->text);
			r = text.failed ? WRIT_E_NOMEM : 0;
		} else {
			const bool x_first = cap_action_within(x->action, y->action);

			r = meet_text(x_first ? x : y, x_first ? y : x, &text);
		}
	}
	if (r < 0)
		return writ_nomem(err);
	if (r == NO_MEET) {
		*ret_any = false;
		return 0;
	}
	r = cap_parse(a, CAP_GRANT, buf_view(&text), &c, err);
	if (r == WRIT_E_NOMEM)
		return r;
	/*
	 * SECURITY: final check. If the code above has a bug, fail rather than return a grant that
	 * is wider than either argument.
	 */
	if (r < 0 || !cap_within(&c, x) || !cap_within(&c, y))
		return writ_fail(err, WRIT_E_BUG, 0, "meet of %s is not within both", x->text.p);
	*ret_cap = c;
	*ret_any = true;
	return 0;
}
