#include "tap.h"

#include "base/buf.h"
#include "reach/quota.h"
#include "reach/reach.h"

static struct arena arena = ARENA_INIT(64 << 20);

static void add(struct cap_set *s, enum cap_kind kind, const char *text)
{
	struct writ_err err = { 0 };
	struct cap_rule *r = vec_push(&arena, &s->rules);
	struct cap_entry *e =
		kind == CAP_DENIAL ? vec_push(&arena, &s->nots) : vec_push(&arena, &s->caps);

	if (!e || !r || cap_parse(&arena, kind, sv_from(text), &e->cap, &err) < 0) {
		ok(false, "%s: %s", text, err.what);
		return;
	}
	r->text = sv_from(text);
	e->rule = (uint32_t)s->rules.n - 1;
}

static struct reach new_reach(const struct cap_set *s)
{
	struct writ_err err = { 0 };
	struct reach r = { 0 };

	if (reach_init(&arena, s, SV("r"), &r, &err) < 0)
		ok(false, "%s", err.what);
	return r;
}

/* --- names --- */

static void test_names(void)
{
	struct cap_set s = { 0 };
	struct reach r = new_reach(&s);
	const uint32_t a = reach_intern(&r, SV("a.example.com"));
	const uint32_t b = reach_intern(&r, SV("b.example.com"));
	char text[32];
	size_t good = 0;

	ok(a == REACH_FIRST && b == REACH_FIRST + 1, "names get addresses in their order");
	ok(reach_intern(&r, SV("a.example.com")) == a, "and keep them");
	is_sv(reach_name_of(&r, b), SV("b.example.com"), "an address leads back to its name");
	is_sv(reach_name_of(&r, b + 1), SV(""), "the next one to none");
	is_sv(reach_name_of(&r, REACH_OWN), SV(""), "nor does our own");
	is_sv(reach_name_of(&r, 0), SV(""), "nor 0");
	is_sv(reach_name_of(&r, UINT32_MAX), SV(""), "nor the last one");
	for (unsigned i = 2; i < REACH_NAMES_MAX; i++) {
		snprintf(text, sizeof(text), "n%u.example.com", i);
		good += reach_intern(&r, sv_from(text)) == REACH_FIRST + i;
	}
	ok(good == REACH_NAMES_MAX - 2, "the pool takes REACH_NAMES_MAX names");
	ok(reach_intern(&r, SV("one.too.many")) == 0, "one more name is refused");
	ok(reach_intern(&r, SV("a.example.com")) == a, "the first is still there");
	_Static_assert(REACH_FIRST + REACH_NAMES_MAX < REACH_POOL + (1u << 17),
		       "names fit into the pool");
}

static void test_name_is_copied(void)
{
	struct cap_set s = { 0 };
	struct reach r = new_reach(&s);
	char text[] = "a.example.com";

	ok(reach_intern(&r, sv_from(text)) == REACH_FIRST, "a name from bytes that change");
	text[0] = 'x';
	is_sv(reach_name_of(&r, REACH_FIRST), SV("a.example.com"), "is kept as it was");
}

/* --- ports --- */

static void is_ports(const struct reach *r, const char *host, const char *want)
{
	uint16_t ports[REACH_PORTS_MAX];
	const size_t n = reach_ports(r, sv_from(host), ports);
	struct buf b = BUF_INIT(8192);
	char name[128];

	for (size_t i = 0; i < n; i++)
		buf_fmt(&b, "%s%u", i ? " " : "", ports[i]);
	snprintf(name, sizeof(name), "ports of %s", host);
	is_sv(buf_view(&b), sv_from(want), name);
	buf_clear(&b);
}

