#include "tap.h"

#include "cap/cause.h"
#include "cap/set.h"
#include "crypto/crypto.h"

static struct arena arena = ARENA_INIT(64 << 20);

/* A rule of its own for each member: rule i says "rule i". */
static uint32_t add_rule(struct cap_set *s)
{
	struct cap_rule *r = vec_push(&arena, &s->rules);

	if (!r)
		return RULE_NONE;
	r->file = SV("agent.writ");
	r->line = (uint32_t)s->rules.n;
	r->text = SV("allow something");
	return (uint32_t)s->rules.n - 1;
}

static void add(struct cap_set *s, enum cap_kind kind, const char *text)
{
	struct writ_err err = { 0 };
	struct cap_entry *e;
	struct cap c;

	if (cap_parse(&arena, kind, sv_from(text), &c, &err) < 0) {
		ok(false, "%s: %s", text, err.what);
		return;
	}
	e = kind == CAP_DENIAL ? vec_push(&arena, &s->nots) : vec_push(&arena, &s->caps);
	if (e)
		*e = (struct cap_entry){ c, add_rule(s) };
}

static struct cap_verdict ask(const struct cap_set *s, const char *text)
{
	struct writ_err err = { 0 };
	struct cap c = { 0 };

	if (cap_parse(&arena, CAP_REQUEST, sv_from(text), &c, &err) < 0)
		ok(false, "%s: %s", text, err.what);
	return cap_set_decide(s, &c);
}

static void is_verdict(struct cap_verdict v, enum cap_answer answer, uint32_t rule, size_t entry,
		       const char *name)
{
	ok(v.answer == answer && v.rule == rule && v.entry == entry, "%s (%d %u %zu)", name,
	   (int)v.answer, v.rule, v.entry);
}

static void test_decide(void)
{
	struct cap_set s = { 0 };
	struct cap grant = { 0 };
	struct writ_err err = { 0 };

	is_verdict(ask(&s, "fs.read:r:/a"), CAP_DENY, RULE_NONE, SIZE_MAX, "zero grants nothing");
	add(&s, CAP_GRANT, "fs.read:r:/w/**");		      /* rule 0 */
	add(&s, CAP_GRANT, "fs.read:r:/w/x/**");	      /* 1 */
	add(&s, CAP_GRANT, "fs.read:r:/w/y/**;approve=human"); /* 2 */
	add(&s, CAP_GRANT, "fs.read:r:/w/y/**;approve=bot");   /* 3 */
	add(&s, CAP_DENIAL, "fs.read:r:/**/.env/**");	      /* 4 */
	add(&s, CAP_DENIAL, "fs.write:r:/w/.git/**");	      /* 5 */
	add(&s, CAP_GRANT, "fs.write:r:/w/**");		      /* 6 */
	add(&s, CAP_GRANT, "http.request:r:https://**.a.b:443/**;m=*;q=any"); /* 7 */
	add(&s, CAP_DENIAL, "http.request:r:https://bad.a.b:443/x");	      /* 8 */
	add(&s, CAP_GRANT, "net.connect:r:tcp/localhost:80");		      /* 9 */
	add(&s, CAP_DENIAL, "net.connect:r:tcp/10.0.0.0/8:1-65535");	      /* 10 */
	add(&s, CAP_GRANT, "net.connect:r:tcp/10.0.0.0/8:80");		      /* 11 */
	add(&s, CAP_GRANT, "net.connect:r:tcp/11.0.0.0/8:80");		      /* 12 */

	is_verdict(ask(&s, "fs.read:r:/w"), CAP_ALLOW, 0, 0, "the tree itself");
	is_verdict(ask(&s, "fs.read:r:/w/x/z"), CAP_ALLOW, 0, 0, "the first that matches");
	is_verdict(ask(&s, "fs.read:r:/w/y/z"), CAP_ASK, 2, 2, "ask beats allow, first asker");
	is_verdict(ask(&s, "fs.read:r:/w/y/.env"), CAP_DENY, 4, 0, "deny beats ask");
	is_verdict(ask(&s, "fs.read:r:/wx"), CAP_DENY, RULE_NONE, SIZE_MAX, "beside the tree");
	is_verdict(ask(&s, "fs.read:s:/w"), CAP_DENY, RULE_NONE, SIZE_MAX, "another realm");
	is_verdict(ask(&s, "fs.put:r:/w/a"), CAP_ALLOW, 6, 4, "write includes put");
	is_verdict(ask(&s, "fs.put:r:/w/.git/a"), CAP_DENY, 5, 1, "and so does its denial");
	is_verdict(ask(&s, "net.connect:r:tcp/x.a.b:443;tls=sni"), CAP_ALLOW, 7, 5, "a tunnel");
	is_verdict(ask(&s, "net.connect:r:tcp/bad.a.b:443;tls=sni"), CAP_DENY, 8, 2,
		   "a tunnel to a host with a denied path");
	is_verdict(ask(&s, "http.request:r:https://bad.a.b:443/y;m=GET;q=none"), CAP_ALLOW, 7, 5,
		   "another path of it");
	is_verdict(ask(&s, "net.connect:r:tcp/10.1.1.1:80"), CAP_DENY, 10, 3, "denied network");
	is_verdict(ask(&s, "net.connect:r:tcp/11.1.1.1:80"), CAP_ALLOW, 12, 8, "network");
	is_verdict(ask(&s, "net.connect:r:tcp/localhost:80"), CAP_ALLOW, 9, 6, "localhost");
	is_verdict(ask(&s, "http.request:r:http://localhost:80/;m=GET;q=any"), CAP_ALLOW, 9, 6,
		   "a request over it");
	ok(cap_parse(&arena, CAP_GRANT, SV("fs.read:r:/w"), &grant, &err) == 0, "a grant");
	is_verdict(cap_set_decide(&s, &grant), CAP_DENY, RULE_NONE, SIZE_MAX, "is not a request");
}

