#include "egress/egress_priv.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "wire/address.h"

#include "base/banned.h"

/*
 * Connections through the operator's proxy, which serves all public destinations. SECURITY: egress
 * asks the proxy for an address that egress has resolved and checked, never for a name: egress
 * could not check which address the proxy would resolve the name to.
 */

/*
 * Tests whether the flow goes through the operator's proxy; if so, removes all non-public addresses
 * from @s.
 */
bool egress_upstream_applies(const struct egress *e, struct setup *s)
{
	size_t n = 0;

	if (!e->dial.upstream)
		return false;
	for (size_t i = 0; i < s->addrs_n; i++)
		if (address_judge(&s->addrs[i]).class == ADDRESS_PUBLIC)
			s->addrs[n++] = s->addrs[i];
	if (n == 0)
		return false;
	s->addrs_n = (uint32_t)(n < TARGETS_VIA ? n : TARGETS_VIA);
	return true;
}

/*
 * Sends CONNECT on a connection to the operator's proxy. Returns false if the request cannot be
 * sent.
 */
bool egress_upstream_request(const struct egress *e, struct attempt *a)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data = { .ptr = a } };
	struct buf b = BUF_INIT(2048);
	bool good;

	upstream_put(e->dial.upstream, &a->to, a->flow->port, &b);
	good = !b.failed && send(a->fd, b.p, b.n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)b.n &&
	       epoll_ctl(e->epoll, EPOLL_CTL_MOD, a->fd, &ev) == 0;
	buf_clear(&b);
	a->requested = good;
	return good;
}

/*
 * Reads the answer of the operator's proxy. Peeks first and consumes only the head of the answer,
 * because the bytes after the head come from the destination and belong to the tunnel.
 */
enum upstream_state egress_upstream_receive(struct egress *e, struct attempt *a, uint32_t events)
{
	const ssize_t n = recv(a->fd, e->relay.chunk, UPSTREAM_HEAD_MAX, MSG_PEEK | MSG_DONTWAIT);
	const bool over = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
	struct writ_err err = { 0 };
	unsigned status = 0;
	size_t used = 0;

	if (n < 0 && errno == EAGAIN && !over)
		return UPSTREAM_WAIT;
	if (n <= 0)
		return UPSTREAM_FAILED;
	switch (upstream_answer((struct sv){ e->relay.chunk, (size_t)n }, &used, &status, &err)) {
	case WIRE_BAD:
		return UPSTREAM_FAILED;
	case WIRE_MORE:
		return over ? UPSTREAM_FAILED : UPSTREAM_WAIT;
	case WIRE_DONE:
		break;
	}
	a->flow->setup->proxy_status = status;
	if (status / 100 != 2 || recv(a->fd, e->relay.chunk, used, MSG_DONTWAIT) != (ssize_t)used)
		return UPSTREAM_FAILED;
	return UPSTREAM_OPEN;
}
