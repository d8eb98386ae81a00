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
 * checked. On the host's network a session may bind only TCP sockets, only to 127.0.0.1 or ::1, and
 * only to a port that a rule names. The same holds for listening, whoever bound the socket: route.c
 * binds sockets that connect, and the kernel binds a socket that listens without an address.
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
 * Decides about listening at an address: only TCP listens. SECURITY: only 127.0.0.1 and ::1 may be
 * listened on, with a rule for this very port. The unspecified address would accept connections
 * from other machines. Port 0 has no rule: the kernel would choose a port that no rule names.
 */
static int decide_listen(struct call *c, int sock, const struct peer *p)
{
	struct cap_verdict v = { .answer = CAP_DENY, .rule = RULE_NONE };
	enum peer_place place;
	char text[96];

	if (!mediate_peer_resource(p, text, &place))
		return -EINVAL;
	if (place == PEER_UNSPECIFIED)
		return mediate_deny(c, sv_from(text), RULE_NONE, CAUSE_BIND_ALL);
	if (mediate_sock_type(sock) != SOCK_STREAM)
		return mediate_deny(c, sv_from(text), RULE_NONE, CAUSE_LISTEN_TCP);
	if (place == PEER_LOCALHOST)
		v = mediate_decide_text(c->m, "net.bind", sv_from(text));
	return v.answer == CAP_ALLOW
		       ? 0
		       : mediate_deny(c, sv_from(text), v.rule, CAUSE_NO_LISTEN_RULE);
}

/* Binds a socket on the host's network. */
static int bind_inet(struct call *c, const struct peer *p)
{
	scoped_fd sock = -1;
	scoped_creds creds = { 0 };
	int r;

	sock = task_dup_fd(c, reg_int(c->arg[0]));
	if (sock < 0)
		return sock;
	r = decide_listen(c, sock, p);
	if (r == 0)
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

/* Reads the address that the socket is bound to. */
static int read_own_address(int sock, struct peer *p)
{
	memset(&p->a, 0, sizeof(p->a));
	p->n = sizeof(p->a.raw);
	if (getsockname(sock, &p->a.sa, &p->n) < 0)
		return -errno;
	return p->n > sizeof(p->a.raw) ? -EINVAL : 0;
}

/*
 * Listens on an IP socket that is bound to the allowed address @p. SECURITY: a socket without an
 * address would listen on every address of the host. After a disconnect getsockname() still reports
 * a port that the socket has lost. So bind the socket again: EINVAL proves that it has the port.
 * Another thread may disconnect the socket before listen(), so look at the address again.
 */
static int listen_inet(struct call *c, int sock, const struct peer *p)
{
	scoped_creds creds = { 0 };
	struct peer now = PEER_NONE;
	int r = creds_enter(c, &creds);

	if (r < 0)
		return r;
	if (bind(sock, &p->a.sa, p->n) < 0 && errno != EINVAL)
		return -errno;
	if (listen(sock, reg_int(c->arg[1])) < 0)
		return -errno;
	r = read_own_address(sock, &now);
	if (r == 0 && now.n == p->n && memcmp(now.a.raw, p->a.raw, p->n) == 0)
		return 0;
	(void)shutdown(sock, SHUT_RDWR);
	return -EACCES;
}

int op_listen(struct call *c)
{
	struct peer p = PEER_NONE;
	scoped_fd sock = -1;
	int r;

	if (c->m->opt.own_mounts)
		return ANSWER_CONTINUE;
	sock = task_dup_fd(c, reg_int(c->arg[0]));
	if (sock < 0)
		return sock;
	r = read_own_address(sock, &p);
	if (r < 0)
		return r;
	if (p.a.sa.sa_family == AF_UNIX)
		return is_observing(c) || listen(sock, reg_int(c->arg[1])) == 0 ? 0 : -errno;
	if (p.a.sa.sa_family != AF_INET && p.a.sa.sa_family != AF_INET6)
		return mediate_deny(c, SV("socket"), RULE_NONE, CAUSE_FAMILY);
	r = decide_listen(c, sock, &p);
	return r < 0 || is_observing(c) ? r : listen_inet(c, sock, &p);
}
