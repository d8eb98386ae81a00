/*
 * notify_priv.h - the kernel's interface for trapped calls: receive, validate, answer
 *
 * A notification carries an id. The id stays valid while its caller waits in the trapped call.
 * After the caller died or was interrupted, notify_valid() returns false. The kernel may reuse the
 * thread id of a caller that died.
 */
#ifndef WRIT_MEDIATE_NOTIFY_PRIV_H
#define WRIT_MEDIATE_NOTIFY_PRIV_H

#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct call;
struct mediator;

/* Constants of the kernel that the oldest supported headers do not define. */
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

/* State of notify_addfd_pinned(). */
struct cpu_pin {
	pid_t last;	  /* thread id of the caller that received the last descriptor */
	unsigned streak;  /* number of descriptors in a row for this caller, after its first */
	bool on;	  /* the mediator is pinned to one processor now */
	cpu_set_t before; /* affinity of the mediator before pinning */
};

/*
 * Asks the kernel to wake the mediator on its caller's processor, and the caller on the mediator's.
 */
void notify_sync_wakeup(int listener);
bool notify_arch_ok(const struct seccomp_notif *req);
int notify_recv(struct mediator *m, int listener); /* fills mediator.req; 0 or -errno */
bool notify_valid(int listener, uint64_t id);
/*
 * Answers the call: with CONTINUE if @go_on, with @error (positive) if it is not 0, or with @value.
 */
void notify_answer(int listener, uint64_t id, int64_t value, int error, bool go_on);
/* Installs @fd in the caller; returns the number of the descriptor in the caller, or -errno. */
int notify_addfd(int listener, uint64_t id, int fd, unsigned newfd_flags);
/*
 * Installs call.fd while caller and mediator run on the same processor, which is faster. The
 * mediator may stay pinned until notify_unpin().
 */
int notify_addfd_pinned(struct call *c);
void notify_unpin(struct mediator *m);

#endif
