#include "tap.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "engines/engines.h"
#include "jail/program.h"
#include "lang/policy.h"
#include "plan/plan.h"
#include "world.h"

struct made {
	struct arena arena;
	struct diags d;
	struct policy *p;
	struct plan *plan;
};

static bool make(struct made *m, const char *text, const struct host_facts *f,
		 const struct plan_options *opt)
{
	const struct policy_env env = FAKE_ENV(&fake_ops);
	static struct source src;
	const struct policy_input in = { .files = &src, .files_n = 1 };
	struct plan_options with = *opt;
	struct writ_err err = { 0 };

	*m = (struct made){ .arena = ARENA_INIT(POLICY_ARENA_MAX) };
	m->d.arena = &m->arena;
	src = (struct source){ .name = SV("p"), .dir = SV(""), .text = sv_from(text) };
	if (policy_new(&env, &in, &m->d, &m->p, &err) < 0) {
		for (size_t i = 0; i < m->d.list.n; i++)
			tap_note(SV_FMT, SV_ARG(m->d.list.v[i].text));
		return false;
	}
	with.engines = engines_all;
	return plan_new(&m->arena, &m->p->set, f, &with, &m->plan, &err) == 0;
}

static void unmake(struct made *m)
{
	arena_clear(&m->arena);
}

static const struct plan_rule *row(const struct made *m, const char *text)
{
	for (size_t i = 0; i < m->plan->rules.n; i++)
		if (sv_is(m->p->set.rules.v[m->plan->rules.v[i].rule].text, text))
			return &m->plan->rules.v[i];
	return NULL;
}

/* A machine that can do everything this version knows. */
static struct host_facts best(void)
{
	return (struct host_facts){
		.kernel = "6.18.0",
		.arch = "x86_64",
		.uid = 1000,
		.ns_user = true,
		.ns_user_nested = true,
		.ns_mount = true,
		.ns_pid = true,
		.ns_net = true,
		.ns_ipc = true,
		.ns_uts = true,
		.ns_cgroup = true,
		.proc_mount = true,
		.pivot_root = true,
		.anyip = true,
		.new_mount_api = true,
		.landlock_abi = 7,
		.seccomp_filter = true,
		.seccomp_notify = true,
		.seccomp_addfd = true,
		.pidfd_getfd = true,
		.overlay = true,
		.openat2 = true,
		.cgroup = CGROUP_V2,
		.cgroup_memory = true,
		.cgroup_cpu = true,
		.cgroup_pids = true,
		.io_uring = true,
		.rlimit_nproc_userns = true,
	};
}

static const char everything[] =
	"version 1\nallow write .\nallow read ./src/*.c\nallow put ./data/\ndeny read **/.env\n"
	"deny write ./src\nallow net https://a.example.com\nallow net https://b.example.com/v1/** "
	"methods=GET\n"
	"allow net db.example.com:5432\nallow listen 8080\nallow unix /run/x.sock\nallow tool a/b\n"
	"secret T from env:T to https://a.example.com as bearer\nlimit memory 1G\nlimit cpu "
	"1\nlimit pids 9\n"
	"limit session 1h\nlimit up 1M\nstate s\nenv FOO\n";

static void test_nothing(void)
{
	const struct host_facts none = { 0 };
	const struct plan_options opt = { .whole = true };
	struct made m;
	size_t held = 0, refused = 0, own = 0;

	if (!ok(make(&m, everything, &none, &opt), "a plan for a machine that can do nothing"))
		return;
	for (size_t i = 0; i < m.plan->rules.n; i++) {
		const bool built_in = m.p->set.rules.v[m.plan->rules.v[i].rule].built_in;

		own += !built_in;
		refused += m.plan->rules.v[i].refused;
		held += !built_in && m.plan->rules.v[i].hold.level != LEVEL_NONE;
	}
	ok(m.plan->tier == TIER_NONE && held == 0, "no rule holds there");
	ok(refused == own && m.plan->refused == own && own > 15,
	   "each written rule is refused (%zu)", own);
	for (size_t i = 0; i < G_COUNT; i++)
		if (m.plan->guarantees[i].level != LEVEL_NONE)
			ok(false, "no guarantee holds there");
	ok(m.plan->steps.n == 0, "and no step is planned");
	unmake(&m);
}

