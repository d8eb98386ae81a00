/* Reaching the host's network: every road to a listener on its loopback, and the rest by route. */
#include "escape.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef IPPROTO_UDPLITE
#define IPPROTO_UDPLITE 136
#endif
#ifndef AF_SMC
#define AF_SMC 43
#endif

static socklen_t address(const char *text, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	const bool six = strchr(text, ':');

	memset(ret, 0, sizeof(*ret));
	(void)inet_pton(six ? AF_INET6 : AF_INET, text,
			six ? (void *)&a6.sin6_addr : (void *)&a4.sin_addr);
	memcpy(ret, six ? (void *)&a6 : (void *)&a4, six ? sizeof(a6) : sizeof(a4));
	return six ? sizeof(a6) : sizeof(a4);
}

/* The host's listener; in a control one of our own, wherever we are. */
static socklen_t listener(struct ctx *c, const char *text, int type, struct sockaddr_storage *ret)
{
	socklen_t n = address(text, 0, ret);

	if (!c->control)
		return address(text, (uint16_t)target_num(c, "port"), ret);
	const int fd = socket(ret->ss_family, type, 0);
	if (bind(fd, (void *)ret, n) == 0 && getsockname(fd, (void *)ret, &n) == 0 &&
	    type == SOCK_STREAM)
		(void)listen(fd, 4);
	/* A wildcard address is a way to say "this host" as well. */
	const uint16_t port = ((struct sockaddr_in *)(void *)ret)->sin_port;
	n = address(text, ntohs(port), ret);
	return n;
}

static int tcp_connect(struct ctx *c)
{
	struct sockaddr_storage sa;
	const socklen_t n = listener(c, c->row->arg, SOCK_STREAM, &sa);
	const int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, (int)c->row->num);

	if (fd < 0 || connect(fd, (void *)&sa, n) < 0)
		return -errno;
	return rc(send(fd, "escaped", 7, MSG_NOSIGNAL));
}

static int tcp_nonblocking(struct ctx *c)
{
	struct sockaddr_storage sa;
	const socklen_t n = listener(c, "127.0.0.1", SOCK_STREAM, &sa);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	if (fd < 0 || (connect(fd, (void *)&sa, n) < 0 && errno != EINPROGRESS))
		return -errno;
	(void)poll(&p, 1, 500);
	return rc(send(fd, "escaped", 7, MSG_NOSIGNAL));
}

static int tcp_fast_open(struct ctx *c)
{
	struct sockaddr_storage sa;
	const socklen_t n = listener(c, "127.0.0.1", SOCK_STREAM, &sa);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : rc(sendto(fd, "escaped", 7, MSG_FASTOPEN, (void *)&sa, n));
}

static int tcp_fast_open_msg(struct ctx *c)
{
	struct sockaddr_storage sa;
	const socklen_t n = listener(c, "127.0.0.1", SOCK_STREAM, &sa);
	struct iovec iov = { (char[]){ "escaped" }, 7 };
	struct mmsghdr m = {
		.msg_hdr = { .msg_name = &sa, .msg_namelen = n, .msg_iov = &iov, .msg_iovlen = 1 }
	};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : rc(sendmmsg(fd, &m, 1, MSG_FASTOPEN));
}

static int tcp_fast_open_option(struct ctx *c)
{
	struct sockaddr_storage sa;
	const int one = 1;
	const socklen_t n = listener(c, "127.0.0.1", SOCK_STREAM, &sa);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof(one)) < 0 ||
	    connect(fd, (void *)&sa, n) < 0)
		return -errno;
	return rc(send(fd, "escaped", 7, MSG_NOSIGNAL));
}

static int udp_sendto(struct ctx *c)
{
	struct sockaddr_storage sa;
	const socklen_t n = listener(c, c->row->arg, SOCK_DGRAM, &sa);
	const int fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, (int)c->row->num);

	return fd < 0 ? -errno : rc(sendto(fd, "escaped", 7, 0, (void *)&sa, n));
}

static int udp_connected(struct ctx *c)
{
	struct sockaddr_storage sa;
	const socklen_t n = listener(c, "127.0.0.1", SOCK_DGRAM, &sa);
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (void *)&sa, n) < 0)
		return -errno;
	return rc(write(fd, "escaped", 7));
}

