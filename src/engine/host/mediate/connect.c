#include "mediate/mediate_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "mediate/creds_priv.h"
#include "mediate/job_priv.h"
#include "mediate/net_priv.h"
#include "mediate/op_priv.h"
#include "mediate/place_priv.h"

#include "base/banned.h"

/*
 * connect. The mediator copies the address once, duplicates the socket, decides, and connects its
 * duplicate. A session with a network namespace of its own may connect to every IP address in that
 * namespace. The mediator decides about UNIX sockets there, since their names are files, and
 * refuses most other address families. For a session on the host's network, rules or egress decide
 * about every address.
 */

void mediate_peer_clear(struct peer *p)
{
	fd_scope_close(&p->keep);
}

int mediate_peer_read(struct call *c, uint64_t at, uint64_t n, struct peer *p)
{
	int r;

	if (n > sizeof(p->a.raw) || n < sizeof(sa_family_t))
		return -EINVAL;
	memset(&p->a, 0, sizeof(p->a));
	r = task_read(c, at, p->a.raw, n);
	p->n = (socklen_t)n;
	return r;
}

/* --- Addresses --- */

static enum peer_place place_of_v4(uint32_t a)
{
	if (a == INADDR_ANY)
		return PEER_UNSPECIFIED;
	if (a == INADDR_LOOPBACK)
		return PEER_LOCALHOST;
	return a >> 24 == INADDR_LOOPBACK >> 24 ? PEER_LOOPBACK : PEER_ELSEWHERE;
}

static enum peer_place place_of_v6(const struct in6_addr *a)
{
	if (IN6_IS_ADDR_UNSPECIFIED(a))
		return PEER_UNSPECIFIED;
	return IN6_IS_ADDR_LOOPBACK(a) ? PEER_LOCALHOST : PEER_ELSEWHERE;
}

bool mediate_peer_resource(const struct peer *p, char to[96], enum peer_place *ret_place)
{
	char text[INET6_ADDRSTRLEN];
	struct in_addr v4 = { 0 };
	bool six = p->a.sa.sa_family == AF_INET6;
	unsigned port;

	if (p->n < (six ? (socklen_t)sizeof(p->a.in6) : (socklen_t)sizeof(p->a.in)))
		return false;
	port = ntohs(six ? p->a.in6.sin6_port : p->a.in.sin_port);
	if (six && IN6_IS_ADDR_V4MAPPED(&p->a.in6.sin6_addr)) {
		memcpy(&v4, p->a.in6.sin6_addr.s6_addr + 12, 4);
		six = false;
	} else if (!six) {
		v4 = p->a.in.sin_addr;
	}
	*ret_place = six ? place_of_v6(&p->a.in6.sin6_addr) : place_of_v4(ntohl(v4.s_addr));
	if (*ret_place == PEER_LOCALHOST || *ret_place == PEER_UNSPECIFIED)
		(void)snprintf(to, 96, "tcp/localhost:%u", port);
	else if (six && inet_ntop(AF_INET6, &p->a.in6.sin6_addr, text, sizeof(text)))
		(void)snprintf(to, 96, "tcp/[%s]:%u", text, port);
	else if (!six && inet_ntop(AF_INET, &v4, text, sizeof(text)))
		(void)snprintf(to, 96, "tcp/%s:%u", text, port);
	else
		return false;
	return true;
}

int mediate_sock_type(int sock)
{
	int type = 0;
	socklen_t n = sizeof(type);

	return getsockopt(sock, SOL_SOCKET, SO_TYPE, &type, &n) < 0 ? -1 : type;
}

/*
 * True for an address with port 53, which goes to egress even on the loopback: many hosts run a
 * resolver on the loopback, and egress must resolve all names.
 */
static bool is_name_server(const struct peer *p)
{
	return ntohs(p->a.sa.sa_family == AF_INET6 ? p->a.in6.sin6_port : p->a.in.sin_port) == 53;
}

/*
 * Replaces the address @p by the loopback address where egress listens for this connection. Egress
 * decides about the connection and records it.
 */
static int route_to_egress(struct call *c, int sock, struct peer *p)
{
	struct sockaddr_storage wanted, to;
	int r;

	if (is_observing(c))
		return 0;
	memcpy(&wanted, p->a.raw, sizeof(p->a.raw));
	r = mediate_route_to(c->m, sock, mediate_sock_type(sock) != SOCK_STREAM, &wanted, &to,
			     &p->n);
	if (r == 0)
		memcpy(p->a.raw, &to, sizeof(p->a.raw));
	return r;
}

static int decide_inet(struct call *c, int sock, struct peer *p)
{
	struct cap_verdict v = { .rule = RULE_NONE };
	char text[96];
	enum peer_place place;

	if (!mediate_peer_resource(p, text, &place))
		return -EINVAL;
	if (c->m->opt.route > 0 && (place == PEER_ELSEWHERE || is_name_server(p)))
		return route_to_egress(c, sock, p);
	if (mediate_sock_type(sock) != SOCK_STREAM)
		return mediate_deny(c, sv_from(text), RULE_NONE, CAUSE_ONLY_TCP);
	v = mediate_decide_text(c->m, "net.connect", sv_from(text));
	return v.answer == CAP_ALLOW
		       ? 0
		       : mediate_deny(c, sv_from(text), v.rule, CAUSE_NO_ADDRESS_RULE);
}