static void test_within(void)
{
	struct cap_set child = { 0 }, parent = { 0 };
	size_t culprit = 7;

	ok(cap_set_within(&child, &parent, &culprit), "nothing within nothing");
	add(&child, CAP_GRANT, "fs.read:r:/a/b");
	add(&child, CAP_GRANT, "fs.put:r:/a");
	ok(!cap_set_within(&child, &parent, &culprit) && culprit == 0, "the first culprit");
	add(&parent, CAP_GRANT, "fs.read:r:/a/**");
	ok(!cap_set_within(&child, &parent, &culprit) && culprit == 1, "the second");
	add(&parent, CAP_GRANT, "fs.write:r:/a");
	ok(cap_set_within(&child, &parent, &culprit), "both covered");
	parent.limits[LIMIT_MEMORY] = 100;
	ok(!cap_set_within(&child, &parent, &culprit) && culprit == SIZE_MAX, "a missing limit");
	child.limits[LIMIT_MEMORY] = 101;
	ok(!cap_set_within(&child, &parent, &culprit) && culprit == SIZE_MAX, "a larger limit");
	child.limits[LIMIT_MEMORY] = 100;
	child.limits[LIMIT_CPU] = 5;
	ok(cap_set_within(&child, &parent, &culprit), "an equal one, and one more");
	add(&parent, CAP_DENIAL, "fs.read:r:/**");
	ok(cap_set_within(&child, &parent, &culprit), "denials are not compared");
}

static bool has(const struct cap_set *s, const char *text)
{
	for (size_t i = 0; i < s->caps.n; i++)
		if (sv_is(s->caps.v[i].cap.text, text))
			return true;
	return false;
}

