#include "plan/plan.h"

#include <string.h>

#include "base/banned.h"

enum guarantee plan_guarantee_of(enum cap_action action)
{
	switch (action) {
	case CAP_FS_READ:
	case CAP_DEV_USE:
		return G_FS_READ;
	case CAP_FS_WRITE:
	case CAP_FS_PUT:
	case CAP_STATE_USE:
		return G_FS_WRITE;
	case CAP_PROC_EXEC:
		return G_EXEC;
	case CAP_NET_CONNECT:
	case CAP_NET_BIND:
	case CAP_HTTP_REQUEST:
	case CAP_GIT_USE:
		return G_NET;
	case CAP_UNIX_CONNECT:
	case CAP_TOOL_CALL:
	case CAP_AGENT_SPAWN:
		return G_IPC;
	case CAP_ENV_PASS:
	case CAP_SECRET_USE:
		return G_CRED;
	case CAP_KERNEL_USE:
		return G_SYSCALL;
	case CAP_NONE:
	case CAP_ACTION_COUNT:
		break;
	}
	return G_SYSCALL;
}

const char *plan_tier_name(enum plan_tier t)
{
	static const char *const names[] = { "none", "A", "B" };

	return names[t];
}

static enum guarantee limit_guarantee(enum cap_limit limit)
{
	switch (limit) {
	case LIMIT_MEMORY:
		return G_RES_MEMORY;
	case LIMIT_CPU:
		return G_RES_CPU;
	case LIMIT_PIDS:
	case LIMIT_FILES:
		return G_RES_PIDS;
	case LIMIT_DISK:
		return G_RES_DISK;
	case LIMIT_COMMAND:
	case LIMIT_SESSION:
	case LIMIT_IDLE:
		return G_RES_TIME;
	case LIMIT_OUTPUT:
		return G_RES_OUTPUT;
	case LIMIT_UP:
	case LIMIT_DOWN:
	case LIMIT_REQUESTS:
		return G_NET;
	case LIMIT_COUNT:
		break;
	}
	return G_RES_TIME;
}

const struct engine *plan_engine_find(const struct engine *const *engines, struct sv name)
{
	for (; *engines; engines++)
		if (sv_is(name, (*engines)->name))
			return *engines;
	return NULL;
}

bool plan_scope(const struct plan *p, enum cap_limit limit)
{
	return p->scoped & 1u << limit;
}

const struct plan_guarantee *plan_guarantee_for(const struct plan *p, enum cap_action action)
{
	return &p->guarantees[plan_guarantee_of(action)];
}

bool plan_runs(const struct plan *p)
{
	return p->refused == 0 && p->tier != TIER_NONE && !p->lacks;
}

int plan_check(const struct plan *p, struct writ_err *err)
{
	if (p->tier == TIER_NONE)
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
				 "nothing here can hold a process: %s",
				 p->tier_why ? p->tier_why : "unknown");
	for (size_t i = 0; i < p->rules.n; i++) {
		const struct plan_rule *r = &p->rules.v[i];

		if (r->refused)
			return writ_fail(err, WRIT_E_UNENFORCEABLE, 0, SV_FMT ": %s=%s here: %s",
					 SV_ARG(sv_sub(p->set->rules.v[r->rule].text, 0, 40)),
					 guarantee_name(r->guarantee), level_name(r->hold.level),
					 r->hold.by);
	}
	for (unsigned i = 0; i < G_COUNT; i++)
		if (p->guarantees[i].refused)
			return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
					 "%s is required and %s here: %s",
					 guarantee_name((enum guarantee)i),
					 level_name(p->guarantees[i].level), p->guarantees[i].by);
	if (plan_runs(p))
		return 0;
	return writ_fail(err, WRIT_E_UNENFORCEABLE, 0, "%s",
			 p->lacks ? p->lacks : "a line does not hold here");
}

const struct plan_rule *plan_rule_get(const struct plan *p, uint32_t rule)
{
	for (size_t i = 0; i < p->rules.n; i++)
		if (p->rules.v[i].rule == rule)
			return &p->rules.v[i];
	return NULL;
}

/* --- rows, one per rule --- */

/* Inputs shared by all rows of the plan: the question to the engine, and the engine's answer. */
struct planning {
	struct arena *a;
	const struct plan_options *opt;
	struct engine_ask ask;
	struct engine_able able;
};

struct row {
	uint32_t touches; /* bits of 1 << enum guarantee; 0: the row touches no guarantee yet */
	uint8_t levels[G_COUNT];
	enum guarantee guarantee;
	struct hold hold;
	bool lacking;
};

/*
 * Returns the weaker of two holds. At equal levels returns @a if it has a price that @b does not
 * have, else @b.
 */
