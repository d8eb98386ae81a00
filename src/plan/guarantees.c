#include "plan/plan_priv.h"

#include "base/banned.h"

#define HOLD(l, b) ((struct hold){ LEVEL_##l, (b), "none", NULL })

static struct hold files(const struct ground *g, bool write)
{
	if (g->tier == TIER_A)
		return g->landlock_fs ? HOLD(EXACT, "own mounts + Landlock")
				      : HOLD(EXACT, "own mounts");
	if (!write)
		return HOLD(EXACT, "Landlock");
	if (g->mediate)
		return HOLD(EXACT, "Landlock, attribute changes mediated");
	return HOLD(PARTIAL, "Landlock does not see chmod, chown, times and attributes");
}

static struct hold ipc(const struct ground *g)
{
	if (g->own_ipc && g->mediate)
		return HOLD(EXACT, "own IPC and network namespaces, connects mediated");
	if (g->own_ipc)
		return HOLD(PARTIAL, "UNIX sockets below what is granted can be reached");
	if (g->f->landlock_abi >= 6 && g->mediate)
		return HOLD(EXACT, "seccomp, Landlock scopes, connects mediated");
	return HOLD(PARTIAL, "UNIX sockets of the host can be reached");
}

static struct hold signals(const struct ground *g)
{
	if (g->tier == TIER_A)
		return HOLD(EXACT, "own pid namespace");
	if (g->f->landlock_abi >= 6)
		return HOLD(EXACT, "Landlock scope");
	return HOLD(NONE, "signals reach your other processes");
}

static struct hold processes(const struct ground *g)
{
	if (g->own_proc)
		return HOLD(EXACT, "own /proc");
	if (g->tier == TIER_A)
		return HOLD(PARTIAL, "no fresh /proc mounts here, so the outer one shows through");
	return HOLD(PARTIAL, "the host's /proc lists all processes");
}

static struct hold network(const struct ground *g)
{
	if (g->own_net)
		return HOLD(EXACT, "own network namespace");
	if (g->tier == TIER_A)
		return HOLD(STRICTER, "own network namespace, no way out of it");
	if (g->mediate)
		return HOLD(EXACT, "sockets filtered, connects mediated");
	return HOLD(PARTIAL, "only TCP ports can be limited here");
}

struct hold host_guarantee(const struct ground *g, enum guarantee guarantee)
{
	if (g->tier == TIER_NONE)
		return HOLD(NONE, "nothing here can hold a process");
	switch (guarantee) {
	case G_FS_READ:
		return files(g, false);
	case G_FS_WRITE:
		return files(g, true);
	case G_FS_METADATA:
		return g->tier == TIER_A
			       ? HOLD(EXACT, "own mounts")
			       : HOLD(PARTIAL, "names and sizes of other files can be seen");
	case G_NET:
	case G_DNS:
		return network(g);
	case G_IPC:
		return ipc(g);
	case G_PROC_SEE:
		return processes(g);
	case G_PROC_SIGNAL:
		return signals(g);
	case G_EXEC:
		return HOLD(EXACT, "what is readable may run");
	case G_SYSCALL:
		return HOLD(EXACT, "seccomp allow-list");
	case G_RES_TIME:
		return HOLD(EXACT, "clock of the supervisor");
	case G_RES_OUTPUT:
		return HOLD(EXACT, "counted by the supervisor");
	case G_RES_MEMORY:
	case G_RES_CPU:
	case G_RES_PIDS:
	case G_RES_DISK:
		return HOLD(NONE, "no limit asked for");
	case G_CRED:
		return HOLD(EXACT, "none inside; environment built from nothing");
	case G_AUDIT:
		return HOLD(EXACT, "recorded outside the sandbox");
	case G_COUNT:
		break;
	}
	return HOLD(NONE, "unknown guarantee");
}

static bool gap(struct arena *a, struct plan *p, const char *what, const char *why, const char *fix)
{
	struct plan_gap *g = vec_push(a, &p->gaps);

	if (!g)
		return false;
	*g = (struct plan_gap){ what, why, fix };
	return true;
}

bool plan_add_gaps(struct arena *a, const struct ground *g, struct plan *p)
{
	const struct host_facts *f = g->f;
	/* clang-format off */
	const struct {
		bool here;
		const char *what, *why, *fix;
	} gaps[] = {
		{ g->tier == TIER_NONE, "boundary", p->tier_why, NULL },
		{ g->tier == TIER_B && g->opt->tier != TIER_B && f->apparmor_userns && !f->root,
		  "tier A", "AppArmor keeps user namespaces from us",
		  "install the package, which brings a profile for writ" },
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
		{ g->opt->overlay_advisory && g->cow, "copy-on-write",
		  "overlayfs has an open advisory on this kernel, so files are copied instead", NULL },
		{ g->nested_userns, "Landlock", "kernel nested-userns switches file rules of Landlock off", NULL },
		{ g->io_uring, "mediation", "kernel io_uring leaves nothing to mediate", NULL },
		{ f->where == WHERE_WSL2, "WSL", "Windows programs are hidden from the agent", NULL },
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_LEN(gaps); i++)
		if (gaps[i].here && !gap(a, p, gaps[i].what, gaps[i].why, gaps[i].fix))
			return false;
	return true;
}
