#include "init/init.h"

#include <linux/if.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/sockios.h>

#include "base/banned.h"

/*
 * The jail's own network has only lo, and on lo the addresses that stand for allowed names. The
 * kernel refuses a connection to such an address if no socket listens on the port, and every other
 * address is unreachable. So the table of listening sockets is the list of allowed destinations.
 */

enum {
	INET4 = 2,
	INET6 = 10,
	STREAM = 1,
	DATAGRAM = 2,
	NETLINK = 16,
	RAW = 3,
	LO = 1, /* index of the first interface in any network namespace */
	BACKLOG = 4096,
	IPV6_LEVEL = 41,
	FREEBIND = 78,
};

/* A netlink request: adds an address to lo, or a route to lo. */
struct netlink_request {
	struct nlmsghdr head;
	union {
		struct ifaddrmsg addr;
		struct rtmsg route;
	} u;
	uint8_t attrs[64];
};

static void put_attr(struct netlink_request *a, uint16_t type, const void *v, uint16_t n)
{
	const struct rtattr attr = { (uint16_t)(sizeof(attr) + n), type };
	char *at = (char *)a + a->head.nlmsg_len;

	memcpy(at, &attr, sizeof(attr));
	memcpy(at + sizeof(attr), v, n);
	a->head.nlmsg_len += (uint32_t)(sizeof(attr) + n + 3) & ~3u;
}

/*
 * Sends @a and waits for the kernel's acknowledgement. Returns 0, also if the address or route
 * exists already, or a negative errno.
 */
static long netlink_call(int s, struct netlink_request *a)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr err;
		char rest[256];
	} got;
	const struct sockaddr_nl to = { .nl_family = NETLINK };
	long r;

	a->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
	r = sys(sendto, s, a, a->head.nlmsg_len, 0, &to, sizeof(to));
	if (r < 0)
		return r;
	r = sys(recvfrom, s, &got, sizeof(got), 0, 0, 0);
	if (r < 0)
		return r;
	if (r < (long)(sizeof(got.head) + sizeof(got.err)) || got.head.nlmsg_type != NLMSG_ERROR)
		return -EBADMSG;
	return got.err.error == -EEXIST ? 0 : got.err.error;
}

static long add_address(int s, const uint8_t *addr)
{
	struct netlink_request a = { .head = { .nlmsg_len = NLMSG_HDRLEN + sizeof(struct ifaddrmsg),
					       .nlmsg_type = RTM_NEWADDR } };

	a.u.addr = (struct ifaddrmsg){ .ifa_family = INET4,
				       .ifa_prefixlen = 32,
				       .ifa_scope = RT_SCOPE_HOST,
				       .ifa_index = LO };
	put_attr(&a, IFA_LOCAL, addr, 4);
	put_attr(&a, IFA_ADDRESS, addr, 4);
	return netlink_call(s, &a);
}

static long add_route(int s, const uint8_t *addr, bool v6, uint8_t len)
{
	struct netlink_request a = { .head = { .nlmsg_len = NLMSG_HDRLEN + sizeof(struct rtmsg),
					       .nlmsg_type = RTM_NEWROUTE } };
	const uint32_t lo = LO;

	a.u.route = (struct rtmsg){ .rtm_family = v6 ? INET6 : INET4,
				    .rtm_dst_len = len,
				    .rtm_table = RT_TABLE_LOCAL,
				    .rtm_protocol = RTPROT_BOOT,
				    .rtm_scope = v6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_HOST,
				    .rtm_type = RTN_LOCAL };
	put_attr(&a, RTA_DST, addr, v6 ? 16 : 4);
	put_attr(&a, RTA_OIF, &lo, sizeof(lo));
	return netlink_call(s, &a);
}

/*
 * True if lo already accepts the IPv4 address of @l: the address is in the pool of addresses for
 * names, or is a loopback address.
 */
static bool is_routed(const struct jail_listen *l)
{
	return !l->v6 && (l->addr[0] == 127 ||
			  (l->addr[0] == JAIL_POOL_A && (l->addr[1] & 0xfe) == JAIL_POOL_B));
}

