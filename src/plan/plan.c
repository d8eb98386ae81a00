#include "plan/plan_priv.h"

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

const struct plan_rule *plan_rule_get(const struct plan *p, uint32_t rule)
{
	for (size_t i = 0; i < p->rules.n; i++)
		if (p->rules.v[i].rule == rule)
			return &p->rules.v[i];
	return NULL;
}

/* --- rows, one per rule --- */

struct row {
	bool used;
	enum guarantee guarantee;
	struct hold hold;
};

static void row_add(struct row *r, enum guarantee g, struct hold h)
{
	const struct hold before = r->hold;

	r->hold = r->used ? hold_min(r->hold, h) : h;
	/* The guarantee named in the row is that of the part which decided it. */
	if (!r->used || r->hold.by != before.by)
		r->guarantee = g;
	r->used = true;
}

static struct hold engine_rule(const struct ground *g, enum guarantee guarantee,
			       const struct cap *c)
{
	struct hold h = adapter_hold(g, guarantee);

	if (h.level == LEVEL_STRICTER && (guarantee == G_NET || guarantee == G_DNS))
		return (struct hold){ LEVEL_NONE, "this engine cannot filter by name", "none",
				      h.fix };
	for (size_t i = 0; c && i < c->path.n; i++)
		if (c->path.segs[i].star)
			return (struct hold){ LEVEL_NONE,
					      "this engine mounts whole directories only", "none",
					      "--adapter host" };
	return h;
}

static struct hold any_cap(const struct ground *g, const struct cap *c)
{
	if (g->opt->adapter == ADAPTER_HOST)
		return c->kind == CAP_DENIAL ? hold_denial(g, c) : hold_cap(g, c);
	if (c->kind == CAP_DENIAL && c->action != CAP_NET_CONNECT && c->action != CAP_HTTP_REQUEST)
		return (struct hold){ LEVEL_NONE, "this engine cannot take away inside a grant",
				      "none", "--adapter host" };
	return engine_rule(g, plan_guarantee_of(c->action), c);
}

static void rows_from_caps(const struct ground *g, struct row *rows)
{
	const struct cap_set *s = g->set;

	for (size_t i = 0; i < s->caps.n; i++)
		row_add(&rows[s->caps.v[i].rule], plan_guarantee_of(s->caps.v[i].cap.action),
			any_cap(g, &s->caps.v[i].cap));
	for (size_t i = 0; i < s->nots.n; i++) {
		struct row *r = &rows[s->nots.v[i].rule];
		const struct hold h = any_cap(g, &s->nots.v[i].cap);

		/* deny read also denies writing: the row speaks of reading unless that is better
		 * held. */
		if (!r->used || h.level < r->hold.level)
			row_add(r, plan_guarantee_of(s->nots.v[i].cap.action), h);
	}
	for (unsigned i = 0; i < LIMIT_COUNT; i++)
		if (s->limits[i])
			row_add(&rows[s->limit_rule[i]], limit_guarantee((enum cap_limit)i),
				hold_limit(g, (enum cap_limit)i));
}

static struct hold hold_isolation(const struct ground *g)
{
	static const char *const names[] = { "a process on this kernel", "gVisor",
					     "a virtual machine" };
	const enum cap_isolation have = adapter_isolation(g->opt->adapter);

	if (have >= g->set->isolation)
		return (struct hold){ LEVEL_EXACT, names[have], "none", NULL };
	return (struct hold){ LEVEL_NONE, "the host adapter shares this kernel", "none",
			      g->set->isolation == ISOLATION_VM ? "--adapter qemu"
								: "--adapter gvisor" };
}

