#include "able/able_priv.h"

#include "base/banned.h"

/*
 * Returns the first kernel feature that tier A needs and this machine lacks; NULL if writ can build
 * tier A.
 */
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

void able_ground_init(struct ground *g, const struct engine_ask *ask, const char **ret_tier_why)
{
	const struct host_facts *f = ask->facts;
	const char *not_a = lacks_for_a(f);
	const char *not_b = lacks_for_b(f);

	*ret_tier_why = NULL;
	*g = (struct ground){ .f = f, .set = ask->set, .ask = ask };
	if (ask->tier == TIER_A || (ask->tier == TIER_NONE && !not_a)) {
		g->tier = not_a ? TIER_NONE : TIER_A;
		*ret_tier_why = not_a;
	} else {
		g->tier = not_b ? TIER_NONE : TIER_B;
		*ret_tier_why = not_b ? not_b : not_a ? not_a : "asked for";
	}
	g->nested_userns = cap_set_kernel(ask->set, "nested-userns");
	g->io_uring = cap_set_kernel(ask->set, "io_uring");
	g->cow = ask->set->workspace == WORKSPACE_COW && !able_lacks(g, FEATURE_COW);
	/* The rule `kernel nested-userns` switches off the file rules of Landlock. */
	g->landlock_fs = f->landlock_abi >= 1 && !g->nested_userns;
	/*
	 * io_uring opens files without a system call that a seccomp filter could see, so a policy
	 * that grants io_uring rules out mediation. Mediation needs Landlock as well: the mediator
	 * lets a call through to the kernel only where Landlock makes every outcome harmless.
	 */
	g->mediate = f->seccomp_notify && !f->seccomp_listener_exists && f->seccomp_addfd &&
		     !g->io_uring && g->landlock_fs;
	g->own_net = g->tier == TIER_A && f->ns_net && f->anyip;
	g->own_ipc = g->tier == TIER_A && f->ns_ipc;
	g->own_proc = g->tier == TIER_A && f->proc_mount;
}
