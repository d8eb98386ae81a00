#include "mediate/mediate_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "mediate/route.h"
#include "mediate/send.h"

#include "base/banned.h"

/*
 * Where sockets lead. The address and the descriptor are taken once; what was decided
 * is done on the socket we hold. With a network namespace of its own a sandbox may
 * have all of it; what is left to decide are UNIX sockets, whose names are files.
 */

struct peer {
	union {
		struct sockaddr sa;
		struct sockaddr_un un;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_nl nl;
		unsigned char raw[sizeof(struct sockaddr_storage)];
	} a;
	socklen_t n;
	int keep;   /* a UNIX socket's file, which a.un then names; owned */
	bool plain; /* who connects makes no difference */
};
#define PEER_NONE                                                                                  \
	{                                                                                          \
		.keep = -1                                                                         \
	}
#define scoped_peer __attribute__((cleanup(peer_clear))) struct peer

static void peer_clear(struct peer *p)
{
	scope_close(&p->keep);
}

static int reg(uint64_t arg)
{
	return (int)(uint32_t)arg;
}

static int peer_read(struct call *c, uint64_t at, uint64_t n, struct peer *p)
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

static bool is_v4_mapped(const struct peer *p)
{
	return IN6_IS_ADDR_V4MAPPED(&p->a.in6.sin6_addr);
}

/* "tcp/localhost:80", "tcp/10.0.0.1:80", "tcp/[fd00::1]:80"; false if it has no such form. */
static bool inet_resource(const struct peer *p, char to[96], bool *ret_local)
{
	char text[INET6_ADDRSTRLEN];
	struct in_addr v4 = { 0 };
	bool six = p->a.sa.sa_family == AF_INET6;
	unsigned port;

	if (p->n < (six ? (socklen_t)sizeof(p->a.in6) : (socklen_t)sizeof(p->a.in)))
		return false;
	port = ntohs(six ? p->a.in6.sin6_port : p->a.in.sin_port);
	if (six && is_v4_mapped(p)) {
		memcpy(&v4, p->a.in6.sin6_addr.s6_addr + 12, 4);
		six = false;
	} else if (!six) {
		v4 = p->a.in.sin_addr;
	}
	/* The unspecified address connects to this machine. */
	*ret_local = six ? IN6_IS_ADDR_LOOPBACK(&p->a.in6.sin6_addr) ||
				     IN6_IS_ADDR_UNSPECIFIED(&p->a.in6.sin6_addr)
			 : ntohl(v4.s_addr) >> 24 == 127 || v4.s_addr == 0;
	if (*ret_local)
		(void)snprintf(to, 96, "tcp/localhost:%u", port);
	else if (six && inet_ntop(AF_INET6, &p->a.in6.sin6_addr, text, sizeof(text)))
		(void)snprintf(to, 96, "tcp/[%s]:%u", text, port);
	else if (!six && inet_ntop(AF_INET, &v4, text, sizeof(text)))
		(void)snprintf(to, 96, "tcp/%s:%u", text, port);
	else
		return false;
	return true;
}

static int sock_type(int sock)
{
	int type = 0;
	socklen_t n = sizeof(type);

	return getsockopt(sock, SOL_SOCKET, SO_TYPE, &type, &n) < 0 ? -1 : type;
}

/* Many hosts have their own name server on the loopback. */
static bool is_name_server(const struct peer *p)
{
	return ntohs(p->a.sa.sa_family == AF_INET6 ? p->a.in6.sin6_port : p->a.in.sin_port) == 53;
}

/* The decision is egress', which also has it on record; @p is then where it listens. */
static int route(struct call *c, int sock, struct peer *p)
{
	struct sockaddr_storage wanted, to;
	int r;

	if (only_watching(c))
		return 0;
	memcpy(&wanted, p->a.raw, sizeof(p->a.raw));
	r = route_to(c->m, sock, sock_type(sock) != SOCK_STREAM, &wanted, &to, &p->n);
	if (r == 0)
		memcpy(p->a.raw, &to, sizeof(p->a.raw));
	return r;
}

