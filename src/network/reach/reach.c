#include "reach/reach.h"

#include <string.h>

#include "base/banned.h"

bool reach_any(const struct cap_set *set)
{
	for (size_t i = 0; i < set->caps.n; i++) {
		const enum cap_action a = set->caps.v[i].cap.action;

		/*
		 * The git helper process (gitnet/) serves git.use, so reach does not count git.use
		 * as a network grant.
		 */
		if (a == CAP_NET_CONNECT || a == CAP_HTTP_REQUEST || a == CAP_NET_BIND)
			return true;
	}
	return false;
}

/* --- names and their addresses --- */

uint32_t reach_intern(struct reach *r, struct sv name)
{
	struct sv *s;

	for (size_t i = 0; i < r->names.n; i++)
		if (sv_eq(r->names.v[i], name))
			return REACH_FIRST + (uint32_t)i;
	if (r->names.n >= REACH_NAMES_MAX)
		return 0;
	s = vec_push(r->a, &r->names);
	if (!s)
		return 0;
	if (!arena_sv(r->a, name, s)) {
		r->names.n--;
		return 0;
	}
	return REACH_FIRST + (uint32_t)(r->names.n - 1);
}

struct sv reach_name_of(const struct reach *r, uint32_t address)
{
	const uint32_t i = address - REACH_FIRST;

	return address >= REACH_FIRST && i < r->names.n ? r->names.v[i] : SV("");
}

int reach_init(struct arena *a, const struct cap_set *set, struct sv realm, struct reach *ret,
	       struct writ_err *err)
{
	(void)err;
	*ret = (struct reach){ .a = a, .set = set, .realm = realm };
	return 0;
}

/* --- ports --- */

/*
 * Inserts @port into the sorted list @v unless the list contains it or is full. Returns
 * the new length of the list.
 */
static size_t add_port(uint16_t *v, size_t n, uint16_t port)
{
	size_t at = n;

	while (at && v[at - 1] > port)
		at--;
	if ((at && v[at - 1] == port) || n == REACH_PORTS_MAX)
		return n;
	memmove(v + at + 1, v + at, (n - at) * sizeof(*v));
	v[at] = port;
	return n + 1;
}

size_t reach_ports(const struct reach *r, struct sv host, uint16_t ret[REACH_PORTS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < r->set->caps.n; i++) {
		const struct cap *c = &r->set->caps.v[i].cap;
		uint16_t lo, hi;

		if (!cap_opens(c, host, &lo, &hi))
			continue;
		for (uint32_t port = lo; port <= hi; port++)
			n = add_port(ret, n, (uint16_t)port);
	}
	return n;
}

/* --- listeners --- */

static void put_v4(struct reach_listener *l, uint32_t address)
{
	for (int i = 0; i < 4; i++)
		l->addr[i] = (uint8_t)(address >> (24 - 8 * i));
}

bool reach_listener_for(struct reach *r, struct sv host, uint16_t port, struct reach_listener *ret)
{
	struct reach_listener l = { .what = REACH_HOST, .host = host, .port = port };
	struct cap_net_addr addr;
	uint32_t name;

	if (cap_addr_parse(host, &addr)) {
		memcpy(l.addr, addr.b, sizeof(l.addr));
		l.v6 = addr.v6;
	} else {
		name = reach_intern(r, sv_is(host, "localhost") ? SV(REACH_HOST_NAME) : host);
		if (!name)
			return false;
		put_v4(&l, name);
	}
	*ret = l;
	return true;
}

static int full(struct writ_err *err)
{
	return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
			 "more than %d pairs of a host and a port: name fewer of them",
			 REACH_LISTENERS_MAX);
}

static int add_host(struct reach *r, struct sv host, reach_listeners *to, struct writ_err *err)
{
	uint16_t ports[REACH_PORTS_MAX];
	const size_t n = reach_ports(r, host, ports);

	for (size_t i = 0; i < to->n; i++)
		if (to->v[i].what == REACH_HOST && sv_eq(to->v[i].host, host))
			return 0;
	for (size_t i = 0; i < n; i++) {
		struct reach_listener *l = to->n < REACH_LISTENERS_MAX ? vec_push(r->a, to) : NULL;

		if (!l || !reach_listener_for(r, host, ports[i], l))
			return full(err);
		if (!sv_is(host, "localhost"))
			continue;
		/* Add a second listener for localhost at 127.0.0.1, where programs expect it. */
		l = to->n < REACH_LISTENERS_MAX ? vec_push(r->a, to) : NULL;
		if (!l)
			return full(err);
		*l = (struct reach_listener){ .what = REACH_HOST, .host = host, .port = ports[i] };
		put_v4(l, 0x7f000001);
	}
	return 0;
}

/*
 * Adds the listeners of each address of the network @net, one for each port that a grant opens.
 * Fails if @net has more than 256 addresses.
 */
