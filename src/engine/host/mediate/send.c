#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "mediate/creds_priv.h"
#include "mediate/job_priv.h"
#include "mediate/net_priv.h"
#include "mediate/op_priv.h"

#include "base/banned.h"

/*
 * sendto, sendmsg and sendmmsg. The address of a message is in the caller's memory, and the caller
 * can make the number of its descriptor refer to another socket. So the mediator lets no send with
 * an address through. It copies bytes, address and control data once, duplicates the socket, and
 * sends.
 */

enum {
	BYTES_MAX = 1024 * 1024,
	/* Maximum number of bytes per send on a stream, which may send less than asked. */
	STREAM_MAX = 256 * 1024,
	CONTROL_MAX = 16 * 1024,
	IOV_TAKEN = 1024,
	MESSAGES_MAX = 64,
	/*
	 * Flags that the mediator passes on. SECURITY: MSG_FASTOPEN is not one of them, because it
	 * would connect without a decision.
	 */
	FLAGS_MAY = MSG_DONTWAIT | MSG_EOR | MSG_OOB | MSG_NOSIGNAL | MSG_MORE | MSG_CONFIRM |
		    MSG_DONTROUTE,
};

static int copy_bytes(struct call *c, const struct iovec *iov, size_t n, struct job *j)
{
	size_t max = j->stream ? STREAM_MAX : BYTES_MAX, total = 0;

	for (size_t i = 0; i < n; i++) {
		if (iov[i].iov_len > BYTES_MAX - total && !j->stream)
			return -EMSGSIZE;
		total += iov[i].iov_len > max - total ? max - total : iov[i].iov_len;
	}
	j->bytes = malloc(total + 1);
	if (!j->bytes)
		return -ENOMEM;
	for (size_t i = 0; i < n && j->bytes_n < total; i++) {
		const size_t left = total - j->bytes_n;
		const size_t part = iov[i].iov_len > left ? left : iov[i].iov_len;
		const int r = task_read(c, (uintptr_t)iov[i].iov_base, j->bytes + j->bytes_n, part);

		if (r < 0)
			return r;
		j->bytes_n += part;
	}
	return 0;
}

/*
 * SECURITY: on the host's network, control data of IP can choose the interface, the source address
 * and the route of a message. Such a message could bypass the redirection of its socket to egress.
 */
static bool sets_route(const struct call *c, const struct cmsghdr *m)
{
	return !c->m->opt.own_mounts && m->cmsg_level != SOL_SOCKET;
}

/*
 * Copies control data into the job, with the mediator's duplicates of the caller's descriptors.
 * Leaves credentials out: the kernel would not accept the caller's credentials from the mediator. A
 * receiver that asks for credentials gets the mediator's.
 */
static int copy_control(struct call *c, struct job *j, void *raw, size_t n)
{
	const char *const end = (const char *)raw + n;
	struct msghdr in = { .msg_control = raw, .msg_controllen = n };
	size_t used = 0;

	j->control = calloc(1, n + 1);
	if (!j->control)
		return -ENOMEM;
	for (struct cmsghdr *m = CMSG_FIRSTHDR(&in); m; m = CMSG_NXTHDR(&in, m)) {
		const size_t data = m->cmsg_len - CMSG_LEN(0);

		/*
		 * SECURITY: compare the length of a control message with the number of bytes that
		 * are left. Adding a length that the caller chose could wrap around.
		 */
		if (m->cmsg_len < CMSG_LEN(0) || m->cmsg_len > (size_t)(end - (const char *)m) ||
		    CMSG_ALIGN(m->cmsg_len) > n + 1 - used)
			return -EINVAL;
		if (sets_route(c, m))
			return -EPERM;
		if (m->cmsg_level == SOL_SOCKET && m->cmsg_type == SCM_CREDENTIALS)
			continue;
		if (m->cmsg_level == SOL_SOCKET && m->cmsg_type == SCM_RIGHTS)
			for (size_t i = 0; i < data / sizeof(int); i++) {
				int fd;

				if (j->fds_n == ARRAY_LEN(j->fds))
					return -EINVAL;
				memcpy(&fd, CMSG_DATA(m) + i * sizeof(int), sizeof(fd));
				fd = task_dup_fd(c, fd);
				if (fd < 0)
					return fd;
				j->fds[j->fds_n++] = fd;
				memcpy(CMSG_DATA(m) + i * sizeof(int), &fd, sizeof(fd));
			}
		memcpy(j->control + used, m, m->cmsg_len);
		used += CMSG_ALIGN(m->cmsg_len);
	}
	j->control_n = used > n ? n : used;
	return 0;
}

/*
 * Sends without blocking. If the send would block, starts a job, unless the socket is non-blocking
 * or the call is sendmmsg(). Takes ownership of @j.
 */
static int send_job(struct call *c, struct job *j)
{
	const bool wait = !(j->flags & MSG_DONTWAIT) && !(fcntl(j->sock, F_GETFL) & O_NONBLOCK);
	ssize_t n;
	int r;

	n = mediate_job_send(j, MSG_DONTWAIT);
	r = n < 0 ? -errno : (int)n;
	if (r == -EAGAIN && wait && !j->many)
		return mediate_job_start(c, j);
	mediate_job_free(j);
	return r;
}