static int decide_inet(struct call *c, int sock, struct peer *p)
{
	struct cap_verdict v = { .rule = RULE_NONE };
	char text[96];
	bool local;

	if (!inet_resource(p, text, &local))
		return -EINVAL;
	if (c->m->opt.route > 0 && (!local || is_name_server(p)))
		return route(c, sock, p);
	if (sock_type(sock) != SOCK_STREAM)
		return deny(c, sv_from(text), RULE_NONE, "only TCP reaches the network");
	v = decide_text(c->m, "net.connect", sv_from(text));
	return v.answer == CAP_ALLOW
		       ? 0
		       : deny(c, sv_from(text), v.rule, "no rule allows this address");
}

/* --- UNIX sockets --- */

/* The path in @p, with the NUL that need not be there. */
static bool unix_text(const struct peer *p,
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

/* Was it made in this session, or in a directory that nobody else has? */
static bool is_own(const struct call *c, struct sv path, const struct stat *st)
{
	return is_private(c->m, path) || is_shared(c->m, path) || bound_here(c->m, st);
}

/*
 * Sockets that hand out the machine first, then rules, then what is its own. One of its
 * own hands out nothing, whatever it is called: tmux, an agent of ssh.
 */
static int decide_unix(struct call *c, struct sv path, const struct stat *st)
{
	const struct protect_socket *known = is_own(c, path, st) ? NULL : protect_socket_find(path);
	const struct cap_verdict v = decide_text(c->m, "unix.connect", path);

	if (v.answer == CAP_ALLOW && (!known || c->m->set.caps.v[v.entry].cap.danger))
		return 0;
	if (known)
		return deny(c, path, v.rule, known->why);
	if (v.answer == CAP_DENY && v.rule == RULE_NONE && is_own(c, path, st))
		return 0;
	return deny(c, path, v.rule, "the socket is not of this session, and no rule allows it");
}

/* "/proc/self/fd/7/name", for paths that are too long otherwise: the descriptor, and the rest. */
static int find_unix(struct call *c, const char *text, struct place *ret)
{
	const char *slash = strrchr(text, '/');
	char head[sizeof(((struct sockaddr_un *)0)->sun_path) + 1] = "";
	int dir = -1;

	if (slash && (size_t)(slash - text) < sizeof(head)) {
		memcpy(head, text, (size_t)(slash - text));
		dir = own_fd_text(head);
	}
	return dir < 0 ? place_find(c, AT_FDCWD, text, ret) : place_find(c, dir, slash + 1, ret);
}

/*
 * The socket's file, as an O_PATH descriptor, and its path. A link into the session's
 * own directories is ours to follow here: nothing of a connect is left to the kernel.
 */
static int object_unix(struct call *c, const char *text, struct place *at, struct stat *st)
{
	const int own = own_fd_text(text);
	scoped_as as = { 0 };
	int r, obj;

	if (own >= 0) {
		obj = task_fd(c, own);
		if (obj >= 0 && (fstat(obj, st) < 0 || !path_of_fd(c->m, obj, at->path, &at->n))) {
			scope_close(&obj);
			return -EACCES;
		}
		/* SECURITY: what hangs in the air has a path that means nothing. */
		if (mounts_changed(c->m))
			at->n = 0;
		return obj;
	}
	r = find_unix(c, text, at);
	if (r == 0)
		r = as_begin(c, &as);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		if (is_below(place_sv(at), SV("/proc")))
			return -EACCES;
		obj = place_object(c, at, true, st);
		if (obj != ANSWER_CONTINUE)
			return obj;
	}
	return -ELOOP;
}