static void test_meet_caps(void)
{
	struct cap_set x = { 0 }, y = { 0 }, m = { 0 };
	struct writ_err err = { 0 };
	size_t culprit;

	add(&x, CAP_GRANT, "fs.read:r:/a/**");
	add(&x, CAP_GRANT, "fs.read:r:/b/**");
	add(&x, CAP_GRANT, "fs.write:r:/a/**;n=9");
	add(&x, CAP_DENIAL, "fs.read:r:/a/x/**");
	add(&y, CAP_GRANT, "fs.read:r:/**");
	add(&y, CAP_GRANT, "fs.read:r:/a/b");
	add(&y, CAP_GRANT, "fs.put:r:/*/c");
	add(&y, CAP_DENIAL, "fs.read:r:/a/x/**");
	add(&y, CAP_DENIAL, "fs.read:r:/a/y/**");
	ok(cap_set_meet(&arena, &x, &y, &m, &err) == 0, "meet");
	ok(m.caps.n == 3 && has(&m, "fs.read:r:/a/**") && has(&m, "fs.read:r:/b/**") &&
	   has(&m, "fs.put:r:/a/c;n=9"), "all pairs, without what another covers");
	ok(m.rules.n == x.rules.n + y.rules.n && m.caps.v[0].rule == x.rules.n &&
	   m.caps.v[2].rule == x.rules.n + 2, "they belong to the narrowing rules");
	ok(m.nots.n == 2 && m.nots.v[0].rule == 3 && m.nots.v[1].rule == x.rules.n + 4,
	   "denials are the union");
	ok(cap_set_within(&m, &x, &culprit) && cap_set_within(&m, &y, &culprit), "within both");
}

/* A narrower member that asks first is no repetition of the wider one. */
static void test_meet_keeps_prices(void)
{
	struct cap_set x = { 0 }, y = { 0 }, m = { 0 };
	struct writ_err err = { 0 };

	add(&x, CAP_GRANT, "fs.read:r:/w/**");
	add(&x, CAP_GRANT, "fs.read:r:/w/secret;approve=human");
	add(&x, CAP_GRANT, "fs.read:r:/w/rare;n=1");
	add(&x, CAP_GRANT, "fs.read:r:/w/plain");
	add(&y, CAP_GRANT, "fs.read:r:/**");
	ok(cap_set_meet(&arena, &x, &y, &m, &err) == 0 && m.caps.n == 3, "one is superfluous");
	ok(ask(&m, "fs.read:r:/w/secret").answer == CAP_ASK, "what asked still asks");
	ok(has(&m, "fs.read:r:/w/rare;n=1"), "what was counted still is");
}

static void test_meet_settings(void)
{
	struct cap_set x = { 0 }, y = { 0 }, m = { 0 };
	struct writ_err err = { 0 };

	(void)add_rule(&x);
	(void)add_rule(&x);
	(void)add_rule(&y);
	x.limits[LIMIT_MEMORY] = 10, y.limits[LIMIT_MEMORY] = 20, y.limits[LIMIT_CPU] = 5;
	x.limit_rule[LIMIT_MEMORY] = 1;
	x.require[G_NET] = LEVEL_PARTIAL, y.require[G_NET] = LEVEL_EXACT;
	x.require[G_EXEC] = LEVEL_STRICTER, x.require_rule[G_EXEC] = 1;
	x.accepts[G_DNS] = y.accepts[G_DNS] = x.accepts[G_IPC] = true;
	x.accept[G_DNS] = LEVEL_NONE, y.accept[G_DNS] = LEVEL_PARTIAL;
	x.isolation = ISOLATION_GVISOR, y.workspace = WORKSPACE_COW;
	x.isolation_rule = 1, y.isolation_rule = RULE_NONE;
	x.workspace_rule = RULE_NONE, x.net_level_rule = y.net_level_rule = RULE_NONE;
	x.has_rt = y.has_rt = true;
	ok(cap_set_meet(&arena, &x, &y, &m, &err) == 0, "meet");
	ok(m.limits[LIMIT_MEMORY] == 10 && m.limit_rule[LIMIT_MEMORY] == 1, "smaller limit");
	ok(m.limits[LIMIT_CPU] == 5 && m.limit_rule[LIMIT_CPU] == 2, "limit of one side");
	ok(m.limits[LIMIT_UP] == 0, "limit of neither");
	ok(m.require[G_NET] == LEVEL_EXACT && m.require_rule[G_NET] == 2, "stronger demand");
	ok(m.require[G_EXEC] == LEVEL_STRICTER && m.require_rule[G_EXEC] == 1, "demand of one");
	ok(m.accepts[G_DNS] && m.accept[G_DNS] == LEVEL_PARTIAL && m.accept_rule[G_DNS] == 2,
	   "what both accept, and no weaker");
	ok(!m.accepts[G_IPC], "what only one accepts is not");
	ok(m.isolation == ISOLATION_GVISOR && m.isolation_rule == 1, "stronger isolation");
	ok(m.workspace == WORKSPACE_COW && m.workspace_rule == 2, "copy on write wins");
	ok(m.net_level == NET_LEVEL_HOSTS && m.net_level_rule == RULE_NONE, "default stays");
	ok(m.has_rt, "the same base profile");
	y.rt.b[0] = 1;
	ok(cap_set_meet(&arena, &x, &y, &m, &err) == 0 && !m.has_rt, "two base profiles");
}

