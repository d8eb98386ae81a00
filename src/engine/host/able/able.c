#include "able/able_priv.h"

#include "jail/program.h"

#include "base/banned.h"

const char *able_lacks(const struct ground *g, enum plan_feature f)
{
	return g->ask->whole ? NULL : plan_lacks(f);
}

const char *able_cow_fix(const struct ground *g, const char *fix, const char *without)
{
	return able_lacks(g, FEATURE_COW) ? without : fix;
}

static bool add_gaps(struct arena *a, const struct ground *g, struct engine_able *ret)
{
	const struct host_facts *f = g->f;
	/* clang-format off */
	const struct {
		bool here;
		const char *what, *why, *fix;
		bool tier;
	} gaps[] = {
		{ g->tier == TIER_NONE, "boundary", ret->tier_why, NULL },
		{ g->tier == TIER_B && g->ask->tier != TIER_B && f->apparmor_userns && !f->root,
		  "tier A", "AppArmor keeps user namespaces from us",
		  "install the package, which brings a profile for writ", true },
		{ g->tier != TIER_NONE && !g->mediate, "sockets",
		  "a program of yours that listens on a socket inside what is granted can be spoken to", NULL },
		{ f->seccomp_listener_exists, "mediation",
		  "another program already listens on our system calls", "run outside that sandbox" },
		{ f->groups_extra && !f->root, "groups",
		  "supplementary groups cannot be dropped without privilege: what is shown stays readable through them", NULL },
		{ f->root && f->where == WHERE_HOST, "root",
		  "the command runs as an unprivileged user where its files allow it", NULL },
		{ g->tier == TIER_A && !g->own_proc, "/proc", "this container masks /proc",
		  "docker run --security-opt systempaths=unconfined" },
		{ g->tier == TIER_B && f->landlock_abi < 6, "signals",
		  "this kernel's Landlock does not scope signals", "a kernel of 6.12 or later" },
		{ g->tier == TIER_B && !f->root, "bounding set",
		  "a user cannot empty it; no_new_privs leaves it without use", NULL },
		{ f->yama == 0 && g->tier == TIER_B, "tracing",
		  "without Yama, only seccomp keeps it from your other processes", NULL },
		{ g->ask->overlay_advisory && g->cow, "copy-on-write",
		  "overlayfs has an open advisory on this kernel, so files are copied instead", NULL },
		{ g->nested_userns, "Landlock", "kernel nested-userns switches file rules of Landlock off", NULL },
		{ g->io_uring, "mediation", "kernel io_uring leaves nothing to mediate", NULL },
		{ f->where == WHERE_WSL2, "WSL", "Windows programs are hidden from the agent", NULL },
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_LEN(gaps); i++) {
		struct engine_gap *to = gaps[i].here ? vec_push(a, &ret->gaps) : NULL;

		if (gaps[i].here && !to)
			return false;
		if (to)
			*to = (struct engine_gap){ gaps[i].what, gaps[i].why, gaps[i].fix,
						   gaps[i].tier };
	}
	return true;
}

/* Adds the rows of jail/steps.def that writ-init carries out in a jail for @g. */
static bool add_steps(struct arena *a, const struct ground *g, struct engine_able *ret)
{
	static const struct {
		uint32_t only;
		struct engine_step step;
	} steps[] = {
#define ROW(id, name, only, needs, run, what, why) { (only), { (name), (what), (why) } },
		JAIL_STEPS(ROW)
#undef ROW
	};
	const uint32_t flags = (g->tier == TIER_A ? JAIL_OWN_NAMESPACES : 0u) |
			       (g->landlock_fs ? JAIL_LANDLOCK : 0u);

	for (size_t i = 0; g->tier != TIER_NONE && i < ARRAY_LEN(steps); i++) {
		struct engine_step *to;

		if ((steps[i].only & flags) != steps[i].only)
			continue;
		to = vec_push(a, &ret->steps);
		if (!to)
			return false;
		*to = steps[i].step;
	}
	return true;
}

static bool hold_caps(struct arena *a, const struct ground *g, struct engine_able *ret)
{
	const struct cap_set *s = g->set;

	ret->caps = arena_array(a, struct hold, s->caps.n + 1);
	ret->nots = arena_array(a, struct hold, s->nots.n + 1);
	if (!ret->caps || !ret->nots)
		return false;
	for (size_t i = 0; i < s->caps.n; i++)
		ret->caps[i] = s->caps.v[i].cap.kind == CAP_DENIAL
				       ? able_hold_denial(g, &s->caps.v[i].cap)
				       : able_hold_cap(g, &s->caps.v[i].cap);
	for (size_t i = 0; i < s->nots.n; i++)
		ret->nots[i] = s->nots.v[i].cap.kind == CAP_DENIAL
				       ? able_hold_denial(g, &s->nots.v[i].cap)
				       : able_hold_cap(g, &s->nots.v[i].cap);
	return true;
}

int able_host(const struct engine *e, struct arena *a, const struct engine_ask *ask,
	      struct engine_able *ret, struct writ_err *err)
{
	struct ground g;

	(void)e;
	able_ground_init(&g, ask, &ret->tier_why);
	ret->isolation = ISOLATION_PROCESS;
	ret->tier = g.tier;
	for (unsigned i = 0; i < G_COUNT; i++)
		ret->guarantees[i] = able_hold_guarantee(&g, (enum guarantee)i);
	for (unsigned i = 0; i < LIMIT_COUNT; i++) {
		ret->limits[i] = able_hold_limit(&g, (enum cap_limit)i);
		if (able_by_scope(&g, (enum cap_limit)i))
			ret->scoped |= 1u << i;
	}
	ret->workspace = able_hold_workspace(&g);
	ret->net_level = able_hold_net_level(&g);
	if (!hold_caps(a, &g, ret) || !add_gaps(a, &g, ret) || !add_steps(a, &g, ret))
		return writ_nomem(err);
	return 0;
}
