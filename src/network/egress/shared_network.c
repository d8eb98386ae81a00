#include "egress/egress_priv.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "reach/route.h"

#include "base/banned.h"

/*
 * Serve sessions on the host's network. Connections of such a session arrive at one port of the
 * host's loopback, to which any program of the host can connect. SECURITY: egress accepts only
 * connections that the mediator announced, and identifies a connection by its source port.
 */

enum { NAMES_MS = 600000 };

/* Finds an announced connection by its source port. TCP and UDP have separate port spaces. */
static struct expected *find_expected(struct egress *e, bool udp, uint16_t from)
{
	for (size_t i = 0; i < EXPECTED_MAX; i++)
		if (e->shared.expected[i].from == from && e->shared.expected[i].udp == udp &&
		    e->shared.expected[i].due_ms > e->now_ms)
			return &e->shared.expected[i];
	return NULL;
}

/*
 * Returns a slot for an announcement: an unused or expired one, or else the slot of the
 * announcement that expires first.
 */
static struct expected *new_expected(struct egress *e)
{
	struct expected *best = &e->shared.expected[0];

	for (size_t i = 0; i < EXPECTED_MAX; i++)
		if (e->shared.expected[i].due_ms < best->due_ms)
			best = &e->shared.expected[i];
	return best;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in at;
	socklen_t n = sizeof(at);

	return getsockname(fd, (struct sockaddr *)&at, &n) < 0 ? 0 : ntohs(at.sin_port);
}

static void answer(struct egress *e, struct route_message *m)
{
	m->type = ROUTE_ANSWER;
	/* If send() fails, the mediator has ended, and its socket reports the end next. */
	(void)!send(e->mediator.fd, m, sizeof(*m), MSG_NOSIGNAL);
}

static void refuse(struct egress *e, struct route_message *m, struct sv host, int err)
{
	const struct reach_key key = { .host = host, .port = m->port, .proto = REACH_TCP };
	const struct reach_verdict v = reach_decide(&e->reach, &key);
	struct egress_event ev = {
		.what = EGRESS_OPEN, .answer = CAP_DENY, .rule = v.rule, .port = m->port
	};

	ev.reason = m->udp		    ? CAP_REASON_OTHER
		    : v.cause != CAUSE_NONE ? (uint8_t)v.reason
					    : CAP_REASON_NO_RULE;
	egress_copy_text(ev.host, sizeof(ev.host), host);
	ev.why = m->udp ? cap_why(CAUSE_ONLY_TCP, NULL)
			: cap_why(v.cause != CAUSE_NONE ? v.cause : CAUSE_NO_RULE, v.detail);
	egress_event(e, &ev);
	m->err = err;
	answer(e, m);
}

/*
 * Handles a request of the mediator if it is for a DNS connection; returns false if not. Programs
 * keep a resolver's socket open, so the announcement of this connection is valid for NAMES_MS.
 */
static bool wants_names(struct egress *e, struct route_message *m, struct expected *x)
{
	if (m->port != REACH_DNS_PORT)
		return false;
	m->port = port_of(e->shared.listeners[m->udp ? 0 : 1]->fd);
	x->due_ms = e->now_ms + NAMES_MS;
	return true;
}

/*
 * Handles a request of the mediator if it is for a git connection to the session's own address;
 * returns false if not. Egress passes the connection to the git helper, which decides about it.
 */
static bool wants_git(struct egress *e, struct route_message *m, struct expected *x)
{
	if (!e->shared.git_port || m->port != e->shared.git_port || m->v6 || m->udp ||
	    reach_v4(m->addr) != REACH_OWN)
		return false;
	x->git = true;
	x->due_ms = e->now_ms + HEAD_MS;
	m->port = port_of(e->shared.listeners[2]->fd);
	return true;
}

