#include "limit/rlimit.h"

#include <sys/resource.h>

#include "base/banned.h"

size_t rlimit_make(const struct host_facts *f, const struct rlimit_ask *a,
		   struct rlimit_row ret_rows[static RLIMIT_ROWS])
{
	size_t n = 0;

	/* A dump would put what the process knew, its secrets too, into a file. */
	ret_rows[n++] = (struct rlimit_row){ RLIMIT_CORE, 0 };
	if (a->files)
		ret_rows[n++] = (struct rlimit_row){ RLIMIT_NOFILE, a->files };
	/* For each process, so their sum is not bounded: the plan calls that partial. */
	if (a->memory && !a->memory_held)
		ret_rows[n++] = (struct rlimit_row){ RLIMIT_DATA, a->memory };
	/*
	 * Counted per user and user namespace, and never for the real uid 0. Outside
	 * of an own namespace it would count the user's other processes too.
	 */
	if (a->pids && !a->pids_held && a->own_userns && f->rlimit_nproc_userns && !f->root)
		ret_rows[n++] = (struct rlimit_row){ RLIMIT_NPROC, a->pids };
	return n;
}