static void test_ports(void)
{
	struct cap_set s = { 0 };
	struct reach r = new_reach(&s);

	is_ports(&r, "a.example.com", "");
	add(&s, CAP_GRANT, "net.connect:r:tcp/a.example.com:8003-8005");
	add(&s, CAP_GRANT, "net.connect:r:tcp/*.example.com:8001");
	add(&s, CAP_GRANT, "net.connect:r:tcp/a.example.com:8004");
	add(&s, CAP_GRANT, "http.request:r:https://a.example.com:443/**;m=*;q=any");
	add(&s, CAP_GRANT, "net.connect:r:tcp/192.0.2.7:25");
	is_ports(&r, "a.example.com", "443 8001 8003 8004 8005");
	is_ports(&r, "b.example.com", "8001");
	is_ports(&r, "example.com", "");
	is_ports(&r, "a.b.example.com", "");
	is_ports(&r, "192.0.2.7", "25");
	is_ports(&r, "192.0.2.8", "");
	is_ports(&r, "", "");
}

static void test_port_limits(void)
{
	struct cap_set s = { 0 };
	struct reach r = new_reach(&s);
	uint16_t ports[REACH_PORTS_MAX];
	size_t n, sorted = 1;
	char text[80];

	for (unsigned i = 20; i-- > 0;) {
		snprintf(text, sizeof(text), "net.connect:r:tcp/a.example.com:%u-%u", 1000 + i * 64,
			 1063 + i * 64);
		add(&s, CAP_GRANT, text);
	}
	n = reach_ports(&r, SV("a.example.com"), ports);
	for (size_t i = 1; i < n; i++)
		sorted += ports[i - 1] < ports[i];
	ok(n == REACH_PORTS_MAX && sorted == n, "more ports than fit: as many as do, in order");
	add(&s, CAP_GRANT, "net.connect:r:tcp/b.example.com:65500-65535");
	n = reach_ports(&r, SV("b.example.com"), ports);
	ok(n == 36 && ports[35] == 65535, "the last port there is");
}

/* --- ways --- */

static void is_way(const struct reach *r, const char *host, uint16_t port, enum reach_way want)
{
	ok(reach_way(r, sv_from(host), port) == want, "%s:%u is %d", host, port, (int)want);
}

static void test_ways(void)
{
	struct cap_set s = { 0 };
	struct reach r = new_reach(&s);

	is_way(&r, "raw.example.com", 5432, REACH_CLOSED);
	add(&s, CAP_GRANT, "net.connect:r:tcp/raw.example.com:5432");
	add(&s, CAP_GRANT, "http.request:r:https://tls.example.com:443/**;m=*;q=any");
	add(&s, CAP_GRANT, "http.request:r:https://path.example.com:443/v1/**;m=*;q=any");
	add(&s, CAP_GRANT, "http.request:r:http://plain.example.com:80/**;m=*;q=any");
	add(&s, CAP_GRANT, "http.request:r:https://get.example.com:443/**;m=GET;q=any");
	add(&s, CAP_DENIAL, "net.connect:r:tcp/shut.example.com:1-65535");
	add(&s, CAP_GRANT, "net.connect:r:tcp/*.example.com:7000");
	is_way(&r, "raw.example.com", 5432, REACH_RAW);
	is_way(&r, "raw.example.com", 5433, REACH_CLOSED);
	is_way(&r, "tls.example.com", 443, REACH_SNI);
	is_way(&r, "tls.example.com", 80, REACH_CLOSED);
	is_way(&r, "path.example.com", 443, REACH_READ);
	is_way(&r, "plain.example.com", 80, REACH_READ);
	is_way(&r, "get.example.com", 443, REACH_READ);
	is_way(&r, "other.example.com", 7000, REACH_RAW);
	is_way(&r, "shut.example.com", 7000, REACH_CLOSED);
	is_way(&r, "elsewhere.org", 443, REACH_CLOSED);
	ok(reach_is_tls(&r, SV("path.example.com"), 443) &&
		   !reach_is_tls(&r, SV("plain.example.com"), 80) &&
		   !reach_is_tls(&r, SV("raw.example.com"), 5432),
	   "which of them are TLS");
	s.net_level = NET_LEVEL_SIGNED;
	is_way(&r, "tls.example.com", 443, REACH_READ);
	is_way(&r, "raw.example.com", 5432, REACH_CLOSED);
	add(&s, CAP_GRANT, "net.connect:r:tcp/tls.example.com:443");
	is_way(&r, "tls.example.com", 443, REACH_READ);
}

