#include "plan/plan_priv.h"

#include "base/banned.h"

/* What holds inside the child so far. Bits are only ever added. */
enum {
	HAS_NS = 1u << 0,    /* namespaces exist */
	HAS_IDS = 1u << 1,   /* outer id maps are written */
	HAS_ROOT = 1u << 2,  /* the new root is /, the old one is gone */
	HAS_NET = 1u << 3,   /* loopback, pool route and listeners */
	HAS_INNER = 1u << 4, /* second user namespace, its map written */
	HAS_LIMITS = 1u << 5,
	FDS_CLOSED = 1u << 6,
	CAPS_GONE = 1u << 7,
	NO_NEW_PRIVS = 1u << 8,
	LANDLOCKED = 1u << 9,
	FILTERED = 1u << 10,
	PROBED = 1u << 11,
};

enum when { ALWAYS = 0, IN_A, WITH_LANDLOCK, WITH_COW, WITH_NET };

/* Read top to bottom: this is the order, and there is no other one. */
/* clang-format off */
static const struct {
	enum when when;
	struct plan_step step;
} order[] = {
	{ IN_A,          { "namespaces",   "user, mount, pid, network, ipc, uts and cgroup of its own", 0, HAS_NS } },
	{ IN_A,          { "id-map",       "who it is inside, before anything is mounted", HAS_NS, HAS_IDS } },
	{ WITH_COW,      { "overlay",      "writes land in a layer outside the workspace", HAS_IDS, 0 } },
	{ IN_A,          { "root",         "only what the policy names is mounted; the old root goes", HAS_IDS, HAS_ROOT } },
	{ WITH_NET,      { "network",      "loopback and one listener per allowed name and port", HAS_NS | HAS_IDS, HAS_NET } },
	{ IN_A,          { "inner-userns", "the agent owns none of these namespaces", HAS_ROOT, HAS_INNER } },
	{ ALWAYS,        { "limits",       "after the user namespace, so that they count inside it", 0, HAS_LIMITS } },
	{ ALWAYS,        { "close-fds",    "nothing inherited but what the session gives", 0, FDS_CLOSED } },
	{ ALWAYS,        { "drop-caps",    "every capability set empty, and verified", 0, CAPS_GONE } },
	{ ALWAYS,        { "no-new-privs", "no set-id program can raise it again", CAPS_GONE, NO_NEW_PRIVS } },
	{ WITH_LANDLOCK, { "landlock",     "files once more, by the kernel's own rules", NO_NEW_PRIVS, LANDLOCKED } },
	{ ALWAYS,        { "seccomp",      "last, because almost nothing works behind it", NO_NEW_PRIVS | FDS_CLOSED, FILTERED } },
	{ ALWAYS,        { "probes",       "try to break each boundary before the agent runs", FILTERED, PROBED } },
	{ ALWAYS,        { "exec",         "by file descriptor", PROBED | FILTERED | HAS_LIMITS, 0 } },
};
/* clang-format on */

static bool applies(const struct ground *g, enum when when)
{
	switch (when) {
	case ALWAYS:
		return true;
	case IN_A:
		return g->tier == TIER_A;
	case WITH_LANDLOCK:
		return g->landlock_fs;
	case WITH_COW:
		return g->cow && g->tier == TIER_A;
	case WITH_NET:
		return g->own_net;
	}
	return false;
}

bool plan_add_steps(struct arena *a, const struct ground *g, struct plan *p)
{
	uint32_t have = 0;

	if (g->tier == TIER_NONE)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		struct plan_step *s;

		if (!applies(g, order[i].when))
			continue;
		if ((have & order[i].step.needs) != order[i].step.needs)
			return false;
		s = vec_push(a, &p->steps);
		if (!s)
			return false;
		*s = order[i].step;
		have |= s->gives;
	}
	return true;
}
