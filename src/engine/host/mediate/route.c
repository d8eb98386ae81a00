#include "mediate/mediate_priv.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "mediate/net_priv.h"
#include "reach/route.h"

#include "base/banned.h"

/*
 * For a session on the host's network, the mediator redirects each connection or datagram that
 * would leave this machine, or that goes to port 53, to the loopback port where egress listens.
 * Egress decides about it.
 */

/*
 * Sends one question to egress and receives one answer. Egress never waits for the mediator, so
 * this exchange cannot deadlock.
 */
static int ask_egress(const struct mediator *m, struct route_message *q)
{
	const int s = m->opt.route;

	if (send(s, q, sizeof(*q), MSG_NOSIGNAL) != (ssize_t)sizeof(*q) ||
	    recv(s, q, sizeof(*q), 0) != (ssize_t)sizeof(*q) || q->type != ROUTE_ANSWER)
		return -ENETUNREACH;
	return -q->err;
}

/*
 * Stores the IPv4 loopback address with @port in *@ret, as an IPv4-mapped address for an IPv6
 * socket. Returns the size of the address.
 */
static socklen_t loopback(int family, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	if (family == AF_INET) {
		memcpy(ret, &v4, sizeof(v4));
		return sizeof(v4);
	}
	v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(v6.sin6_addr.s6_addr + 12, &v4.sin_addr, 4);
	memcpy(ret, &v6, sizeof(v6));
	return sizeof(v6);
}

static int family_of(int sock)
{
	int family = AF_INET;
	socklen_t n = sizeof(family);

	(void)getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &family, &n);
	return family;
}

/*
 * Binds the socket to a loopback port that the kernel chooses, unless the socket is bound already.
 * Egress recognises the connection by this port.
 */
static int bind_loopback(int sock, int family, uint16_t *ret_port)
{
	struct sockaddr_storage at;
	socklen_t n = loopback(family, 0, &at);
	int r = bind(sock, (struct sockaddr *)&at, n);

	/* EINVAL: the socket is bound already; getsockname() below reports its port. */
	if (r < 0 && errno != EINVAL)
		return -errno;
	n = sizeof(at);
	if (getsockname(sock, (struct sockaddr *)&at, &n) < 0)
		return -errno;
	*ret_port = ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
						   : ((struct sockaddr_in *)&at)->sin_port);
	return *ret_port ? 0 : -EADDRNOTAVAIL;
}

int mediate_route_to(const struct mediator *m, int sock, bool udp,
		     const struct sockaddr_storage *wanted, struct sockaddr_storage *ret_to,
		     socklen_t *ret_n)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)wanted;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)wanted;
	const int family = family_of(sock);
	struct route_message q = { .type = ROUTE_ASK, .udp = udp };
	int r;

	if (wanted->ss_family == AF_INET) {
		q.port = ntohs(v4->sin_port);
		memcpy(q.addr, &v4->sin_addr, 4);
	} else {
		q.port = ntohs(v6->sin6_port);
		q.v6 = !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
		memcpy(q.addr, v6->sin6_addr.s6_addr + (q.v6 ? 0 : 12), q.v6 ? 16 : 4);
	}
	r = ask_egress(m, &q);
	if (r < 0)
		return r;
	*ret_n = loopback(family, q.port, ret_to);
	q.type = ROUTE_BOUND;
	r = bind_loopback(sock, family, &q.port);
	if (r == 0 && send(m->opt.route, &q, sizeof(q), MSG_NOSIGNAL) != (ssize_t)sizeof(q))
		r = -ENETUNREACH;
	return r;
}
