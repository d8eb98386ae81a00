#include "mediate/mediate_priv.h"

#include <errno.h>
#include <linux/audit.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/banned.h"

/* Number of descriptors in a row for one caller after which the mediator stays pinned. */
enum { STREAK = 16 };

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "mediate/ does not know this architecture's system calls"
#endif

/* Kernels before 6.6 lack this flag; on such kernels the mediator is only slower. */
void notify_sync_wakeup(int listener)
{
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

/* SECURITY: another architecture gives its calls other numbers, which op.c does not know. */
bool notify_arch_ok(const struct seccomp_notif *req)
{
	return req->data.arch == OUR_ARCH;
}

int notify_recv(struct mediator *m, int listener)
{
	memset(&m->req, 0, sizeof(m->req));
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &m->req) < 0 ? -errno : 0;
}

/*
 * True only while the caller still waits in the trapped call. SECURITY: while the caller waits, the
 * kernel cannot reuse its thread id.
 */
bool notify_valid(int listener, uint64_t id)
{
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* Ignores errors: a caller that died or was interrupted needs no answer. */
void notify_answer(int listener, uint64_t id, int64_t value, int error, bool go_on)
{
	struct seccomp_notif_resp resp = { .id = id, .val = value, .error = -error };

	if (go_on)
		resp = (struct seccomp_notif_resp){ .id = id,
						    .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

/*
 * Does not use ADDFD_FLAG_SEND, which installs the descriptor and answers the call in one step. If
 * the caller is interrupted during that step (a suspend does that), the kernel answers the call
 * with descriptor 0.
 */
int notify_addfd(int listener, uint64_t id, int fd, unsigned newfd_flags)
{
	struct seccomp_notif_addfd add = { .id = id,
					   .srcfd = (uint32_t)fd,
					   .newfd_flags = newfd_flags };
	const int n = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);

	return n < 0 ? -errno : n;
}

/*
 * Pins the thread @tid (0: the mediator) to the processor in @here. Returns false if the thread may
 * run on one processor only, or not on this one. A caller must wake up to receive a descriptor, and
 * the scheduler would choose an idle processor for the caller, and again one for the mediator when
 * the caller has finished. In a virtual machine, waking a processor takes longer than all other
 * work. So the mediator pins the caller and itself to the current processor for that moment. The
 * caller runs no user code before it is unpinned. A caller that opens file after file, for example
 * to unpack an archive, keeps the mediator pinned until another caller appears. Errors are ignored:
 * they only cost time.
 */
static bool pin_to(pid_t tid, const cpu_set_t *here, cpu_set_t *ret_was)
{
	cpu_set_t both;

	if (sched_getaffinity(tid, sizeof(*ret_was), ret_was) < 0 || CPU_COUNT(ret_was) == 1)
		return false;
	CPU_AND(&both, here, ret_was);
	return CPU_COUNT(&both) == 1 && sched_setaffinity(tid, sizeof(*here), here) == 0;
}

/* Restores the affinity of the thread @tid, unless another program has changed it meanwhile. */
static void unpin_from(pid_t tid, const cpu_set_t *here, const cpu_set_t *was)
{
	cpu_set_t is;

	if (sched_getaffinity(tid, sizeof(is), &is) == 0 && CPU_EQUAL(&is, here))
		(void)sched_setaffinity(tid, sizeof(*was), was);
}

int notify_addfd_pinned(struct call *c)
{
	const int cpu = sched_getcpu();
	cpu_set_t here, its;
	bool pinned;
	int n;

	CPU_ZERO(&here);
	if (cpu >= 0 && cpu < CPU_SETSIZE)
		CPU_SET((size_t)cpu, &here);
	c->m->pin.streak = c->tid == c->m->pin.last ? c->m->pin.streak + 1 : 0;
	c->m->pin.last = c->tid;
	if (!c->m->pin.on)
		c->m->pin.on = pin_to(0, &here, &c->m->pin.before);
	pinned = pin_to(c->tid, &here, &its);
	n = notify_addfd(c->listener, c->id, c->fd, c->fd_flags);
	if (pinned)
		unpin_from(c->tid, &here, &its);
	if (c->m->pin.streak < STREAK)
		notify_unpin(c->m);
	return n;
}

void notify_unpin(struct mediator *m)
{
	if (m->pin.on)
		(void)sched_setaffinity(0, sizeof(m->pin.before), &m->pin.before);
	m->pin.on = false;
}
