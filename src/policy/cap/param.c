#include "cap/component.h"

#include <stdlib.h>

#include "base/banned.h"

/* --- Lists --- */

static size_t count_items(struct sv v)
{
	size_t n = 1;

	for (size_t i = 0; i < v.n; i++)
		n += v.p[i] == ',';
	return n;
}

/* Parses a list of items in strictly increasing byte order; @check must accept each item. */
static int list_parse(struct arena *a, struct sv v, bool (*check)(struct sv),
		      const struct sv **ret_list, size_t *ret_n)
{
	const size_t n = count_items(v);
	struct sv *list = arena_array(a, struct sv, n);

	if (!list)
		return WRIT_E_NOMEM;
	for (size_t i = 0; i < n; i++) {
		list[i] = sv_cut(&v, ',');
		if (!check(list[i]) || (i && sv_cmp(list[i - 1], list[i]) >= 0))
			return WRIT_E_SYNTAX;
	}
	*ret_list = list;
	*ret_n = n;
	return 0;
}

static bool list_print(const struct sv *list, size_t n, struct buf *b)
{
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_ch(b, ',');
		buf_sv(b, list[i]);
	}
	return n > 0;
}

/* --- Numbers --- */

static int number_parse(struct sv v, uint64_t *ret_n)
{
	uint64_t n;

	if (!sv_to_u64(v, CAP_NUMBER_MAX, &n) || n == 0)
		return WRIT_E_SYNTAX;
	*ret_n = n;
	return 0;
}

static bool number_print(uint64_t n, struct buf *b)
{
	if (n)
		buf_fmt(b, "%llu", (unsigned long long)n);
	return n != 0;
}

/* --- One parser and printer per key, in the order of the keys --- */

static int approve_parse(struct arena *a, struct sv v, struct cap *c)
{
	return list_parse(a, v, cap_is_id, &c->approve, &c->approve_n);
}

static bool approve_print(const struct cap *c, struct buf *b)
{
	return list_print(c->approve, c->approve_n, b);
}

static int args_parse(struct arena *a, struct sv v, struct cap *c)
{
	const unsigned wild = c->kind == CAP_REQUEST ? 0 : SEQ_STAR | SEQ_TAIL;

	c->has_args = true;
	return cap_seq_parse(a, v, SEQ_ARGS | wild, &c->args);
}

static bool args_print(const struct cap *c, struct buf *b)
{
	if (c->has_args)
		cap_seq_print(&c->args, b);
	return c->has_args;
}

static bool is_header_name(struct sv s)
{
	for (size_t i = 0; i < s.n; i++) {
		const char c = s.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-')
			return false;
	}
	return s.n >= 1 && s.n <= 64;
}

static bool is_query_name(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!cap_is_lit(s.p[i]) || memchr("@=~+", s.p[i], 4))
			return false;
	return s.n >= 1 && s.n <= 64;
}

static int as_parse(struct arena *a, struct sv v, struct cap *c)
{
	const bool plain = sv_is(v, "basic") || sv_is(v, "bearer") || sv_is(v, "env");
	struct sv name = v;
	const struct sv how = sv_cut(&name, ':');

	(void)a;
	if (!plain && !(sv_is(how, "header") && is_header_name(name)) &&
	    !(sv_is(how, "query") && is_query_name(name)))
		return WRIT_E_SYNTAX;
	c->as = v;
	return 0;
}

static bool as_print(const struct cap *c, struct buf *b)
{
	if (c->as.n)
		buf_sv(b, c->as);
	return c->as.n > 0;
}

static bool is_method(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < 'A' || s.p[i] > 'Z')
			return false;
	return s.n >= 1 && s.n <= 16;
}

static int m_parse(struct arena *a, struct sv v, struct cap *c)
{
	int r;

	if (sv_is(v, "*") && c->kind != CAP_REQUEST) {
		c->any_method = true;
		return 0;
	}
	r = list_parse(a, v, is_method, &c->methods, &c->methods_n);
	if (r == 0 && c->kind == CAP_REQUEST && c->methods_n != 1)
		return WRIT_E_SYNTAX;
	return r;
}

