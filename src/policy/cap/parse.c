#include "cap/component.h"

#include "base/banned.h"

/* --- Resources --- */

struct action_rule;

struct path_rule {
	uint8_t min;   /* minimum number of segments of the resource */
	uint8_t max;   /* maximum number of segments; 0: CAP_SEGS_MAX */
	unsigned wild; /* wildcards allowed in the resource: SEQ_STAR, SEQ_TAIL */
	bool not_root;
	bool deny_below;   /* denials must end in a double star and may have an inner double star */
	const char *first; /* required first segment of the resource, or NULL */
};

struct action_rule {
	struct sv name;
	int (*resource)(struct arena *a, struct sv text, const struct action_rule *rule,
			struct cap *c);
	void (*print)(const struct cap *c, struct buf *b);
	int (*check)(const struct cap *c); /* checks constraints between params */
	uint32_t must, may;		   /* required and optional params of a grant */
	uint32_t req_must, req_may;	   /* required and optional params of a request */
	/* bits of further actions whose grants and denials can match requests of this action */
	uint32_t reached_by;
	struct path_rule path;
};

static unsigned path_flags(const struct path_rule *rule, enum cap_kind kind)
{
	switch (kind) {
	case CAP_GRANT:
		return rule->wild;
	case CAP_REQUEST:
		return 0;
	case CAP_DENIAL:
		return rule->deny_below ? SEQ_STAR | SEQ_HOLE : rule->wild;
	}
	return 0;
}

static int path_resource(struct arena *a, struct sv text, const struct action_rule *rule,
			 struct cap *c)
{
	const struct path_rule *p = &rule->path;
	const int r = cap_seq_parse(a, text, path_flags(p, c->kind), &c->path);

	if (r < 0)
		return r;
	if (c->path.n < p->min || (p->max && c->path.n > p->max))
		return WRIT_E_SYNTAX;
	if (p->not_root && c->path.n == 0 && !c->path.tail)
		return WRIT_E_SYNTAX;
	if (p->first && (c->path.segs[0].star || !sv_is(c->path.segs[0].pre, p->first)))
		return WRIT_E_SYNTAX;
	return 0;
}

static void path_print(const struct cap *c, struct buf *b)
{
	cap_seq_print(&c->path, b);
}

static int kernel_resource(struct arena *a, struct sv text, const struct action_rule *rule,
			   struct cap *c)
{
	if (!sv_is(text, "/io_uring") && !sv_is(text, "/nested-userns") &&
	    !sv_is(text, "/ptrace-own"))
		return WRIT_E_SYNTAX;
	return path_resource(a, text, rule, c);
}

static int net_resource(struct arena *a, struct sv text, const struct action_rule *rule,
			struct cap *c)
{
	const size_t colon = sv_rfind(text, ':');

	(void)a;
	(void)rule;
	if (!sv_starts(text, SV("tcp/")) || colon == SIZE_MAX || colon < 4)
		return WRIT_E_SYNTAX;
	if (!cap_host_parse_for(sv_sub(text, 4, colon - 4), c->kind, &c->host) ||
	    !cap_ports_parse(sv_skip(text, colon + 1), &c->port_lo, &c->port_hi))
		return WRIT_E_SYNTAX;
	return c->kind == CAP_REQUEST && c->port_lo != c->port_hi ? WRIT_E_SYNTAX : 0;
}

static int bind_resource(struct arena *a, struct sv text, const struct action_rule *rule,
			 struct cap *c)
{
	if (!sv_starts(text, SV("tcp/localhost:")))
		return WRIT_E_SYNTAX;
	return net_resource(a, text, rule, c);
}

static void net_print(const struct cap *c, struct buf *b)
{
	buf_str(b, "tcp/");
	cap_host_print(&c->host, b);
	buf_fmt(b, ":%u", c->port_lo);
	if (c->port_hi != c->port_lo)
		buf_fmt(b, "-%u", c->port_hi);
}

static int url_resource(struct arena *a, struct sv text, const struct action_rule *rule,
			struct cap *c)
{
	(void)rule;
	return cap_url_parse(a, text, c->kind, &c->url);
}

static void url_print(const struct cap *c, struct buf *b)
{
	cap_url_print(&c->url, b);
}

static int repo_resource(struct arena *a, struct sv text, const struct action_rule *rule,
			 struct cap *c)
{
	(void)rule;
	c->repo = text;
	return cap_repo_check(a, text);
}

static void repo_print(const struct cap *c, struct buf *b)
{
	buf_sv(b, c->repo);
}

/* --- Constraints between params --- */