/* --- UNIX sockets --- */

bool mediate_peer_unix_path(const struct peer *p,
			    char to[sizeof(((struct sockaddr_un *)0)->sun_path) + 1])
{
	const size_t head = offsetof(struct sockaddr_un, sun_path);
	const size_t n = p->n > head ? p->n - head : 0;

	if (n == 0 || p->a.un.sun_path[0] == 0 || n > sizeof(p->a.un.sun_path))
		return false;
	memcpy(to, p->a.un.sun_path, n);
	to[n] = 0;
	return true;
}

/* True if the session created the socket, or if the socket is in a directory of the session. */
static bool is_session_socket(const struct call *c, struct sv path, const struct stat *st)
{
	return mediate_is_private(c->m, path) || mediate_is_shared(c->m, path) ||
	       endpoint_is_own(c->m, st);
}

/*
 * Decides about connecting to the UNIX socket at @path. Sockets that give control over the machine
 * (protect_sockets: docker, systemd, ...) need a rule marked dangerous. Any other socket needs a
 * rule, unless it is the session's own. The session's own sockets are harmless whatever their name,
 * such as the sockets of a tmux or an ssh agent that the session started.
 */
static int decide_unix(struct call *c, struct sv path, const struct stat *st)
{
	const struct protect_socket *known =
		is_session_socket(c, path, st) ? NULL : protect_socket_find(path);
	const struct cap_verdict v = mediate_decide_text(c->m, "unix.connect", path);

	if (v.answer == CAP_ALLOW && (!known || c->m->rules.set.caps.v[v.entry].cap.danger))
		return 0;
	if (known)
		return mediate_deny_detail(c, path, v.rule, CAUSE_SOCKET_POWER, known->why);
	if (v.answer == CAP_DENY && v.rule == RULE_NONE && is_session_socket(c, path, st))
		return 0;
	return mediate_deny_because(c, path, v.rule,
				    v.rule == RULE_NONE ? CAP_REASON_SOCKET : CAP_REASON_RULE,
				    CAUSE_SOCKET, NULL);
}

int mediate_peer_find_unix(struct call *c, const char *text, struct place *ret)
{
	const char *slash = strrchr(text, '/');
	char head[sizeof(((struct sockaddr_un *)0)->sun_path) + 1] = "";
	int dir = -1;

	if (slash && (size_t)(slash - text) < sizeof(head)) {
		memcpy(head, text, (size_t)(slash - text));
		dir = mediate_parse_own_fd(head);
	}
	return dir < 0 ? place_find(c, AT_FDCWD, text, ret) : place_find(c, dir, slash + 1, ret);
}

/*
 * Opens the socket's file with O_PATH and stores the path of the file in @at. Follows links into
 * private directories too: the mediator never lets a connect through to the kernel.
 */
static int open_unix_object(struct call *c, const char *text, struct place *at, struct stat *st)
{
	const int own = mediate_parse_own_fd(text);
	scoped_creds creds = { 0 };
	int r, obj;

	if (own >= 0) {
		obj = task_open_fd(c, own);
		if (obj >= 0 &&
		    (fstat(obj, st) < 0 || !mediate_path_of_fd(c->m, obj, at->path, &at->n))) {
			fd_scope_close(&obj);
			return -EACCES;
		}
		/*
		 * SECURITY: after a live grant was revoked, the descriptor may belong to a detached
		 * mount, and its path means nothing. Use an empty path, which matches no rule.
		 */
		if (mediate_mounts_changed(c->m))
			at->n = 0;
		return obj;
	}
	r = mediate_peer_find_unix(c, text, at);
	if (r == 0)
		r = creds_enter(c, &creds);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		if (mediate_is_below(place_sv(at), SV("/proc")))
			return -EACCES;
		obj = place_open(c, at, true, st);
		if (obj != ANSWER_CONTINUE)
			return obj;
	}
	return -ELOOP;
}

/*
 * Finds the file of a UNIX socket and decides about it. On success @p names exactly this file,
 * through the mediator's descriptor.
 */
static int resolve_unix(struct call *c, struct peer *p)
{
	char text[sizeof(p->a.un.sun_path) + 1];
	scoped_place at = PLACE_NONE;
	struct stat st;
	int r;

	if (!mediate_peer_unix_path(p, text))
		/*
		 * An abstract name belongs to a network namespace. If the session has its own
		 * network namespace, the name can only lead to a socket of the session.
		 */
		return c->m->opt.own_mounts ? 0
					    : mediate_deny(c, SV("abstract socket"), RULE_NONE,
							   CAUSE_ABSTRACT);
	p->keep = open_unix_object(c, text, &at, &st);
	if (p->keep < 0)
		return p->keep;
	if (!S_ISSOCK(st.st_mode))
		return -ECONNREFUSED;
	r = decide_unix(c, place_sv(&at), &st);
	if (r < 0)
		return r;
	p->n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(p->a.un.sun_path, sizeof(p->a.un.sun_path),
					    "/proc/self/fd/%d", p->keep));
	return 0;
}