static int udp_sendmmsg(struct ctx *c)
{
	struct sockaddr_storage sa;
	const socklen_t n = listener(c, "127.0.0.1", SOCK_DGRAM, &sa);
	struct iovec iov = { (char[]){ "escaped" }, 7 };
	struct mmsghdr m = {
		.msg_hdr = { .msg_name = &sa, .msg_namelen = n, .msg_iov = &iov, .msg_iovlen = 1 }
	};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : rc(sendmmsg(fd, &m, 1, 0));
}

/* A datagram built by hand: an IP header, a UDP header, eight bytes. */
static size_t datagram(unsigned char *p, uint16_t port)
{
	struct iphdr ip = { .version = 4,
			    .ihl = 5,
			    .ttl = 8,
			    .protocol = IPPROTO_UDP,
			    .tot_len = htons(36),
			    .saddr = htonl(INADDR_LOOPBACK),
			    .daddr = htonl(INADDR_LOOPBACK) };
	struct udphdr udp = { .dest = htons(port), .source = htons(9), .len = htons(16) };
	uint32_t sum = 0;
	uint16_t words[10];

	memcpy(words, &ip, sizeof(words));
	for (size_t i = 0; i < LENGTH(words); i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	ip.check = (uint16_t) ~((sum & 0xffff) + (sum >> 16));
	memcpy(p, &ip, sizeof(ip));
	memcpy(p + sizeof(ip), &udp, sizeof(udp));
	memcpy(p + sizeof(ip) + sizeof(udp), "escaped", 8);
	return sizeof(ip) + sizeof(udp) + 8;
}

static int raw_ip(struct ctx *c)
{
	struct sockaddr_storage sa;
	unsigned char packet[64];
	const socklen_t n = address("127.0.0.1", 0, &sa);
	const size_t size = datagram(packet, (uint16_t)target_num(c, "port"));
	const int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);

	return fd < 0 ? -errno : rc(sendto(fd, packet, size, 0, (void *)&sa, n));
}

static int ping(struct ctx *c)
{
	struct sockaddr_storage sa;
	const socklen_t n = address("127.0.0.1", 0, &sa);
	const struct icmphdr echo = { .type = ICMP_ECHO };
	const int fd = socket(AF_INET, (int)c->row->num | SOCK_CLOEXEC, IPPROTO_ICMP);

	return fd < 0 ? -errno : rc(sendto(fd, &echo, sizeof(echo), 0, (void *)&sa, n));
}

static int int80_connect(struct ctx *c)
{
	struct sockaddr_storage sa;
	const socklen_t n = listener(c, "127.0.0.1", SOCK_STREAM, &sa);
	char *low = low_memory();

	if (!low)
		return -ENOSYS;
	uint32_t *args = (void *)low;
	char *where = low + 256;
	memcpy(where, &sa, n);
	args[0] = AF_INET, args[1] = SOCK_STREAM, args[2] = 0;
	const long fd = int80(102, 1, (long)low, 0, 0, 0); /* socketcall(SYS_SOCKET) */
	if (fd < 0)
		return (int)fd;
	args[0] = (uint32_t)fd, args[1] = (uint32_t)(uintptr_t)where, args[2] = n;
	return (int)int80(102, 3, (long)low, 0, 0, 0); /* socketcall(SYS_CONNECT) */
}

static int uring_connect(struct ctx *c)
{
	struct sockaddr_storage sa;
	const socklen_t n = listener(c, "127.0.0.1", SOCK_STREAM, &sa);
	const struct io_uring_sqe make = {
		.opcode = IORING_OP_SOCKET, .fd = AF_INET, .off = SOCK_STREAM, .len = 0
	};
	const int fd = uring_one(&make);
	const struct io_uring_sqe join = {
		.opcode = IORING_OP_CONNECT, .fd = fd, .addr = (uintptr_t)&sa, .off = n
	};

	return fd < 0 ? fd : uring_one(&join);
}

static int uring_connect_only(struct ctx *c)
{
	struct sockaddr_storage sa;
	const socklen_t n = listener(c, "127.0.0.1", SOCK_STREAM, &sa);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct io_uring_sqe join = {
		.opcode = IORING_OP_CONNECT, .fd = fd, .addr = (uintptr_t)&sa, .off = n
	};

	return fd < 0 ? -errno : uring_one(&join);
}