static int net_check(const struct cap *c)
{
	return c->priv_n && cap_host_is_addr(cap_peer(c).host) ? WRIT_E_SYNTAX : 0;
}

/*
 * With tls=pass no part of writ decrypts the connection, so the grant must not restrict the
 * requests inside.
 */
static int http_check(const struct cap *c)
{
	const struct cap_seq *path = &c->url.path;

	if (c->tls_pass && (!c->url.tls || path->n || !path->tail || !c->any_method ||
			    c->no_query || c->n || c->rate_n))
		return WRIT_E_SYNTAX;
	return net_check(c);
}

static int git_check(const struct cap *c)
{
	return c->has_ref != c->op_push ? WRIT_E_SYNTAX : 0;
}

/* --- Table of actions: docs/capabilities.md section 2, and section 3 for requests --- */

#define B(param) CAP_BIT(P_##param)
#define COST (B(APPROVE) | B(N) | B(RATE))
#define NET_COST (COST | B(MAX_IN) | B(MAX_OUT) | B(PRIV))
#define WILD (SEQ_STAR | SEQ_TAIL)

/* clang-format off */
static const struct action_rule rules[CAP_ACTION_COUNT] = {
	[CAP_FS_READ] = { .name = SV_INIT("fs.read"), .may = COST, .resource = path_resource, .print = path_print, .path = { .wild = WILD, .deny_below = true } },
	[CAP_FS_WRITE] = { .name = SV_INIT("fs.write"), .may = COST, .resource = path_resource, .print = path_print, .path = { .wild = WILD, .deny_below = true } },
	[CAP_FS_PUT] = { .name = SV_INIT("fs.put"), .may = COST, .reached_by = CAP_BIT(CAP_FS_WRITE),
		.resource = path_resource, .print = path_print, .path = { .wild = WILD, .deny_below = true } },
	[CAP_PROC_EXEC] = { .name = SV_INIT("proc.exec"), .may = COST | B(ARGS) | B(SHA256), .req_may = B(ARGS) | B(SHA256),
		.resource = path_resource, .print = path_print, .path = { .wild = WILD, .deny_below = true } },
	[CAP_NET_CONNECT] = { .name = SV_INIT("net.connect"), .may = NET_COST, .req_may = B(PRIV) | B(TLS), .reached_by = CAP_BIT(CAP_HTTP_REQUEST),
		.resource = net_resource, .print = net_print, .check = net_check },
	[CAP_NET_BIND] = { .name = SV_INIT("net.bind"), .may = COST, .resource = bind_resource, .print = net_print },
	[CAP_HTTP_REQUEST] = {
		.name = SV_INIT("http.request"), .must = B(M) | B(Q), .may = NET_COST | B(TLS),
		.req_must = B(M) | B(Q), .req_may = B(PRIV),
		.reached_by = CAP_BIT(CAP_NET_CONNECT),
		.resource = url_resource, .print = url_print, .check = http_check,
	},
	[CAP_UNIX_CONNECT] = { .name = SV_INIT("unix.connect"), .may = COST | B(DANGER), .resource = path_resource, .print = path_print, .path = { .min = 1 } },
	[CAP_ENV_PASS] = { .name = SV_INIT("env.pass"), .may = COST, .resource = path_resource, .print = path_print, .path = { .min = 1, .max = 1, .wild = SEQ_STAR } },
	[CAP_SECRET_USE] = { .name = SV_INIT("secret.use"), .must = B(AS) | B(TO), .may = COST, .req_must = B(AS) | B(TO),
		.resource = path_resource, .print = path_print, .path = { .min = 1, .max = 1 } },
	[CAP_DEV_USE] = { .name = SV_INIT("dev.use"), .must = B(O), .may = COST, .req_must = B(O),
		.resource = path_resource, .print = path_print, .path = { .min = 2, .wild = SEQ_STAR, .first = "dev" } },
	[CAP_GIT_USE] = { .name = SV_INIT("git.use"), .must = B(OP), .may = COST | B(REF), .req_must = B(OP), .req_may = B(REF),
		.resource = repo_resource, .print = repo_print, .check = git_check },
	[CAP_TOOL_CALL] = { .name = SV_INIT("tool.call"), .may = COST, .resource = path_resource, .print = path_print, .path = { .wild = WILD, .not_root = true } },
	[CAP_AGENT_SPAWN] = { .name = SV_INIT("agent.spawn"), .may = COST,
		.resource = path_resource, .print = path_print, .path = { .min = 1, .max = 1, .wild = SEQ_STAR } },
	[CAP_KERNEL_USE] = { .name = SV_INIT("kernel.use"), .may = COST, .resource = kernel_resource, .print = path_print, .path = { .min = 1, .max = 1 } },
	[CAP_STATE_USE] = { .name = SV_INIT("state.use"), .may = COST, .resource = path_resource, .print = path_print, .path = { .min = 1, .max = 1, .wild = SEQ_STAR } },
};
/* clang-format on */