static struct hold weaker(struct hold a, struct hold b)
{
	if (a.level != b.level)
		return a.level < b.level ? a : b;
	return sv_is(sv_from(a.cost), "none") || sv_is(sv_from(a.cost), b.cost) ? b : a;
}

/*
 * Adds a part of a rule, which touches the guarantee @g, to the row of the rule. Every guarantee
 * keeps its own level; the row shows the weakest part.
 */
static void row_add(struct row *r, enum guarantee g, struct hold h)
{
	const struct hold shown = r->touches ? weaker(r->hold, h) : h;

	if (g >= G_COUNT)
		return;
	if (!r->touches || shown.level != r->hold.level || shown.by != r->hold.by)
		r->guarantee = g;
	r->hold = shown;
	if (!(r->touches & 1u << g) || h.level < r->levels[g])
		r->levels[g] = (uint8_t)h.level;
	r->touches |= 1u << g;
}

/* Records in a row that this version of writ lacks, on every machine, a feature for the rule. */
static void row_lacks(struct row *r, enum guarantee g, const char *why)
{
	row_add(r, g, (struct hold){ LEVEL_NONE, why, "none", NULL });
	r->lacking = true;
}

static const char *lacks(const struct planning *g, enum plan_feature f)
{
	return g->ask.whole ? NULL : plan_lacks(f);
}

static const char *lacks_for(const struct planning *g, const struct cap *c)
{
	return g->ask.whole ? NULL : plan_lacks_for(c);
}

static void rows_from_caps(const struct planning *g, struct row *rows)
{
	const struct cap_set *s = g->ask.set;

	for (size_t i = 0; i < s->caps.n; i++) {
		const struct cap_entry *e = &s->caps.v[i];
		const enum guarantee ge = plan_guarantee_of(e->cap.action);
		const char *why = s->rules.v[e->rule].built_in ? NULL : lacks_for(g, &e->cap);

		if (why)
			row_lacks(&rows[e->rule], ge, why);
		else
			row_add(&rows[e->rule], ge, g->able.caps[i]);
	}
	for (size_t i = 0; i < s->prices.n; i++) {
		const struct cap_entry *e = &s->prices.v[i];
		const char *why = lacks_for(g, &e->cap);

		if (why)
			row_lacks(&rows[e->rule], plan_guarantee_of(e->cap.action), why);
	}
	for (size_t i = 0; i < s->nots.n; i++) {
		struct row *r = &rows[s->nots.v[i].rule];
		const enum guarantee ge = plan_guarantee_of(s->nots.v[i].cap.action);
		const struct hold shown = r->hold;
		const enum guarantee shown_g = r->guarantee;
		const bool first = r->touches == 0;

		row_add(r, ge, g->able.nots[i]);
		/*
		 * `deny read` denies writing too, so its row has two parts. Show the part about
		 * reading unless it holds better than the part about writing.
		 */
		if (!first && r->hold.level == shown.level) {
			r->hold = shown;
			r->guarantee = shown_g;
		}
	}
	for (unsigned i = 0; i < LIMIT_COUNT; i++)
		if (s->limits[i] && s->limit_rule[i] != RULE_NONE)
			row_add(&rows[s->limit_rule[i]], limit_guarantee((enum cap_limit)i),
				g->able.limits[i]);
}

/*
 * Returns advice to use another of the given engines that isolates well enough on this machine;
 * NULL: no given engine does.
 */
static const char *isolation_fix(const struct planning *g)
{
	for (const struct engine *const *e = g->opt->engines; *e; e++) {
		struct engine_able able = { 0 };
		struct writ_err err = { 0 };

		if ((*e)->able(*e, g->a, &g->ask, &able, &err) == 0 && !able.lacks &&
		    able.tier != TIER_NONE && able.isolation >= g->ask.set->isolation)
			return arena_fmt(g->a, "--adapter %s", (*e)->name);
	}
	return NULL;
}

static void add_isolation(const struct planning *g, struct row *r)
{
	static const char *const names[] = { "a process on this kernel", "gVisor",
					     "a virtual machine" };
	const char *fix;

	if (g->able.lacks) {
		row_add(r, G_SYSCALL, g->able.guarantees[G_SYSCALL]);
		return;
	}
	if (g->able.isolation >= g->ask.set->isolation) {
		row_add(r, G_SYSCALL,
			(struct hold){ LEVEL_EXACT, names[g->able.isolation], "none", NULL });
		return;
	}
	fix = isolation_fix(g);
	if (!fix && lacks(g, FEATURE_ENGINE))
		row_lacks(r, G_SYSCALL, lacks(g, FEATURE_ENGINE));
	else
		row_add(r, G_SYSCALL,
			(struct hold){ LEVEL_NONE, "this engine shares the host's kernel", "none",
				       fix });
}