static void test_best(void)
{
	const struct host_facts f = best();
	const struct plan_options opt = { .whole = true };
	struct made m;

	if (!ok(make(&m, everything, &f, &opt), "a plan for a good machine"))
		return;
	ok(m.plan->tier == TIER_A && m.plan->refused == 0, "tier A, nothing refused");
	is_str(row(&m, "allow net https://a.example.com")->hold.cost, "TLS intercepted",
	       "a secret makes its host inspected");
	is_str(row(&m, "allow net db.example.com:5432")->hold.cost, "none, not inspected",
	       "other hosts are not");
	is_str(row(&m, "deny read **/.env")->hold.by,
	       "mask, opens mediated; not base's system trees", "denials by name");
	unmake(&m);
}

/* Taking one fact away never makes a rule hold better. */
static void test_monotone(void)
{
	static const size_t facts[] = {
		offsetof(struct host_facts, ns_user),
		offsetof(struct host_facts, ns_user_nested),
		offsetof(struct host_facts, ns_mount),
		offsetof(struct host_facts, ns_net),
		offsetof(struct host_facts, ns_ipc),
		offsetof(struct host_facts, proc_mount),
		offsetof(struct host_facts, pivot_root),
		offsetof(struct host_facts, anyip),
		offsetof(struct host_facts, seccomp_filter),
		offsetof(struct host_facts, seccomp_notify),
		offsetof(struct host_facts, seccomp_addfd),
		offsetof(struct host_facts, cgroup_memory),
		offsetof(struct host_facts, cgroup_cpu),
		offsetof(struct host_facts, cgroup_pids),
	};
	const struct plan_options opt = { .whole = true };
	unsigned cases = 0;
	bool good = true;

	srand(3);
	for (; cases < 400; cases++) {
		struct host_facts more = best();
		struct host_facts less;
		struct made x, y;

		for (size_t i = 0; i < ARRAY_LEN(facts); i++)
			if (rand() % 4 == 0)
				*((bool *)((char *)&more + facts[i])) = false;
		less = more;
		*((bool *)((char *)&less + facts[(size_t)rand() % ARRAY_LEN(facts)])) = false;
		if (rand() % 3 == 0)
			less.landlock_abi = (uint64_t)rand() % (less.landlock_abi + 1);
		if (!make(&x, everything, &more, &opt) || !make(&y, everything, &less, &opt))
			good = false;
		for (size_t i = 0; good && i < G_COUNT; i++) {
			const bool drop = y.plan->guarantees[i].level >= LEVEL_STRICTER &&
					  x.plan->guarantees[i].level < LEVEL_STRICTER;

			/* Losing user namespaces for tier B is the planner's choice, not a gain. */
			if (drop && x.plan->tier == y.plan->tier)
				good = false;
		}
		if (good && y.plan->refused < x.plan->refused && x.plan->tier == y.plan->tier)
			good = false;
		unmake(&x);
		unmake(&y);
	}
	ok(good, "a fact less never means a guarantee more (%u cases)", cases);
}

static void test_accept(void)
{
	const struct host_facts f = best();
	const struct plan_options opt = { .whole = true };
	struct made m;

	ok(make(&m, "version 1\nallow exec git\n", &f, &opt) && m.plan->refused == 1 &&
		   row(&m, "allow exec git")->hold.level == LEVEL_PARTIAL,
	   "a list of programs is partial and refused");
	unmake(&m);
	ok(make(&m, "version 1\nallow exec git\naccept exec=partial\n", &f, &opt) &&
		   m.plan->refused == 0,
	   "unless that is accepted by name");
	unmake(&m);
	ok(make(&m, "version 1\nallow exec git\naccept net=partial\n", &f, &opt) &&
		   m.plan->refused == 1,
	   "accepting something else does not help");
	unmake(&m);
	ok(make(&m, "version 1\nrequire res.memory=exact\n", &f, &opt) && m.plan->refused == 1,
	   "a required guarantee that nothing gives is refused");
	unmake(&m);
	ok(make(&m, "version 1\nrequire res.memory=exact\nlimit memory 1G\n", &f, &opt) &&
		   m.plan->refused == 0,
	   "and holds once the limit is there");
	unmake(&m);
	ok(make(&m, "version 1\nisolation >= vm\n", &f, &opt) && m.plan->refused == 1,
	   "the host adapter is no virtual machine");
	unmake(&m);
	ok(make(&m, "version 1\ndanger unix /run/docker.sock\n", &f, &opt) &&
		   m.plan->guarantees[G_FS_WRITE].level == LEVEL_NONE,
	   "a dangerous socket ends the guarantees");
	unmake(&m);
	ok(make(&m, "version 1\nnet level signed\nallow net db.example.com:5432\n", &f, &opt) &&
		   m.plan->refused == 1,
	   "net level signed lets no raw tunnel through");
	unmake(&m);
	ok(make(&m, "version 1\nnet level signed\nallow net https://a.example.com\n", &f, &opt) &&
		   m.plan->refused == 0,
	   "but what can be read");
	unmake(&m);
	ok(make(&m, "version 1\nallow kernel io_uring\nallow write .\n", &f, &opt) &&
		   m.plan->refused == 1,
	   "io_uring leaves nothing to mediate, so write . no longer holds");
	unmake(&m);
}