const char *cap_action_name(enum cap_action action)
{
	return cap_action_text(action).p;
}

struct sv cap_action_text(enum cap_action action)
{
	if (action <= CAP_NONE || action >= CAP_ACTION_COUNT)
		return SV("none");
	return rules[action].name;
}

uint32_t cap_reached_by(enum cap_action action)
{
	if (action <= CAP_NONE || action >= CAP_ACTION_COUNT)
		return 0;
	return rules[action].reached_by | CAP_BIT(action);
}

static enum cap_action find_action(struct sv name)
{
	for (enum cap_action i = CAP_NONE + 1; i < CAP_ACTION_COUNT; i++)
		if (same_bytes(rules[i].name, name))
			return i;
	return CAP_NONE;
}

static enum cap_param find_param(struct sv key)
{
	enum cap_param i = 0;

	while (i < P_COUNT && !same_bytes(cap_params[i].key, key))
		i++;
	return i;
}

static int fail(struct writ_err *err, int code, const char *part, struct sv text)
{
	if (code == WRIT_E_NOMEM)
		return writ_nomem(err);
	return writ_fail(err, code, 0, "capability %s: %s is not canonical",
			 text.n > 60 ? "(long)" : text.p, part);
}

/* Parses "key=value" pairs of a capability; *@ret_seen gets a bit for each param. */
static int params_parse(struct arena *a, struct sv s, bool more, struct cap *c, uint32_t *ret_seen,
			struct writ_err *err)
{
	uint32_t seen = 0;

	while (more) {
		enum cap_param p;
		struct sv value;
		int r;

		value = cut_at(&s, ';', &more);
		p = find_param(sv_sub(value, 0, sv_find(value, '=')));
		/*
		 * Refuse unless all params seen so far have lower numbers: keys must be in order
		 * and unique.
		 */
		if (p == P_COUNT || seen >> p)
			return fail(err, WRIT_E_SYNTAX, "order or name of a param", c->text);
		value = sv_skip(value, cap_params[p].key.n + 1);
		r = value.n ? cap_param_parse(a, p, value, c) : WRIT_E_SYNTAX;
		if (r < 0)
			return fail(err, r, cap_params[p].key.p, c->text);
		seen |= CAP_BIT(p);
	}
	*ret_seen = seen;
	return 0;
}

static bool params_allowed(const struct action_rule *rule, enum cap_kind kind, uint32_t seen)
{
	switch (kind) {
	case CAP_GRANT:
		return (seen & rule->must) == rule->must && !(seen & ~(rule->must | rule->may));
	case CAP_REQUEST:
		return (seen & rule->req_must) == rule->req_must &&
		       !(seen & ~(rule->req_must | rule->req_may));
	case CAP_DENIAL:
		return seen == 0;
	}
	return false;
}

/*
 * Makes a hint for an entry from the @n bytes of text before @end, or from the last eight of them.
 */
static struct cap_hint make_hint(const char *end, size_t n)
{
	struct cap_hint h = { 0 };
	char want[8] = { 0 }, mask[8] = { 0 };

	n = n < 8 ? n : 8;
	memcpy(want + 8 - n, end - n, n);
	memset(mask + 8 - n, 0xff, n);
	memcpy(&h.want, want, 8);
	memcpy(&h.mask, mask, 8);
	return h;
}

/*
 * Makes a hint for an entry with a host: the first bytes of the host name, which differ most
 * between hosts of one domain.
 */
static struct cap_hint host_hint(struct sv name)
{
	const size_t n = name.n < 8 ? name.n : 8;
	struct cap_hint h = make_hint(name.p + n, n);

	/* store the position plus one, so that 0 can mean "no host hint" */
	h.tail = (uint16_t)(name.n - n + 1);
	h.name = (uint16_t)name.n;
	return h;
}

/*
 * Chooses the bytes of capability @c that its hint compares: the host name, or the end of the
 * literal part of the resource.
 */
static struct cap_hint find_hint(const struct cap *c, struct sv resource)
{
	const char *start = c->text.p + rules[c->action].name.n;
	const size_t star = sv_find(resource, '*');
	struct cap_hint h;
	size_t n;

