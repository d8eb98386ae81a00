#include "mediate/mediate_priv.h"

#include <errno.h>
#include <linux/audit.h>
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

/* Not with ADDFD_FLAG_SEND: that one does not wake the target on this processor. */
int notify_addfd(int listener, uint64_t id, int fd, unsigned newfd_flags)
{
	struct seccomp_notif_addfd add = { .id = id,
					   .srcfd = (uint32_t)fd,
					   .newfd_flags = newfd_flags };
	const int n = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);

	return n < 0 ? -errno : n;
}