static void test_digest(void)
{
	static const char empty[] =
		"{\"caps\":[],\"limits\":{},\"not\":[],\"prices\":[],\"require\":{},\"rt\":\"\"}";
	static const char full[] =
		"{\"caps\":[\"fs.read:r:/a\",\"fs.read:r:/b\"],\"limits\":{\"cpu\":5,\"up\":1},"
		"\"not\":[\"fs.read:r:/c/**\"],\"prices\":[],\"require\":{\"fs.read\":\"exact\","
		"\"net\":\"stricter\"},\"rt\":"
		"\"0100000000000000000000000000000000000000000000000000000000000000\"}";
	struct writ_err err = { 0 };
	struct cap_set s = { 0 };
	struct digest d, want;
	scoped_buf b = BUF_INIT(10000);

	ok(cap_set_encode(&s, &b, &err) == 0, "empty set");
	is_sv(buf_view(&b), sv_from(empty), "has all members");
	add(&s, CAP_GRANT, "fs.read:r:/b");
	add(&s, CAP_GRANT, "fs.read:r:/a");
	add(&s, CAP_GRANT, "fs.read:r:/b");
	add(&s, CAP_DENIAL, "fs.read:r:/c/**");
	add(&s, CAP_DENIAL, "fs.read:r:/c/**");
	s.limits[LIMIT_UP] = 1, s.limits[LIMIT_CPU] = 5;
	s.require[G_NET] = LEVEL_STRICTER, s.require[G_FS_READ] = LEVEL_EXACT;
	s.has_rt = true, s.rt.b[0] = 1;
	b.n = 0;
	ok(cap_set_encode(&s, &b, &err) == 0, "full set");
	is_sv(buf_view(&b), sv_from(full), "sorted, each once");
	want = crypto_sha256(sv_from(full));
	ok(cap_set_digest(&s, &d, &err) == 0 && digest_eq(&d, &want), "digest of that text");
	s.limits[LIMIT_UP] = UINT64_C(1) << 53;
	ok(cap_set_digest(&s, &d, &err) == WRIT_E_SYNTAX, "a number that cannot be signed");
}

static void test_names(void)
{
	enum cap_limit l = LIMIT_UP;
	enum guarantee g = G_AUDIT;
	enum level v = LEVEL_EXACT;
	bool round = true;

	for (enum cap_limit i = 0; i < LIMIT_COUNT; i++)
		round = round && cap_limit_parse(sv_from(cap_limit_name(i)), &l) && l == i;
	for (enum guarantee i = 0; i < G_COUNT; i++)
		round = round && guarantee_parse(sv_from(guarantee_name(i)), &g) && g == i;
	for (enum level i = 0; i < LEVEL_COUNT; i++)
		round = round && level_parse(sv_from(level_name(i)), &v) && v == i;
	ok(round, "names of limits, guarantees and levels round trip");
	ok(!cap_limit_parse(SV("ram"), &l) && !guarantee_parse(SV("fs"), &g) &&
	   !level_parse(SV("Exact"), &v), "other names do not");
	is_str(cap_action_name(CAP_GIT_USE), "git.use", "name of an action");
	is_str(cap_action_name(CAP_NONE), "none", "name of no action");
}