static int uring_udp(struct ctx *c)
{
	struct sockaddr_storage sa;
	const socklen_t n = listener(c, "127.0.0.1", SOCK_DGRAM, &sa);
	struct iovec iov = { (char[]){ "escaped" }, 7 };
	struct msghdr m = { .msg_name = &sa, .msg_namelen = n, .msg_iov = &iov, .msg_iovlen = 1 };
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const struct io_uring_sqe sqe = {
		.opcode = IORING_OP_SENDMSG, .fd = fd, .addr = (uintptr_t)&m, .len = 1
	};

	if (fd < 0)
		return -errno;
	const int r = uring_one(&sqe);
	return r < 0 ? r : 0;
}

static int smc_connect(struct ctx *c)
{
	struct sockaddr_storage sa;
	const socklen_t n = listener(c, "127.0.0.1", SOCK_STREAM, &sa);
	const int fd = socket(AF_SMC, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : rc(connect(fd, (void *)&sa, n));
}

static int enter_and_connect(struct ctx *c, pid_t pid)
{
	struct sockaddr_storage sa;
	const int ns = open(path("/proc/%d/ns/net", (int)pid), O_RDONLY | O_CLOEXEC);
	const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (ns >= 0)
		(void)setns(ns, CLONE_NEWNET);
	if (pidfd >= 0)
		(void)setns(pidfd, CLONE_NEWNET);
	const socklen_t n = listener(c, "127.0.0.1", SOCK_STREAM, &sa);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd < 0 ? -errno : rc(connect(fd, (void *)&sa, n));
}

static int setns_victim(struct ctx *c)
{
	return enter_and_connect(c, victim(c));
}

static int setns_init(struct ctx *c)
{
	return enter_and_connect(c, 1);
}

/* connect() of a datagram socket asks for a route and sends nothing. */
static int has_route(struct ctx *c)
{
	struct sockaddr_storage sa;
	const socklen_t n = address(c->row->arg, 53, &sa);
	const int fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : rc(connect(fd, (void *)&sa, n));
}

static int listen_for_host(struct ctx *c)
{
	struct sockaddr_storage sa;
	const socklen_t n = address("127.0.0.1", (uint16_t)target_num(c, "dial"), &sa);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (fd < 0 || bind(fd, (void *)&sa, n) < 0 || listen(fd, 4) < 0)
		return -errno;
	return poll(&p, 1, 1000) == 1 ? 0 : -ETIMEDOUT;
}

/* Interfaces other than the loopback belong to somebody else. */
static int see_links(struct ctx *c)
{
	const struct {
		struct nlmsghdr h;
		struct ifinfomsg i;
	} ask = { { sizeof(ask), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { 0 } };
	char buf[32768];
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0 || send(fd, &ask, sizeof(ask), 0) < 0)
		return -errno;
	ssize_t n = recv(fd, buf, sizeof(buf), 0);
	int others = 0;
	(void)c;
	for (struct nlmsghdr *h = (void *)buf; n > 0 && NLMSG_OK(h, (size_t)n);
	     h = NLMSG_NEXT(h, n))
		if (h->nlmsg_type == RTM_NEWLINK &&
		    !(((const struct ifinfomsg *)NLMSG_DATA(h))->ifi_flags & IFF_LOOPBACK))
			others++;
	return others ? 0 : -ENODATA;
}

static int see_links_ioctl(struct ctx *c)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int others = 0;

	(void)c;
	for (int i = 1; fd >= 0 && i < 64; i++) {
		struct ifreq r = { .ifr_ifindex = i };

		if (ioctl(fd, SIOCGIFNAME, &r) == 0 && strcmp(r.ifr_name, "lo") != 0)
			others++;
	}
	return fd < 0 ? -errno : others ? 0 : -ENODATA;
}

/* Names of host sockets contain the scene's nonce. */
static int see_sockets(struct ctx *c)
{
	FILE *f = fopen(c->row->arg, "re");
	const char *mark = strstr(c->row->arg, "unix")
				   ? abstract_name(c->dir, c->row->id, "stream")
				   : path(":%04lX 00000000", (unsigned long)target_num(c, "port"));
	char line[512];
	int r = -ENOENT;

	if (!f)
		return -errno;
	while (r && fgets(line, sizeof(line), f))
		if (strstr(line, mark))
			r = 0;
	(void)fclose(f);
	return r;
}