static bool m_print(const struct cap *c, struct buf *b)
{
	if (c->any_method)
		buf_ch(b, '*');
	return c->any_method || list_print(c->methods, c->methods_n, b);
}

static int op_parse(struct arena *a, struct sv v, struct cap *c)
{
	const bool both = sv_is(v, "fetch,push") && c->kind != CAP_REQUEST;

	(void)a;
	c->op_fetch = both || sv_is(v, "fetch");
	c->op_push = both || sv_is(v, "push");
	return c->op_fetch || c->op_push ? 0 : WRIT_E_SYNTAX;
}

static bool op_print(const struct cap *c, struct buf *b)
{
	if (c->op_fetch)
		buf_str(b, "fetch");
	if (c->op_fetch && c->op_push)
		buf_ch(b, ',');
	if (c->op_push)
		buf_str(b, "push");
	return c->op_fetch || c->op_push;
}

static int compare_addrs(const void *a, const void *b)
{
	return cap_addr_order(a, b);
}

/*
 * Checks that no network in the list contains another and that no two networks are halves of one
 * network. After sorting in address order, such networks are neighbours.
 */
static int priv_is_minimal(struct arena *a, const struct cap_net_addr *list, size_t n)
{
	struct cap_net_addr *sorted = arena_array(a, struct cap_net_addr, n);

	if (!sorted)
		return WRIT_E_NOMEM;
	memcpy(sorted, list, n * sizeof(*list));
	qsort(sorted, n, sizeof(*sorted), compare_addrs);
	for (size_t i = 1; i < n; i++)
		if (cap_addr_within(&sorted[i], &sorted[i - 1]) ||
		    cap_addr_is_half(&sorted[i], &sorted[i - 1]))
			return WRIT_E_SYNTAX;
	return 0;
}

static int priv_parse(struct arena *a, struct sv v, struct cap *c)
{
	const size_t n = count_items(v);
	struct cap_net_addr *list = arena_array(a, struct cap_net_addr, n);
	struct sv before = SV("");

	if (!list)
		return WRIT_E_NOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct sv item = sv_cut(&v, ',');

		if (!cap_addr_parse(item, &list[i]) || cap_addr_is_reserved(&list[i]) ||
		    (i && sv_cmp(before, item) >= 0))
			return WRIT_E_SYNTAX;
		before = item;
	}
	if (c->kind == CAP_REQUEST && (n != 1 || !cap_addr_is_single(list)))
		return WRIT_E_SYNTAX;
	c->priv = list;
	c->priv_n = n;
	return n > 1 ? priv_is_minimal(a, list, n) : 0;
}

static bool priv_print(const struct cap *c, struct buf *b)
{
	for (size_t i = 0; i < c->priv_n; i++) {
		if (i)
			buf_ch(b, ',');
		cap_addr_print(&c->priv[i], b);
	}
	return c->priv_n > 0;
}

static int rate_parse(struct arena *a, struct sv v, struct cap *c)
{
	const struct sv n = sv_cut(&v, '/');
	int r = number_parse(n, &c->rate_n);

	(void)a;
	if (r == 0)
		r = number_parse(v, &c->rate_s);
	return r;
}

static bool rate_print(const struct cap *c, struct buf *b)
{
	if (c->rate_n)
		buf_fmt(b, "%llu/%llu", (unsigned long long)c->rate_n,
			(unsigned long long)c->rate_s);
	return c->rate_n != 0;
}

static int ref_parse(struct arena *a, struct sv v, struct cap *c)
{
	const unsigned wild = c->kind == CAP_REQUEST ? 0 : SEQ_STAR | SEQ_TAIL;

	c->has_ref = true;
	return cap_seq_parse(a, v, SEQ_REF | SEQ_LONG | wild, &c->ref);
}

static bool ref_print(const struct cap *c, struct buf *b)
{
	if (c->has_ref)
		cap_ref_print(&c->ref, b);
	return c->has_ref;
}

static bool is_sha256(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (sv_hex_lower(s.p[i]) < 0)
			return false;
	return s.n == 64;
}

