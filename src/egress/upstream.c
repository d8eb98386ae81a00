#include "egress/egress_priv.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "wire/address.h"

#include "base/banned.h"

/*
 * Where the operator has set a proxy, what is public is dialled by it. It is asked for
 * an address that was looked up and checked here, never for a name: what it would
 * make of a name nobody here could check.
 */

/* Of what may be dialled: does it go through the proxy? Then only that is left in @s. */
bool upstream_takes(const struct egress *e, struct setup *s)
{
	size_t n = 0;

	if (!e->upstream)
		return false;
	for (size_t i = 0; i < s->addrs_n; i++)
		if (address_judge(&s->addrs[i]).class == ADDRESS_PUBLIC)
			s->addrs[n++] = s->addrs[i];
	if (n == 0)
		return false;
	s->addrs_n = (uint32_t)(n < TARGETS_VIA ? n : TARGETS_VIA);
	return true;
}

/* The proxy is there. False: it cannot be spoken to. */
bool upstream_ask(const struct egress *e, struct attempt *a)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data = { .ptr = a } };
	struct buf b = BUF_INIT(2048);
	bool good;

	upstream_put(e->upstream, &a->to, a->flow->port, &b);
	good = !b.failed && send(a->fd, b.p, b.n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)b.n &&
	       epoll_ctl(e->epoll, EPOLL_CTL_MOD, a->fd, &ev) == 0;
	buf_clear(&b);
	a->speaking = good;
	return good;
}

/* Only its head is taken: what follows is the other end's. */
enum upstream_state upstream_heard(struct egress *e, struct attempt *a, uint32_t events)
{
	const ssize_t n = recv(a->fd, e->chunk, UPSTREAM_HEAD_MAX, MSG_PEEK | MSG_DONTWAIT);
	const bool over = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
	struct writ_err err = { 0 };
	unsigned status = 0;
	size_t used = 0;

	if (n < 0 && errno == EAGAIN && !over)
		return UPSTREAM_WAIT;
	if (n <= 0)
		return UPSTREAM_FAILED;
	switch (upstream_answer((struct sv){ e->chunk, (size_t)n }, &used, &status, &err)) {
	case WIRE_BAD:
		return UPSTREAM_FAILED;
	case WIRE_MORE:
		return over ? UPSTREAM_FAILED : UPSTREAM_WAIT;
	case WIRE_DONE:
		break;
	}
	a->flow->setup->proxy_said = status;
	if (status / 100 != 2 || recv(a->fd, e->chunk, used, MSG_DONTWAIT) != (ssize_t)used)
		return UPSTREAM_FAILED;
	return UPSTREAM_OPEN;
}