struct message {
	uint64_t name;
	uint32_t name_n;
	struct iovec *iov;
	size_t iov_n;
	uint64_t control, control_n;
};

static int fill_job(struct call *c, struct job *j, const struct message *msg)
{
	char *raw;
	int r;

	if (msg->name && msg->name_n) {
		r = mediate_peer_for_send(c, j, msg->name, msg->name_n);
		if (r < 0)
			return r;
	}
	r = copy_bytes(c, msg->iov, msg->iov_n, j);
	if (r < 0 || msg->control_n == 0)
		return r;
	if (msg->control_n > CONTROL_MAX)
		return -ENOBUFS;
	raw = malloc(msg->control_n);
	if (!raw)
		return -ENOMEM;
	r = task_read(c, msg->control, raw, msg->control_n);
	if (r == 0)
		r = copy_control(c, j, raw, msg->control_n);
	free(raw);
	return r;
}

/*
 * Copies one message completely, then sends it. Refuses unknown flags with EOPNOTSUPP, and
 * MSG_ZEROCOPY with ENOBUFS, after which programs send without that flag.
 */
static int send_one(struct call *c, int fd, const struct message *msg, uint64_t flags, bool many)
{
	struct job *j;
	scoped_creds creds = { 0 };
	int type = 0, r;

	if (flags & ~(uint64_t)FLAGS_MAY)
		return flags & MSG_ZEROCOPY ? -ENOBUFS : -EOPNOTSUPP;
	j = mediate_job_new(c, JOB_SEND);
	if (!j)
		return -ENOMEM;
	j->many = many;
	j->flags = (int)flags;
	j->sock = task_dup_fd(c, fd);
	r = j->sock < 0 ? j->sock : 0;
	if (r == 0)
		type = mediate_sock_type(j->sock);
	if (type < 0)
		r = -ENOTSOCK;
	j->stream = type == SOCK_STREAM;
	if (r == 0)
		r = fill_job(c, j, msg);
	if (r == 0)
		r = creds_enter(c, &creds);
	/* SECURITY: all bytes were read from the caller only if the caller is still the same. */
	if (r == 0 && !notify_valid(c->listener, c->id))
		r = ANSWER_GONE;
	if (r < 0 || is_observing(c)) {
		mediate_job_free(j);
		return r;
	}
	return send_job(c, j);
}

int op_sendto(struct call *c)
{
	struct iovec iov = { (void *)(uintptr_t)c->arg[1], c->arg[2] };
	const struct message msg = {
		.name = c->arg[4], .name_n = (uint32_t)c->arg[5], .iov = &iov, .iov_n = 1
	};

	/*
	 * A null address is in a register, which the caller cannot change while it waits: the
	 * kernel sees the same value. Let the call through.
	 */
	if (c->arg[4] == 0)
		return ANSWER_CONTINUE;
	return send_one(c, reg_int(c->arg[0]), &msg, (uint32_t)c->arg[3], false);
}

static int send_header(struct call *c, const struct msghdr *h, uint64_t flags, bool many)
{
	struct message msg = { .name = (uintptr_t)h->msg_name,
			       .name_n = h->msg_namelen,
			       .iov_n = h->msg_iovlen,
			       .control = (uintptr_t)h->msg_control,
			       .control_n = h->msg_control ? h->msg_controllen : 0 };
	int r;

	if (msg.iov_n > IOV_TAKEN)
		return -EMSGSIZE;
	msg.iov = calloc(msg.iov_n + 1, sizeof(*msg.iov));
	if (!msg.iov)
		return -ENOMEM;
	r = task_read(c, (uintptr_t)h->msg_iov, msg.iov, msg.iov_n * sizeof(*msg.iov));
	if (r == 0)
		r = send_one(c, reg_int(c->arg[0]), &msg, flags, many);
	free(msg.iov);
	return r;
}

int op_sendmsg(struct call *c)
{
	struct msghdr h;
	const int r = task_read(c, c->arg[1], &h, sizeof(h));

	return r < 0 ? r : send_header(c, &h, (uint32_t)c->arg[2], false);
}

int op_sendmmsg(struct call *c)
{
	const uint32_t n = (uint32_t)c->arg[2] > MESSAGES_MAX ? MESSAGES_MAX : (uint32_t)c->arg[2];
	int done = 0, r = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t at = c->arg[1] + i * sizeof(struct mmsghdr);
		struct mmsghdr h;
		uint32_t len;

		r = task_read(c, at, &h, sizeof(h));
		/*
		 * A message of sendmmsg() never starts a job: the job could not store the length of
		 * the message in the caller's memory.
		 */
		if (r == 0)
			r = send_header(c, &h.msg_hdr, (uint32_t)c->arg[3], true);
		if (r < 0)
			break;
		len = (uint32_t)r;
		if (!is_observing(c))
			r = task_write(c, at + offsetof(struct mmsghdr, msg_len), &len,
				       sizeof(len));
		if (r < 0)
			break;
		done++;
	}
	return done ? done : r;
}
