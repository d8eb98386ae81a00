/*
 * guarantee.h - guarantees a user can rely on, and the levels at which they hold
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   lang/ (require, accept), plan/ (levels on this machine)
 */
#ifndef WRIT_CAP_GUARANTEE_H
#define WRIT_CAP_GUARANTEE_H

#include "base/sv.h"

enum guarantee {
	G_FS_READ = 0,
	G_FS_WRITE,
	G_FS_METADATA,
	G_NET,
	G_DNS,
	G_IPC,
	G_PROC_SEE,
	G_PROC_SIGNAL,
	G_EXEC,
	G_SYSCALL,
	G_RES_MEMORY,
	G_RES_CPU,
	G_RES_PIDS,
	G_RES_DISK,
	G_RES_TIME,
	G_RES_OUTPUT,
	G_CRED,
	G_AUDIT,
	/* number of values; keep last */
	G_COUNT
};

/*
 * Levels at which a guarantee holds, from weakest to strongest for the user who relies on the
 * guarantee. Exact and stricter both enforce the rule; stricter also refuses requests that the rule
 * would have allowed.
 */
enum level {
	LEVEL_NONE = 0,
	LEVEL_PARTIAL,
	LEVEL_STRICTER,
	LEVEL_EXACT,
	/* number of values; keep last */
	LEVEL_COUNT
};

const char *guarantee_name(enum guarantee g); /* name of the guarantee, such as "fs.read" */
const char *level_name(enum level l);	      /* name of the level, such as "exact" */
must_check bool guarantee_parse(struct sv s, enum guarantee *ret_g);
must_check bool level_parse(struct sv s, enum level *ret_l);

#endif
