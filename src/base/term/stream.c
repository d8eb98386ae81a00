#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "term/term_priv.h"

#include "base/banned.h"

enum { TTY_BITE = 256 };

static size_t least(uint64_t a, uint64_t b)
{
	return (size_t)(a < b ? a : b);
}

/*
 * Opens the file of @fd a second time through /proc, so that O_NONBLOCK affects the new open file
 * only. Fails without /proc or permission.
 */
static int open_again(int fd, int flags)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static struct end tty_end(int fd)
{
	const int mode = fcntl(fd, F_GETFL);
	const int own = mode < 0 ? -1 : open_again(fd, mode & O_ACCMODE);

	return own < 0 ? (struct end){ fd, END_TTY, true } : (struct end){ own, END_OWN, true };
}

struct end relay_end_outer(int fd)
{
	struct end e = { .fd = fd, .kind = END_PLAIN };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return (struct end){ .fd = -1 };
	if (S_ISFIFO(st.st_mode))
		e.kind = END_PIPE;
	else if (S_ISSOCK(st.st_mode))
		e.kind = END_SOCKET;
	else if (isatty(fd))
		e = tty_end(fd);
	return e;
}

int relay_end_inner(int fd, struct end *ret_e, struct writ_err *err)
{
	const int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "prepare a descriptor of the session");
	*ret_e = (struct end){ fd, END_OWN, false };
	return 0;
}

void relay_end_close(struct end *e)
{
	if (e->fd >= 0)
		(void)close(e->fd);
	*e = (struct end){ .fd = -1 };
}

void relay_end_release(struct end *e)
{
	if (e->kind == END_OWN)
		relay_end_close(e);
	*e = (struct end){ .fd = -1 };
}

static bool ready_now(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, 0) == 1;
}

static ssize_t put(const struct end *e, struct sv b)
{
	switch (e->kind) {
	case END_NONE:
		return (ssize_t)b.n;
	case END_SOCKET:
		return send(e->fd, b.p, b.n, MSG_DONTWAIT | MSG_NOSIGNAL);
	case END_PIPE:
	case END_TTY:
		if (!ready_now(e->fd, POLLOUT)) {
			errno = EAGAIN;
			return -1;
		}
		return write(e->fd, b.p, least(b.n, e->kind == END_PIPE ? PIPE_BUF : TTY_BITE));
	case END_PLAIN:
	case END_OWN:
		break;
	}
	return write(e->fd, b.p, b.n);
}

static ssize_t get(const struct end *e, char *p, size_t n)
{
	return e->kind == END_SOCKET ? recv(e->fd, p, n, MSG_DONTWAIT) : read(e->fd, p, n);
}

static bool would_block(void)
{
	return errno == EAGAIN || errno == EINTR;
}

enum flow stream_flush(struct stream *s)
{
	while (s->at < s->held.n) {
		const ssize_t n = put(&s->dst, sv_skip(buf_view(&s->held), s->at));

		if (n < 0)
			return would_block() ? FLOW_FULL : FLOW_BROKEN;
		s->at += (size_t)n;
	}
	s->held.n = s->at = 0;
	return FLOW_MORE;
}

void stream_append(struct stream *s, struct sv text)
{
	buf_sv(&s->held, text);
	s->waits_dst = true;
}

/* Writes the bytes @b to the sink of the stream. Call only when the stream holds no bytes. */
static enum flow deliver(struct stream *s, struct sv b)
{
	if (s->neutral) {
		neutral_step(&s->state, b, &s->held);
	} else if (s->escape) {
		s->detach = escape_step(&s->escaped, b, &s->held);
	} else {
		const ssize_t n = put(&s->dst, b);

		/* Hold the bytes after an error: stream_flush() gets the error again. */
		buf_sv(&s->held, sv_skip(b, n < 0 ? 0 : (size_t)n));
	}
	return stream_flush(s);
}

static enum flow copy_some(struct stream *s, uint64_t max, uint64_t *ret_moved)
{
	const ssize_t n = get(&s->src, s->chunk, least(max, CHUNK));

	if (n < 0 && would_block())
		return FLOW_EMPTY;
	/* Treat errors as the end. A pty whose other side is closed fails with EIO. */
	if (n <= 0)
		return FLOW_END;
	*ret_moved = (uint64_t)n;
	return s->drop ? FLOW_MORE : deliver(s, (struct sv){ s->chunk, (size_t)n });
}

