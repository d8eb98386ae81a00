#include "plan/plan_priv.h"

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

const struct plan_guarantee *plan_guarantee_for(const struct plan *p, enum cap_action action)
{
	return &p->guarantees[plan_guarantee_of(action)];
}

bool plan_runs(const struct plan *p)
{
	return p->refused == 0 && p->tier != TIER_NONE && !p->lacks;
}

const struct plan_rule *plan_rule_get(const struct plan *p, uint32_t rule)
{
	for (size_t i = 0; i < p->rules.n; i++)
		if (p->rules.v[i].rule == rule)
			return &p->rules.v[i];
	return NULL;
}

/* --- rows, one per rule --- */

struct row {
	uint32_t touches; /* 0: nothing yet */
	uint8_t levels[G_COUNT];
	enum guarantee guarantee;
	struct hold hold;
	bool lacking;
};

/* Every guarantee a rule touches keeps its own level; the weakest part is shown. */
static void row_add(struct row *r, enum guarantee g, struct hold h)
{
	const struct hold shown = r->touches ? hold_min(r->hold, h) : h;

	if (g >= G_COUNT)
		return;
	if (!r->touches || shown.level != r->hold.level || shown.by != r->hold.by)
		r->guarantee = g;
	r->hold = shown;
	if (!(r->touches & 1u << g) || h.level < r->levels[g])
		r->levels[g] = (uint8_t)h.level;
	r->touches |= 1u << g;
}

/* What no machine can change. */
static void row_lacks(struct row *r, enum guarantee g, const char *why)
{
	row_add(r, g, (struct hold){ LEVEL_NONE, why, "none", NULL });
	r->lacking = true;
}

static bool has_star(const struct cap *c)
{
	for (size_t i = 0; i < c->path.n; i++)
		if (c->path.segs[i].star)
			return true;
	return false;
}

/* What another engine makes of one capability. */
static struct hold engine_rule(const struct ground *g, const struct cap *c)
{
	const enum guarantee guarantee = plan_guarantee_of(c->action);
	const struct hold h = adapter_hold(g, guarantee);
	const bool file = c->action == CAP_FS_READ || c->action == CAP_FS_WRITE ||
			  c->action == CAP_FS_PUT || c->action == CAP_PROC_EXEC;
	const char *why = NULL;

	if (h.level == LEVEL_NONE)
		return h;
	if (guarantee == G_NET || guarantee == G_DNS)
		why = "this engine cannot filter by name";
	else if (file && has_star(c))
		why = "this engine mounts whole directories only";
	else if (c->action == CAP_FS_PUT)
		why = "a mount is no drop box";
	else if (file && (c->approve_n || c->n || c->rate_n))
		why = "this engine cannot ask or count";
	if (why)
		return (struct hold){ LEVEL_NONE, why, "none", "--adapter host" };
	if (c->action == CAP_FS_WRITE && c->path.tail && !g->cow)
		return (struct hold){ LEVEL_PARTIAL,
				      "protected names that do not exist yet could be created",
				      "engine start", cow_fix(g, "--workspace cow", NULL) };
	if (c->action == CAP_PROC_EXEC &&
	    (c->path.n || !c->path.tail || c->has_args || c->sha256_n))
		return (struct hold){ LEVEL_PARTIAL, "the loader it needs runs anything readable",
				      "engine start", "accept exec=partial" };
	return h;
}

static struct hold any_cap(const struct ground *g, const struct cap *c)
{
	if (g->opt->adapter == ADAPTER_HOST)
		return c->kind == CAP_DENIAL ? hold_denial(g, c) : hold_cap(g, c);
	if (c->kind == CAP_DENIAL && c->action != CAP_NET_CONNECT && c->action != CAP_HTTP_REQUEST)
		return (struct hold){ LEVEL_NONE, "this engine cannot take away inside a grant",
				      "none", "--adapter host" };
	return engine_rule(g, c);
}

static void rows_from_caps(const struct ground *g, struct row *rows)
{
	const struct cap_set *s = g->set;

	for (size_t i = 0; i < s->caps.n; i++) {
		const struct cap_entry *e = &s->caps.v[i];
		const enum guarantee ge = plan_guarantee_of(e->cap.action);
		const char *lacks =
			s->rules.v[e->rule].built_in ? NULL : ground_lacks_for(g, &e->cap);

		if (lacks)
			row_lacks(&rows[e->rule], ge, lacks);
		else
			row_add(&rows[e->rule], ge, any_cap(g, &e->cap));
	}
	for (size_t i = 0; i < s->prices.n; i++) {
		const struct cap_entry *e = &s->prices.v[i];
		const char *lacks = ground_lacks_for(g, &e->cap);

		if (lacks)
			row_lacks(&rows[e->rule], plan_guarantee_of(e->cap.action), lacks);
	}
	for (size_t i = 0; i < s->nots.n; i++) {
		struct row *r = &rows[s->nots.v[i].rule];
		const enum guarantee ge = plan_guarantee_of(s->nots.v[i].cap.action);
		const struct hold shown = r->hold;
		const enum guarantee shown_g = r->guarantee;
		const bool first = r->touches == 0;

		row_add(r, ge, any_cap(g, &s->nots.v[i].cap));
		/* deny read also denies writing: speak of reading unless that holds better. */
		if (!first && r->hold.level == shown.level) {
			r->hold = shown;
			r->guarantee = shown_g;
		}
	}
	for (unsigned i = 0; i < LIMIT_COUNT; i++)
		if (s->limits[i] && s->limit_rule[i] != RULE_NONE)
			row_add(&rows[s->limit_rule[i]], limit_guarantee((enum cap_limit)i),
				hold_limit(g, (enum cap_limit)i));
}

