#include "facts/probe_priv.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"

/*
 * Constants that older headers do not define. The kernel never changes these numbers, or the first
 * member of struct landlock_ruleset_attr.
 */
enum {
	NR_CREATE_RULESET = 444,
	NR_RESTRICT_SELF = 446,
	ASK_VERSION = 1,
	ASK_ERRATA = 2,
	FS_MAKE_BLOCK = 1 << 11,
	LAYERS_OLD = 64, /* maximum number of stacked domains in Linux 5.13 to 5.18 */
	LAYERS = 16,	 /* maximum number of stacked domains since Linux 5.19 */
};

static long ask(unsigned flag)
{
	return syscall(NR_CREATE_RULESET, NULL, 0, flag);
}

/*
 * Stacks Landlock domains until the kernel refuses. The kernel limits the number of stacked
 * domains, so fewer domains than the limit mean that this process was in a domain before. No system
 * call reports that directly.
 */
int try_landlock(const struct probe *p, int arg, struct report *r)
{
	const uint64_t attr = FS_MAKE_BLOCK;
	const long abi = ask(ASK_VERSION);
	long errata, set;
	uint64_t n = 0;

	(void)p, (void)arg;
	if (abi <= 0)
		return abi < 0 ? errno : ENOSYS;
	errata = ask(ASK_ERRATA);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	set = syscall(NR_CREATE_RULESET, &attr, sizeof(attr), 0);
	if (set < 0)
		return errno;
	while (n < LAYERS_OLD && syscall(NR_RESTRICT_SELF, (int)set, 0) == 0)
		n++;
	if (n < LAYERS_OLD && errno != E2BIG)
		return errno;
	r->v[0] = (uint64_t)abi;
	r->v[1] = errata > 0 ? (uint64_t)errata : 0;
	r->v[2] = n;
	return 0;
}

void facts_take_landlock(const struct report *r, struct host_facts *f)
{
	if (r->sys != 0)
		return;
	if (r->v[2] != LAYERS && r->v[2] != LAYERS_OLD)
		f->sandboxed = true;
	if (r->v[2] == 0)
		return; /* no layer is left for a jail, so Landlock is unusable */
	f->landlock_abi = r->v[0];
	f->landlock_errata = r->v[1];
}