/* clang-format off */
#define N(id, fn, arg, num, what) { id, "net", "net", what, fn, fn, BY_EVENT, NEED_INET, 0, arg, num, NULL }
#define O(id, fn, arg, num, what) { id, "net", "net", what, fn, NULL, BY_EVENT, NEED_INET, 0, arg, num, NULL }
#define Q(id, fn, arg, num, what) { id, "net", "net", what, fn, NULL, BY_REPORT, 0, 0, arg, num, NULL }

static const struct row rows[] = {
	N("NET-001", tcp_connect, "127.0.0.1", 0, "TCP to 127.0.0.1"),
	N("NET-002", tcp_connect, "::1", 0, "TCP to ::1"),
	N("NET-003", tcp_connect, "0.0.0.0", 0, "TCP to 0.0.0.0"),
	N("NET-004", tcp_connect, "127.0.0.2", 0, "TCP to 127.0.0.2"),
	N("NET-005", tcp_connect, "::", 0, "TCP to ::"),
	N("NET-006", tcp_connect, "::ffff:127.0.0.1", 0, "TCP to ::ffff:127.0.0.1"),
	N("NET-007", tcp_nonblocking, NULL, 0, "TCP without waiting"),
	N("NET-008", tcp_fast_open, NULL, 0, "TCP by sendto(MSG_FASTOPEN)"),
	N("NET-009", tcp_fast_open_msg, NULL, 0, "TCP by sendmmsg(MSG_FASTOPEN)"),
	N("NET-010", tcp_fast_open_option, NULL, 0, "TCP by TCP_FASTOPEN_CONNECT"),
	N("NET-011", tcp_connect, "127.0.0.1", IPPROTO_MPTCP, "MPTCP to 127.0.0.1"),
	N("NET-012", tcp_connect, "::1", IPPROTO_MPTCP, "MPTCP to ::1"),
	O("NET-013", tcp_connect, "127.0.0.1", IPPROTO_SCTP, "SCTP to 127.0.0.1"),
	O("NET-014", smc_connect, NULL, 0, "AF_SMC falling back to TCP"),
	N("NET-015", udp_sendto, "127.0.0.1", 0, "UDP sendto"),
	N("NET-016", udp_sendto, "::1", 0, "UDP over IPv6"),
	N("NET-017", udp_connected, NULL, 0, "UDP connected"),
	N("NET-018", udp_sendmmsg, NULL, 0, "UDP sendmmsg"),
	{ "NET-019", "net", "net", "UDP-Lite", udp_sendto, NULL, BY_EVENT, NEED_INET | NEED_LITE, 0, "127.0.0.1", IPPROTO_UDPLITE, NULL },
	O("NET-020", raw_ip, NULL, 0, "UDP built by hand on a raw socket"),
	N("NET-022", int80_connect, NULL, 0, "TCP through the 32-bit socketcall"),
	N("NET-023", uring_connect, NULL, 0, "socket and connect by io_uring"),
	N("NET-024", uring_connect_only, NULL, 0, "connect by io_uring"),
	N("NET-025", uring_udp, NULL, 0, "UDP by io_uring"),
	{ "NET-026", "net", "net", "setns() to a host process's network", setns_victim, NULL, BY_EVENT, NEED_INET | NEED_VICTIM, 0, NULL, 0, NULL },
	O("NET-027", setns_init, NULL, 0, "setns() to the network of process 1"),
	{ "NET-028", "net", "net", "the host connects to a port opened inside", listen_for_host, NULL, BY_EVENT, NEED_DIAL, ROW_OWN, NULL, 0, NULL },
	Q("NET-040", ping, NULL, SOCK_DGRAM, "ICMP datagram socket"), Q("NET-041", ping, NULL, SOCK_RAW, "ICMP raw socket"),
	Q("NET-042", has_route, "192.0.2.1", 0, "a route to the internet"), Q("NET-043", has_route, "169.254.169.254", 0, "a route to cloud metadata"),
	Q("NET-044", has_route, "10.0.0.1", 0, "a route to private networks"), Q("NET-045", has_route, "2001:db8::1", 0, "a route to the internet over IPv6"),
	Q("NET-046", has_route, "224.0.0.251", 0, "a route to multicast"), Q("NET-047", has_route, "100.100.100.200", 0, "a route to shared address space"),
	Q("NET-048", has_route, "64:ff9b::808:808", 0, "a route to translated addresses"), Q("NET-049", has_route, "fd00:ec2::254", 0, "a route to metadata over IPv6"),
	Q("NET-050", see_links, NULL, 0, "interfaces of the host by netlink"),
	{ "NET-051", "net", "proc.see", "interfaces of the host by ioctl", see_links_ioctl, NULL, BY_REPORT, 0, 0, NULL, 0, NULL },
	{ "NET-052", "net", "proc.see", "sockets of the host in /proc/net/tcp", see_sockets, NULL, BY_REPORT, NEED_INET, 0, "/proc/net/tcp", 0, NULL },
	{ "NET-053", "net", "proc.see", "sockets of the host in /proc/net/unix", see_sockets, NULL, BY_REPORT, NEED_ABSTRACT, 0, "/proc/net/unix", 0, NULL },
	{ "NET-054", "net", "proc.see", "sockets of the host in /proc/1/net/tcp", see_sockets, NULL, BY_REPORT, NEED_INET, 0, "/proc/1/net/tcp", 0, NULL },
};