/* A set that is said to be a meet, and is not: its hops decide all the same. */
static void test_hops(void)
{
	static struct cap_set hops[2];
	struct cap_set wrong = { .hops = hops, .hops_n = 2 };
	struct cap_verdict v;

	add(&hops[0], CAP_GRANT, "fs.write:r:/w/**");
	add(&hops[1], CAP_GRANT, "fs.write:r:/w/a/**");
	add(&hops[1], CAP_GRANT, "fs.write:r:/w/b/**;approve=boss");
	add(&hops[1], CAP_DENIAL, "fs.write:r:/w/a/x/**");
	hops[1].says = SV("the second");
	add(&wrong, CAP_GRANT, "fs.write:r:/**");
	ok(ask(&wrong, "fs.write:r:/w/a/y").answer == CAP_ALLOW, "what every hop allows");
	v = ask(&wrong, "fs.write:r:/w/c");
	ok(v.answer == CAP_DENY && v.hop == 2 && v.rule == RULE_NONE, "a hop refuses");
	is_str(cap_set_hop_message(&wrong, &v), "the second", "and says so");
	v = ask(&wrong, "fs.write:r:/etc");
	ok(v.answer == CAP_DENY && v.hop == 1 && !cap_set_hop_message(&wrong, &v),
	   "the first one counts");
	ok(ask(&wrong, "fs.write:r:/w/a/x").hop == 2, "a denial of a hop is one");
	ok(ask(&wrong, "fs.write:r:/w/b/y").answer == CAP_ASK, "and what it asks is asked");
	v = ask(&wrong, "fs.read:r:/w/a");
	ok(v.answer == CAP_DENY && v.hop == 1, "what the set itself denies somebody dropped");
}

static void test_has(void)
{
	struct cap_set s = { 0 };

	ok(!cap_set_has(&s, CAP_FS_READ), "an empty set has nothing");
	add(&s, CAP_DENIAL, "fs.write:r:/a/**");
	add(&s, CAP_GRANT, "proc.exec:r:/**");
	add(&s, CAP_GRANT, "fs.read:r:/a");
	ok(cap_set_has(&s, CAP_FS_READ) && cap_set_has(&s, CAP_PROC_EXEC), "what it grants");
	ok(!cap_set_has(&s, CAP_FS_WRITE), "and not what it denies");
}

static bool same_verdict(struct cap_verdict a, struct cap_verdict b)
{
	return a.answer == b.answer && a.rule == b.rule && a.entry == b.entry && a.hop == b.hop;
}