static void test_secret_is_read(void)
{
	struct cap_set s = { 0 };
	struct reach r = new_reach(&s);

	add(&s, CAP_GRANT, "http.request:r:https://api.example.com:443/**;m=*;q=any");
	is_way(&r, "api.example.com", 443, REACH_SNI);
	add(&s, CAP_GRANT, "secret.use:r:/k;as=env;to=https://api.example.com:443/**");
	is_way(&r, "api.example.com", 443, REACH_SNI);
	add(&s, CAP_GRANT, "secret.use:r:/l;as=bearer;to=https://api.example.com:443/**");
	is_way(&r, "api.example.com", 443, REACH_READ);
}

/* --- decisions --- */

static struct reach_verdict decide(const struct reach *r, const char *host, uint16_t port,
				   enum reach_proto proto)
{
	const struct reach_key key = { .host = sv_from(host), .port = port, .proto = proto };

	return reach_decide(r, &key);
}

static void test_decide(void)
{
	struct cap_set s = { 0 };
	struct reach r = new_reach(&s);
	struct reach_verdict v;
	struct cap_net_addr addr = { { 10, 1, 2, 3 }, 32, false };
	struct reach_key key = { .host = SV("wiki.example.com"), .port = 7000, .special = &addr };

	add(&s, CAP_GRANT, "net.connect:r:tcp/a.example.com:7000;n=2");
	add(&s, CAP_DENIAL, "net.connect:r:tcp/b.example.com:7000");
	add(&s, CAP_GRANT, "net.connect:r:tcp/wiki.example.com:7000;priv=10.1.0.0/16");
	v = decide(&r, "a.example.com", 7000, REACH_TCP);
	ok(v.answer == CAP_ALLOW && v.bill.entry == 0 && v.cause == CAUSE_NONE,
	   "allowed, and by which grant");
	v = decide(&r, "b.example.com", 7000, REACH_TCP);
	ok(v.answer == CAP_DENY && v.rule == 1 && v.cause == CAUSE_RULE,
	   "denied, by which rule, and why");
	v = decide(&r, "c.example.com", 7000, REACH_TCP);
	ok(v.answer == CAP_DENY && v.rule == RULE_NONE && v.cause == CAUSE_NO_RULE,
	   "denied by none");
	v = decide(&r, "a b", 7000, REACH_TCP);
	ok(v.answer == CAP_DENY && v.cause == CAUSE_UNNAMEABLE, "what no rule can name is denied");
	v = decide(&r, "a.example.com;m=x", 7000, REACH_TCP);
	ok(v.answer == CAP_DENY && v.cause == CAUSE_UNNAMEABLE,
	   "and what would say more in a request than a name");
	v = decide(&r, "", 7000, REACH_TCP);
	ok(v.answer == CAP_DENY && v.cause != CAUSE_NONE, "and nothing");
	ok(reach_decide(&r, &key).answer == CAP_ALLOW, "a private address that the rule names");
	ok(reach_private(&r, SV("wiki.example.com"), 7000, &addr), "is private as it should be");
	addr.b[1] = 2;
	ok(reach_decide(&r, &key).answer == CAP_DENY, "one beside it");
	ok(!reach_private(&r, SV("wiki.example.com"), 7000, &addr), "is not");
	addr.b[1] = 1;
	ok(!reach_private(&r, SV("wiki.example.com"), 7001, &addr) &&
		   !reach_private(&r, SV("a.example.com"), 7000, &addr),
	   "nor at another port or host");
}

/* --- listeners --- */

static size_t count(const reach_listeners *v, struct sv host)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++)
		n += v->v[i].what == REACH_HOST && sv_eq(v->v[i].host, host);
	return n;
}

