#include "facts/probe_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"

/* Constants that older headers do not define. */
enum {
	FLAG_WAIT_KILLABLE = 1 << 5,
	FD_SYNC_WAKE_UP = 1,
	ADDFD_SEND = 2,
};

#define IOCTL_SET_FLAGS _IOW('!', 4, uint64_t)

/* Results of the notify trial, one bit each. */
enum {
	HAS_NOTIFY = 1 << 0,
	HAS_ADDFD = 1 << 1,
	HAS_ADDFD_SEND = 1 << 2,
	HAS_WAIT_KILLABLE = 1 << 3,
	HAS_SYNC_WAKE = 1 << 4,
};

/*
 * A system call that no other code of the trial makes. The filter applies @action to this call
 * only.
 */
#define TRAPPED SYS_sched_get_priority_max

static long install(unsigned flags, uint32_t action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TRAPPED, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = { ARRAY_LEN(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

int try_filter(const struct probe *p, int arg, struct report *r)
{
	(void)p, (void)arg, (void)r;
	if (install(0, SECCOMP_RET_ERRNO | EXDEV) < 0)
		return errno;
	return syscall(TRAPPED, 0) < 0 && errno == EXDEV ? 0 : EPERM;
}

/* Target process: makes two trapped calls, each of which should return an open descriptor. */
static int target(void)
{
	int got = 0;

	for (int i = 0; i < 2; i++) {
		const long fd = syscall(TRAPPED, 0);

		if (fd > 2 && fcntl((int)fd, F_GETFD) >= 0)
			got |= 1 << i;
	}
	return got;
}

static bool receive(int listener, struct seccomp_notif *ret_n)
{
	struct pollfd pfd = { .fd = listener, .events = POLLIN };

	*ret_n = (struct seccomp_notif){ 0 };
	/* Poll first: on kernels before 6.3 RECV blocks forever once the target is dead. */
	return poll(&pfd, 1, PROBE_CHILD_MS / 2) == 1 && pfd.revents & POLLIN &&
	       ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, ret_n) == 0;
}

static bool answer(int listener, uint64_t id, long val)
{
	struct seccomp_notif_resp resp = { .id = id, .val = val > 0 ? val : 0,
					   .error = val > 0 ? 0 : -EIO };

	return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp) == 0;
}

/*
 * Answers both calls of the target process: the first with ADDFD and SEND, the second with
 * ADDFD_FLAG_SEND, or with an error if the kernel lacks that flag.
 */
static bool serve(int listener)
{
	struct seccomp_notif n;
	struct seccomp_notif_addfd add = { .srcfd = (uint32_t)listener };
	int fd;

	if (!receive(listener, &n))
		return false;
	add.id = n.id;
	fd = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	if (!answer(listener, n.id, fd))
		return false;
	if (!receive(listener, &n))
		return false;
	add.id = n.id;
	add.flags = ADDFD_SEND;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) >= 0)
		return true;
	return answer(listener, n.id, -1);
}

int try_notify(const struct probe *p, int arg, struct report *r)
{
	const uint64_t sync = FD_SYNC_WAKE_UP;
	long listener;
	int got;
	pid_t pid;

	(void)p, (void)arg;
	listener = install(SECCOMP_FILTER_FLAG_NEW_LISTENER | FLAG_WAIT_KILLABLE,
			   SECCOMP_RET_USER_NOTIF);
	if (listener >= 0)
		r->v[0] |= HAS_WAIT_KILLABLE;
	else if (errno == EINVAL)
		listener = install(SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_RET_USER_NOTIF);
	if (listener < 0)
		return errno;
	if (ioctl((int)listener, IOCTL_SET_FLAGS, sync) == 0)
		r->v[0] |= HAS_SYNC_WAKE;
	pid = facts_grandchild_fork();
	if (pid == 0)
		_exit(target());
	if (pid < 0)
		return errno;
	if (serve((int)listener))
		r->v[0] |= HAS_NOTIFY;
	/*
	 * Closing the listener makes pending calls of the target process fail, so the target exits
	 * in any case.
	 */
	(void)close((int)listener);
	got = facts_grandchild_wait(pid);
	if (got > 0 && got & 1)
		r->v[0] |= HAS_ADDFD;
	if (got > 0 && got & 2)
		r->v[0] |= HAS_ADDFD_SEND;
	return r->v[0] & HAS_NOTIFY ? 0 : EPERM;
}

/* Tries pidfd_getfd(), with which the supervisor takes the listener from its child. */
int try_getfd(const struct probe *p, int arg, struct report *r)
{
	int hold[2], e = 0;
	long pidfd, got;
	char c;
	pid_t pid;

	(void)p, (void)arg, (void)r;
	if (pipe2(hold, O_CLOEXEC) < 0)
		return errno;
	pid = facts_grandchild_fork();
	if (pid < 0)
		return errno;
	if (pid == 0) {
		(void)close(hold[1]);
		_exit((int)read(hold[0], &c, 1)); /* wait until the parent is done */
	}
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	got = pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, (int)pidfd, hold[0], 0);
	if (got < 0)
		e = errno;
	(void)close(hold[1]);
	(void)facts_grandchild_wait(pid);
	return e;
}

void facts_take_notify(const struct report *r, struct host_facts *f)
{
	f->seccomp_listener_exists = r->sys == EBUSY;
	if (r->sys != 0)
		return;
	f->seccomp_notify = true;
	f->seccomp_addfd = r->v[0] & HAS_ADDFD;
	f->seccomp_addfd_send = r->v[0] & HAS_ADDFD_SEND;
	f->seccomp_wait_killable = r->v[0] & HAS_WAIT_KILLABLE;
	f->seccomp_sync_wake = r->v[0] & HAS_SYNC_WAKE;
}