/* @line is refused on @f although nothing else is. */
static void refused(const char *text, const struct host_facts *f, size_t n, const char *why)
{
	const struct plan_options opt = { .whole = true };
	struct made m;

	ok(make(&m, text, f, &opt) && m.plan->refused == n, "%s (%zu)", why, n);
	unmake(&m);
}

/* What was once called exact and is not. */
static void test_overclaims(void)
{
	const struct host_facts f = best();
	struct host_facts no_notify = best();
	struct made m;

	no_notify.seccomp_notify = false;
	refused("version 1\nallow write ./logs/*.txt\naccept fs.read=partial\n", &no_notify, 1,
		"accepting one guarantee does not accept the other of the same line");
	refused("version 1\nallow write ./logs/*.txt\naccept fs.read=partial\naccept "
		"fs.write=partial\n",
		&no_notify, 0, "accepting both does");
	refused("version 1\nworkspace cow\nallow read /usr\ndeny read /usr/bin\n", &no_notify, 1,
		"a copy-on-write workspace does not hold outside of it");
	refused("version 1\nworkspace cow\nallow write .\ndeny read **/.env\n", &no_notify, 0,
		"inside it does");
	refused("version 1\nask read ./logs\n", &no_notify, 1, "a mount cannot ask");
	refused("version 1\nask read ./logs\n", &f, 0, "mediation can");
	refused("version 1\nask exec git\n", &f, 1, "nobody can ask about programs");
	refused("version 1\nallow exec / args=\"sh -c **\"\n", &f, 1,
		"arguments make an exec list");
	refused("version 1\nnet level signed\nallow net https://a.example.com tls=passthrough\n",
		&f, 1, "signed lets nothing through unread");
	refused("version 1\nallow agent a\nallow exec git\naccept exec=partial\nagent a\n  allow "
		"exec git\n",
		&f, 0, "what the parent accepts its agent may need");
	refused("version 1\nallow write ./logs\nallow put ./logs\ndeny put ./logs/x\n", &no_notify,
		2, "a denied put inside a write needs watching");

	ok(make(&m, "version 1\nuse claude\n", &no_notify,
		&(struct plan_options){ .whole = true, .tier = TIER_B }) &&
		   m.plan->refused > 0,
	   "a profile that somebody chose is refused like a line");
	unmake(&m);
}

/* What this version cannot do it says it cannot, whatever the machine and whatever is accepted. */
static void test_version(void)
{
	/* clang-format off */
	static const struct { const char *line; enum plan_feature needs; } lines[] = {
		{ "allow net https://a.example.com", FEATURE_NET },
		{ "allow net db.example.com:5432", FEATURE_NET },
		{ "allow shell full", FEATURE_NET },
		{ "allow listen 8080", FEATURE_LISTEN },
		{ "allow git https://git.example.com/a/b.git fetch", FEATURE_GIT },
		{ "allow tool a/b", FEATURE_TOOL },
		{ "ask read ./logs", FEATURE_ASK },
		{ "ask device /dev/null", FEATURE_ASK },
		{ "ask unix /run/x.sock", FEATURE_ASK },
		{ "workspace cow", FEATURE_COW },
		{ "isolation >= vm", FEATURE_ENGINE },
	};
	/* clang-format on */
	const struct host_facts f = best();
	char text[256];
	struct made m;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		const char *lacks = plan_lacks(lines[i].needs);
		const struct plan_rule *r;

		(void)snprintf(text, sizeof(text),
			       "version 1\n%s\naccept net=none\naccept ipc=none\naccept "
			       "fs.read=none\naccept fs.write=none\naccept syscall=none\n",
			       lines[i].line);
		if (!ok(make(&m, text, &f, &(struct plan_options){ 0 }), "%s", lines[i].line))
			continue;
		r = row(&m, lines[i].line);
		ok(r && r->refused == (lacks != NULL) && plan_runs(m.plan) == (lacks == NULL) &&
			   (!lacks || (r->hold.level == LEVEL_NONE && r->hold.by == lacks)),
		   "%s: %s", lines[i].line, lacks ? lacks : "can be done");
		for (size_t k = 0; k < G_COUNT; k++)
			if (lacks && m.plan->guarantees[k].rule != RULE_NONE &&
			    m.plan->guarantees[k].rule == r->rule)
				ok(false, "no guarantee suffers for it");
		unmake(&m);
	}
}