static void test_listeners(void)
{
	struct cap_set s = { 0 };
	struct reach r = new_reach(&s);
	struct writ_err err = { 0 };
	struct reach_listener l;
	reach_listeners v = { 0 };

	add(&s, CAP_GRANT, "net.connect:r:tcp/a.example.com:7000-7002");
	add(&s, CAP_GRANT, "net.connect:r:tcp/a.example.com:7002-7003");
	add(&s, CAP_GRANT, "net.connect:r:tcp/*.example.org:7000");
	add(&s, CAP_GRANT, "net.connect:r:tcp/**.example.org:7100-7101");
	add(&s, CAP_GRANT, "net.connect:r:tcp/localhost:3000");
	add(&s, CAP_GRANT, "net.connect:r:tcp/192.0.2.8/30:25");
	add(&s, CAP_GRANT, "net.connect:r:tcp/[2001:db8::1]:25");
	ok(reach_start(&r, &v, &err) == 0, "listeners for a policy (%s)", err.what);
	ok(v.n >= 3 && v.v[0].what == REACH_DNS_UDP && v.v[1].what == REACH_DNS_TCP &&
		   v.v[2].what == REACH_PROXY,
	   "our own are the first");
	ok(count(&v, SV("a.example.com")) == 4, "one for each port of a name, and each once");
	ok(count(&v, SV("*.example.org")) == 0, "none for a pattern");
	ok(count(&v, SV(REACH_TAKEN_NAME)) == 2 && v.v[v.n - 1].port == 7101 &&
		   v.v[v.n - 1].addr[3] == 2,
	   "but its ports are taken, where nobody else listens");
	ok(count(&v, SV("localhost")) == 2, "the host's port has two places");
	ok(count(&v, SV("192.0.2.8")) == 1 && count(&v, SV("192.0.2.11")) == 1 &&
		   count(&v, SV("192.0.2.12")) == 0,
	   "one for each address of a network");
	ok(count(&v, SV("[2001:db8::1]")) == 1, "IPv6 as well");
	ok(reach_listener_for(&r, SV("x.example.org"), 7000, &l) && !l.v6 && l.addr[0] == 198 &&
		   l.addr[1] == 18,
	   "a name that comes up later gets one of the pool");
	ok(reach_listener_for(&r, SV("192.0.2.8"), 25, &l) && l.addr[0] == 192 && l.addr[3] == 8,
	   "an address is itself");
}

static void test_listener_limits(void)
{
	struct cap_set s = { 0 }, big = { 0 };
	struct reach r = new_reach(&s), q = new_reach(&big);
	struct writ_err err = { 0 };
	reach_listeners v = { 0 }, u = { 0 };
	char text[80];

	for (unsigned i = 0; i < 70; i++) {
		snprintf(text, sizeof(text), "net.connect:r:tcp/h%u.example.com:7000-7063", i);
		add(&s, CAP_GRANT, text);
	}
	ok(reach_start(&r, &v, &err) == WRIT_E_UNENFORCEABLE, "too many listeners are refused");
	ok(v.n <= REACH_LISTENERS_MAX, "and never made");
	add(&big, CAP_GRANT, "net.connect:r:tcp/10.0.0.0/8:25");
	ok(reach_start(&q, &u, &err) == WRIT_E_UNENFORCEABLE, "and so is a large network");
}

/* --- prices --- */

static const struct quota_bill bill[] = { { .entry = 0 }, { .entry = 1 } };

static struct quota new_quota(const struct cap_set *s)
{
	struct quota q;

	quota_init(&q, &arena, s);
	return q;
}

