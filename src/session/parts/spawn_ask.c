#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/packet.h"
#include "parts/session.h"
#include "parts/spawn.h"

#include "base/banned.h"

/*
 * The side of `writ spawn` in the jail: asks the supervisor for an agent, and waits for the agent's
 * end. The agent gets no terminal: if a standard descriptor of `writ spawn` is a terminal, the
 * agent gets a pipe, and `writ spawn` relays its bytes.
 */

enum { PIECE = 16 << 10 };

struct between {
	int agent[3]; /* descriptors that are sent for the agent */
	int ours[3];  /* this process's ends of the pipes; -1: there is no pipe */
};

static int open_between(struct between *b, struct writ_err *err)
{
	for (int i = 0; i < 3; i++) {
		int p[2];

		if (!isatty(i))
			continue;
		if (pipe2(p, O_CLOEXEC) < 0)
			return writ_fail(err, WRIT_E_SYS, errno, "pipe");
		b->agent[i] = p[i == 0 ? 0 : 1];
		b->ours[i] = p[i == 0 ? 1 : 0];
	}
	return 0;
}

/*
 * Closes the agent's ends of the pipes after they were sent: this process sees the end of the
 * agent's output only if no copy of the writing end stays open here.
 */
static void hand_over(struct between *b)
{
	for (int i = 0; i < 3; i++)
		if (b->ours[i] >= 0 && b->agent[i] != i) {
			close(b->agent[i]);
			b->agent[i] = i;
		}
}

/* Copies bytes once. False: @from has ended, or @to cannot be written. */
static bool pass(int from, int to)
{
	char bytes[PIECE];
	struct writ_err err = { 0 };
	const ssize_t n = read(from, bytes, sizeof(bytes));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	return n > 0 && fd_write_all(to, (struct sv){ bytes, (size_t)n }, &err) == 0;
}

static void stop_between(struct between *b, int i)
{
	fd_close(&b->ours[i]);
}

/*
 * Relays bytes until the supervisor answers, and then the output that the agent wrote before it
 * ended.
 */
static void stand_between(struct between *b, int fd)
{
	bool answered = false;

	for (;;) {
		/* Read no more typed input until the agent has taken the earlier input. */
		struct pollfd p[5] = { { answered ? -1 : fd, POLLIN, 0 },
				       { answered || b->ours[0] < 0 ? -1 : 0, POLLIN, 0 },
				       { b->ours[1], POLLIN, 0 },
				       { b->ours[2], POLLIN, 0 },
				       { answered ? -1 : b->ours[0], 0, 0 } };

		if (answered && b->ours[1] < 0 && b->ours[2] < 0)
			return;
		if (poll(p, 5, answered ? 200 : -1) <= 0 && (answered || errno != EINTR))
			return;
		if (p[4].revents || (p[1].revents && !pass(0, b->ours[0])))
			stop_between(b, 0);
		for (int i = 1; i < 3; i++)
			if (p[i + 1].revents && !pass(b->ours[i], i))
				stop_between(b, i);
		answered |= p[0].revents != 0;
	}
}

static int ask(int fd, struct sv name, char *const *argv, struct sv cwd, const int stdio[static 3],
	       struct writ_err *err)
{
	scoped_buf b = BUF_INIT(SPAWN_TEXT_MAX);
	int r;

	buf_sv(&b, name);
	buf_ch(&b, 0);
	buf_sv(&b, cwd);
	buf_ch(&b, 0);
	for (; *argv; argv++) {
		buf_str(&b, *argv);
		buf_ch(&b, 0);
	}
	r = buf_check(&b, err);
	return r < 0 ? r : packet_send(fd, buf_view(&b), stdio, 3, err);
}

static int ask_between(int fd, struct sv name, char *const *argv, struct sv cwd,
		       struct writ_err *err)
{
	struct between b = { .agent = { 0, 1, 2 }, .ours = { -1, -1, -1 } };
	int r = open_between(&b, err);

	if (r == 0)
		r = ask(fd, name, argv, cwd, b.agent, err);
	hand_over(&b);
	if (r == 0 && (b.ours[0] >= 0 || b.ours[1] >= 0 || b.ours[2] >= 0))
		stand_between(&b, fd);
	for (int i = 0; i < 3; i++)
		stop_between(&b, i);
	return r;
}

int session_spawn(struct sv name, char *const *argv, struct sv cwd, int *ret_exit,
		  struct writ_err *err)
{
	const struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = SPAWN_SOCKET };
	scoped_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int fds[PACKET_FDS];
	struct sv rest;
	char text[512];
	uint64_t code;
	size_t n = 0, fds_n = 0;
	int r;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "no agent can be started from here (%s)",
				 SPAWN_SOCKET);
	r = ask_between(fd, name, argv, cwd, err);
	if (r == 0)
		r = packet_receive(fd, text, sizeof(text), &n, fds, &fds_n, err);
	if (r < 0)
		return r;
	rest = (struct sv){ text, n };
	if (r > 0 && sv_is(sv_cut(&rest, ' '), "exit") && sv_to_u64(rest, 255, &code)) {
		*ret_exit = (int)code;
		return 0;
	}
	return writ_fail(err, WRIT_E_DENIED, 0, SV_FMT,
			 SV_ARG(rest.n ? rest : SV("the session has ended")));
}