long init_net_listen(const struct jail_listen *l)
{
	const int on = 1;
	struct sockaddr_in to4 = { .sin_family = INET4 };
	struct sockaddr_in6 to6 = { .sin6_family = INET6 };
	const uint16_t port = __builtin_bswap16(l->port);
	const long s =
		sys(socket, l->v6 ? INET6 : INET4,
		    (l->kind == JAIL_DATAGRAM ? DATAGRAM : STREAM) | O_CLOEXEC | O_NONBLOCK, 0);
	long r = s < 0 ? s : 0;

	if (l->kind == JAIL_DIALLER)
		return s;
	to4.sin_port = to6.sin6_port = port;
	memcpy(&to4.sin_addr, l->addr, 4);
	memcpy(&to6.sin6_addr, l->addr, 16);
	if (r == 0 && l->v6)
		r = sys(setsockopt, s, IPV6_LEVEL, FREEBIND, &on, sizeof(on));
	/*
	 * SECURITY: do not set SO_REUSEADDR or SO_REUSEPORT: a socket of the agent must never share
	 * address and port with this socket.
	 */
	if (r == 0)
		r = l->v6 ? sys(bind, s, &to6, sizeof(to6)) : sys(bind, s, &to4, sizeof(to4));
	if (r == 0 && l->kind == JAIL_STREAM)
		r = sys(listen, s, BACKLOG);
	if (r < 0 && s >= 0)
		(void)sys(close, s);
	return r < 0 ? r : s;
}

int init_net_bring_up(struct writ_err *err)
{
	struct ifreq lo = { .ifr_name = "lo" };
	const long s = sys(socket, INET4, DATAGRAM | O_CLOEXEC, 0);
	long r;

	if (s < 0)
		return init_fail(err, s, "socket", NULL);
	lo.ifr_flags = IFF_UP | IFF_RUNNING;
	r = sys(ioctl, s, SIOCSIFFLAGS, &lo);
	(void)sys(close, s);
	return r < 0 ? init_fail(err, r, "bring lo up", NULL) : 0;
}

static int add_pool(const struct init *in, struct writ_err *err)
{
	static const uint8_t pool[4] = { JAIL_POOL_A, JAIL_POOL_B, 0, 0 };
	static const uint8_t own[4] = { JAIL_POOL_A, JAIL_POOL_B, 0, 1 };
	const struct jail_listen *l = span_at(in->p, in->p->listens);
	const long s = sys(socket, NETLINK, RAW | O_CLOEXEC, NETLINK_ROUTE);
	long r = s < 0 ? s : add_address((int)s, own);

	if (r == 0)
		r = add_route((int)s, pool, false, JAIL_POOL_LEN);
	for (uint32_t i = 0; r == 0 && i < in->p->listens.n; i++)
		if (!is_routed(&l[i]))
			r = add_route((int)s, l[i].addr, l[i].v6, l[i].v6 ? 128 : 32);
	if (s >= 0)
		(void)sys(close, s);
	return r < 0 ? init_fail(err, r, "addresses of names", NULL) : 0;
}

/*
 * Binds the listeners of the program and sends the sockets to the supervisor, in the order of the
 * program's table.
 */
static int add_listeners(const struct init *in, struct writ_err *err)
{
	const struct jail_listen *l = span_at(in->p, in->p->listens);

	for (uint32_t i = 0; i < in->p->listens.n;) {
		struct jail_message m = { .type = JAIL_SOCKETS, .id = i };
		int fds[JAIL_SOCKETS_MAX];
		uint32_t n = 0;
		long r = 0;

		for (; n < JAIL_SOCKETS_MAX && i < in->p->listens.n && r >= 0; i++) {
			r = init_net_listen(&l[i]);
			if (r >= 0)
				fds[n++] = (int)r;
		}
		m.value = n;
		if (r >= 0)
			r = init_message_send_many(JAIL_FD_SESSION, &m, fds, n);
		for (uint32_t k = 0; k < n; k++)
			(void)sys(close, fds[k]);
		if (r < 0)
			return init_fail(err, r, "listen for a name", NULL);
	}
	return 0;
}

/*
 * Receives the network namespace from the keeper and enters the namespace. SECURITY: after this
 * call pid 1 has no socket or namespace of the host's network.
 */
static int join_network(struct init *in, struct writ_err *err)
{
	struct jail_message m;
	uint32_t n;
	int fd;
	long r = init_message_receive(in->network, &m, NULL, 0, &fd, 1, &n);

	if (r > 0 && n == 0 && m.err.code < 0) {
		*err = m.err;
		return -EPIPE;
	}
	if (r <= 0 || n != 1)
		return init_fail(err, r < 0 ? r : -EPIPE, "new network namespace", NULL);
	r = sys(setns, fd, CLONE_NEWNET);
	(void)sys(close, fd);
	(void)sys(close, in->network);
	in->network = -1;
	return r < 0 ? init_fail(err, r, "enter the network namespace", NULL) : 0;
}

int init_net_build(struct init *in, struct writ_err *err)
{
	int r = join_network(in, err);

	if (r == 0 && (in->p->flags & JAIL_POOL))
		r = add_pool(in, err);
	return r < 0 ? r : add_listeners(in, err);
}