static int add_network(struct reach *r, const struct cap_net_addr *net, reach_listeners *to,
		       struct writ_err *err)
{
	const unsigned bits = (net->v6 ? 128u : 32u) - net->len;
	const size_t last = net->v6 ? 15 : 3;

	if (bits > 8)
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
				 "a network of more than 256 addresses: name smaller ones");
	for (unsigned i = 0; i < 1u << bits; i++) {
		struct cap_net_addr one = *net;
		scoped_buf b = BUF_INIT(64);
		struct sv host;

		one.len = net->v6 ? 128 : 32;
		one.b[last] = (uint8_t)(one.b[last] | i);
		cap_addr_print(&one, &b);
		if (!arena_sv(r->a, buf_view(&b), &host))
			return writ_nomem(err);
		if (add_host(r, host, to, err) < 0)
			return err->code;
	}
	return 0;
}

static bool is_listened_at(const reach_listeners *v, uint16_t port)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->v[i].port == port && v->v[i].what != REACH_DNS_UDP && !v->v[i].v6)
			return true;
	return false;
}

static bool is_pattern(const struct cap_host *h)
{
	return h &&
	       (h->kind == CAP_HOST_ONE || h->kind == CAP_HOST_MANY || h->kind == CAP_HOST_ANY);
}

static int take_ports(struct reach *r, const struct cap *c, reach_listeners *to,
		      struct writ_err *err)
{
	const bool http = c->action == CAP_HTTP_REQUEST;
	const uint32_t lo = http ? c->url.port : c->port_lo, hi = http ? lo : c->port_hi;

	for (uint32_t port = lo; port <= hi && to->n < REACH_LISTENERS_MAX; port++) {
		struct reach_listener *l;

		if (is_listened_at(to, (uint16_t)port))
			continue;
		l = vec_push(r->a, to);
		if (!l)
			return writ_nomem(err);
		*l = (struct reach_listener){ .what = REACH_HOST,
					      .host = SV(REACH_TAKEN_NAME),
					      .port = (uint16_t)port };
		put_v4(l, REACH_TAKEN);
	}
	return 0;
}

int reach_start(struct reach *r, reach_listeners *ret, struct writ_err *err)
{
	static const struct {
		enum reach_what what;
		uint16_t port;
	} own[] = { { REACH_DNS_UDP, REACH_DNS_PORT },
		    { REACH_DNS_TCP, REACH_DNS_PORT },
		    { REACH_PROXY, REACH_PROXY_PORT } };

	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		struct reach_listener *l = vec_push(r->a, ret);

		if (!l)
			return writ_nomem(err);
		*l = (struct reach_listener){ .what = own[i].what, .port = own[i].port };
		put_v4(l, REACH_OWN);
	}
	for (size_t i = 0; i < r->set->caps.n; i++) {
		const struct cap_host *h = cap_host_of(&r->set->caps.v[i].cap);

		if (h && h->kind == CAP_HOST_NAME && add_host(r, h->name, ret, err) < 0)
			return err->code;
		if (h && (h->kind == CAP_HOST_V4 || h->kind == CAP_HOST_V6) &&
		    add_network(r, &h->addr, ret, err) < 0)
			return err->code;
	}
	for (size_t i = 0; i < r->set->caps.n; i++) {
		const struct cap *c = &r->set->caps.v[i].cap;

		if (is_pattern(cap_host_of(c)) && take_ports(r, c, ret, err) < 0)
			return err->code;
	}
	return 0;
}

/* --- decisions --- */

/* Appends @key as the text of a capability. Fails if a capability cannot name the path of @key. */
static int put_key(struct buf *b, const struct reach *r, const struct reach_key *key,
		   struct writ_err *err)
{
	const bool http = key->proto == REACH_HTTP || key->proto == REACH_HTTPS;

	buf_sv(b, http ? SV("http.request:") : SV("net.connect:"));
	buf_sv(b, r->realm);
	buf_sv(b, !http			      ? SV(":tcp/")
		  : key->proto == REACH_HTTPS ? SV(":https://")
					      : SV(":http://"));
	buf_sv(b, key->host);
	buf_ch(b, ':');
	buf_u64(b, key->port);
	if (http) {
		if (cap_put_http_path(b, key->path, err) < 0)
			return err->code;
		buf_str(b, ";m=");
		buf_sv(b, key->method);
	}
	if (key->special) {
		buf_str(b, ";priv=");
		cap_addr_print(key->special, b);
	}
	if (http)
		buf_str(b, key->query ? ";q=any" : ";q=none");
	if (key->proto == REACH_TLS)
		buf_str(b, ";tls=sni");
	return 0;
}

/*
 * Adds the prices that match @req to the bill. Returns false if more prices match than the bill
 * holds; the caller then denies the request, because the remaining prices could not be counted.
 */