static void test_count(void)
{
	struct cap_set s = { 0 };
	struct quota q = new_quota(&s);
	int good = 0;

	add(&s, CAP_GRANT, "net.connect:r:tcp/a.example.com:7000;n=3");
	add(&s, CAP_GRANT, "net.connect:r:tcp/b.example.com:7000");
	for (int i = 0; i < 10; i++)
		good += quota_use(&q, &bill[0], 5) == CAUSE_NONE;
	ok(good == 3, "exactly as many uses as the rule says");
	ok(quota_use(&q, &bill[0], 1u << 30) == CAUSE_USED_COUNT, "and later no more");
	good = 0;
	for (int i = 0; i < 1000; i++)
		good += quota_use(&q, &bill[1], 5) == CAUSE_NONE;
	ok(good == 1000, "a rule without a number has no end");
	ok(q.own.requests == 1003, "what was refused is not counted");
}

static void test_rate(void)
{
	struct cap_set s = { 0 };
	struct quota q = new_quota(&s);

	add(&s, CAP_GRANT, "net.connect:r:tcp/a.example.com:7000;rate=3/10");
	ok(!quota_use(&q, &bill[0], 1000) && !quota_use(&q, &bill[0], 4000) &&
		   !quota_use(&q, &bill[0], 9000),
	   "three in ten seconds");
	ok(quota_use(&q, &bill[0], 9001) == CAUSE_USED_RATE, "not a fourth");
	ok(quota_use(&q, &bill[0], 10999) == CAUSE_USED_RATE, "not a moment too early");
	ok(!quota_use(&q, &bill[0], 11000), "one as soon as the first is ten seconds old");
	ok(quota_use(&q, &bill[0], 13999) == CAUSE_USED_RATE, "the window slides");
	ok(!quota_use(&q, &bill[0], 14000), "with each of them");
	ok(!quota_use(&q, &bill[0], 1000000) && !quota_use(&q, &bill[0], 1000000) &&
		   !quota_use(&q, &bill[0], 1000000) && quota_use(&q, &bill[0], 1000000),
	   "after a long time three at once, and no more");
}

static void test_both(void)
{
	struct cap_set s = { 0 };
	struct quota q = new_quota(&s);

	add(&s, CAP_GRANT, "net.connect:r:tcp/a.example.com:7000;n=3;rate=2/1");
	ok(!quota_use(&q, &bill[0], 0) && !quota_use(&q, &bill[0], 0), "two at once");
	ok(quota_use(&q, &bill[0], 500) == CAUSE_USED_RATE, "the third is too early");
	ok(!quota_use(&q, &bill[0], 1000), "which cost nothing: it comes later");
	ok(quota_use(&q, &bill[0], 5000) == CAUSE_USED_COUNT, "and was the last");
}

static void test_session_requests(void)
{
	struct cap_set s = { 0 };
	struct quota q = new_quota(&s);

	s.limits[LIMIT_REQUESTS] = 3;
	add(&s, CAP_GRANT, "net.connect:r:tcp/a.example.com:7000");
	add(&s, CAP_GRANT, "net.connect:r:tcp/b.example.com:7000");
	ok(!quota_use(&q, &bill[0], 0) && !quota_use(&q, &bill[1], 0) &&
		   !quota_use(&q, &bill[0], 0),
	   "three of the session, over its rules");
	ok(quota_use(&q, &bill[1], 0) == CAUSE_USED_REQUESTS, "and no more");
}

static void test_bytes(void)
{
	struct cap_set s = { 0 };
	struct quota q = new_quota(&s);

	add(&s, CAP_GRANT, "net.connect:r:tcp/a.example.com:7000;max-in=1000;max-out=100");
	add(&s, CAP_GRANT, "net.connect:r:tcp/b.example.com:7000");
	ok(quota_left(&q, &bill[0], true) == 100 && quota_left(&q, &bill[0], false) == 1000,
	   "all of it is left");
	ok(quota_left(&q, &bill[1], true) == UINT64_MAX, "without a number there is no end");
	quota_pass(&q, &bill[0], true, 99);
	ok(quota_left(&q, &bill[0], true) == 1, "one byte is left");
	quota_pass(&q, &bill[0], true, 1);
	ok(quota_left(&q, &bill[0], true) == 0 && quota_left(&q, &bill[0], false) == 1000,
	   "none, and the other direction is its own");
	quota_pass(&q, &bill[0], true, 50);
	ok(quota_left(&q, &bill[0], true) == 0, "too many are not an endless number");
	s.limits[LIMIT_UP] = 200;
	ok(quota_left(&q, &bill[1], true) == 50, "the session counts what all of them sent");
	quota_pass(&q, &bill[1], true, 60);
	ok(quota_left(&q, &bill[1], true) == 0, "and ends all of them");
	s.limits[LIMIT_DOWN] = 10;
	ok(quota_left(&q, &bill[0], false) == 10, "the smaller of two limits holds");
}