#define F(n, name) { "AF-0" #n, "family", "net", "socket family " name, any_socket, NULL, BY_REPORT, 0, 0, NULL, 1 ## n - 100, NULL }
#define NL(n, proto, name) { "AF-1" #n, "family", "net", "netlink " name, netlink_socket, NULL, BY_REPORT, 0, 0, NULL, proto, NULL }
/* clang-format on */

const struct table net_rows = { rows, LENGTH(rows) };

static int any_socket(struct ctx *c)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_RDM };
	static const int protocols[] = { 0, 1, 2 };
	int r = -EPERM;

	for (size_t t = 0; t < LENGTH(types); t++) {
		for (size_t p = 0; p < LENGTH(protocols); p++) {
			const int fd =
				socket((int)c->row->num, types[t] | SOCK_CLOEXEC, protocols[p]);

			if (fd >= 0)
				return close(fd);
			r = -errno;
		}
	}
	return r;
}

static int netlink_socket(struct ctx *c)
{
	return rc(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, (int)c->row->num));
}

/* clang-format off */
static const struct row families[] = {
	F(03, "AX25"), F(04, "IPX"), F(05, "APPLETALK"), F(06, "NETROM"), F(07, "BRIDGE"), F(08, "ATMPVC"),
	F(09, "X25"), F(11, "ROSE"), F(12, "DECnet"), F(13, "NETBEUI"), F(14, "SECURITY"), F(15, "KEY"),
	F(17, "PACKET"), F(18, "ASH"), F(19, "ECONET"), F(20, "ATMSVC"), F(21, "RDS"), F(22, "SNA"),
	F(23, "IRDA"), F(24, "PPPOX"), F(25, "WANPIPE"), F(26, "LLC"), F(27, "IB"), F(28, "MPLS"),
	F(29, "CAN"), F(30, "TIPC"), F(31, "BLUETOOTH"), F(32, "IUCV"), F(33, "RXRPC"), F(34, "ISDN"),
	F(35, "PHONET"), F(36, "IEEE802154"), F(37, "CAIF"), F(38, "ALG"), F(39, "NFC"), F(40, "VSOCK"),
	F(41, "KCM"), F(42, "QIPCRTR"), F(43, "SMC"), F(44, "XDP"), F(45, "MCTP"),
	NL(02, 2, "USERSOCK"), NL(04, 4, "SOCK_DIAG"), NL(06, 6, "XFRM"), NL(07, 7, "SELINUX"), NL(08, 8, "ISCSI"), NL(09, 9, "AUDIT"),
	NL(10, 10, "FIB_LOOKUP"), NL(11, 11, "CONNECTOR"), NL(12, 12, "NETFILTER"), NL(15, 15, "KOBJECT_UEVENT"), NL(16, 16, "GENERIC"),
	NL(18, 18, "SCSITRANSPORT"), NL(19, 19, "ECRYPTFS"), NL(20, 20, "RDMA"), NL(21, 21, "CRYPTO"), NL(22, 22, "SMC"),
};
/* clang-format on */

const struct table family_rows = { families, LENGTH(families) };
