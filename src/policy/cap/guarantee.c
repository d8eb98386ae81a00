#include "cap/guarantee.h"

#include "base/banned.h"

/* clang-format off */
static const char *const guarantees[G_COUNT] = {
	[G_FS_READ] = "fs.read",       [G_FS_WRITE] = "fs.write",       [G_FS_METADATA] = "fs.metadata",
	[G_NET] = "net",               [G_DNS] = "dns",                 [G_IPC] = "ipc",
	[G_PROC_SEE] = "proc.see",     [G_PROC_SIGNAL] = "proc.signal", [G_EXEC] = "exec",
	[G_SYSCALL] = "syscall",       [G_RES_MEMORY] = "res.memory",   [G_RES_CPU] = "res.cpu",
	[G_RES_PIDS] = "res.pids",     [G_RES_DISK] = "res.disk",       [G_RES_TIME] = "res.time",
	[G_RES_OUTPUT] = "res.output", [G_CRED] = "cred",               [G_AUDIT] = "audit",
};
/* clang-format on */

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
	const size_t i = sv_index(s, guarantees, G_COUNT);

	if (i < G_COUNT)
		*ret_g = (enum guarantee)i;
	return i < G_COUNT;
}

bool level_parse(struct sv s, enum level *ret_l)
{
	const size_t i = sv_index(s, levels, LEVEL_COUNT);

	if (i < LEVEL_COUNT)
		*ret_l = (enum level)i;
	return i < LEVEL_COUNT;
}
