#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gitnet/git_priv.h"

#include "base/banned.h"

/*
 * Count the bytes of a session that has a limit. A separate process relays between the client and
 * git: bytes that the session sends count as up, bytes that the session receives count as down. The
 * rest of the helper uses the other end of a socket pair instead of the client's connection.
 */

enum { PIECE = 64 << 10 };
enum meter_end { METER_GOES_ON = 0, METER_OVER, METER_SPENT };

/* A direction of the relay: from the client to git, or from git to the client. */
struct way {
	int from, to;
	_Atomic uint64_t *used;
	/* most bytes of the session in this direction; 0: no limit */
	uint64_t limit;
	const struct quota_shared *shared; /* limits shared with other sessions */
	bool up;
	size_t at, n; /* the part of @bytes that is not forwarded yet */
	bool ended;   /* the sender of this direction has closed */
	char bytes[PIECE];
};

/*
 * Charges @n bytes, or returns false if a limit does not allow them. Called before the bytes are
 * forwarded, so that two relays cannot both use the last bytes of the session's own limit. A pool
 * is checked first and charged afterwards, so relays of several sessions may exceed a pool by what
 * they charge at the same time.
 */
static bool pay(struct way *w, size_t n)
{
	const uint64_t before = atomic_fetch_add(w->used, n);

	if ((!w->limit || (before <= w->limit && n <= w->limit - before)) &&
	    n <= quota_pools_left(w->shared, w->up)) {
		quota_pools_pass(w->shared, w->up, n);
		return true;
	}
	atomic_fetch_sub(w->used, n);
	return false;
}

static bool would_wait(void)
{
	return errno == EAGAIN || errno == EINTR;
}

static enum meter_end move(struct way *w, bool readable)
{
	ssize_t n;

	if (w->n == 0 && readable && !w->ended) {
		n = recv(w->from, w->bytes, PIECE, MSG_DONTWAIT);
		if (n < 0 && would_wait())
			return METER_GOES_ON;
		if (n <= 0) {
			w->ended = true;
			(void)shutdown(w->to, SHUT_WR);
			return METER_GOES_ON;
		}
		if (!pay(w, (size_t)n))
			return METER_SPENT;
		w->at = 0;
		w->n = (size_t)n;
	}
	if (w->n == 0)
		return METER_GOES_ON;
	n = send(w->to, w->bytes + w->at, w->n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return would_wait() ? METER_GOES_ON : METER_OVER;
	w->at += (size_t)n;
	w->n -= (size_t)n;
	return METER_GOES_ON;
}

static enum meter_end pump(struct way *up, struct way *down)
{
	enum meter_end end = METER_GOES_ON;

	while (end == METER_GOES_ON && (!up->ended || !down->ended)) {
		struct pollfd p[2] = { { up->from, 0, 0 }, { down->from, 0, 0 } };

		p[0].events = (short)((up->n || up->ended ? 0 : POLLIN) | (down->n ? POLLOUT : 0));
		p[1].events =
			(short)((down->n || down->ended ? 0 : POLLIN) | (up->n ? POLLOUT : 0));
		for (int i = 0; i < 2; i++)
			if (!p[i].events)
				p[i].fd = -1;
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return METER_OVER;
		end = move(up, p[0].revents & (POLLIN | POLLHUP | POLLERR));
		if (end == METER_GOES_ON)
			end = move(down, p[1].revents & (POLLIN | POLLHUP | POLLERR));
	}
	return end == METER_GOES_ON ? METER_OVER : end;
}

bool gitnet_meter_is_spent(const struct helper *h)
{
	const struct git_options *o = h->opt;

	return o->totals && ((o->set->limits[LIMIT_UP] &&
			      atomic_load(&o->totals->up) >= o->set->limits[LIMIT_UP]) ||
			     (o->set->limits[LIMIT_DOWN] &&
			      atomic_load(&o->totals->down) >= o->set->limits[LIMIT_DOWN]) ||
			     quota_pools_left(&o->shared, true) == 0 ||
			     quota_pools_left(&o->shared, false) == 0);
}

pid_t gitnet_meter_start(const struct helper *h, void (*spent)(void *ctx), void *ctx,
			 int *socket_fd)
{
	const uint64_t *limits = h->opt->set->limits;
	struct quota_total *t = h->opt->totals;
	int pair[2];
	pid_t pid;

	if (!t || (!limits[LIMIT_UP] && !limits[LIMIT_DOWN] && !h->opt->shared.pools_n))
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		struct way up = { .from = *socket_fd, .to = pair[1], .used = &t->up };
		struct way down = { .from = pair[1], .to = *socket_fd, .used = &t->down };

		close(pair[0]);
		up.limit = limits[LIMIT_UP];
		down.limit = limits[LIMIT_DOWN];
		up.shared = down.shared = &h->opt->shared;
		up.up = true;
		/* Record the exhausted limit before the client sees the end of the connection. */
		if (pump(&up, &down) == METER_SPENT)
			spent(ctx);
		_exit(0);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -1;
	}
	close(*socket_fd);
	*socket_fd = pair[0];
	return pid;
}
