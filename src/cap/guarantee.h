/*
 * guarantee.h - what a person can rely on, and how well it holds
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   policy/ (require, accept), plan/ (what holds here)
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
	/* keep last */
	G_COUNT
};

/*
 * From weakest to strongest for the person relying on it: exact and stricter
 * both hold; stricter also refuses things the rule would have allowed.
 */
enum level {
	LEVEL_NONE = 0,
	LEVEL_PARTIAL,
	LEVEL_STRICTER,
	LEVEL_EXACT,
	/* keep last */
	LEVEL_COUNT
};

const char *guarantee_name(enum guarantee g); /* "fs.read" */
const char *level_name(enum level l);	      /* "exact" */
must_check bool guarantee_parse(struct sv s, enum guarantee *ret_g);
must_check bool level_parse(struct sv s, enum level *ret_l);

#endif