static bool add_prices(const struct cap_set *s, const struct cap *req, struct quota_bill *bill)
{
	for (size_t i = 0; i < s->prices.n; i++) {
		const struct cap *c = &s->prices.v[i].cap;

		if ((!c->n && !c->rate_n && !c->max_in && !c->max_out) || !cap_matches(c, req))
			continue;
		if (bill->prices_n == QUOTA_PRICES_MAX)
			return false;
		bill->prices[bill->prices_n++] = (uint32_t)i;
	}
	return true;
}

struct reach_verdict reach_decide(const struct reach *r, const struct reach_key *key)
{
	struct reach_verdict v = { .rule = RULE_NONE, .bill = { .entry = SIZE_MAX } };
	scoped_arena a = ARENA_INIT(1 << 16);
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct writ_err err = { 0 };
	struct cap_verdict got;
	struct cap req;

	if (put_key(&b, r, key, &err) < 0)
		v.cause = CAUSE_PATH_UNCLEAR;
	else if (b.failed)
		v.cause = CAUSE_TOO_LONG;
	else if (cap_parse(&a, CAP_REQUEST, buf_view(&b), &req, &err) < 0)
		v.cause = CAUSE_UNNAMEABLE;
	if (v.cause != CAUSE_NONE)
		return v;
	got = cap_set_decide(r->set, &req);
	v.answer = got.answer;
	v.rule = got.rule;
	v.bill.entry = got.entry;
	v.reason = cap_set_reason(r->set, &got);
	if (got.answer == CAP_DENY && got.rule == RULE_NONE) {
		v.detail = cap_set_hop_message(r->set, &got);
		v.cause = v.detail ? CAUSE_HOP : CAUSE_NO_RULE;
	} else if (got.answer == CAP_DENY) {
		v.cause = CAUSE_RULE;
	} else if (!add_prices(r->set, &req, &v.bill)) {
		v.answer = CAP_DENY;
		v.cause = CAUSE_MANY_LIMITS;
	}
	return v;
}

/* Tests whether a secret goes into requests to @host and @port, which the reader must decrypt. */
static bool takes_secret(const struct reach *r, struct sv host, uint16_t port)
{
	for (size_t i = 0; i < r->set->caps.n; i++) {
		const struct cap *c = &r->set->caps.v[i].cap;
		uint16_t lo, hi;

		if (c->action == CAP_SECRET_USE && !sv_is(c->as, "env") &&
		    cap_url_opens(&c->to, host, &lo, &hi) && port == lo)
			return true;
	}
	return false;
}

/* The rules for requests to one host and port. */
struct requests {
	bool any;
	bool pass; /* a rule lets connections to the host and port bypass the reader */
	bool tls;  /* a rule names an https URL of the host and port */
};

static struct requests requests_to(const struct reach *r, struct sv host, uint16_t port)
{
	struct requests found = { .any = false };

	for (size_t i = 0; i < r->set->caps.n; i++) {
		const struct cap *c = &r->set->caps.v[i].cap;
		uint16_t lo, hi;

		if (c->action != CAP_HTTP_REQUEST || !cap_opens(c, host, &lo, &hi) || port != lo)
			continue;
		found.any = true;
		found.pass |= c->tls_pass;
		found.tls |= c->url.tls;
	}
	return found;
}

enum reach_way reach_way(const struct reach *r, struct sv host, uint16_t port)
{
	struct reach_key key = { .host = host, .port = port, .proto = REACH_TCP };
	const struct requests to = requests_to(r, host, port);

	/*
	 * SECURITY: at the level "signed" every request is signed, so neither a rule nor a live
	 * grant may let a connection bypass the reader.
	 */
	if (r->set->net_level == NET_LEVEL_SIGNED)
		return to.any && !to.pass ? REACH_READ : REACH_CLOSED;
	if (to.any && !to.pass && takes_secret(r, host, port))
		return REACH_READ;
	if (reach_decide(r, &key).answer != CAP_DENY)
		return REACH_RAW;
	key.proto = REACH_TLS;
	if (reach_decide(r, &key).answer != CAP_DENY)
		return REACH_SNI;
	return to.any ? REACH_READ : REACH_CLOSED;
}

bool reach_private(const struct reach *r, struct sv host, uint16_t port,
		   const struct cap_net_addr *to)
{
	for (size_t i = 0; i < r->set->caps.n; i++) {
		const struct cap *c = &r->set->caps.v[i].cap;
		uint16_t lo, hi;

		if (!cap_opens(c, host, &lo, &hi) || port < lo || port > hi)
			continue;
		for (size_t k = 0; k < c->priv_n; k++)
			if (cap_addr_within(to, &c->priv[k]))
				return true;
	}
	return false;
}

bool reach_is_tls(const struct reach *r, struct sv host, uint16_t port)
{
	return requests_to(r, host, port).tls;
}

bool reach_is_open(const struct cap *c)
{
	return c->url.tls && c->any_method && !c->no_query && c->n == 0 && c->rate_n == 0 &&
	       c->url.path.n == 0 && c->url.path.tail;
}
