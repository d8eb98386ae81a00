#include "cap/guarantee.h"

#include "base/banned.h"

static const char *const guarantees[G_COUNT] = {
	[G_FS_READ] = "fs.read",
	[G_FS_WRITE] = "fs.write",
	[G_FS_METADATA] = "fs.metadata",
	[G_NET] = "net",
	[G_DNS] = "dns",
	[G_IPC] = "ipc",
	[G_PROC_SEE] = "proc.see",
	[G_PROC_SIGNAL] = "proc.signal",
	[G_EXEC] = "exec",
	[G_SYSCALL] = "syscall",
	[G_RES_MEMORY] = "res.memory",
	[G_RES_CPU] = "res.cpu",
	[G_RES_PIDS] = "res.pids",
	[G_RES_DISK] = "res.disk",
	[G_RES_TIME] = "res.time",
	[G_RES_OUTPUT] = "res.output",
	[G_CRED] = "cred",
	[G_AUDIT] = "audit",
};

static const char *const levels[LEVEL_COUNT] = {
	[LEVEL_NONE] = "none",
	[LEVEL_PARTIAL] = "partial",
	[LEVEL_STRICTER] = "stricter",
	[LEVEL_EXACT] = "exact",
};

const char *guarantee_name(enum guarantee g)
{
	return g < G_COUNT ? guarantees[g] : "unknown";
}

const char *level_name(enum level l)
{
	return l < LEVEL_COUNT ? levels[l] : "unknown";
}

bool guarantee_parse(struct sv s, enum guarantee *ret_g)
{
	for (enum guarantee g = 0; g < G_COUNT; g++) {
		if (sv_is(s, guarantees[g])) {
			*ret_g = g;
			return true;
		}
	}
	return false;
}

bool level_parse(struct sv s, enum level *ret_l)
{
	for (enum level l = 0; l < LEVEL_COUNT; l++) {
		if (sv_is(s, levels[l])) {
			*ret_l = l;
			return true;
		}
	}
	return false;
}
