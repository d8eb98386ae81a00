#include "able/able_priv.h"

#include "base/banned.h"

static const char delegate[] =
	"delegate the cgroup: systemctl edit user@.service, add Delegate=memory cpu pids";

static const char *delegate_fix(const struct host_facts *f)
{
	return f->cgroup == CGROUP_V2 && !f->root ? delegate : NULL;
}

/* Does RLIMIT_NPROC hold for a session? The kernel does not count processes of the real uid 0. */
static bool nproc_holds(const struct host_facts *f, enum plan_tier tier)
{
	return tier == TIER_A && f->rlimit_nproc_userns && !f->root;
}

static bool is_written(const struct cap_set *set, enum cap_limit limit)
{
	const uint32_t rule = set->limit_rule[limit];

	return set->limits[limit] && rule < set->rules.n && !set->rules.v[rule].built_in;
}

/*
 * Does a scope of the user's systemd enforce @limit? Creating a scope costs a round trip to
 * systemd, so a limit on the number of processes that no person wrote uses no scope.
 */
bool able_by_scope(const struct ground *g, enum cap_limit limit)
{
	const struct host_facts *f = g->f;

	if (!facts_scope(f))
		return false;
	if (limit == LIMIT_MEMORY)
		return f->scope_memory;
	if (limit == LIMIT_CPU)
		return f->scope_cpu;
	return limit == LIMIT_PIDS && f->scope_pids && !nproc_holds(f, g->tier) &&
	       is_written(g->set, limit);
}

static struct hold hold_memory(const struct ground *g)
{
	const struct host_facts *f = g->f;

	if (f->cgroup_memory)
		return HOLD(EXACT, "cgroup");
	if (able_by_scope(g, LIMIT_MEMORY))
		return HOLD(EXACT, "systemd scope");
	return HOLD_FOR(PARTIAL, "data of each process; their sum is not bounded", "none",
			delegate_fix(f));
}

static struct hold hold_cpu(const struct ground *g)
{
	const struct host_facts *f = g->f;

	if (f->cgroup_cpu)
		return HOLD(EXACT, "cgroup");
	if (able_by_scope(g, LIMIT_CPU))
		return HOLD(EXACT, "systemd scope");
	return HOLD_FOR(NONE, "no cgroup to put it in", "none", delegate_fix(f));
}

static struct hold hold_pids(const struct ground *g)
{
	const struct host_facts *f = g->f;

	if (f->cgroup_pids)
		return HOLD(EXACT, "cgroup");
	if (nproc_holds(f, g->tier))
		return HOLD(EXACT, "process limit of its own user namespace");
	if (able_by_scope(g, LIMIT_PIDS))
		return HOLD(EXACT, "systemd scope");
	if (f->root)
		return HOLD_FOR(NONE, "root's processes are not counted without a cgroup", "none",
				delegate_fix(f));
	if (g->tier == TIER_A)
		return HOLD_FOR(NONE, "the limit would count your other processes too", "none",
				delegate_fix(f));
	return HOLD_FOR(PARTIAL, "process limit of your user; your other processes count too",
			"none", delegate_fix(f));
}

static struct hold hold_disk(const struct ground *g)
{
	if (g->cow && g->tier == TIER_A)
		return HOLD(EXACT, "size of the copy-on-write layer");
	if (g->set->workspace == WORKSPACE_COW && able_lacks(g, FEATURE_COW))
		return HOLD(NONE, able_lacks(g, FEATURE_COW));
	if (g->tier != TIER_A)
		return HOLD(NONE, "no quota without mounts of its own");
	return HOLD_FOR(NONE, "direct workspace: no quota", "none",
			able_cow_fix(g, "--workspace cow", NULL));
}

struct hold able_hold_limit(const struct ground *g, enum cap_limit limit)
{
	if (g->tier == TIER_NONE)
		return HOLD(NONE, "nothing here can hold a process");
	switch (limit) {
	case LIMIT_MEMORY:
		return hold_memory(g);
	case LIMIT_CPU:
		return hold_cpu(g);
	case LIMIT_PIDS:
		return hold_pids(g);
	case LIMIT_DISK:
		return hold_disk(g);
	case LIMIT_FILES:
		return HOLD(EXACT, "open files per process");
	case LIMIT_COMMAND:
	case LIMIT_SESSION:
	case LIMIT_IDLE:
		return HOLD(EXACT, "clock of the supervisor");
	case LIMIT_OUTPUT:
		return HOLD(EXACT, "counted by the supervisor");
	case LIMIT_UP:
	case LIMIT_DOWN:
	case LIMIT_REQUESTS:
		if (able_lacks(g, FEATURE_NET) && (g->tier == TIER_A || g->mediate))
			return HOLD(EXACT, "nothing goes out at all");
		return g->own_net || g->mediate
			       ? HOLD(EXACT, "counted on the way out")
			       : HOLD(NONE, "connections cannot be counted here");
	case LIMIT_COUNT:
		break;
	}
	return HOLD(NONE, "unknown limit");
}