static int sha256_parse(struct arena *a, struct sv v, struct cap *c)
{
	const int r = list_parse(a, v, is_sha256, &c->sha256, &c->sha256_n);

	if (r == 0 && c->kind == CAP_REQUEST && c->sha256_n != 1)
		return WRIT_E_SYNTAX;
	return r;
}

static bool sha256_print(const struct cap *c, struct buf *b)
{
	return list_print(c->sha256, c->sha256_n, b);
}

static int tls_parse(struct arena *a, struct sv v, struct cap *c)
{
	(void)a;
	c->tls_pass = sv_is(v, c->kind == CAP_REQUEST ? "sni" : "pass");
	return c->tls_pass ? 0 : WRIT_E_SYNTAX;
}

static bool tls_print(const struct cap *c, struct buf *b)
{
	if (c->tls_pass)
		buf_str(b, c->kind == CAP_REQUEST ? "sni" : "pass");
	return c->tls_pass;
}

static int to_parse(struct arena *a, struct sv v, struct cap *c)
{
	return cap_url_parse(a, v, c->kind, &c->to);
}

static bool to_print(const struct cap *c, struct buf *b)
{
	if (c->action != CAP_SECRET_USE)
		return false;
	cap_url_print(&c->to, b);
	return true;
}

/* clang-format off */
const struct cap_param_rule cap_params[P_COUNT] = {
	[P_APPROVE] = { SV_INIT("approve"), approve_parse, approve_print },
	[P_ARGS]    = { SV_INIT("args"),    args_parse,    args_print },
	[P_AS]      = { SV_INIT("as"),      as_parse,      as_print },
	[P_DANGER]  = { .key = SV_INIT("danger"), .at = offsetof(struct cap, danger), .on = "1" },
	[P_M]       = { SV_INIT("m"),       m_parse,       m_print },
	[P_MAX_IN]  = { .key = SV_INIT("max-in"), .at = offsetof(struct cap, max_in) },
	[P_MAX_OUT] = { .key = SV_INIT("max-out"), .at = offsetof(struct cap, max_out) },
	[P_N]       = { .key = SV_INIT("n"), .at = offsetof(struct cap, n) },
	[P_O]       = { .key = SV_INIT("o"), .at = offsetof(struct cap, dev_write), .on = "rw", .off = "r" },
	[P_OP]      = { SV_INIT("op"),      op_parse,      op_print },
	[P_PRIV]    = { SV_INIT("priv"),    priv_parse,    priv_print },
	[P_Q]       = { .key = SV_INIT("q"), .at = offsetof(struct cap, no_query), .on = "none", .off = "any" },
	[P_RATE]    = { SV_INIT("rate"),    rate_parse,    rate_print },
	[P_REF]     = { SV_INIT("ref"),     ref_parse,     ref_print },
	[P_SHA256]  = { SV_INIT("sha256"),  sha256_parse,  sha256_print },
	[P_TLS]     = { SV_INIT("tls"),     tls_parse,     tls_print },
	[P_TO]      = { SV_INIT("to"),      to_parse,      to_print },
};
/* clang-format on */

struct sv cap_param_key(enum cap_param param)
{
	return param < P_COUNT ? cap_params[param].key : SV("");
}

int cap_param_parse(struct arena *a, enum cap_param p, struct sv value, struct cap *c)
{
	const struct cap_param_rule *rule = &cap_params[p];
	void *at = (char *)c + rule->at;

	if (rule->parse)
		return rule->parse(a, value, c);
	if (!rule->on)
		return number_parse(value, at);
	*(bool *)at = sv_is(value, rule->on);
	return sv_is(value, rule->on) || (rule->off && sv_is(value, rule->off)) ? 0 : WRIT_E_SYNTAX;
}

bool cap_param_print(const struct cap *c, enum cap_param p, struct buf *b)
{
	const struct cap_param_rule *rule = &cap_params[p];
	const void *at = (const char *)c + rule->at;
	const char *word;

	if (rule->print)
		return rule->print(c, b);
	if (!rule->on)
		return number_print(*(const uint64_t *)at, b);
	word = *(const bool *)at ? rule->on : rule->off;
	buf_str(b, word ? word : "");
	return word != NULL;
}