static bool wants_host(struct egress *e, struct route_message *m, struct expected *x)
{
	const struct wire_host to = m->v6 ? wire_host_v6(m->addr) : wire_host_v4(m->addr);
	char room[64];
	const struct sv host = egress_head_host(e, &to, room, sizeof(room));

	x->port = m->port;
	x->way = (uint8_t)(m->udp ? REACH_CLOSED : reach_way(&e->reach, host, m->port));
	x->due_ms = e->now_ms + HEAD_MS;
	/*
	 * SECURITY: egress decides about the connection again when it arrives. Keep the host's
	 * name, so that the second decision has the same subject.
	 */
	if (x->way != REACH_CLOSED)
		x->host = egress_head_intern(e, host);
	if (x->way == REACH_CLOSED || x->host.n == 0) {
		refuse(e, m, host, m->addr[0] == REACH_POOL >> 24 ? ECONNREFUSED : ENETUNREACH);
		return false;
	}
	m->port = port_of(e->shared.listeners[2]->fd);
	return true;
}

static void on_ask(struct egress *e, struct route_message *m)
{
	struct expected x = { .udp = m->udp };

	m->err = 0;
	if (!wants_names(e, m, &x) && !wants_git(e, m, &x) && !wants_host(e, m, &x))
		return;
	x.id = m->id = ++e->ids;
	*new_expected(e) = x;
	answer(e, m);
}

/*
 * Stops serving when the mediator has ended. SECURITY: without announcements of the mediator,
 * egress cannot tell a connection of the session from one of another program.
 */
static void mediator_gone(struct egress *e)
{
	egress_unwatch(e, e->mediator.fd);
	e->mediator.gone = true;
	egress_finish_listeners(e, true);
}

/*
 * Records the source port of an announced connection. Removes the port from an older announcement:
 * the kernel has reassigned the port.
 */
static void on_bound(struct egress *e, const struct route_message *m)
{
	struct expected *x = NULL;

	for (size_t i = 0; i < EXPECTED_MAX && !x; i++)
		if (e->shared.expected[i].id == m->id)
			x = &e->shared.expected[i];
	if (!x)
		return;
	for (size_t i = 0; i < EXPECTED_MAX; i++)
		if (e->shared.expected[i].from == m->port && e->shared.expected[i].udp == x->udp)
			e->shared.expected[i].from = 0;
	x->from = m->port;
}

void egress_shared_receive(struct egress *e)
{
	struct route_message m;
	ssize_t n;

	if (e->mediator.gone)
		return;
	while ((n = recv(e->mediator.fd, &m, sizeof(m), MSG_DONTWAIT)) == (ssize_t)sizeof(m)) {
		if (m.type == ROUTE_ASK)
			on_ask(e, &m);
		else if (m.type == ROUTE_BOUND)
			on_bound(e, &m);
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		mediator_gone(e);
}

/*
 * Copies the announcement of a connection from source port @from to *@ret. Returns false if the
 * mediator announced no such connection. The announcement of a TCP connection is for one
 * connection, so it is forgotten.
 */
bool egress_shared_take(struct egress *e, bool udp, uint16_t from, struct expected *ret)
{
	struct expected *x;

	egress_shared_receive(e);
	x = find_expected(e, udp, from);
	if (!x)
		return false;
	*ret = *x;
	if (!udp)
		*x = (struct expected){ 0 };
	return true;
}

static int open_port(int type)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_addr = { htonl(INADDR_LOOPBACK) } };
	const int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
	    (type == SOCK_STREAM && listen(fd, 4096) < 0))
		_exit(1);
	return fd;
}

/*
 * Opens the loopback ports of a session on the host's network: DNS over UDP, DNS over TCP, and one
 * port for all other connections.
 */
void egress_shared_open(struct egress *e)
{
	static const struct {
		enum reach_what what;
		int type;
	} ports[] = { { REACH_DNS_UDP, SOCK_DGRAM },
		      { REACH_DNS_TCP, SOCK_STREAM },
		      { REACH_HOST, SOCK_STREAM } };

	for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
		const struct reach_listener l = { .what = ports[i].what, .host = SV("") };

		e->shared.listeners[i] = egress_add_listener(e, &l);
		egress_open_listener(e, e->shared.listeners[i], open_port(ports[i].type));
		e->shared.listeners[i]->shared = true;
	}
	e->mediator.kind = KIND_ROUTE;
	egress_watch(e, e->mediator.fd, EPOLLIN, &e->mediator);
}
