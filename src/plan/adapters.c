#include "plan/plan_priv.h"

#include <stddef.h>

#include "base/banned.h"

/*
 * What each engine can impose by itself. Rules it cannot express are held by
 * nothing, so they are refused there: no engine widens a policy.
 */
struct engine {
	const char *name;
	size_t version; /* offset of its version string in the facts; 0: always here */
	enum cap_isolation isolation;
	const char *by;
};

/* clang-format off */
static const struct engine engines[] = {
	[ADAPTER_HOST]   = { "host",   0, ISOLATION_PROCESS, "host" },
	[ADAPTER_CRUN]   = { "crun",   offsetof(struct host_facts, crun), ISOLATION_PROCESS, "crun" },
	[ADAPTER_RUNC]   = { "runc",   offsetof(struct host_facts, runc), ISOLATION_PROCESS, "runc" },
	[ADAPTER_RUNSC]  = { "gvisor", offsetof(struct host_facts, runsc), ISOLATION_GVISOR, "gVisor" },
	[ADAPTER_PODMAN] = { "podman", offsetof(struct host_facts, podman), ISOLATION_PROCESS, "podman" },
	[ADAPTER_DOCKER] = { "docker", offsetof(struct host_facts, docker), ISOLATION_PROCESS, "docker" },
	[ADAPTER_QEMU]   = { "qemu",   offsetof(struct host_facts, qemu), ISOLATION_VM, "a QEMU machine" },
	[ADAPTER_FIRECRACKER] = { "firecracker", offsetof(struct host_facts, firecracker), ISOLATION_VM, "a Firecracker machine" },
	[ADAPTER_WASM]   = { "wasm",   offsetof(struct host_facts, wasmtime), ISOLATION_PROCESS, "WASI" },
};
/* clang-format on */
_Static_assert(ARRAY_LEN(engines) == ADAPTER_COUNT, "every adapter has a row");

const char *plan_adapter_name(enum plan_adapter a)
{
	return engines[a].name;
}

bool plan_adapter_parse(struct sv s, enum plan_adapter *ret)
{
	for (unsigned i = 0; i < ADAPTER_COUNT; i++)
		if (sv_is(s, engines[i].name)) {
			*ret = (enum plan_adapter)i;
			return true;
		}
	return false;
}

enum cap_isolation adapter_isolation(enum plan_adapter a)
{
	return engines[a].isolation;
}

static bool is_here(const struct ground *g, const struct engine *e)
{
	return e->version == 0 || *((const char *)g->f + e->version) != 0;
}

struct hold adapter_hold(const struct ground *g, enum guarantee guarantee)
{
	const struct engine *e = &engines[g->opt->adapter];

	if (!is_here(g, e))
		return (struct hold){ LEVEL_NONE, "this engine is not installed here", "none",
				      "install it; writ doctor lists what is here" };
	switch (guarantee) {
	case G_NET:
	case G_DNS:
		return (struct hold){ LEVEL_STRICTER, "no network: this engine knows no names",
				      "none", "--adapter host" };
	case G_EXEC:
		return (struct hold){ LEVEL_EXACT, "what is readable may run", "none", NULL };
	case G_CRED:
	case G_AUDIT:
		return (struct hold){ LEVEL_EXACT, "outside the engine", "none", NULL };
	case G_FS_READ:
	case G_FS_WRITE:
	case G_FS_METADATA:
	case G_IPC:
	case G_PROC_SEE:
	case G_PROC_SIGNAL:
	case G_SYSCALL:
	case G_RES_MEMORY:
	case G_RES_CPU:
	case G_RES_PIDS:
	case G_RES_DISK:
	case G_RES_TIME:
	case G_RES_OUTPUT:
		return (struct hold){ LEVEL_EXACT, e->by, "engine start", NULL };
	case G_COUNT:
		break;
	}
	return (struct hold){ LEVEL_NONE, "unknown guarantee", "none", NULL };
}
