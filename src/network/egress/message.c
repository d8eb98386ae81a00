#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress/egress.h"

#include "base/banned.h"

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(EGRESS_FDS * sizeof(int))];
};

int egress_send(int socket, const struct egress_message *m, const int *fds, size_t n)
{
	const size_t size = offsetof(struct egress_message, text) + m->text_n;
	struct iovec iov = { (void *)(uintptr_t)m, size };
	union control control = { .head = { .cmsg_len = CMSG_LEN(n * sizeof(int)),
					    .cmsg_level = SOL_SOCKET,
					    .cmsg_type = SCM_RIGHTS } };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t r;

	if (n > EGRESS_FDS || m->text_n > EGRESS_TEXT)
		return -1;
	if (n) {
		memcpy(CMSG_DATA(&control.head), fds, n * sizeof(int));
		h.msg_control = &control;
		h.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	do {
		r = sendmsg(socket, &h, MSG_NOSIGNAL);
	} while (r < 0 && errno == EINTR);
	return r == (ssize_t)size ? 1 : -1;
}

ssize_t egress_receive_packet(int socket, void *ret_bytes, size_t room, int *ret_fds, size_t most,
			      size_t *ret_n)
{
	struct iovec iov = { ret_bytes, room };
	union control control;
	/*
	 * SECURITY: use CMSG_LEN, not CMSG_SPACE. The padding that CMSG_SPACE adds may hold one
	 * more descriptor than @ret_fds has room for.
	 */
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = CMSG_LEN(most * sizeof(int)) };
	ssize_t r;

	*ret_n = 0;
	do {
		r = recvmsg(socket, &h, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return errno == EAGAIN ? -1 : 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		*ret_n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(ret_fds, CMSG_DATA(c), *ret_n * sizeof(int));
	}
	return r;
}

int egress_receive(int socket, struct egress_message *ret, int fds[EGRESS_FDS], size_t *ret_n)
{
	const ssize_t r =
		egress_receive_packet(socket, ret, sizeof(*ret), fds, EGRESS_FDS, ret_n);

	if (r < 0)
		return -1;
	if ((size_t)r >= offsetof(struct egress_message, text) && ret->text_n <= EGRESS_TEXT &&
	    (size_t)r == offsetof(struct egress_message, text) + ret->text_n)
		return 1;
	for (size_t i = 0; i < *ret_n; i++)
		close(fds[i]);
	*ret_n = 0;
	return 0;
}

bool egress_rule_apply(const struct egress_message *m, struct arena *a, struct cap_set *set)
{
	struct cap_entry entry = { .rule = RULE_NONE }, *to;
	struct writ_err err;

	if (cap_parse(a, CAP_GRANT, (struct sv){ m->text, m->text_n }, &entry.cap, &err) < 0)
		return false;
	if (m->type == EGRESS_GRANT) {
		to = vec_push(a, &set->caps);
		if (to)
			*to = entry;
		return true;
	}
	for (size_t i = 0; i < set->caps.n; i++)
		if (set->caps.v[i].rule == RULE_NONE &&
		    sv_eq(set->caps.v[i].cap.text, entry.cap.text))
			set->caps.v[i].cap = (struct cap){ 0 };
	return true;
}
