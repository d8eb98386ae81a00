#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mediate/order_priv.h"

#include "base/banned.h"

/*
 * Two sessions may write to the same tree, each through its own mediator. An object that one
 * mediator has checked must not change before that mediator acts. For example, no session may
 * create a hook between another mediator's check of a directory and the creation of the name that
 * turns this directory into a git repository. So every call that creates, moves or removes names,
 * or opens or truncates a file for writing, takes a lock that all mediators of the user share.
 */

enum {
	/*
	 * Time limit for the lock: a mediator that hangs in a file system must not stop all others.
	 */
	WAIT_MS = 5000,
	OPEN_CHANGES = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY),
};

int order_open(struct mediator *m, struct writ_err *err)
{
	if (!m->opt.order || m->opt.observe_only)
		return 0;
	m->order = open(m->opt.order, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (m->order < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open %s", m->opt.order);
	if (order_lock(m) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "lock %s", m->opt.order);
	order_unlock(m);
	return 0;
}

/*
 * True for calls that create, move or remove names, and for opens and truncate() that write. An
 * open for reading needs no lock, because it changes neither a name nor a file.
 */
bool order_needed(int nr, const __u64 *arg)
{
	switch (nr) {
	case SYS_openat:
		return arg[2] & OPEN_CHANGES;
#ifdef SYS_open
	case SYS_open:
		return arg[1] & OPEN_CHANGES;
	case SYS_creat:
	case SYS_mkdir:
	case SYS_mknod:
	case SYS_symlink:
	case SYS_unlink:
	case SYS_rmdir:
	case SYS_rename:
	case SYS_link:
#endif
#ifdef SYS_renameat
	case SYS_renameat:
#endif
	case SYS_mkdirat:
	case SYS_mknodat:
	case SYS_symlinkat:
	case SYS_unlinkat:
	case SYS_renameat2:
	case SYS_linkat:
	case SYS_truncate:
	case SYS_bind:
		return true;
	}
	return false;
}

int order_lock(struct mediator *m)
{
	struct timespec pause = { 0, 20 * 1000 };
	long waited = 0;

	if (m->order < 0)
		return 0;
	/* flock() has no timeout: poll the lock with a growing pause. */
	while (flock(m->order, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return -EACCES;
		if (waited / 1000000 > WAIT_MS)
			return -EBUSY;
		(void)nanosleep(&pause, NULL);
		waited += pause.tv_nsec;
		if (pause.tv_nsec < 1000 * 1000)
			pause.tv_nsec *= 2;
	}
	return 0;
}

void order_unlock(struct mediator *m)
{
	if (m->order >= 0)
		(void)flock(m->order, LOCK_UN);
}