/* One limit over what became of a pattern: both sets of a meeting pay it. */
static void test_prices(void)
{
	struct cap_set wide = { 0 }, narrow = { 0 }, met = { 0 };
	struct writ_err err = { 0 };
	struct reach r = new_reach(&met);
	struct quota q = new_quota(&met);
	struct reach_verdict a, b;

	add(&wide, CAP_GRANT, "net.connect:r:tcp/*.example.com:7000;max-out=100;n=3");
	add(&narrow, CAP_GRANT, "net.connect:r:tcp/a.example.com:7000;n=2");
	add(&narrow, CAP_GRANT, "net.connect:r:tcp/b.example.com:7000");
	ok(cap_set_meet(&arena, &wide, &narrow, &met, &err) == 0, "two sets meet (%s)", err.what);
	a = decide(&r, "a.example.com", 7000, REACH_TCP);
	b = decide(&r, "b.example.com", 7000, REACH_TCP);
	ok(a.answer == CAP_ALLOW && b.answer == CAP_ALLOW && a.bill.entry != b.bill.entry,
	   "two grants come of one");
	ok(a.bill.prices_n > 0 && b.bill.prices_n > 0, "both have its price");
	ok(!quota_use(&q, &a.bill, 0) && !quota_use(&q, &a.bill, 0), "two uses of the first");
	ok(quota_use(&q, &a.bill, 0) == CAUSE_USED_COUNT, "which then has no more of its own");
	ok(!quota_use(&q, &b.bill, 0), "one of the other");
	ok(quota_use(&q, &b.bill, 0) == CAUSE_USED_COUNT, "and three is all there are");
	quota_pass(&q, &a.bill, true, 60);
	ok(quota_left(&q, &b.bill, true) == 40, "bytes of one are missing for the other");
	quota_pass(&q, &b.bill, true, 40);
	ok(quota_left(&q, &a.bill, true) == 0 && quota_left(&q, &a.bill, false) == UINT64_MAX,
	   "down to the last");
}

static void test_too_many_prices(void)
{
	struct cap_set wide = { 0 }, narrow = { 0 }, met = { 0 };
	struct writ_err err = { 0 };
	struct reach r = new_reach(&met);
	char text[80];

	for (unsigned i = 0; i < QUOTA_PRICES_MAX + 1; i++) {
		snprintf(text, sizeof(text), "net.connect:r:tcp/a.example.com:%u-7000;n=%u",
			 7000 - i - 1, i + 1);
		add(&wide, CAP_GRANT, text);
	}
	add(&narrow, CAP_GRANT, "net.connect:r:tcp/a.example.com:7000");
	ok(cap_set_meet(&arena, &wide, &narrow, &met, &err) == 0, "nine prices (%s)", err.what);
	ok(decide(&r, "a.example.com", 7000, REACH_TCP).answer == CAP_DENY,
	   "what cannot be counted is denied");
}