static void rows_from_settings(const struct planning *g, struct row *rows)
{
	const struct cap_set *s = g->ask.set;

	if (s->isolation_rule != RULE_NONE)
		add_isolation(g, &rows[s->isolation_rule]);
	if (s->workspace_rule != RULE_NONE && s->workspace == WORKSPACE_COW &&
	    lacks(g, FEATURE_COW))
		row_lacks(&rows[s->workspace_rule], G_FS_WRITE, lacks(g, FEATURE_COW));
	else if (s->workspace_rule != RULE_NONE)
		row_add(&rows[s->workspace_rule], G_FS_WRITE, g->able.workspace);
	if (s->net_level_rule != RULE_NONE)
		row_add(&rows[s->net_level_rule], G_NET, g->able.net_level);
}

/*
 * Fills the rows of lines that grant nothing but have an effect, such as `env` or `accept`. If the
 * engine enforces nothing, these lines get the level of their guarantee, which is none.
 */
static void rows_from_kinds(const struct planning *g, struct row *rows)
{
	/* clang-format off */
	static const struct { enum guarantee g; const char *by; } says[] = {
		[RULE_ENV]        = { G_CRED,     "environment built from nothing" },
		[RULE_OPEN]       = { G_FS_WRITE, "this protection is lifted" },
		[RULE_ACCEPT]     = { G_AUDIT,    "taken as it is here, and on record" },
		[RULE_REQUIRE]    = { G_AUDIT,    "compared with what holds here" },
		[RULE_SHELL]      = { G_FS_WRITE, "writes go to its own /tmp and HOME" },
		[RULE_SHELL_NONE] = { G_EXEC,     "seccomp: nothing is run after the first program" },
	};
	/* clang-format on */

	for (size_t i = 0; i < g->ask.set->rules.n; i++) {
		const struct cap_rule *r = &g->ask.set->rules.v[i];

		if (rows[i].touches == 0 && !r->missing && !r->built_in &&
		    (size_t)r->kind < ARRAY_LEN(says) && says[r->kind].by)
			row_add(&rows[i], says[r->kind].g,
				g->able.lacks ? g->able.guarantees[says[r->kind].g]
					      : (struct hold){ LEVEL_EXACT, says[r->kind].by,
							       "none", NULL });
	}
}

/* --- rules and guarantees that do not hold --- */

static bool is_accepted(const struct cap_set *s, enum guarantee g, enum level have)
{
	return s->accepts[g] && have >= s->accept[g];
}

/*
 * Does a line that a person wrote, or chose by naming a profile, fail to hold? Limits that come
 * from a profile are defaults and never refuse.
 */
static bool is_refused(const struct cap_set *set, const struct cap_rule *rule,
		       const struct row *row)
{
	if (rule->built_in || (rule->shipped && rule->kind == RULE_LIMIT))
		return false;
	if (rule->missing)
		return !rule->optional;
	/* `accept` permits a lower level, but does not replace a missing feature. */
	if (row->lacking)
		return true;
	for (unsigned g = 0; g < G_COUNT; g++)
		if ((row->touches & 1u << g) && row->levels[g] < LEVEL_STRICTER &&
		    !is_accepted(set, (enum guarantee)g, (enum level)row->levels[g]))
			return true;
	return false;
}

static bool add_rules(struct arena *a, const struct planning *g, const struct row *rows,
		      struct plan *p)
{
	if (!vec_reserve(a, &p->rules, g->ask.set->rules.n))
		return false;
	for (uint32_t i = 0; i < g->ask.set->rules.n; i++) {
		const struct cap_rule *rule = &g->ask.set->rules.v[i];
		struct plan_rule *r;

		if (rows[i].touches == 0 && !rule->missing)
			continue;
		r = vec_push(a, &p->rules);
		if (!r)
			return false;
		*r = (struct plan_rule){ .rule = i,
					 .guarantee = rows[i].guarantee,
					 .hold = rows[i].hold,
					 .touches = rows[i].touches,
					 .lacking = rows[i].lacking,
					 .refused = is_refused(g->ask.set, rule, &rows[i]) };
		memcpy(r->levels, rows[i].levels, sizeof(r->levels));
		if (rows[i].touches == 0)
			r->hold = (struct hold){ rule->optional && !p->lacks ? LEVEL_EXACT
									     : LEVEL_NONE,
						 rule->optional ? "optional, not on this machine"
								: "not on this machine",
						 "none", NULL };
		p->refused += r->refused;
	}
	return true;
}

/* A rule at a lower level than its guarantee lowers the guarantee to that level. */
static void lower_guarantees(struct plan *p, const struct plan_rule *r)
{
	for (unsigned i = 0; i < G_COUNT; i++)
		if ((r->touches & 1u << i) && r->levels[i] < (uint8_t)p->guarantees[i].level)
			p->guarantees[i] = (struct plan_guarantee){
				.level = (enum level)r->levels[i], .by = r->hold.by, .rule = r->rule
			};
}