static void add_isolation(const struct ground *g, struct row *r)
{
	static const char *const names[] = { "a process on this kernel", "gVisor",
					     "a virtual machine" };
	const enum cap_isolation have = adapter_isolation(g->opt->adapter);
	struct hold h = { LEVEL_EXACT, names[have], "none", NULL };

	if (have < g->set->isolation && ground_lacks(g, FEATURE_ENGINE)) {
		row_lacks(r, G_SYSCALL, ground_lacks(g, FEATURE_ENGINE));
		return;
	}
	if (have < g->set->isolation)
		h = (struct hold){ LEVEL_NONE, "the host adapter shares this kernel", "none",
				   g->set->isolation == ISOLATION_VM ? "--adapter qemu"
								     : "--adapter gvisor" };
	row_add(r, G_SYSCALL, h);
}

static struct hold hold_workspace(const struct ground *g)
{
	if (g->set->workspace != WORKSPACE_COW)
		return (struct hold){ LEVEL_EXACT, "the real tree, narrowed", "none", NULL };
	if (g->tier != TIER_A)
		return (struct hold){ LEVEL_NONE, "copy-on-write needs mounts of its own", "none",
				      NULL };
	if (g->f->overlay && !g->opt->overlay_advisory)
		return (struct hold){ LEVEL_EXACT, "overlayfs, the layer outside the workspace",
				      "none", NULL };
	if (g->f->reflink)
		return (struct hold){ LEVEL_EXACT, "reflinked copy", "copy at start", NULL };
	return (struct hold){ LEVEL_EXACT, "copy", "copies the workspace at start", NULL };
}

/* Names are answered from the policy at every level: `hosts` is held as `hosts+dns` is. */
static struct hold hold_level(const struct ground *g)
{
	if (!g->own_net && !g->mediate)
		return (struct hold){ LEVEL_NONE, "connections cannot be controlled here", "none",
				      NULL };
	if (ground_lacks(g, FEATURE_NET))
		return (struct hold){ LEVEL_EXACT, "own network, no way out of it", "none", NULL };
	if (g->set->net_level == NET_LEVEL_SIGNED)
		return (struct hold){ LEVEL_EXACT,
				      "each request read and on record, not chained yet",
				      "TLS intercepted", NULL };
	return (struct hold){ LEVEL_EXACT, "own network and DNS", "none", NULL };
}

static void rows_from_settings(const struct ground *g, struct row *rows)
{
	const struct cap_set *s = g->set;

	if (s->isolation_rule != RULE_NONE)
		add_isolation(g, &rows[s->isolation_rule]);
	if (s->workspace_rule != RULE_NONE && s->workspace == WORKSPACE_COW &&
	    ground_lacks(g, FEATURE_COW))
		row_lacks(&rows[s->workspace_rule], G_FS_WRITE, ground_lacks(g, FEATURE_COW));
	else if (s->workspace_rule != RULE_NONE)
		row_add(&rows[s->workspace_rule], G_FS_WRITE, hold_workspace(g));
	if (s->net_level_rule != RULE_NONE)
		row_add(&rows[s->net_level_rule], G_NET, hold_level(g));
}

/* Lines that grant nothing and still say something. */
static void rows_from_kinds(const struct ground *g, struct row *rows)
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

	for (size_t i = 0; i < g->set->rules.n; i++) {
		const struct cap_rule *r = &g->set->rules.v[i];

		if (rows[i].touches == 0 && !r->missing && !r->built_in &&
		    (size_t)r->kind < ARRAY_LEN(says) && says[r->kind].by)
			row_add(&rows[i], says[r->kind].g,
				(struct hold){ LEVEL_EXACT, says[r->kind].by, "none", NULL });
	}
}

/* --- what does not hold --- */

static bool is_accepted(const struct cap_set *s, enum guarantee g, enum level have)
{
	return s->accepts[g] && have >= s->accept[g];
}

/*
 * Does a line that somebody wrote, or chose by naming a profile, fail to hold?
 * Limits that a profile brings are defaults.
 */
static bool is_refused(const struct cap_set *set, const struct cap_rule *rule,
		       const struct row *row)
{
	if (rule->built_in || (rule->shipped && rule->kind == RULE_LIMIT))
		return false;
	if (rule->missing)
		return !rule->optional;
	/* Accepting less helps where less is to be had. */
	if (row->lacking)
		return true;
	for (unsigned g = 0; g < G_COUNT; g++)
		if ((row->touches & 1u << g) && row->levels[g] < LEVEL_STRICTER &&
		    !is_accepted(set, (enum guarantee)g, (enum level)row->levels[g]))
			return true;
	return false;
}

