#include "lib/lib_priv.h"

#include "base/banned.h"

int lib_plan(struct arena *a, const struct policy *p, const struct host_facts *f,
	     enum plan_tier tier, struct plan **ret, struct writ_err *err)
{
	struct plan_options opt = { .tier = tier };

	return plan_new(a, &p->set, f, &opt, ret, err);
}

int lib_plan_check(const struct plan *p, const struct policy *policy, struct writ_err *err)
{
	if (p->tier == TIER_NONE)
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
				 "nothing here can hold a process: %s",
				 p->tier_why ? p->tier_why : "unknown");
	for (size_t i = 0; i < p->rules.n; i++)
		if (p->rules.v[i].refused) {
			const struct sv text =
				sv_sub(policy->set.rules.v[p->rules.v[i].rule].text, 0, 40);

			return writ_fail(err, WRIT_E_UNENFORCEABLE, 0, SV_FMT ": %s=%s here: %s",
					 SV_ARG(text), guarantee_name(p->rules.v[i].guarantee),
					 level_name(p->rules.v[i].hold.level),
					 p->rules.v[i].hold.by);
		}
	for (unsigned i = 0; i < G_COUNT; i++)
		if (p->guarantees[i].refused)
			return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
					 "%s is required and %s here: %s",
					 guarantee_name((enum guarantee)i),
					 level_name(p->guarantees[i].level), p->guarantees[i].by);
	return p->refused ? writ_fail(err, WRIT_E_UNENFORCEABLE, 0, "a line does not hold here")
			  : 0;
}