static void set_guarantees(const struct planning *g, struct plan *p)
{
	for (unsigned i = 0; i < G_COUNT; i++) {
		const struct hold h = g->able.guarantees[i];

		p->guarantees[i] =
			(struct plan_guarantee){ .level = h.level,
						 .by = h.by,
						 .rule = RULE_NONE,
						 .unasked = g->able.tier != TIER_NONE &&
							    i >= G_RES_MEMORY && i <= G_RES_DISK };
	}
	/*
	 * The guarantee of a limit that the policy sets is as good as the mechanism that enforces
	 * the limit. The limits on open files and on network use do not determine a guarantee.
	 */
	for (size_t i = 0; i < LIMIT_COUNT; i++) {
		const enum guarantee e = limit_guarantee((enum cap_limit)i);
		const struct hold h = g->able.limits[i];
		const bool main = i != LIMIT_FILES && e != G_NET;

		if (g->ask.set->limits[i] && main)
			p->guarantees[e] = (struct plan_guarantee){
				.level = h.level, .by = h.by, .rule = g->ask.set->limit_rule[i]
			};
	}
	for (size_t i = 0; i < p->rules.n; i++)
		if (!g->ask.set->rules.v[p->rules.v[i].rule].missing && !p->rules.v[i].lacking)
			lower_guarantees(p, &p->rules.v[i]);
	/*
	 * The peer of a socket that delegates authority acts outside the boundary for the agent, so
	 * no guarantee holds.
	 */
	for (size_t i = 0; i < g->ask.set->caps.n; i++)
		if (g->ask.set->caps.v[i].cap.danger)
			for (size_t k = 0; k < G_COUNT; k++)
				p->guarantees[k] = (struct plan_guarantee){
					.level = LEVEL_NONE,
					.by = "a dangerous socket is let in",
					.rule = g->ask.set->caps.v[i].rule
				};
}

static void check_required(const struct planning *g, struct plan *p)
{
	for (unsigned i = 0; i < G_COUNT; i++) {
		p->guarantees[i].required = g->ask.set->require[i] != LEVEL_NONE;
		p->guarantees[i].refused = p->guarantees[i].level < g->ask.set->require[i];
		p->refused += p->guarantees[i].refused;
	}
}

/* Gives every part of the plan the answer of an engine that enforces nothing. */
static int hold_none(struct planning *g, struct writ_err *err)
{
	const struct hold none = { LEVEL_NONE, g->able.lacks, "none", NULL };
	const size_t caps = g->ask.set->caps.n, nots = g->ask.set->nots.n;
	struct hold *all = arena_array(g->a, struct hold, caps + nots + 1);

	if (!all)
		return writ_nomem(err);
	for (size_t i = 0; i < caps + nots; i++)
		all[i] = none;
	g->able = (struct engine_able){ .lacks = g->able.lacks,
					.caps = all,
					.nots = all + caps,
					.workspace = none,
					.net_level = none };
	for (size_t i = 0; i < G_COUNT; i++)
		g->able.guarantees[i] = none;
	for (size_t i = 0; i < LIMIT_COUNT; i++)
		g->able.limits[i] = none;
	return 0;
}

int plan_new(struct arena *a, const struct cap_set *set, const struct host_facts *facts,
	     const struct plan_options *opt, struct plan **ret_plan, struct writ_err *err)
{
	struct plan *p = arena_new(a, struct plan);
	struct row *rows = arena_array(a, struct row, set->rules.n + 1);
	struct planning g = { .a = a,
			      .opt = opt,
			      .ask = { .facts = facts,
				       .set = set,
				       .tier = opt->tier,
				       .overlay_advisory = opt->overlay_advisory,
				       .whole = opt->whole } };
	int r;

	if (!p || !rows)
		return writ_nomem(err);
	p->set = set;
	p->facts = facts;
	p->opt = *opt;
	p->engine = opt->engine ? opt->engine : opt->engines[0];
	r = p->engine->able(p->engine, a, &g.ask, &g.able, err);
	if (r == 0 && g.able.lacks)
		r = hold_none(&g, err);
	if (r < 0)
		return r;
	p->tier = g.able.tier;
	p->tier_why = g.able.tier_why;
	p->lacks = g.able.lacks;
	p->gaps = g.able.gaps;
	p->steps = g.able.steps;
	p->scoped = g.able.scoped;
	rows_from_caps(&g, rows);
	rows_from_settings(&g, rows);
	rows_from_kinds(&g, rows);
	if (!add_rules(a, &g, rows, p))
		return writ_nomem(err);
	set_guarantees(&g, p);
	check_required(&g, p);
	*ret_plan = p;
	return 0;
}
