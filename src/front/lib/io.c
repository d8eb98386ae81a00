#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "lib/run_priv.h"

#include "base/banned.h"

static int open_null(int *ret, struct writ_err *err)
{
	*ret = open("/dev/null", O_RDWR | O_CLOEXEC);
	return *ret < 0 ? writ_fail(err, WRIT_E_SYS, errno, "/dev/null") : 0;
}

/*
 * Opens a socket pair for the command's standard input. A socket, unlike a pipe, can be written to
 * without raising SIGPIPE in the program that uses the library.
 */
static int open_input(struct run_io *io, struct writ_err *err)
{
	int p[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "socketpair");
	io->given[0] = p[0];
	io->in = p[1];
	return 0;
}

static int open_output(struct run_io *io, int stream, struct writ_err *err)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "pipe");
	io->given[stream] = p[1];
	io->out[stream] = p[0];
	return 0;
}

int run_io_open(struct run_io *io, const struct writ_run_options *opt, struct writ_err *err)
{
	int r = 0;

	for (int i = 0; r == 0 && i < 3; i++) {
		io->ours[i] = true;
		if (opt->stdio && opt->stdio[i] >= 0) {
			io->given[i] = opt->stdio[i];
			io->ours[i] = false;
		} else if (i == 0 && !opt->stdio && opt->input_n) {
			r = open_input(io, err);
		} else if (i > 0 && !opt->stdio && opt->output) {
			r = open_output(io, i, err);
		} else {
			r = open_null(&io->given[i], err);
		}
	}
	return r;
}

void run_io_sent(struct run_io *io)
{
	for (int i = 0; i < 3; i++) {
		if (io->ours[i])
			fd_scope_close(&io->given[i]);
		io->given[i] = -1;
	}
}

void run_io_close(struct run_io *io)
{
	run_io_sent(io);
	fd_scope_close(&io->in);
	for (int i = 0; i < 3; i++)
		fd_scope_close(&io->out[i]);
	*io = (struct run_io)RUN_IO_INIT;
}

/*
 * Reads output of the command and passes it to the caller. Closes the pipe at its end, which comes
 * when no process holds the write end any more.
 */
static void take_output(struct run_io *io, const struct writ_run_options *opt, int stream)
{
	char bytes[16384];
	const ssize_t n = read(io->out[stream], bytes, sizeof(bytes));

	if (n > 0) {
		opt->output(opt->output_ctx, stream, bytes, (size_t)n);
		return;
	}
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	fd_scope_close(&io->out[stream]);
	io->out[stream] = -1;
}

static void give_input(struct run_io *io, const struct writ_run_options *opt)
{
	const char *bytes = opt->input;
	const ssize_t n = send(io->in, bytes + io->sent, opt->input_n - io->sent,
			       MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0)
		io->sent += (size_t)n;
	if ((n < 0 && errno != EINTR && errno != EAGAIN) || io->sent == opt->input_n) {
		fd_scope_close(&io->in);
		io->in = -1;
	}
}

int run_io_carry(struct run_io *io, const struct writ_run_options *opt, struct rpc_conn *conn,
		 int64_t until, struct writ_err *err)
{
	while (conn || io->out[1] >= 0 || io->out[2] >= 0) {
		struct pollfd p[4] = { { .fd = io->in, .events = POLLOUT },
				       { .fd = io->out[1], .events = POLLIN },
				       { .fd = io->out[2], .events = POLLIN },
				       { .fd = conn ? conn->fd : -1, .events = POLLIN } };
		int n;

		if (conn && rpc_wants_write(conn))
			p[3].events |= POLLOUT;
		n = poll(p, 4, clock_ms_until(until));

		if (n == 0)
			return 1;
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return writ_fail(err, WRIT_E_SYS, errno, "poll");
		}
		for (int i = 1; i < 3; i++)
			if (p[i].revents)
				take_output(io, opt, i);
		if (p[0].revents)
			give_input(io, opt);
		if (p[3].revents & POLLOUT)
			rpc_flush(conn);
		if (p[3].revents & ~POLLOUT)
			return 0;
	}
	return 0;
}
