#include "egress/egress_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/banned.h"

/*
 * Relay bytes between the two sides of a flow. Egress copies small amounts through one shared
 * buffer, and splices bulk data through a pipe, without a copy to user space. An idle tunnel holds
 * neither a buffer nor a pipe.
 */

enum moved { MOVED = 0, STUCK, ENDED, BROKEN, SPENT };

static bool take_pipe(struct egress *e, int pipe[2])
{
	if (e->relay.pipes_n) {
		e->relay.pipes_n--;
		memcpy(pipe, e->relay.pipes[e->relay.pipes_n], sizeof(int[2]));
		return true;
	}
	if (pipe2(pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
		pipe[0] = pipe[1] = -1;
		return false;
	}
	(void)fcntl(pipe[1], F_SETPIPE_SZ, CHUNK);
	return true;
}

static void give_pipe(struct egress *e, int pipe[2], bool empty)
{
	if (pipe[0] < 0)
		return;
	if (empty && e->relay.pipes_n < PIPES) {
		memcpy(e->relay.pipes[e->relay.pipes_n++], pipe, sizeof(int[2]));
	} else {
		close(pipe[0]);
		close(pipe[1]);
	}
	pipe[0] = pipe[1] = -1;
}

static struct transfer *transfer_of(struct flow *f, unsigned from)
{
	struct transfer *t = f->moving[from];

	if (!t) {
		t = calloc(1, sizeof(*t));
		if (t)
			t->pipe[0] = t->pipe[1] = -1;
		f->moving[from] = t;
	}
	return t;
}

static void transfer_end(struct egress *e, struct flow *f, unsigned from)
{
	struct transfer *t = f->moving[from];

	if (!t)
		return;
	give_pipe(e, t->pipe, t->in_pipe == 0);
	free(t->bytes);
	free(t);
	f->moving[from] = NULL;
}

void tunnel_free(struct egress *e, struct flow *f)
{
	transfer_end(e, f, 0);
	transfer_end(e, f, 1);
}

/* Sends the bytes that are buffered or in the pipe from side @from to the other side. */
static enum moved flush(struct flow *f, unsigned from)
{
	struct transfer *t = f->moving[from];
	const int to = f->fd[!from];

	while (t && t->at < t->n) {
		const ssize_t n = send(to, t->bytes + t->at, t->n - t->at, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN ? STUCK : BROKEN;
		t->at += (size_t)n;
	}
	while (t && t->in_pipe) {
		const ssize_t n = splice(t->pipe[0], NULL, to, NULL, t->in_pipe,
					 SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n <= 0)
			return n < 0 && errno == EAGAIN ? STUCK : BROKEN;
		t->in_pipe -= (size_t)n;
	}
	if (t && t->bytes) {
		free(t->bytes);
		t->bytes = NULL;
		t->at = t->n = 0;
	}
	return MOVED;
}

static size_t may_pass(const struct egress *e, const struct flow *f, unsigned from)
{
	uint64_t left;

	if (f->bill.entry == SIZE_MAX)
		return CHUNK;
	left = quota_left(&e->quota, &f->bill, from == 0);
	return left < CHUNK ? (size_t)left : CHUNK;
}

static void count(struct egress *e, struct flow *f, unsigned from, size_t n)
{
	f->bytes[from] += n;
	if (f->bill.entry != SIZE_MAX)
		quota_pass(&e->quota, &f->bill, from == 0, n);
}

static enum moved read_error(struct flow *f, unsigned from)
{
	if (errno != EAGAIN)
		return BROKEN;
	f->side[from] &= (uint8_t)~READABLE;
	return STUCK;
}

/*
 * Clears READABLE after a short read, which has drained the socket. If the peer hung up, keeps
 * READABLE, because one more read must return the end of the stream.
 */
static void note_short_read(struct flow *f, unsigned from, size_t got, size_t wanted)
{
	if (got < wanted && !(f->side[from] & HUNG_UP))
		f->side[from] &= (uint8_t)~READABLE;
}

static enum moved copy_some(struct egress *e, struct flow *f, unsigned from, size_t want,
			    size_t *ret_n)
{
	const ssize_t n = recv(f->fd[from], e->relay.chunk, want, 0);
	ssize_t sent;
	struct transfer *t;

	if (n < 0)
		return read_error(f, from);
	if (n == 0)
		return ENDED;
	count(e, f, from, (size_t)n);
	*ret_n = (size_t)n;
	note_short_read(f, from, (size_t)n, want);
	sent = send(f->fd[!from], e->relay.chunk, (size_t)n, MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN)
		return BROKEN;
	if (sent == n)
		return MOVED;
	sent = sent < 0 ? 0 : sent;
	t = transfer_of(f, from);
	if (!t)
		return BROKEN;
	t->n = (size_t)(n - sent);
	t->at = 0;
	t->bytes = malloc(t->n);
	if (!t->bytes)
		return BROKEN;
	memcpy(t->bytes, e->relay.chunk + sent, t->n);
	return STUCK;
}

static enum moved splice_some(struct egress *e, struct flow *f, unsigned from, size_t want,
			      size_t *ret_n)
{
	struct transfer *t = f->moving[from];
	const ssize_t n = splice(f->fd[from], NULL, t->pipe[1], NULL, want,
				 SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (n < 0)
		return read_error(f, from);
	if (n == 0)
		return ENDED;
	t->in_pipe += (size_t)n;
	count(e, f, from, (size_t)n);
	*ret_n = (size_t)n;
	return flush(f, from);
}

/*
 * Tests whether the direction uses a pipe. Takes a pipe once the direction has moved enough bytes
 * to be worth one.
 */
static bool is_bulk(struct egress *e, struct flow *f, unsigned from, size_t moved)
{
	struct transfer *t = f->moving[from];

	if (t && t->pipe[0] >= 0)
		return true;
	if (moved < BULK)
		return false;
	t = transfer_of(f, from);
	return t && take_pipe(e, t->pipe);
}

/*
 * Discards bytes that are addressed to a program that has ended. Unread bytes would turn egress's
 * close into a reset, and the peer could lose data that it has not read yet.
 */
static enum moved drop(struct egress *e, struct flow *f, unsigned from)
{
	size_t dropped = 0;

	transfer_end(e, f, from);
	while (!(f->side[from] & AT_END) && (f->side[from] & READABLE) && dropped < TURN) {
		const ssize_t n = recv(f->fd[from], e->relay.chunk, CHUNK, 0);

		if (n < 0)
			return read_error(f, from);
		if (n == 0)
			f->side[from] |= AT_END | SHUT;
		dropped += (size_t)n;
	}
	return dropped >= TURN ? MOVED : STUCK;
}

/* Relays one direction until no byte can be moved or TURN bytes have been moved. */
static enum moved pump(struct egress *e, struct flow *f, unsigned from)
{
	size_t moved = 0, n = 0;
	enum moved r;

	if (e->finish.begun && from != flow_inner(f))
		return drop(e, f, from);
	r = flush(f, from);

	while (r == MOVED && !(f->side[from] & AT_END) && (f->side[from] & READABLE) &&
	       moved < TURN) {
		const size_t want = may_pass(e, f, from);

		if (want == 0)
			return SPENT;
		r = is_bulk(e, f, from, moved) ? splice_some(e, f, from, want, &n)
					       : copy_some(e, f, from, want, &n);
		if (r == ENDED)
			f->side[from] |= AT_END;
		else
			moved += n;
	}
	if (r == BROKEN)
		return r;
	if (f->moving[from] && !f->moving[from]->bytes && f->moving[from]->in_pipe == 0 &&
	    moved < TURN)
		transfer_end(e, f, from);
	if ((f->side[from] & AT_END) && !(f->side[from] & SHUT) && !f->moving[from]) {
		/*
		 * If the other direction has ended too, skip shutdown(): the close of the flow that
		 * follows has the same effect.
		 */
		if (!(f->side[!from] & SHUT))
			(void)shutdown(f->fd[!from], SHUT_WR);
		f->side[from] |= SHUT;
	}
	return moved >= TURN ? MOVED : STUCK;
}

void tunnel_run(struct egress *e, struct flow *f)
{
	bool again = false;

	for (unsigned from = 0; from < 2; from++) {
		const enum moved r = pump(e, f, from);

		if (r == BROKEN || r == SPENT) {
			flow_close(e, f, true, r == SPENT ? CAUSE_USED_BYTES : CAUSE_NONE);
			return;
		}
		again |= r == MOVED;
	}
	if ((f->side[0] & SHUT) && (f->side[1] & SHUT)) {
		flow_close(e, f, false, CAUSE_NONE);
		return;
	}
	if (again && !f->queued) {
		f->queued = true;
		f->queue = e->queue;
		e->queue = f;
	}
}