static bool add_rules(struct arena *a, const struct ground *g, const struct row *rows,
		      struct plan *p)
{
	if (!vec_reserve(a, &p->rules, g->set->rules.n))
		return false;
	for (uint32_t i = 0; i < g->set->rules.n; i++) {
		const struct cap_rule *rule = &g->set->rules.v[i];
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
					 .refused = is_refused(g->set, rule, &rows[i]) };
		memcpy(r->levels, rows[i].levels, sizeof(r->levels));
		if (rows[i].touches == 0)
			r->hold = (struct hold){ rule->optional ? LEVEL_EXACT : LEVEL_NONE,
						 rule->optional ? "optional, not on this machine"
								: "not on this machine",
						 "none", NULL };
		p->refused += r->refused;
	}
	return true;
}

/* A rule that holds less well than its guarantee takes it down. */
static void lower_guarantees(struct plan *p, const struct plan_rule *r)
{
	for (unsigned i = 0; i < G_COUNT; i++)
		if ((r->touches & 1u << i) && r->levels[i] < (uint8_t)p->guarantees[i].level)
			p->guarantees[i] = (struct plan_guarantee){
				.level = (enum level)r->levels[i], .by = r->hold.by, .rule = r->rule
			};
}

static void set_guarantees(const struct ground *g, struct plan *p)
{
	const bool host = g->opt->adapter == ADAPTER_HOST;

	for (unsigned i = 0; i < G_COUNT; i++) {
		const enum guarantee e = (enum guarantee)i;
		const struct hold h = host ? host_guarantee(g, e) : adapter_hold(g, e);

		p->guarantees[i] =
			(struct plan_guarantee){ .level = h.level, .by = h.by, .rule = RULE_NONE };
		p->guarantees[i].unasked =
			g->tier != TIER_NONE && e >= G_RES_MEMORY && e <= G_RES_DISK && host;
	}
	/* A limit that somebody set is as good as what enforces it. */
	for (size_t i = 0; i < LIMIT_COUNT; i++) {
		const enum guarantee e = limit_guarantee((enum cap_limit)i);
		const struct hold h = hold_limit(g, (enum cap_limit)i);
		const bool main = i != LIMIT_FILES && e != G_NET;

		if (host && g->set->limits[i] && main)
			p->guarantees[e] = (struct plan_guarantee){ .level = h.level,
								    .by = h.by,
								    .rule = g->set->limit_rule[i] };
	}
	for (size_t i = 0; i < p->rules.n; i++)
		if (!g->set->rules.v[p->rules.v[i].rule].missing && !p->rules.v[i].lacking)
			lower_guarantees(p, &p->rules.v[i]);
	/* A socket that delegates authority ends every boundary it can act across. */
	for (size_t i = 0; i < g->set->caps.n; i++)
		if (g->set->caps.v[i].cap.danger)
			for (size_t k = 0; k < G_COUNT; k++)
				p->guarantees[k] = (struct plan_guarantee){
					.level = LEVEL_NONE,
					.by = "a dangerous socket is let in",
					.rule = g->set->caps.v[i].rule
				};
}

static void check_required(const struct ground *g, struct plan *p)
{
	for (unsigned i = 0; i < G_COUNT; i++) {
		p->guarantees[i].required = g->set->require[i] != LEVEL_NONE;
		p->guarantees[i].refused = p->guarantees[i].level < g->set->require[i];
		p->refused += p->guarantees[i].refused;
	}
}

int plan_new(struct arena *a, const struct cap_set *set, const struct host_facts *facts,
	     const struct plan_options *opt, struct plan **ret_plan, struct writ_err *err)
{
	struct plan *p = arena_new(a, struct plan);
	struct row *rows = arena_array(a, struct row, set->rules.n + 1);
	struct ground g;

	if (!p || !rows)
		return writ_nomem(err);
	p->set = set;
	p->facts = facts;
	p->opt = *opt;
	ground_init(&g, set, facts, opt, &p->tier_why);
	p->tier = g.tier;
	p->lacks = opt->adapter == ADAPTER_HOST ? NULL : ground_lacks(&g, FEATURE_ENGINE);
	rows_from_caps(&g, rows);
	rows_from_settings(&g, rows);
	rows_from_kinds(&g, rows);
	if (!add_rules(a, &g, rows, p) || !plan_add_gaps(a, &g, p) ||
	    (opt->adapter == ADAPTER_HOST && !plan_add_steps(a, &g, p)))
		return writ_nomem(err);
	set_guarantees(&g, p);
	if (!cap_set_has(set, CAP_PROC_EXEC) && opt->adapter == ADAPTER_HOST &&
	    p->tier != TIER_NONE)
		p->guarantees[G_EXEC].by = "nothing is run after the first program";
	check_required(&g, p);
	*ret_plan = p;
	return 0;
}
