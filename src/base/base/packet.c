#include "base/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/banned.h"

/* Buffer for the control message that carries descriptors. */
union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(PACKET_SENT_FDS * sizeof(int))];
};

/*
 * Sends @msg once more, with the hard limit of open files as the soft one. The kernel refuses to
 * send descriptors (ETOOMANYREFS) while more are in flight between processes of this user than the
 * sender's soft limit says. A session can put descriptors in flight up to its own limit, which is
 * below the hard limit of this process. Restores the soft limit, because programs that this process
 * starts inherit it.
 */
static ssize_t send_above(int socket, const struct msghdr *msg, int flags)
{
	struct rlimit was, most;
	ssize_t n;
	int e;

	if (getrlimit(RLIMIT_NOFILE, &was) < 0 || was.rlim_cur == was.rlim_max) {
		errno = ETOOMANYREFS;
		return -1;
	}
	most = (struct rlimit){ was.rlim_max, was.rlim_max };
	(void)setrlimit(RLIMIT_NOFILE, &most);
	n = sendmsg(socket, msg, flags);
	e = errno;
	(void)setrlimit(RLIMIT_NOFILE, &was);
	errno = e;
	return n;
}

static int send_message(int socket, struct iovec *parts, size_t parts_n, const int *fds,
			size_t fds_n, int flags, size_t *ret_n, struct writ_err *err)
{
	union control control = { 0 };
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = parts_n };
	ssize_t n;

	if (fds_n > PACKET_SENT_FDS)
		return writ_fail(err, WRIT_E_BUG, 0, "too many descriptors in a message");
	if (fds_n) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(fds_n * sizeof(int));
		control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(fds_n * sizeof(int)),
						 .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.head), fds, fds_n * sizeof(int));
	}
	do {
		n = sendmsg(socket, &msg, flags | MSG_NOSIGNAL);
		if (n < 0 && errno == ETOOMANYREFS)
			n = send_above(socket, &msg, flags | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "send a message");
	*ret_n = (size_t)n;
	return 0;
}

int packet_send_parts(int socket, struct iovec *parts, size_t parts_n, const int *fds, size_t fds_n,
		      struct writ_err *err)
{
	size_t sent;

	return send_message(socket, parts, parts_n, fds, fds_n, 0, &sent, err);
}

int packet_send_some(int socket, struct sv bytes, const int *fds, size_t fds_n, size_t *ret_n,
		     struct writ_err *err)
{
	struct iovec iov = { (void *)(uintptr_t)bytes.p, bytes.n };

	return send_message(socket, &iov, 1, fds, fds_n, MSG_DONTWAIT, ret_n, err);
}

int packet_send(int socket, struct sv text, const int *fds, size_t fds_n, struct writ_err *err)
{
	struct iovec iov = { (void *)(uintptr_t)text.p, text.n };

	if (fds_n > PACKET_FDS)
		return writ_fail(err, WRIT_E_BUG, 0, "more descriptors than are taken");
	return packet_send_parts(socket, &iov, 1, fds, fds_n, err);
}

int packet_receive(int socket, void *ret_bytes, size_t room, size_t *ret_n,
		   int ret_fds[static PACKET_FDS], size_t *ret_fds_n, struct writ_err *err)
{
	struct iovec iov = { ret_bytes, room };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(PACKET_FDS * sizeof(int))];
	} control;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	const struct cmsghdr *c;
	ssize_t n;
	int resets = 0;

	for (size_t i = 0; i < PACKET_FDS; i++)
		ret_fds[i] = -1;
	/*
	 * Retry once: a peer that exited with unread data in its queue causes one ECONNRESET, but
	 * messages that the peer sent before are still queued.
	 */
	do {
		n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
	if (n < 0 && errno != ECONNRESET)
		return writ_fail(err, WRIT_E_SYS, errno, "receive a message");
	*ret_fds_n = 0;
	*ret_n = n > 0 ? (size_t)n : 0;
	c = n < 0 ? NULL : CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		*ret_fds_n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(ret_fds, CMSG_DATA(c), *ret_fds_n * sizeof(int));
	}
	if (n > 0)
		return 1;
	/* SECURITY: close the descriptors of an empty packet, which looks like end of file. */
	for (size_t i = 0; i < *ret_fds_n; i++) {
		(void)close(ret_fds[i]);
		ret_fds[i] = -1;
	}
	*ret_fds_n = 0;
	return 0;
}
