#include "lib/lib_priv.h"

#include "engines/engines.h"

#include "base/banned.h"

/* The plan of the policy, and the plans of the policy's agents. */
struct plans {
	struct host_facts facts;
	struct plan *main;
	struct plan_agent *agents;
};

static int make_plans(struct arena *a, struct writ_policy *p, struct plans *ret,
		      struct writ_err *err)
{
	const struct plan_options opt = { .engines = engines_all, .tier = p->tier };
	int r = lib_facts(p->w, &ret->facts, err);

	if (r < 0 || (r = plan_new(a, &p->policy->set, &ret->facts, &opt, &ret->main, err)) < 0)
		return r;
	ret->agents = arena_array(a, struct plan_agent, p->policy->agents.n + 1);
	if (!ret->agents)
		return writ_nomem(err);
	for (size_t i = 0; r == 0 && i < p->policy->agents.n; i++) {
		ret->agents[i].name = p->policy->agents.v[i].name;
		r = plan_new(a, &p->policy->agents.v[i].set, &ret->facts, &opt,
			     &ret->agents[i].plan, err);
	}
	return r;
}

static int explain(struct writ_policy *p, bool json, uint32_t flags, char **ret,
		   struct writ_error *err)
{
	const struct explain_style style = { .all = flags & WRIT_EXPLAIN_ALL,
					     .verbose = flags & WRIT_EXPLAIN_VERBOSE };
	scoped_arena a = ARENA_INIT(POLICY_ARENA_MAX);
	scoped_buf b = BUF_INIT(64 << 20);
	struct writ_err why = { 0 };
	struct plans plans = { 0 };
	int r;

	if (!p || !ret)
		return lib_argument(err, "explain what, and where to?");
	r = make_plans(&a, p, &plans, &why);
	if (r == 0 && json)
		plan_json_all(plans.main, plans.agents, p->policy->agents.n, &b);
	else if (r == 0)
		plan_explain(plans.main, plans.agents, p->policy->agents.n, &style, &b);
	if (r == 0)
		r = lib_text(&b, ret, &why);
	return r < 0 ? lib_error(err, &why) : 0;
}

int writ_explain(struct writ_policy *p, uint32_t flags, char **ret_text, struct writ_error *err)
{
	return explain(p, false, flags, ret_text, err);
}

int writ_guarantees(struct writ_policy *p, char **ret_json, struct writ_error *err)
{
	return explain(p, true, 0, ret_json, err);
}