/* Finds the socket's file; from then on @p names that file through our descriptor. */
static int resolve_unix(struct call *c, struct peer *p)
{
	char text[sizeof(p->a.un.sun_path) + 1];
	scoped_place at = PLACE_NONE;
	struct stat st;
	int r;

	if (!unix_text(p, text))
		/* Names without a file belong to the network namespace. */
		return c->m->opt.own_mounts ? 0
					    : deny(c, SV("abstract socket"), RULE_NONE,
						   "sockets without a file");
	p->keep = object_unix(c, text, &at, &st);
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
 * In a network namespace of its own: what is no UNIX socket leads nowhere else.
 * SECURITY: we may have rights in that namespace which the target has not.
 */
static int decide_inside(struct call *c, int sock, struct peer *p)
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
	/* Of a netlink socket: only to the kernel, where it leads anyway. */
	if (domain == AF_NETLINK && p->a.nl.nl_pid == 0 && p->a.nl.nl_groups == 0)
		return 0;
	return -EPERM;
}

static int decide_peer(struct call *c, int sock, struct peer *p)
{
	char family[32];

	if (c->m->opt.own_mounts)
		return decide_inside(c, sock, p);
	switch (p->a.sa.sa_family) {
	case AF_INET:
	case AF_INET6:
		return decide_inet(c, sock, p);
	case AF_UNIX:
		return resolve_unix(c, p);
	default:
		(void)snprintf(family, sizeof(family), "address family %d", p->a.sa.sa_family);
		return deny(c, sv_from(family), RULE_NONE, "no rule can allow it");
	}
}

/* --- connect --- */

static bool blocks(int sock)
{
	return !(fcntl(sock, F_GETFL) & O_NONBLOCK);
}

/*
 * Most connects do not wait, and a thread for each would cost more than all the rest.
 * So it is tried with the shortest time there is; -EAGAIN: it would take longer.
 */
static int connect_soon(int sock, const struct peer *p)
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
	/* A TCP connection on its way goes on; who asks again waits for it. */
	return r == -EINPROGRESS || r == -EALREADY ? -EAGAIN : r;
}

int op_connect(struct call *c)
{
	scoped_peer p = PEER_NONE;
	scoped_fd sock = -1;
	scoped_as as = { 0 };
	struct job *j;
	int r = peer_read(c, c->arg[1], (uint32_t)c->arg[2], &p);

	if (r < 0)
		return r;
	sock = task_take_fd(c, reg(c->arg[0]));
	if (sock < 0)
		return sock;
	/* Letting go of a peer reaches nobody, but the address could change: not let through. */
	if (p.a.sa.sa_family != AF_UNSPEC)
		r = decide_peer(c, sock, &p);
	if (r == 0 && !p.plain)
		r = as_begin(c, &as);
	if (r < 0 || only_watching(c))
		return r;
	if (!blocks(sock) || p.a.sa.sa_family == AF_UNSPEC)
		return connect(sock, &p.a.sa, p.n) < 0 ? -errno : 0;
	r = connect_soon(sock, &p);
	if (r != -EAGAIN)
		return r;
	j = job_new(c, JOB_CONNECT);
	if (!j)
		return -ENOMEM;
	memcpy(j->addr, p.a.raw, p.n);
	j->addr_n = p.n;
	j->sock = take_fd(&sock);
	j->keep = take_fd(&p.keep);
	return job_start(c, j);
}

/*
 * Which address a message has nobody could see, so there is no socket that would obey
 * one. Only such sockets come here, and only where messages are not mediated.
 */
int op_datagram(struct call *c)
{
	return deny(c, SV("a UNIX datagram socket"), RULE_NONE,
		    "its messages could reach programs outside; with an `allow unix` rule they "
		    "are mediated");
}

int peer_for_send(struct call *c, struct job *j, uint64_t at, uint32_t n)
{
	scoped_peer p = PEER_NONE;
	int r;

	if (j->stream)
		return 0;
	r = peer_read(c, at, n, &p);
	if (r == 0)
		r = decide_peer(c, j->sock, &p);
	if (r < 0)
		return r;
	memcpy(j->addr, p.a.raw, p.n);
	j->addr_n = p.n;
	j->keep = take_fd(&p.keep);
	return 0;
}