/*
 * Moves bytes with splice(). EAGAIN of splice() does not say whether source or sink would block.
 * The side that was polled was ready, so the other side would block.
 */
static enum flow splice_some(struct stream *s, uint64_t max, uint64_t *ret_moved)
{
	const ssize_t n = splice(s->src.fd, NULL, s->dst.fd, NULL, least(max, PIPE_WANTED),
				 SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

	if (n > 0) {
		*ret_moved = (uint64_t)n;
		return FLOW_MORE;
	}
	if (n == 0)
		return FLOW_END;
	if (would_block())
		return s->waits_dst ? FLOW_EMPTY : FLOW_FULL;
	if (errno != EINVAL)
		return FLOW_BROKEN;
	s->spliced = false; /* the sink has O_APPEND, or is a device without splice */
	return copy_some(s, max, ret_moved);
}

/* Removes from src the bytes that the command has read so far from the peek pipe. */
static void peek_take(struct stream *s)
{
	int left = 0;

	if (ioctl(s->dst.fd, FIONREAD, &left) < 0 || left < 0 || (size_t)left > s->peeked)
		left = 0;
	if (s->peeked > (size_t)left && ready_now(s->src.fd, POLLIN)) {
		const ssize_t n = read(s->src.fd, s->chunk, s->peeked - (size_t)left);

		s->taken += n > 0 ? (uint64_t)n : 0;
	}
	s->peeked = (size_t)left;
}

/*
 * Moves the first bytes of piped input. In `seq 9 | while read x; do writ run -- true; done` the
 * input belongs to the loop, not to the command, so the relay must not consume bytes that the
 * command does not read. The relay copies the first bytes with tee() into a pipe of one page and
 * removes these bytes from src once the command has read them. A pipe of one page becomes writable
 * exactly when the command has read all of it.
 */
static enum flow peek_some(struct stream *s, uint64_t *ret_moved)
{
	ssize_t n;

	if (s->peeked) {
		peek_take(s);
		/* the pipe is writable but not empty: the reader has closed the pipe */
		if (s->peeked) {
			errno = EPIPE;
			return FLOW_BROKEN;
		}
		if (s->taken >= PEEK_MAX) {
			s->peek = false;
			(void)fcntl(s->dst.fd, F_SETPIPE_SZ, PIPE_WANTED);
		}
		return FLOW_EMPTY;
	}
	n = tee(s->src.fd, s->dst.fd, PIPE_BUF, SPLICE_F_NONBLOCK);
	if (n == 0)
		return FLOW_END;
	if (n < 0)
		return !would_block() ? FLOW_BROKEN : s->waits_dst ? FLOW_EMPTY : FLOW_FULL;
	s->peeked = (size_t)n;
	*ret_moved = (uint64_t)n;
	return FLOW_FULL;
}

enum flow stream_move(struct stream *s, uint64_t max, uint64_t *ret_moved)
{
	if (s->peek)
		return peek_some(s, ret_moved);
	if (s->spliced && !s->drop)
		return splice_some(s, max, ret_moved);
	return copy_some(s, max, ret_moved);
}

/*
 * Closes the relay's end of the input pipe, which the command sees as end of file. For a regular
 * file as input, keep a read end open instead, to count later how much the command left unread.
 */
void stream_end_input(struct stream *s)
{
	const int gauge = s->src.kind == END_PLAIN ? open_again(s->dst.fd, O_RDONLY) : -1;

	relay_end_close(&s->dst);
	s->dst.fd = gauge;
}

void stream_settle(struct stream *s)
{
	int unread = 0;

	if (s->dst.fd < 0 || s->src.fd < 0)
		return;
	if (s->peek) {
		peek_take(s);
	} else if (s->src.kind == END_PLAIN && ioctl(s->dst.fd, FIONREAD, &unread) == 0) {
		const off_t back = (off_t)unread + (off_t)(s->held.n - s->at);

		/* Restore the position of the input file. Devices have none, and lseek() fails. */
		if (back > 0)
			(void)lseek(s->src.fd, -back, SEEK_CUR);
	}
}
