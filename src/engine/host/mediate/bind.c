#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mediate/creds_priv.h"
#include "mediate/guard_priv.h"
#include "mediate/net_priv.h"
#include "mediate/op_priv.h"
#include "mediate/place_priv.h"

#include "base/banned.h"

/*
 * bind and listen. The mediator creates the file of a UNIX socket in a directory that it has
 * checked. On the host's network a session may bind only TCP sockets, only to the loopback, and
 * only with a rule.
 */

/* True if @path, resolved in the mediator's root without following links, is a name in @dir. */
static bool is_name_in(const char *path, int dir)
{
	char above[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
	const size_t n = sv_rfind(sv_from(path), '/');
	scoped_fd fd = -1;

	if (n == SIZE_MAX || n >= sizeof(above))
		return false;
	memcpy(above, path, n);
	above[n] = 0;
	fd = mediate_openat2(AT_FDCWD, n ? above : "/", O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	return fd >= 0 && mediate_same_file(fd, dir);
}

/* True for a private directory itself, whose name the session cannot change. */
static bool is_private_top(const struct mediator *m, struct sv path)
{
	for (size_t i = 0; i < m->opt.private_dirs_n; i++)
		if (sv_eq(m->opt.private_dirs[i], path))
			return true;
	return false;
}

/*
 * Chooses the path that the mediator binds the socket to. Every peer sees this path as the socket's
 * address. So use @text, the path that the caller used, if @text still leads to the directory that
 * the mediator checked; else a path through the mediator's descriptor of that directory.
 */
static int choose_bind_name(const struct mediator *m, struct peer *p, const char *text,
			    const struct place *at)
{
	/*
	 * SECURITY: in a private directory the caller can rename parents without the mediator. So
	 * the mediator does not resolve @text a second time for a name below a subdirectory of a
	 * private directory.
	 */
	const bool whole =
		text[0] == '/' && sv_is(place_sv(at), text) &&
		(!mediate_is_private(m, place_sv(at)) || is_private_top(m, place_parent(at))) &&
		is_name_in(text, at->dir);
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

/* Creates the socket's file in the directory that the mediator checked, with the caller's umask. */
static int bind_unix(struct call *c, struct peer *p)
{
	char text[sizeof(p->a.un.sun_path) + 1];
	scoped_place at = PLACE_NONE;
	scoped_creds creds = { 0 };
	scoped_fd sock = -1;
	struct guard g;
	int r;

	if (!mediate_peer_unix_path(p, text)) {
		if (c->m->opt.own_mounts)
			return ANSWER_CONTINUE;
		return mediate_deny(c, SV("abstract socket"), RULE_NONE, CAUSE_ABSTRACT);
	}
	r = mediate_peer_find_unix(c, text, &at);
	if (r < 0)
		return r;
	/*
	 * Landlock decides where the caller may create the file, and a bound name gives the session
	 * no access to anything outside. Let the call through.
	 */
	if (mediate_is_left_to_kernel(c->m, &at) && c->m->opt.own_mounts)
		return ANSWER_CONTINUE;
	if (at.name[0] == 0)
		return -EADDRINUSE;
	g = guard_classify(c, &at);
	r = g.kind == GUARD_FREE || g.kind == GUARD_ANCESTOR ||
			    mediate_is_private(c->m, place_sv(&at))
		    ? mediate_decide_path(c, WANT_PUT, place_sv(&at))
		    : guard_deny(c, &at, &g);
	if (r == 0)
		r = guard_check_completion(c, &at);
	if (r < 0 || is_observing(c))
		return r;
	sock = task_dup_fd(c, reg_int(c->arg[0]));
	if (sock < 0)
		return sock;
	r = creds_enter(c, &creds);
	if (r == 0)
		r = creds_set_umask(c, &creds);
	if (r == 0)
		r = choose_bind_name(c->m, p, text, &at);
	if (r == 0 && bind(sock, &p->a.sa, p->n) < 0)
		r = -errno;
	/*
	 * choose_bind_name() may have changed the mediator's current directory, which keeps a file
	 * system busy. Return to the root.
	 */
	if (!strchr(text, '/') && chdir("/") < 0 && r == 0)
		r = -EACCES;
	if (r < 0)
		return r;
	/* If endpoint_add() fails, connecting to this socket needs a rule. Nothing else is lost. */
	(void)endpoint_add(c->m, at.dir, at.name);
	return 0;
}

/*
 * True if any rule allows listening on the loopback. Such a rule allows port 0, for which the
 * kernel chooses a port.
 */
static bool may_bind_some(const struct mediator *m)
{
	for (size_t i = 0; i < m->rules.set.caps.n; i++)
		if (m->rules.set.caps.v[i].cap.action == CAP_NET_BIND)
			return true;
	return false;
}

/*
 * Binds a socket on the host's network: only TCP on a loopback address, with a rule. The mediator
 * refuses the unspecified address, because such a socket would accept connections from other
 * machines.
 */
static int bind_inet(struct call *c, const struct peer *p)
{
	struct cap_verdict v = { .answer = CAP_DENY, .rule = RULE_NONE };
	scoped_fd sock = -1;
	scoped_creds creds = { 0 };
	char text[96];
	bool local;
	int r;

	if (!mediate_peer_resource(p, text, &local))
		return -EINVAL;
	if (p->a.sa.sa_family == AF_INET ? p->a.in.sin_addr.s_addr == 0
					 : IN6_IS_ADDR_UNSPECIFIED(&p->a.in6.sin6_addr))
		return mediate_deny(c, sv_from(text), RULE_NONE, CAUSE_BIND_ALL);
	sock = task_dup_fd(c, reg_int(c->arg[0]));
	if (sock < 0)
		return sock;
	if (mediate_sock_type(sock) != SOCK_STREAM)
		return mediate_deny(c, sv_from(text), RULE_NONE, CAUSE_LISTEN_TCP);
	if (local && sv_ends(sv_from(text), SV(":0")) && may_bind_some(c->m))
		v.answer = CAP_ALLOW;
	else if (local)
		v = mediate_decide_text(c->m, "net.bind", sv_from(text));
	if (v.answer != CAP_ALLOW)
		return mediate_deny(c, sv_from(text), v.rule, CAUSE_NO_LISTEN_RULE);
	r = creds_enter(c, &creds);
	if (r < 0 || is_observing(c))
		return r;
	return bind(sock, &p->a.sa, p->n) < 0 ? -errno : 0;
}

int op_bind(struct call *c)
{
	scoped_peer p = PEER_NONE;
	const int r = mediate_peer_read(c, c->arg[1], (uint32_t)c->arg[2], &p);

	if (r < 0)
		return r;
	if (p.a.sa.sa_family == AF_UNIX)
		return bind_unix(c, &p);
	/* A session may bind any address in its own network namespace. */
	if (c->m->opt.own_mounts)
		return ANSWER_CONTINUE;
	if (p.a.sa.sa_family == AF_INET || p.a.sa.sa_family == AF_INET6)
		return bind_inet(c, &p);
	return mediate_deny(c, SV("socket"), RULE_NONE, CAUSE_FAMILY);
}

/*
 * True if the socket may listen: a UNIX socket, or a socket with a port if some rule allows
 * listening. SECURITY: listen() on an unbound socket would bind the socket to every address.
 * Without any rule no IP socket may listen: route.c binds sockets that connect, and these would
 * listen without a rule.
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
	return may_bind_some(m) && mediate_peer_resource(&p, text, &local) &&
	       !sv_ends(sv_from(text), SV(":0"));
}

int op_listen(struct call *c)
{
	scoped_fd sock = -1;

	if (c->m->opt.own_mounts)
		return ANSWER_CONTINUE;
	sock = task_dup_fd(c, reg_int(c->arg[0]));
	if (sock < 0)
		return sock;
	if (!was_bound(c->m, sock))
		return mediate_deny(c, SV("a port"), RULE_NONE, CAUSE_BIND_UNKNOWN);
	if (is_observing(c))
		return 0;
	return listen(sock, reg_int(c->arg[1])) < 0 ? -errno : 0;
}