	/* no hint: all net.bind capabilities have the same host, and ports may be a range */
	if (c->action == CAP_NET_BIND)
		return (struct cap_hint){ 0 };
	if (c->action == CAP_NET_CONNECT || c->action == CAP_HTTP_REQUEST)
		return host_hint(cap_peer(c).host->name);
	resource.n = star == SIZE_MAX ? resource.n : star;
	/*
	 * A final double star also matches the directory before the double star, so leave the slash
	 * between them out of the hint.
	 */
	if (star != SIZE_MAX && resource.p[star + 1] == '*')
		resource.n--;
	n = (size_t)(resource.p - start) + resource.n;
	h = make_hint(start + n, n);
	h.end = (uint16_t)n;
	return h;
}

/* Returns two hash bits for a name (FNV-1a with a final mix, which short names need). */
static uint64_t bits_of(struct sv s)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * UINT64_C(0x100000001b3);
	h = (h ^ h >> 32) * UINT64_C(0x9e3779b97f4a7c15);
	return UINT64_C(1) << (h >> 58) | UINT64_C(1) << (h >> 52 & 63);
}

static uint64_t bits_of_seq(const struct cap_seq *q)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < q->n; i++)
		if (!q->segs[i].star)
			bits |= bits_of(q->segs[i].pre);
	return bits;
}

static uint64_t bits_of_host(const struct cap_host *h)
{
	return h->kind == CAP_HOST_NAME ? bits_of(h->name) : 0;
}

/*
 * Computes the hash bits that a request must have to match capability @c.
 * SECURITY: an extra bit would make cap_set_decide() skip an entry that matches. A denial of HTTP
 * requests also applies to tunnels, whose requests have no path, so leave the path out of denials.
 */
static uint64_t find_need(const struct cap *c)
{
	uint64_t bits;

	if (c->action == CAP_NET_CONNECT || c->action == CAP_NET_BIND)
		return bits_of_host(&c->host);
	if (c->action == CAP_HTTP_REQUEST) {
		bits = bits_of_host(&c->url.host);
		return c->kind == CAP_DENIAL ? bits : bits | bits_of_seq(&c->url.path);
	}
	return bits_of_seq(&c->path);
}

int cap_parse(struct arena *a, enum cap_kind kind, struct sv text, struct cap *ret_cap,
	      struct writ_err *err)
{
	struct cap c = { .kind = kind };
	const struct action_rule *rule;
	uint32_t seen = 0;
	struct sv rest, resource;
	bool more;
	int r;

	if (text.n > CAP_TEXT_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "capability longer than %d bytes",
				 CAP_TEXT_MAX);
	if (!sv_is_graph(text))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "capability with a blank or odd byte");
	if (!arena_sv(a, text, &c.text))
		return writ_nomem(err);
	rest = c.text;
	c.action = find_action(sv_cut(&rest, ':'));
	if (c.action == CAP_NONE)
		return fail(err, WRIT_E_SYNTAX, "action", c.text);
	rule = &rules[c.action];
	c.realm = sv_cut(&rest, ':');
	if (!cap_is_id(c.realm))
		return fail(err, WRIT_E_SYNTAX, "realm", c.text);
	resource = cut_at(&rest, ';', &more);
	r = rule->resource(a, resource, rule, &c);
	if (r < 0)
		return fail(err, r, "resource", c.text);
	r = params_parse(a, rest, more, &c, &seen, err);
	if (r < 0)
		return r;
	if (!params_allowed(rule, kind, seen))
		return fail(err, WRIT_E_SYNTAX, "set of params", c.text);
	if (rule->check && rule->check(&c) < 0)
		return fail(err, WRIT_E_SYNTAX, "combination of params", c.text);
	c.hint = find_hint(&c, resource);
	c.hint.need = find_need(&c);
	*ret_cap = c;
	return 0;
}

void cap_print(const struct cap *c, struct buf *b)
{
	const struct action_rule *rule = &rules[c->action];
	uint32_t params = rule->must | rule->may;

	if (c->kind == CAP_REQUEST)
		params = rule->req_must | rule->req_may;
	else if (c->kind == CAP_DENIAL)
		params = 0;
	buf_sv(b, rule->name);
	buf_ch(b, ':');
	buf_sv(b, c->realm);
	buf_ch(b, ':');
	rule->print(c, b);
	for (enum cap_param p = 0; p < P_COUNT; p++) {
		scoped_buf value = BUF_INIT(CAP_TEXT_MAX);

		if (!(params & CAP_BIT(p)) || !cap_param_print(c, p, &value))
			continue;
		buf_fmt(b, ";%s=", cap_params[p].key.p);
		buf_sv(b, buf_view(&value));
		b->failed = b->failed || value.failed;
	}
}