/* An engine that no code drives promises nothing, installed or not, whatever is accepted. */
static void test_absent_engines(void)
{
	struct host_facts f = best();
	size_t absent = 0;

	(void)snprintf(f.docker, sizeof(f.docker), "24.0");
	for (const struct engine *const *e = engines_all + 1; *e; e++, absent++)
		for (int whole = 0; whole < 2; whole++) {
			size_t held = 0, steps;
			struct made m;

			if (!ok(make(&m, everything, &f,
				     &(struct plan_options){ .engine = *e, .whole = whole }),
				"a plan for %s", (*e)->name))
				continue;
			for (size_t i = 0; i < G_COUNT; i++)
				held += m.plan->guarantees[i].level != LEVEL_NONE;
			for (size_t i = 0; i < m.plan->rules.n; i++)
				held += m.plan->rules.v[i].hold.level != LEVEL_NONE;
			steps = m.plan->steps.n + m.plan->gaps.n;
			ok(held == 0 && steps == 0 && !plan_runs(m.plan) && m.plan->refused > 15,
			   "%s promises nothing (%zu, %zu)", (*e)->name, held, steps);
			unmake(&m);
		}
	ok(absent == 8, "eight engines are known by name only (%zu)", absent);
	ok(plan_engine_find(engines_all, SV("docker")) &&
		   !plan_engine_find(engines_all, SV("nope")),
	   "an engine is found by its name");
}

/* Does the plan on @f list exactly the rows of steps.def for a program with @flags, in order? */
static void steps_equal(const struct host_facts *f, enum plan_tier tier, uint32_t flags)
{
	static const struct {
		const char *name;
		uint32_t only, needs;
	} rows[] = {
#define STEP(id) (1u << STEP_##id)
#define ROW(id, name, only, needs, run, what, why) { (name), (only), (needs) },
		JAIL_STEPS(ROW)
#undef ROW
#undef STEP
	};
	uint32_t have = 0;
	bool ordered = true, same = true;
	size_t n = 0;
	struct made m;

	if (!ok(make(&m, "version 1\nallow write .\n", f, &(struct plan_options){ .tier = tier }),
		"a plan with steps"))
		return;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if ((rows[i].only & flags) != rows[i].only)
			continue;
		ordered &= (rows[i].needs & ~have) == 0;
		have |= 1u << (i + 1);
		same = same && n < m.plan->steps.n &&
		       strcmp(m.plan->steps.v[n].name, rows[i].name) == 0;
		n++;
	}
	ok(same && n == m.plan->steps.n, "the plan has the steps of the jail (%zu)", n);
	ok(ordered, "each step comes after the steps it needs");
	unmake(&m);
}

static void test_steps(void)
{
	const struct host_facts f = best();
	struct host_facts bare = best();

	bare.landlock_abi = 0;
	steps_equal(&f, TIER_A, JAIL_OWN_NAMESPACES | JAIL_LANDLOCK);
	steps_equal(&bare, TIER_A, JAIL_OWN_NAMESPACES);
	steps_equal(&f, TIER_B, JAIL_LANDLOCK);
}

