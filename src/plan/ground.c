#include "plan/plan_priv.h"

#include "base/banned.h"

/* The first thing tier A lacks here, or NULL if it can be built. */
static const char *lacks_for_a(const struct host_facts *f)
{
	if (f->where == WHERE_WSL1)
		return "WSL 1 has no Linux kernel";
	if (!f->ns_user) {
		if (f->apparmor_userns)
			return "AppArmor keeps user namespaces from unprivileged programs";
		return "no user namespaces here";
	}
	if (!f->ns_user_nested)
		return "no second level of user namespaces here";
	if (!f->ns_mount || !f->pivot_root)
		return "no mount namespaces here";
	if (!f->ns_pid)
		return "no pid namespaces here";
	if (!f->ns_net)
		return "no network namespaces here";
	if (!f->seccomp_filter)
		return "no seccomp filters here";
	return NULL;
}

static const char *lacks_for_b(const struct host_facts *f)
{
	if (f->landlock_abi == 0)
		return "no Landlock here";
	if (!f->seccomp_filter)
		return "no seccomp filters here";
	return NULL;
}

void ground_init(struct ground *g, const struct cap_set *set, const struct host_facts *f,
		 const struct plan_options *opt, const char **ret_tier_why)
{
	const char *not_a = lacks_for_a(f);
	const char *not_b = lacks_for_b(f);

	*ret_tier_why = NULL;
	*g = (struct ground){ .f = f, .set = set, .opt = opt };
	if (opt->tier == TIER_A || (opt->tier == TIER_NONE && !not_a)) {
		g->tier = not_a ? TIER_NONE : TIER_A;
		*ret_tier_why = not_a;
	} else {
		g->tier = not_b ? TIER_NONE : TIER_B;
		*ret_tier_why = not_b ? not_b : not_a ? not_a : "asked for";
	}
	g->nested_userns = cap_set_kernel(set, "nested-userns");
	g->io_uring = cap_set_kernel(set, "io_uring");
	g->cow = set->workspace == WORKSPACE_COW && !ground_lacks(g, FEATURE_COW);
	/* io_uring opens files without any system call that a filter could see. */
	g->landlock_fs = f->landlock_abi >= 1 && !g->nested_userns;
	/* Calls are let through only where Landlock makes every outcome harmless. */
	g->mediate = f->seccomp_notify && !f->seccomp_listener_exists && f->seccomp_addfd &&
		     !g->io_uring && g->landlock_fs;
	g->own_net = g->tier == TIER_A && f->ns_net && f->anyip;
	g->own_ipc = g->tier == TIER_A && f->ns_ipc;
	g->own_proc = g->tier == TIER_A && f->proc_mount;
}

struct hold hold_min(struct hold a, struct hold b)
{
	if (a.level != b.level)
		return a.level < b.level ? a : b;
	return sv_is(sv_from(a.cost), "none") || sv_is(sv_from(a.cost), b.cost) ? b : a;
}