static struct hold hold_workspace(const struct ground *g)
{
	if (!g->cow)
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

static void rows_from_settings(const struct ground *g, struct row *rows)
{
	const struct cap_set *s = g->set;

	if (s->isolation_rule != RULE_NONE)
		row_add(&rows[s->isolation_rule], G_SYSCALL, hold_isolation(g));
	if (s->workspace_rule != RULE_NONE)
		row_add(&rows[s->workspace_rule], G_FS_WRITE, hold_workspace(g));
	if (s->net_level_rule != RULE_NONE)
		row_add(&rows[s->net_level_rule], G_NET,
			g->own_net || g->mediate
				? (struct hold){ LEVEL_EXACT, "own network and DNS", "none", NULL }
				: (struct hold){ LEVEL_NONE,
						 "connections cannot be controlled here", "none",
						 NULL });
}

/* Lines that grant nothing and still say something. */
static void rows_from_words(const struct ground *g, struct row *rows)
{
	/* clang-format off */
	static const struct { const char *word; enum guarantee g; const char *by; } words[] = {
		{ "env ",     G_CRED,     "environment built from nothing" },
		{ "open ",    G_FS_WRITE, "this protection is lifted" },
		{ "allow shell read-only", G_FS_WRITE, "writes go to its own /tmp and HOME" },
		{ "allow shell none", G_EXEC, "it cannot start other programs" },
		{ "accept ",  G_SYSCALL,  "taken as it is here" },
		{ "require ", G_SYSCALL,  "compared with what holds here" },
	};
	/* clang-format on */

	for (size_t i = 0; i < g->set->rules.n; i++)
		for (size_t k = 0; k < ARRAY_LEN(words) && !rows[i].used; k++)
			if (sv_starts(g->set->rules.v[i].text, sv_from(words[k].word)) &&
			    !g->set->rules.v[i].missing && !g->set->rules.v[i].built_in)
				row_add(&rows[i], words[k].g,
					(struct hold){ LEVEL_EXACT, words[k].by, "none", NULL });
}

/* --- what does not hold --- */

static bool is_accepted(const struct cap_set *s, enum guarantee g, enum level have)
{
	return s->accepts[g] && have >= s->accept[g];
}

static bool add_rules(struct arena *a, const struct ground *g, const struct row *rows,
		      struct plan *p)
{
	for (uint32_t i = 0; i < g->set->rules.n; i++) {
		const struct cap_rule *rule = &g->set->rules.v[i];
		struct plan_rule *r;

		if (!rows[i].used && !rule->missing)
			continue;
		r = vec_push(a, &p->rules);
		if (!r)
			return false;
		*r = (struct plan_rule){ i, rows[i].guarantee, rows[i].hold, false };
		if (rule->missing && !rows[i].used) {
			/* It was optional: nothing is granted. */
			r->hold = (struct hold){ LEVEL_EXACT, "optional, not on this machine",
						 "none", NULL };
		} else if (rule->missing) {
			r->refused = !rule->built_in;
		} else {
			r->refused = r->hold.level < LEVEL_STRICTER && !rule->built_in &&
				     !is_accepted(g->set, r->guarantee, r->hold.level);
		}
		p->refused += r->refused;
	}
	return true;
}

static void lower_guarantee(struct plan_guarantee *g, struct hold h, uint32_t rule)
{
	if (h.level >= g->level && g->by)
		return;
	*g = (struct plan_guarantee){ .level = h.level, .by = h.by, .rule = rule };
}

static void set_guarantees(const struct ground *g, struct plan *p)
{
	const bool host = g->opt->adapter == ADAPTER_HOST;
	static const enum guarantee ended[] = { G_FS_READ, G_FS_WRITE, G_FS_METADATA, G_NET,
						G_DNS,	   G_IPC,      G_PROC_SEE,    G_PROC_SIGNAL,
						G_EXEC,	   G_SYSCALL,  G_CRED };

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
		if (!g->set->rules.v[p->rules.v[i].rule].missing)
			lower_guarantee(&p->guarantees[p->rules.v[i].guarantee], p->rules.v[i].hold,
					p->rules.v[i].rule);
	/* A socket that delegates authority ends every boundary it can act across. */
	for (size_t i = 0; i < g->set->caps.n; i++)
		if (g->set->caps.v[i].cap.danger)
			for (size_t k = 0; k < ARRAY_LEN(ended); k++)
				p->guarantees[ended[k]] = (struct plan_guarantee){
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
	rows_from_caps(&g, rows);
	rows_from_settings(&g, rows);
	rows_from_words(&g, rows);
	if (!add_rules(a, &g, rows, p) || !plan_add_gaps(a, &g, p) ||
	    (opt->adapter == ADAPTER_HOST && !plan_add_steps(a, &g, p)))
		return writ_nomem(err);
	set_guarantees(&g, p);
	check_required(&g, p);
	*ret_plan = p;
	return 0;
}