/* An index makes it quicker and nothing else: every answer names the same entry. */
static void test_index(void)
{
	static const char *const requests[] = {
		"fs.read:r:/w/a/b",
		"fs.write:r:/w/x17",
		"fs.read:r:/etc",
		"http.request:r:https://api.a.b:443/v17/x/y;m=GET;q=none",
		"http.request:r:https://api.a.b:443/v17/x/y;m=PUT;q=none",
		"http.request:r:https://api.a.b:443/v399/x;m=GET;q=any",
		"http.request:r:https://api.a.b:443/;m=GET;q=none",
		"http.request:r:https://bad.a.b:443/x;m=GET;q=none",
		"http.request:r:https://h8.a.b:443/x;m=GET;q=none",
		"http.request:r:https://h18.c.b:443/x;m=GET;q=none",
		"http.request:r:http://api.a.b:80/v17/x;m=GET;q=none",
		"http.request:s:https://api.a.b:443/v17/x;m=GET;q=none",
		"net.connect:r:tcp/h18.c.b:443;tls=sni",
		"net.connect:r:tcp/h18.c.b:22",
		"net.connect:r:tcp/bad.a.b:443;tls=sni",
		"net.connect:r:tcp/10.1.2.3:80",
		"net.connect:r:tcp/11.1.2.3:80",
		"net.connect:r:tcp/a.x.test:80;priv=10.0.0.1",
		"net.bind:r:tcp/localhost:8080",
		"env.pass:r:/HOME",
	};
	struct cap_set plain = { 0 }, quick;

	for (int i = 0; i < 40; i++) {
		add(&plain, CAP_GRANT, arena_fmt(&arena, "fs.write:r:/w/x%d", i));
		add(&plain, CAP_GRANT,
		    arena_fmt(&arena, "http.request:r:https://api.a.b:443/v%d/**;m=GET;q=any", i));
		add(&plain, CAP_GRANT,
		    arena_fmt(&arena, "net.connect:r:tcp/h%d.c.b:%d", i, i % 2 ? 22 : 443));
		add(&plain, CAP_DENIAL,
		    arena_fmt(&arena, "http.request:r:https://h%d.a.b:443/x", i));
		add(&plain, CAP_DENIAL, arena_fmt(&arena, "fs.read:r:/**/.env%d/**", i));
	}
	add(&plain, CAP_GRANT, "http.request:r:https://**.a.b:443/**;m=*;q=any");
	add(&plain, CAP_GRANT, "http.request:r:https://api.a.b:443/v17/**;approve=me;m=PUT;q=any");
	add(&plain, CAP_GRANT, "net.connect:r:tcp/**.x.test:80;priv=10.0.0.0/8");
	add(&plain, CAP_GRANT, "net.connect:r:tcp/11.0.0.0/8:80");
	add(&plain, CAP_GRANT, "net.bind:r:tcp/localhost:8000-9000");
	add(&plain, CAP_GRANT, "fs.read:r:/w/**");
	add(&plain, CAP_DENIAL, "net.connect:r:tcp/10.0.0.0/8:1-65535");
	add(&plain, CAP_DENIAL, "http.request:r:https://bad.a.b:443/**");
	quick = plain;
	ok(cap_set_index(&arena, &quick), "there is an index");
	for (size_t i = 0; i < ARRAY_LEN(requests); i++)
		ok(same_verdict(ask(&plain, requests[i]), ask(&quick, requests[i])), "%s: the same",
		   requests[i]);
	add(&quick, CAP_GRANT, "net.connect:r:tcp/late.c.b:443");
	ok(ask(&quick, "net.connect:r:tcp/late.c.b:443;tls=sni").answer == CAP_ALLOW &&
		   ask(&quick, requests[5]).answer == CAP_ALLOW,
	   "what was added later counts, and the rest still does");
}

static void test_causes(void)
{
	struct cap_why w = cap_why(CAUSE_CONFIG, "core.fsmonitor");
	char text[CAP_WHY_TEXT], cut[8];
	size_t named = 0;

	for (int i = CAUSE_NONE + 1; i < CAUSES; i++)
		named += cap_why_print((enum cap_cause)i, "x", text, sizeof(text))[0] != 0;
	ok(named == CAUSES - 1, "each cause has a text");
	is_str(cap_why_print(w.cause, w.detail, text, sizeof(text)),
	       "git configuration: core.fsmonitor", "a detail has its place");
	is_str(cap_why_print(CAUSE_RULE, "x", text, sizeof(text)), "a rule denies it",
	       "and none where the text has no place for it");
	is_str(cap_why_print(CAUSE_CONFIG, "%n%s", text, sizeof(text)), "git configuration: %n%s",
	       "a detail is not a format");
	is_str(cap_why_print(CAUSE_RULE, NULL, cut, sizeof(cut)), "a rule ", "a text is cut");
	memset(w.detail, 'x', sizeof(w.detail));
	ok(cap_why_receive(&w) && strlen(w.detail) == sizeof(w.detail) - 1,
	   "a received detail ends in its room");
	w.cause = CAUSES;
	ok(!cap_why_receive(&w), "an unknown cause is refused");
	is_str(cap_why_print((enum cap_cause)w.cause, NULL, text, sizeof(text)), "",
	       "and has no text");
}

int main(void)
{
	test_causes();
	test_decide();
	test_index();
	test_hops();
	test_within();
	test_meet_caps();
	test_meet_keeps_prices();
	test_meet_settings();
	test_digest();
	test_names();
	test_has();
	arena_clear(&arena);
	return tap_done();
}
