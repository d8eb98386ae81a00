#include "init/init.h"

#include <asm/resource.h>
#include <linux/socket.h>
#include <linux/uio.h>

#include "base/banned.h"

/*
 * Structs and constants of the kernel's socket interface. The headers that define these belong to
 * the C library, which writ-init does not use.
 */
struct msg {
	void *name;
	int name_n;
	struct iovec *iov;
	size_t iov_n;
	void *control;
	size_t control_n;
	unsigned flags;
};
struct control {
	size_t n;
	int level, type;
};
enum { LEVEL_SOCKET = 1, TYPE_RIGHTS = 1, FLAG_NOSIGNAL = 0x4000, FLAG_CLOEXEC = 0x40000000 };
enum { CONTROL_HEAD = 16, RIGHTS_MAX = 8 };
_Static_assert(sizeof(struct control) == CONTROL_HEAD, "control header has no padding");

/*
 * Sends @msg once more, with the hard limit of open files as the soft one: see ETOOMANYREFS in
 * base/packet.c. Commands of the session have a lower hard limit.
 */
static long send_above(int socket, const struct msg *msg)
{
	uint64_t was[2], most[2];
	long r = sys(prlimit64, 0, RLIMIT_NOFILE, 0, was);

	if (r < 0 || was[0] == was[1])
		return -ETOOMANYREFS;
	most[0] = most[1] = was[1];
	(void)sys(prlimit64, 0, RLIMIT_NOFILE, most, 0);
	r = sys(sendmsg, socket, msg, FLAG_NOSIGNAL);
	(void)sys(prlimit64, 0, RLIMIT_NOFILE, was, 0);
	return r;
}

int init_message_send_many(int socket, const struct jail_message *m, const int *fds, uint32_t n)
{
	struct {
		struct control head;
		int fds[JAIL_SOCKETS_MAX];
	} rights = { .head = { CONTROL_HEAD + n * sizeof(int), LEVEL_SOCKET, TYPE_RIGHTS } };
	struct iovec iov = { (void *)(uintptr_t)m, sizeof(*m) };
	struct msg msg = { .iov = &iov,
			   .iov_n = 1,
			   .control = &rights,
			   .control_n = CONTROL_HEAD + ((n * sizeof(int) + 7) & ~(size_t)7) };
	long r;

	if (n > JAIL_SOCKETS_MAX)
		return -E2BIG;
	memcpy(rights.fds, fds, n * sizeof(int));
	r = sys(sendmsg, socket, &msg, FLAG_NOSIGNAL);
	if (r == -ETOOMANYREFS)
		r = send_above(socket, &msg);
	return r == (long)sizeof(*m) ? 0 : r < 0 ? (int)r : -EIO;
}

int init_message_send(int socket, const struct jail_message *m, int fd)
{
	long r;

	if (fd >= 0)
		return init_message_send_many(socket, m, &fd, 1);
	/*
	 * A message without a descriptor is sent by write(), which the trap filter never traps:
	 * commands send messages under that filter too.
	 */
	r = sys(write, socket, m, sizeof(*m));
	return r == (long)sizeof(*m) ? 0 : r < 0 ? (int)r : -EIO;
}

/*
 * Copies the received descriptors from the control data to @ret_fds, closes those beyond @room, and
 * returns the number of descriptors copied.
 */
static uint32_t take_fds(const char *control, size_t n, int *ret_fds, uint32_t room)
{
	uint32_t found = 0;

	while (n >= CONTROL_HEAD) {
		struct control head;
		size_t step;

		memcpy(&head, control, CONTROL_HEAD);
		if (head.n < CONTROL_HEAD || head.n > n)
			break;
		for (size_t at = CONTROL_HEAD;
		     head.level == LEVEL_SOCKET && head.type == TYPE_RIGHTS && at + 4 <= head.n;
		     at += 4) {
			int fd;

			memcpy(&fd, control + at, sizeof(fd));
			if (found < room)
				ret_fds[found++] = fd;
			else
				(void)sys(close, fd);
		}
		step = (head.n + 7) & ~(size_t)7;
		if (step > n)
			break;
		control += step;
		n -= step;
	}
	return found;
}

long init_message_receive(int socket, struct jail_message *ret, char *ret_text, size_t text_room,
			  int *ret_fds, uint32_t room, uint32_t *ret_fds_n)
{
	_Alignas(8) char control[CONTROL_HEAD + RIGHTS_MAX * 4];
	struct iovec iov[2] = { { ret, sizeof(*ret) }, { ret_text, text_room } };
	struct msg msg = { .iov = iov,
			   .iov_n = ret_text ? 2 : 1,
			   .control = control,
			   .control_n = sizeof(control) };
	long r;

	*ret_fds_n = 0;
	do {
		r = sys(recvmsg, socket, &msg, FLAG_CLOEXEC);
	} while (r == -EINTR);
	if (r <= 0)
		return r;
	*ret_fds_n = take_fds(control, msg.control_n, ret_fds, room);
	return r < (long)sizeof(*ret) ? -EBADMSG : r;
}