/* Two sessions, and one counter for each token: never more than there are. */
static void test_shared(void)
{
	static _Alignas(65536) struct quota_counter counters[2]; /* as a mapping is */
	static const struct quota_cell cells[] = { { 0, 0 }, { 1, 1 } };
	const struct quota_shared shared = { .v = counters, .n = 2, .cells = cells, .cells_n = 2 };
	const struct quota_bill both = { .entry = 0, .prices = { 0, 1 }, .prices_n = 2 };
	const struct quota_bill first = { .entry = 0, .prices = { 0 }, .prices_n = 1 };
	struct cap_set s = { 0 };
	struct quota x, y;
	size_t good = 0;

	add(&s, CAP_GRANT, "net.connect:r:tcp/a.test:1");
	for (size_t i = 0; i < 2; i++) {
		struct cap_entry *e = vec_push(&arena, &s.prices);
		struct writ_err err = { 0 };

		if (!e || cap_parse(&arena, CAP_GRANT,
				    i ? SV("net.connect:r:tcp/a.test:1;max-out=100;n=3")
				      : SV("net.connect:r:tcp/a.test:1;n=5"),
				    &e->cap, &err) < 0)
			ok(false, "a price: %s", err.what);
	}
	x = new_quota(&s);
	y = new_quota(&s);
	x.shared = shared;
	y.shared = shared;
	for (int i = 0; i < 4; i++)
		good += (quota_use(i & 1 ? &x : &y, &both, 1) == CAUSE_NONE);
	ok(good == 3 && counters[0].uses == 3 && counters[1].uses == 3,
	   "the smaller counter ends it for both, and the other one is not debited");
	ok(quota_use(&x, &both, 1) == CAUSE_USED_SHARED_COUNT, "and says so");
	ok(!quota_use(&y, &first, 1) && !quota_use(&x, &first, 1) && quota_use(&x, &first, 1) &&
		   counters[0].uses == 5,
	   "what only the larger one counts goes on");
	quota_pass(&x, &both, true, 70);
	ok(quota_left(&y, &both, true) == 30, "bytes of one session are missing in the other");
	quota_pass(&y, &both, true, 70);
	ok(quota_left(&x, &both, true) == 0, "and never fewer than none");
}

/* Limits of several sessions together, beside each one's own. */
static void test_pools(void)
{
	static _Alignas(65536) struct quota_counter counters[2];
	static const struct quota_pool pools[] = { { .slot = 0, .requests = 4, .up = 100 },
						   { .slot = 1, .requests = 3, .down = 50 } };
	const struct quota_shared shared = { .v = counters, .n = 2, .pools = pools, .pools_n = 2 };
	const struct quota_shared outer = { .v = counters, .n = 2, .pools = pools, .pools_n = 1 };
	const struct quota_bill one = { .entry = 0 };
	struct cap_set s = { 0 };
	struct quota x, y;

	add(&s, CAP_GRANT, "net.connect:r:tcp/a.test:1");
	x = new_quota(&s);
	y = new_quota(&s);
	x.shared = shared;
	y.shared = outer;
	ok(!quota_use(&x, &one, 1) && !quota_use(&x, &one, 1) && !quota_use(&x, &one, 1),
	   "three of three");
	ok(quota_use(&x, &one, 1) == CAUSE_USED_SHARED_REQUESTS,
	       "and no fourth");
	ok(counters[0].uses == 3 && counters[1].uses == 3, "what was refused was not counted");
	ok(!quota_use(&y, &one, 1) && quota_use(&y, &one, 1) && counters[0].uses == 4,
	   "the other session has what is left of the larger one");
	quota_pass(&x, &one, true, 60);
	quota_pass(&x, &one, false, 60);
	ok(quota_left(&x, &one, true) == 40 && quota_left(&y, &one, true) == 40,
	   "bytes sent are missing in both");
	ok(quota_left(&x, &one, false) == 0 && quota_left(&y, &one, false) == UINT64_MAX,
	   "bytes received only where they are limited");
}

int main(void)
{
	test_shared();
	test_pools();
	test_names();
	test_name_is_copied();
	test_ports();
	test_port_limits();
	test_ways();
	test_secret_is_read();
	test_decide();
	test_listeners();
	test_listener_limits();
	test_count();
	test_rate();
	test_both();
	test_session_requests();
	test_bytes();
	test_prices();
	test_too_many_prices();
	arena_clear(&arena);
	return tap_done();
}