/*
 * Decides about an address in the session's own network namespace, from which only UNIX sockets
 * lead outside. SECURITY: the mediator may have rights in that namespace that the caller lacks, so
 * it refuses unknown address families rather than connecting for the caller.
 */
static int decide_own_netns(struct call *c, int sock, struct peer *p)
{
	int domain = 0;
	socklen_t n = sizeof(domain);

	if (getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0)
		return -errno;
	if (domain == AF_UNIX)
		return p->a.sa.sa_family == AF_UNIX ? resolve_unix(c, p) : -EINVAL;
	p->plain = domain == AF_INET || domain == AF_INET6;
	if (p->plain)
		return 0;
	/* A netlink socket may connect to the kernel and nowhere else. */
	if (domain == AF_NETLINK && p->a.nl.nl_pid == 0 && p->a.nl.nl_groups == 0)
		return 0;
	return -EPERM;
}

static int decide_peer(struct call *c, int sock, struct peer *p)
{
	char family[32];

	if (c->m->opt.own_mounts)
		return decide_own_netns(c, sock, p);
	switch (p->a.sa.sa_family) {
	case AF_INET:
	case AF_INET6:
		return decide_inet(c, sock, p);
	case AF_UNIX:
		return resolve_unix(c, p);
	default:
		(void)snprintf(family, sizeof(family), "address family %d", p->a.sa.sa_family);
		return mediate_deny(c, sv_from(family), RULE_NONE, CAUSE_FAMILY);
	}
}

/* --- connect --- */

/*
 * Tries connect() on a blocking socket with the shortest possible timeout. Most connects finish at
 * once, and a thread for each connect would cost more than everything else. Returns 0, -errno, or
 * -EAGAIN if the connect takes longer.
 */
static int connect_briefly(int sock, const struct peer *p)
{
	static const struct timeval soon = { 0, 1 };
	struct timeval was;
	socklen_t n = sizeof(was);
	int r;

	if (getsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &was, &n) < 0 ||
	    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon)) < 0)
		return -EAGAIN;
	r = connect(sock, &p->a.sa, p->n) < 0 ? -errno : 0;
	if (setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &was, sizeof(was)) < 0)
		return -EACCES;
	/*
	 * The kernel continues a TCP handshake that has begun. A job repeats connect() and so waits
	 * for the end of the handshake.
	 */
	return r == -EINPROGRESS || r == -EALREADY ? -EAGAIN : r;
}

int op_connect(struct call *c)
{
	scoped_peer p = PEER_NONE;
	scoped_fd sock = -1;
	scoped_creds creds = { 0 };
	struct job *j;
	int r = mediate_peer_read(c, c->arg[1], (uint32_t)c->arg[2], &p);

	if (r < 0)
		return r;
	sock = task_dup_fd(c, reg_int(c->arg[0]));
	if (sock < 0)
		return sock;
	/*
	 * AF_UNSPEC disconnects the socket and reaches no peer. The mediator still performs the
	 * call: the caller could change the address in its memory after the mediator read it.
	 */
	if (p.a.sa.sa_family != AF_UNSPEC)
		r = decide_peer(c, sock, &p);
	if (r == 0 && !p.plain)
		r = creds_enter(c, &creds);
	if (r < 0 || is_observing(c))
		return r;
	if ((fcntl(sock, F_GETFL) & O_NONBLOCK) || p.a.sa.sa_family == AF_UNSPEC)
		return connect(sock, &p.a.sa, p.n) < 0 ? -errno : 0;
	r = connect_briefly(sock, &p);
	if (r != -EAGAIN)
		return r;
	j = mediate_job_new(c, JOB_CONNECT);
	if (!j)
		return -ENOMEM;
	memcpy(j->addr, p.a.raw, p.n);
	j->addr_n = p.n;
	j->sock = fd_take(&sock);
	j->keep = fd_take(&p.keep);
	return mediate_job_start(c, j);
}

/*
 * Refuses to create a UNIX datagram socket. The filter traps this call where it does not trap
 * sends: the mediator could not see the address of a message there, and only datagram sockets use
 * such an address.
 */
int op_datagram(struct call *c)
{
	return mediate_deny(c, SV("a UNIX datagram socket"), RULE_NONE, CAUSE_DATAGRAM);
}

int mediate_peer_for_send(struct call *c, struct job *j, uint64_t at, uint32_t n)
{
	scoped_peer p = PEER_NONE;
	int r;

	if (j->stream)
		return 0;
	r = mediate_peer_read(c, at, n, &p);
	if (r == 0)
		r = decide_peer(c, j->sock, &p);
	if (r < 0)
		return r;
	memcpy(j->addr, p.a.raw, p.n);
	j->addr_n = p.n;
	j->keep = fd_take(&p.keep);
	return 0;
}
