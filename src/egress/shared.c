#include "egress/egress_priv.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "reach/route.h"

#include "base/banned.h"

/*
 * A session that shares the host's network. Its connections come to one port of
 * the loopback, where others could come too: only those that the mediator has
 * announced, by the port they come from, are taken.
 */

enum { NAMES_MS = 600000 };

/* Datagrams and connections have ports of their own. */
static struct expected *find_expected(struct egress *e, bool udp, uint16_t from)
{
	for (size_t i = 0; i < EXPECTED_MAX; i++)
		if (e->expected[i].from == from && e->expected[i].udp == udp &&
		    e->expected[i].due_ms > e->now_ms)
			return &e->expected[i];
	return NULL;
}

/* The oldest place, or one that is not used any more. */
static struct expected *new_expected(struct egress *e)
{
	struct expected *best = &e->expected[0];

	for (size_t i = 0; i < EXPECTED_MAX; i++)
		if (e->expected[i].due_ms < best->due_ms)
			best = &e->expected[i];
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
	/* Where that fails it is gone, which is heard next. */
	(void)!send(e->route_socket, m, sizeof(*m), MSG_NOSIGNAL);
}

static void refuse(struct egress *e, struct route_message *m, struct sv host, int err)
{
	const struct reach_key key = { .host = host, .port = m->port, .proto = REACH_TCP };
	const struct reach_verdict v = reach_decide(&e->reach, &key);
	struct egress_event ev = {
		.what = EGRESS_OPEN, .answer = CAP_DENY, .rule = v.rule, .port = m->port
	};

	copy_text(ev.host, sizeof(ev.host), host);
	copy_text(ev.why, sizeof(ev.why),
		  m->udp ? SV("only TCP reaches the network")
			 : sv_from(v.why ? v.why : "no rule allows it"));
	egress_event(e, &ev);
	m->err = err;
	answer(e, m);
}

/* Which host an address means; of an address as it is, the text is in @room. */
static struct sv host_of(struct egress *e, const struct route_message *m, char room[64])
{
	const uint32_t v4 = (uint32_t)m->addr[0] << 24 | (uint32_t)m->addr[1] << 16 |
			    (uint32_t)m->addr[2] << 8 | m->addr[3];
	struct cap_net_addr a = { .v6 = m->v6, .len = m->v6 ? 128 : 32 };
	struct buf b = BUF_INIT(64);
	struct sv host = m->v6 ? SV("") : reach_name_of(&e->reach, v4);

	if (host.n)
		return sv_is(host, REACH_HOST_NAME) ? SV("localhost") : host;
	memcpy(a.b, m->addr, sizeof(a.b));
	cap_addr_print(&a, &b);
	copy_text(room, 64, buf_view(&b));
	buf_clear(&b);
	return sv_from(room);
}

/* Names may be asked for all the time a program keeps its socket. */
static bool wants_names(struct egress *e, struct route_message *m, struct expected *x)
{
	if (m->port != REACH_DNS_PORT)
		return false;
	m->port = port_of(e->shared[m->udp ? 0 : 1]->fd);
	x->due_ms = e->now_ms + NAMES_MS;
	return true;
}

/* Who speaks git's protocol at our own address speaks to the helper, which decides. */
static bool wants_git(struct egress *e, struct route_message *m, struct expected *x)
{
	static const uint8_t own[4] = { REACH_OWN >> 24, REACH_OWN >> 16 & 0xff,
					REACH_OWN >> 8 & 0xff, REACH_OWN & 0xff };

	if (!e->git_port || m->port != e->git_port || m->v6 || m->udp ||
	    memcmp(m->addr, own, sizeof(own)) != 0)
		return false;
	x->git = true;
	x->due_ms = e->now_ms + HEAD_MS;
	m->port = port_of(e->shared[2]->fd);
	return true;
}

static bool wants_host(struct egress *e, struct route_message *m, struct expected *x)
{
	char room[64];

	const struct sv host = host_of(e, m, room);

	x->port = m->port;
	x->way = (uint8_t)(m->udp ? REACH_CLOSED : reach_way(&e->reach, host, m->port));
	x->due_ms = e->now_ms + HEAD_MS;
	/* SECURITY: decided on again when it comes, so it has to be the same then. */
	if (x->way != REACH_CLOSED)
		x->host = head_lasting(e, host);
	if (x->way == REACH_CLOSED || x->host.n == 0) {
		refuse(e, m, host, m->addr[0] == REACH_POOL >> 24 ? ECONNREFUSED : ENETUNREACH);
		return false;
	}
	m->port = port_of(e->shared[2]->fd);
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

/* SECURITY: without it nobody can be told apart but those whom it announced. */
static void mediator_gone(struct egress *e)
{
	egress_unwatch(e, e->route_socket);
	e->deaf = true;
	finish_listeners(e, true);
}

/* Who had that port before is gone: the kernel has given it to another. */
static void on_bound(struct egress *e, const struct route_message *m)
{
	struct expected *x = NULL;

	for (size_t i = 0; i < EXPECTED_MAX && !x; i++)
		if (e->expected[i].id == m->id)
			x = &e->expected[i];
	if (!x)
		return;
	for (size_t i = 0; i < EXPECTED_MAX; i++)
		if (e->expected[i].from == m->port && e->expected[i].udp == x->udp)
			e->expected[i].from = 0;
	x->from = m->port;
}

void shared_heard(struct egress *e)
{
	struct route_message m;
	ssize_t n;

	if (e->deaf)
		return;
	while ((n = recv(e->route_socket, &m, sizeof(m), MSG_DONTWAIT)) == (ssize_t)sizeof(m)) {
		if (m.type == ROUTE_ASK)
			on_ask(e, &m);
		else if (m.type == ROUTE_BOUND)
			on_bound(e, &m);
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		mediator_gone(e);
}

/* Who came from port @from? False: nobody that was announced. */
bool shared_take(struct egress *e, bool udp, uint16_t from, struct expected *ret)
{
	struct expected *x;

	shared_heard(e);
	x = find_expected(e, udp, from);
	if (!x)
		return false;
	*ret = *x;
	return true;
}

void shared_forget(struct egress *e, uint32_t id)
{
	for (size_t i = 0; i < EXPECTED_MAX; i++)
		if (e->expected[i].id == id)
			e->expected[i] = (struct expected){ 0 };
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

/* Names by datagram and by connection, and one port for all else. */
void shared_open(struct egress *e)
{
	static const struct {
		enum reach_what what;
		int type;
	} ports[] = { { REACH_DNS_UDP, SOCK_DGRAM },
		      { REACH_DNS_TCP, SOCK_STREAM },
		      { REACH_HOST, SOCK_STREAM } };

	for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
		const struct reach_listener l = { .what = ports[i].what, .host = SV("") };

		e->shared[i] = egress_listener(e, &l, open_port(ports[i].type));
		e->shared[i]->shared = true;
	}
	e->route_kind = KIND_ROUTE;
	egress_watch(e, e->route_socket, EPOLLIN, &e->route_kind);
}
