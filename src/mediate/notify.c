#include "mediate/mediate_priv.h"

#include <errno.h>
#include <linux/audit.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/banned.h"

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "mediate/ does not know this architecture's system calls"
#endif

/* Kernels before 6.6 do not have it and are only slower. */
void notify_wake_here(int listener)
{
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

/* SECURITY: another architecture numbers its calls differently. */
bool notify_is_ours(const struct seccomp_notif *req)
{
	return req->data.arch == OUR_ARCH;
}

int notify_recv(struct mediator *m, int listener)
{
	memset(&m->req, 0, sizeof(m->req));
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &m->req) < 0 ? -errno : 0;
}

/* SECURITY: true only while the target still waits, so its number is still its own. */
bool notify_valid(int listener, uint64_t id)
{
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* A target that is gone needs no answer, so failure is fine. */
void notify_answer(int listener, uint64_t id, int64_t value, int error, bool go_on)
{
	struct seccomp_notif_resp resp = { .id = id, .val = value, .error = -error };

	if (go_on)
		resp = (struct seccomp_notif_resp){ .id = id,
						    .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

/*
 * Not with ADDFD_FLAG_SEND: who is interrupted in that, as when the machine goes to sleep,
 * leaves the call answered with descriptor 0.
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
 * A target that is woken to take a descriptor is put on any processor that sleeps, and so
 * are we when it has: in a virtual machine that takes longer than everything else. So both
 * are held on this one meanwhile. The target runs nothing of its own before it is let go.
 * We stay if it asks again and again, as who unpacks files does, until somebody else asks.
 * That holding may fail changes nothing but the time it takes.
 */
static bool hold(pid_t tid, const cpu_set_t *here, cpu_set_t *ret_was)
{
	cpu_set_t both;

	if (sched_getaffinity(tid, sizeof(*ret_was), ret_was) < 0 || CPU_COUNT(ret_was) == 1)
		return false;
	CPU_AND(&both, here, ret_was);
	return CPU_COUNT(&both) == 1 && sched_setaffinity(tid, sizeof(*here), here) == 0;
}

/* Unless somebody chose another place for it meanwhile. */
static void let_go(pid_t tid, const cpu_set_t *here, const cpu_set_t *was)
{
	cpu_set_t is;

	if (sched_getaffinity(tid, sizeof(is), &is) == 0 && CPU_EQUAL(&is, here))
		(void)sched_setaffinity(tid, sizeof(*was), was);
}

int notify_addfd_near(struct call *c)
{
	const int cpu = sched_getcpu();
	cpu_set_t here, its;
	bool held;
	int n;

	CPU_ZERO(&here);
	if (cpu >= 0 && cpu < CPU_SETSIZE)
		CPU_SET((size_t)cpu, &here);
	c->m->streak = c->tid == c->m->last ? c->m->streak + 1 : 0;
	c->m->last = c->tid;
	if (!c->m->near)
		c->m->near = hold(0, &here, &c->m->anywhere);
	held = hold(c->tid, &here, &its);
	n = notify_addfd(c->listener, c->id, c->fd, c->fd_flags);
	if (held)
		let_go(c->tid, &here, &its);
	if (c->m->streak < STREAK)
		notify_roam(c->m);
	return n;
}

void notify_roam(struct mediator *m)
{
	if (m->near)
		(void)sched_setaffinity(0, sizeof(m->anywhere), &m->anywhere);
	m->near = false;
}