/* --- bind --- */

/* Is @path, for us too, a name in the directory @dir? */
static bool leads_to(const char *path, int dir)
{
	const struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				      .resolve = RESOLVE_NO_SYMLINKS };
	char above[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
	const size_t n = sv_rfind(sv_from(path), '/');
	struct stat a, b;
	scoped_fd fd = -1;

	if (n == SIZE_MAX || n >= sizeof(above))
		return false;
	memcpy(above, path, n);
	above[n] = 0;
	fd = (int)syscall(SYS_openat2, AT_FDCWD, n ? above : "/", &how, sizeof(how));
	return fd >= 0 && fstat(fd, &a) == 0 && fstat(dir, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* A directory that is the session's, whose own name it cannot change. */
static bool is_private_top(const struct mediator *m, struct sv path)
{
	for (size_t i = 0; i < m->opt.private_dirs_n; i++)
		if (sv_eq(m->opt.private_dirs[i], path))
			return true;
	return false;
}

/*
 * What a socket is bound to is what everybody reads as its address, so it should be the
 * name that the target knows: @text, if that leads where we have looked; else one of ours.
 */
static int name_socket(const struct mediator *m, struct peer *p, const char *text,
		       const struct place *at)
{
	/* SECURITY: what the target may rename by itself is not walked a second time. */
	const bool whole = text[0] == '/' && sv_is(place_sv(at), text) &&
			   (!is_private(m, place_sv(at)) || is_private_top(m, place_folder(at))) &&
			   leads_to(text, at->dir);
	int n;

	if (whole || (!strchr(text, '/') && fchdir(at->dir) == 0))
		n = snprintf(p->a.un.sun_path, sizeof(p->a.un.sun_path), "%s", text);
	else
		n = snprintf(p->a.un.sun_path, sizeof(p->a.un.sun_path), "/proc/self/fd/%d/%s",
			     at->dir, at->name);
	if (n < 0 || (size_t)n >= sizeof(p->a.un.sun_path))
		return -ENAMETOOLONG;
	p->n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	return 0;
}

/* The socket's file is made in the directory we hold, with the target's umask. */
static int bind_unix(struct call *c, struct peer *p)
{
	char text[sizeof(p->a.un.sun_path) + 1];
	scoped_place at = PLACE_NONE;
	scoped_as as = { 0 };
	scoped_fd sock = -1;
	struct guarded g;
	int r;

	if (!unix_text(p, text)) {
		if (c->m->opt.own_mounts)
			return ANSWER_CONTINUE;
		return deny(c, SV("abstract socket"), RULE_NONE, "sockets without a file");
	}
	r = find_unix(c, text, &at);
	if (r < 0)
		return r;
	/* Landlock makes sure of the place; what is bound is only a name. */
	if (is_left_to_kernel(c->m, &at) && c->m->opt.own_mounts)
		return ANSWER_CONTINUE;
	if (at.name[0] == 0)
		return -EADDRINUSE;
	g = guard_look(c, &at);
	r = g.kind == GUARD_FREE || g.kind == GUARD_HOLDS || is_private(c->m, place_sv(&at))
		    ? decide_path(c, WANT_PUT, place_sv(&at))
		    : guard_refuse(c, &at, &g);
	if (r == 0)
		r = guard_complete(c, &at);
	if (r < 0 || only_watching(c))
		return r;
	sock = task_take_fd(c, reg(c->arg[0]));
	if (sock < 0)
		return sock;
	r = as_begin(c, &as);
	if (r == 0)
		r = as_mask(c, &as);
	if (r == 0)
		r = name_socket(c->m, p, text, &at);
	if (r == 0 && bind(sock, &p->a.sa, p->n) < 0)
		r = -errno;
	/* Where we stand holds a file system: back to where nobody minds. */
	if (!strchr(text, '/') && chdir("/") < 0 && r == 0)
		r = -EACCES;
	if (r < 0)
		return r;
	/* If it cannot be remembered nobody reaches it, which is all that is lost. */
	(void)bound_add(c->m, at.dir, at.name);
	return 0;
}

/* Any port of the loopback if some may be bound at all. */
static bool may_bind_some(const struct mediator *m)
{
	for (size_t i = 0; i < m->set.caps.n; i++)
		if (m->set.caps.v[i].cap.action == CAP_NET_BIND)
			return true;
	return false;
}

static int bind_inet(struct call *c, const struct peer *p)
{
	struct cap_verdict v = { .answer = CAP_DENY, .rule = RULE_NONE };
	scoped_fd sock = -1;
	scoped_as as = { 0 };
	char text[96];
	bool local;
	int r;

	if (!inet_resource(p, text, &local))
		return -EINVAL;
	if (p->a.sa.sa_family == AF_INET ? p->a.in.sin_addr.s_addr == 0
					 : IN6_IS_ADDR_UNSPECIFIED(&p->a.in6.sin6_addr))
		return deny(c, sv_from(text), RULE_NONE, "bind to the loopback, not to everything");
	sock = task_take_fd(c, reg(c->arg[0]));
	if (sock < 0)
		return sock;
	if (sock_type(sock) != SOCK_STREAM)
		return deny(c, sv_from(text), RULE_NONE, "only TCP listens");
	if (local && sv_ends(sv_from(text), SV(":0")) && may_bind_some(c->m))
		v.answer = CAP_ALLOW;
	else if (local)
		v = decide_text(c->m, "net.bind", sv_from(text));
	if (v.answer != CAP_ALLOW)
		return deny(c, sv_from(text), v.rule, "no rule allows listening here");
	r = as_begin(c, &as);
	if (r < 0 || only_watching(c))
		return r;
	return bind(sock, &p->a.sa, p->n) < 0 ? -errno : 0;
}

/* In a network namespace of its own a sandbox may bind what it likes. */
int op_bind(struct call *c)
{
	scoped_peer p = PEER_NONE;
	const int r = peer_read(c, c->arg[1], (uint32_t)c->arg[2], &p);

	if (r < 0)
		return r;
	if (p.a.sa.sa_family == AF_UNIX)
		return bind_unix(c, &p);
	if (c->m->opt.own_mounts)
		return ANSWER_CONTINUE;
	if (p.a.sa.sa_family == AF_INET || p.a.sa.sa_family == AF_INET6)
		return bind_inet(c, &p);
	return deny(c, SV("socket"), RULE_NONE, "no rule can allow this address family");
}

/*
 * SECURITY: listening on a socket that was never bound binds it, to everything; and we
 * bind those that connect.
 */
static bool was_bound(const struct mediator *m, int sock)
{
	struct peer p = PEER_NONE;
	char text[96];
	bool local = false;

	p.n = sizeof(p.a.raw);
	if (getsockname(sock, &p.a.sa, &p.n) < 0 || p.n > sizeof(p.a.raw))
		return false;
	if (p.a.sa.sa_family == AF_UNIX)
		return true;
	return may_bind_some(m) && inet_resource(&p, text, &local) &&
	       !sv_ends(sv_from(text), SV(":0"));
}

int op_listen(struct call *c)
{
	scoped_fd sock = -1;

	if (c->m->opt.own_mounts)
		return ANSWER_CONTINUE;
	sock = task_take_fd(c, reg(c->arg[0]));
	if (sock < 0)
		return sock;
	if (!was_bound(c->m, sock))
		return deny(c, SV("a port"), RULE_NONE,
			    "without a `listen` rule, or not bound to the loopback before");
	if (only_watching(c))
		return 0;
	return listen(sock, reg(c->arg[1])) < 0 ? -errno : 0;
}
