#include "able/able_priv.h"

#include "base/banned.h"

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

struct hold able_hold_guarantee(const struct ground *g, enum guarantee guarantee)
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
		return cap_set_has(g->set, CAP_PROC_EXEC)
			       ? HOLD(EXACT, "what is readable may run")
			       : HOLD(EXACT, "nothing is run after the first program");
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