/* A denial by name holds in what is granted and passes over what base shows. */
static void test_base_trees(void)
{
	const struct host_facts f = best();
	const struct plan_options opt = { 0 };
	struct made m;

	ok(make(&m, "version 1\nallow write .\ndeny read **/.env\n", &f, &opt) &&
		   m.plan->refused == 0 &&
		   row(&m, "deny read **/.env")->hold.level == LEVEL_EXACT &&
		   strstr(row(&m, "deny read **/.env")->hold.by, "not base's"),
	   "by name: exact, and it says where not");
	unmake(&m);
	ok(make(&m, "version 1\nallow write .\ndeny read ./src/*.key\n", &f, &opt) &&
		   m.plan->refused == 0 &&
		   !strstr(row(&m, "deny read ./src/*.key")->hold.by, "base"),
	   "a pattern in the workspace has nothing to do with base");
	unmake(&m);
	ok(make(&m, "version 1\nallow write .\ndeny read /usr/**/.env\n", &f, &opt) &&
		   m.plan->refused == 0 &&
		   !strstr(row(&m, "deny read /usr/**/.env")->hold.by, "base"),
	   "one that begins in a tree of base's holds there");
	unmake(&m);
	ok(make(&m, "version 1\nallow write .\ndeny read /u*/x\n", &f, &opt) &&
		   m.plan->refused == 1 && row(&m, "deny read /u*/x")->hold.level == LEVEL_PARTIAL,
	   "one that begins above is partial");
	unmake(&m);
	ok(make(&m, "version 1\nuse none\nallow read /usr\ndeny read **/.env\n", &f, &opt) &&
		   !strstr(row(&m, "deny read **/.env")->hold.by, "base"),
	   "what somebody granted is not base's");
	unmake(&m);
}

static void test_tiers(void)
{
	const struct host_facts f = best();
	struct host_facts poor = best();
	struct made m;

	ok(make(&m, everything, &f, &(struct plan_options){ .whole = true, .tier = TIER_B }) &&
		   m.plan->tier == TIER_B,
	   "tier B can be forced");
	unmake(&m);
	poor.ns_user = false;
	ok(make(&m, everything, &poor, &(struct plan_options){ .whole = true, .tier = TIER_A }) &&
		   m.plan->tier == TIER_NONE && m.plan->refused > 15,
	   "tier A cannot be forced where it cannot be built");
	unmake(&m);
	ok(make(&m, everything, &poor, &(struct plan_options){ .whole = true }) &&
		   m.plan->tier == TIER_B,
	   "without user namespaces it is tier B");
	unmake(&m);
}

/* Recorded hosts: same input, same bytes; and what is refused is said. */
static void test_hosts(void)
{
	const char *src = getenv("SRC");
	const struct plan_options opt = { .whole = true };
	unsigned hosts = 0;
	char path[512];
	struct dirent *e;
	DIR *d;

	(void)snprintf(path, sizeof(path), "%s/tests/fixtures/hosts", src ? src : ".");
	d = opendir(path);
	if (!ok(d != NULL, "recorded hosts"))
		return;
	while ((e = readdir(d))) {
		struct buf b = BUF_INIT(65536), x = BUF_INIT(1 << 20), y = BUF_INIT(1 << 20);
		struct writ_err err = { 0 };
		struct host_facts f;
		struct made m, n;
		size_t refused = 0;

		if (!sv_ends(sv_from(e->d_name), SV(".facts")))
			continue;
		(void)snprintf(path, sizeof(path), "%s/tests/fixtures/hosts/%s", src ? src : ".",
			       e->d_name);
		if (!ok(fd_read_file(path, &b, &err) == 0 &&
				facts_parse(buf_view(&b), &f, &err) == 0 &&
				make(&m, everything, &f, &opt) && make(&n, everything, &f, &opt),
			"%s is read", e->d_name))
			continue;
		plan_json(m.plan, &x);
		plan_json(n.plan, &y);
		for (size_t i = 0; i < m.plan->rules.n; i++)
			refused += m.plan->rules.v[i].refused;
		ok(sv_eq(buf_view(&x), buf_view(&y)) && x.n > 1000, "%s: same facts, same bytes",
		   e->d_name);
		ok(refused == m.plan->refused, "%s: every refusal is a row", e->d_name);
		unmake(&m);
		unmake(&n);
		buf_clear(&b);
		buf_clear(&x);
		buf_clear(&y);
		hosts++;
	}
	(void)closedir(d);
	ok(hosts >= 10, "at least ten hosts (%u)", hosts);
}

int main(void)
{
	struct writ_err err = { 0 };

	if (crypto_start(&err) < 0)
		return 1;
	test_nothing();
	test_best();
	test_monotone();
	test_accept();
	test_overclaims();
	test_version();
	test_absent_engines();
	test_steps();
	test_base_trees();
	test_tiers();
	test_hosts();
	return tap_done();
}
