#include "egress/egress_priv.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/address.h"

#include "base/banned.h"

/*
 * Connect a flow to its destination. Egress resolves a name only after the policy has allowed the
 * connection, checks each resolved address, and dials exactly the checked addresses.
 */

static socklen_t to_sockaddr(const struct cap_net_addr *a, uint16_t port,
			     struct sockaddr_storage *ret)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	memset(ret, 0, sizeof(*ret));
	if (a->v6) {
		memcpy(&v6.sin6_addr, a->b, 16);
		memcpy(ret, &v6, sizeof(v6));
		return sizeof(v6);
	}
	memcpy(&v4.sin_addr, a->b, 4);
	memcpy(ret, &v4, sizeof(v4));
	return sizeof(v4);
}

/*
 * Tests whether @a is an address of this host. Connecting a datagram socket sends nothing, but
 * makes the kernel choose a source address. If @a is local, the kernel chooses @a itself as the
 * source.
 */
static bool is_local_address(const struct egress *e, const struct cap_net_addr *a)
{
	static const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	struct sockaddr_storage to, from;
	const socklen_t n = to_sockaddr(a, 9, &to);
	socklen_t got = sizeof(from);
	const int s = e->dial.route[a->v6];

	/*
	 * SECURITY: if a system call of this test fails, assume a local address, so that egress
	 * does not dial @a without a rule. Only "no route" proves that @a is not local. Disconnect
	 * the socket first, because a connected socket keeps its source address.
	 */
	if (s < 0 || connect(s, &nobody, sizeof(nobody)) < 0)
		return true;
	if (connect(s, (struct sockaddr *)&to, n) < 0)
		return errno != ENETUNREACH && errno != EHOSTUNREACH;
	if (getsockname(s, (struct sockaddr *)&from, &got) < 0)
		return true;
	if (a->v6)
		return memcmp(&((struct sockaddr_in6 *)&from)->sin6_addr, a->b, 16) == 0;
	return memcmp(&((struct sockaddr_in *)&from)->sin_addr, a->b, 4) == 0;
}

static void note_dropped(struct setup *s, const struct cap_net_addr *a)
{
	scoped_buf b = BUF_INIT(64);
	const size_t n = strlen(s->dropped);

	cap_addr_print(a, &b);
	if (n + b.n + 2 < sizeof(s->dropped)) {
		if (n)
			s->dropped[n] = ' ';
		memcpy(s->dropped + n + (n > 0), b.p, b.n + 1);
	}
}

/*
 * Tests whether egress may dial address @a. SECURITY: the owner of a name decides which addresses
 * the name has. Egress dials public addresses of other hosts without a further rule. An address of
 * a private network needs a rule with `private=`, because it could be a service of the operator's
 * network that trusts its neighbours. No such rule opens an address of this host, which has one in
 * most networks that a rule names: its services are reached by a rule for localhost.
 */
static bool may_dial(struct egress *e, struct flow *f, const struct cap_net_addr *a)
{
	struct reach_key key = { .host = f->host,
				 .port = f->port,
				 .proto = f->way == REACH_RAW ? REACH_TCP : REACH_TLS,
				 .special = a };
	const struct address_verdict judged = address_judge(a);
	struct reach_verdict v;

	/*
	 * A rule may open a private network, but never the host's loopback, a metadata service or
	 * another class that is not @openable.
	 */
	if (judged.class != ADDRESS_PUBLIC && !judged.openable)
		return false;
	if (is_local_address(e, a))
		return false;
	if (judged.class == ADDRESS_PUBLIC)
		return true;
	if (f->way == REACH_READ)
		return reach_private(&e->reach, f->host, f->port, a);
	v = reach_decide(&e->reach, &key);
	return v.answer != CAP_DENY;
}

/*
 * --- the operator's proxy ---
 *
 * If the operator has configured a proxy, egress reaches all public addresses through it. SECURITY:
 * egress asks the proxy for an address that egress has resolved and checked, never for a name:
 * egress could not check which address the proxy would resolve the name to.
 */

enum upstream_state { UPSTREAM_FAILED = 0, UPSTREAM_WAIT, UPSTREAM_OPEN };

/*
 * Tests whether the flow goes through the operator's proxy, which is the case if @s has a public
 * address. If so, keeps only the public addresses of @s, and at most TARGETS_VIA of them.
 */
static bool upstream_applies(const struct egress *e, struct setup *s)
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
 * Sends CONNECT for the destination of attempt @a to the operator's proxy. Returns false if the
 * request cannot be sent completely.
 */
static bool upstream_request(const struct egress *e, struct attempt *a)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data = { .ptr = a } };
	scoped_buf b = BUF_INIT(2048);

	upstream_put(e->dial.upstream, &a->to, a->flow->port, &b);
	a->requested = !b.failed &&
		       send(a->fd, b.p, b.n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)b.n &&
		       epoll_ctl(e->epoll, EPOLL_CTL_MOD, a->fd, &ev) == 0;
	return a->requested;
}

/*
 * Reads the answer of the operator's proxy. Peeks first and consumes only the head of the answer,
 * because the bytes after the head come from the destination and belong to the tunnel.
 */
static enum upstream_state upstream_receive(struct egress *e, struct attempt *a, uint32_t events)
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

/* --- connecting --- */

static void finish(struct egress *e, struct flow *f, int fd, const struct cap_net_addr *to)
{
	const int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	flow_connected(e, f, fd, to);
}

/* Starts attempt @a to connect to address @at. Returns false if the attempt failed immediately. */
static bool try_one(struct egress *e, struct flow *f, struct attempt *a,
		    const struct cap_net_addr *at)
{
	struct sockaddr_storage to;
	const socklen_t n =
		to_sockaddr(at, f->setup->by_proxy ? e->dial.upstream->at.port : f->port, &to);

	a->requested = false;
	a->fd = socket(at->v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd < 0)
		return false;
	if (connect(a->fd, (struct sockaddr *)&to, n) < 0 && errno != EINPROGRESS) {
		close(a->fd);
		a->fd = -1;
		return false;
	}
	a->kind = KIND_ATTEMPT;
	a->flow = f;
	egress_watch(e, a->fd, EPOLLOUT, a);
	return true;
}

/*
 * Starts to connect to the next address. Returns false if no address is left or
 * all attempts are in use.
 */
static bool try_next(struct egress *e, struct flow *f)
{
	struct setup *s = f->setup;
	const uint32_t ways = s->by_proxy ? s->via_n : 1;
	const struct cap_net_addr *at;
	struct attempt *a = NULL;

	for (size_t i = 0; i < ATTEMPTS && !a; i++)
		if (s->attempts[i].fd < 0)
			a = &s->attempts[i];
	/* With a proxy, try each address through each of the proxy's addresses. */
	while (a && s->next < s->addrs_n * ways) {
		a->to = s->addrs[s->next / ways];
		at = s->by_proxy ? &s->via[s->next % ways] : &a->to;
		s->next++;
		if (try_one(e, f, a, at))
			return true;
	}
	return false;
}

static bool is_trying(const struct setup *s)
{
	for (size_t i = 0; i < ATTEMPTS; i++)
		if (s->attempts[i].fd >= 0)
			return true;
	return false;
}

static void try_or_fail(struct egress *e, struct flow *f)
{
	const struct setup *s = f->setup;
	char status[16];

	if (try_next(e, f) || is_trying(s)) {
		flow_set_due(e, f, e->now_ms + (s->by_proxy ? STAGGER_VIA_MS : STAGGER_MS));
		return;
	}
	(void)snprintf(status, sizeof(status), "%u", s->proxy_status);
	flow_refuse_detail(e, f, CAP_ALLOW, RULE_NONE,
			   !s->by_proxy	     ? CAUSE_UNREACHED
			   : s->proxy_status ? CAUSE_UPSTREAM_STATUS
					     : CAUSE_UPSTREAM_UNREACHED,
			   status);
}

/*
 * Continues the handshake with the operator's proxy: sends CONNECT, or reads the answer. Returns
 * UPSTREAM_OPEN when the flow can use the connection, which is at once if the flow does not go
 * through the proxy.
 */
static enum upstream_state proxy_handshake(struct egress *e, struct attempt *a, uint32_t events)
{
	if (!a->flow->setup->by_proxy)
		return UPSTREAM_OPEN;
	if (a->requested)
		return upstream_receive(e, a, events);
	return upstream_request(e, a) ? UPSTREAM_WAIT : UPSTREAM_FAILED;
}

void dial_event(struct egress *e, struct attempt *a, uint32_t events)
{
	struct flow *f = a->flow;
	enum upstream_state state = UPSTREAM_FAILED;
	int error = 0, fd = a->fd;
	socklen_t n = sizeof(error);
	struct cap_net_addr to = a->to;

	if (fd < 0 || f->state != FLOW_DIAL)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 && error == 0)
		state = proxy_handshake(e, a, events);
	if (state == UPSTREAM_WAIT)
		return;
	if (state == UPSTREAM_OPEN) {
		a->fd = -1;
		dial_stop(e, f);
		finish(e, f, fd, &to);
		return;
	}
	egress_unwatch(e, fd);
	close(fd);
	a->fd = -1;
	try_or_fail(e, f);
}

void dial_timer(struct egress *e, struct flow *f)
{
	if (e->now_ms >= f->setup->limit_ms)
		flow_refuse(e, f, CAP_ALLOW, RULE_NONE, CAUSE_REACH_TIME);
	else
		try_or_fail(e, f);
}

void dial_stop(struct egress *e, struct flow *f)
{
	for (size_t i = 0; f->setup && i < ATTEMPTS; i++)
		if (f->setup->attempts[i].fd >= 0) {
			egress_unwatch(e, f->setup->attempts[i].fd);
			close(f->setup->attempts[i].fd);
			f->setup->attempts[i].fd = -1;
		}
}

static void dial_now(struct egress *e, struct flow *f)
{
	f->state = FLOW_DIAL;
	try_or_fail(e, f);
}

static void ask(struct egress *e, struct flow *f);

static void find_proxy(struct egress *e, struct flow *f)
{
	const struct wire_host *host = &e->dial.upstream->at.host;
	struct setup *s = f->setup;

	if (host->kind == WIRE_HOST_NAME) {
		s->resolving_proxy = true;
		s->sent = false;
		f->state = FLOW_NAME;
		flow_set_due(e, f, s->limit_ms);
		ask(e, f);
		return;
	}
	s->via[0] = host->addr;
	s->via_n = 1;
	dial_now(e, f);
}

/*
 * Dials the addresses of @v that pass the check of may_dial(). @trusted: dials all addresses of @v,
 * because the policy names the address itself or localhost.
 */
static void dial_these(struct egress *e, struct flow *f, const struct cap_net_addr *v, size_t n,
		       bool trusted)
{
	struct setup *s = f->setup;

	s->addrs_n = s->next = 0;
	for (size_t i = 0; i < n && i < RESOLVE_MAX; i++) {
		if (trusted || may_dial(e, f, &v[i]))
			s->addrs[s->addrs_n++] = v[i];
		else
			note_dropped(s, &v[i]);
	}
	s->limit_ms = e->now_ms + DIAL_MS;
	s->by_proxy = upstream_applies(e, s);
	if (s->addrs_n == 0)
		flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_NOT_PUBLIC);
	else if (s->by_proxy)
		find_proxy(e, f);
	else
		dial_now(e, f);
}

/* Returns the name whose addresses the flow needs: its destination's or the operator's proxy's. */
static struct sv name_of(const struct egress *e, const struct flow *f)
{
	return f->setup->resolving_proxy ? wire_host_name(&e->dial.upstream->at.host) : f->host;
}

static struct asked *asked_for(struct egress *e, struct sv host)
{
	for (size_t i = 0; i < e->dial.asked_n; i++)
		if (sv_eq(e->dial.asked[i].host, host))
			return &e->dial.asked[i];
	return NULL;
}

/* Sends a question to the resolver. Returns false if too many questions are pending. */
static bool put_question(struct egress *e, const struct flow *f)
{
	const struct sv name = name_of(e, f);
	struct resolve_ask q = { .id = f->id };

	egress_copy_text(q.name, sizeof(q.name), name);
	/*
	 * EPIPE: the resolver has just ended. The resolver's socket reports the end next, and
	 * dial_ask_again() repeats the question.
	 */
	if (e->dial.asked_n == ASKED_MAX ||
	    (send(e->resolver.fd, &q, sizeof(q), MSG_NOSIGNAL | MSG_DONTWAIT) !=
		     (ssize_t)sizeof(q) &&
	     errno != EPIPE))
		return false;
	e->dial.asked[e->dial.asked_n++] = (struct asked){ f->id, 1, name };
	return true;
}

/*
 * Asks the resolver for the addresses that a flow needs. Egress sends one question per name,
 * however many flows wait for the answer.
 */
static void ask(struct egress *e, struct flow *f)
{
	struct asked *q = asked_for(e, name_of(e, f));

	if (e->resolver.fd < 0) {
		if (!e->resolver.wanted)
			egress_notify(e, EGRESS_WANT_RESOLVER, 0, NULL, 0);
		e->resolver.wanted = true;
		return;
	}
	f->setup->sent = q ? q->askers++ < ASKERS_MAX : put_question(e, f);
	if (!f->setup->sent)
		flow_refuse(e, f, CAP_ALLOW, RULE_NONE, CAUSE_NAMES_AT_ONCE);
}

void dial_ask_all(struct egress *e)
{
	struct flow *next;

	e->resolver.wanted = false;
	for (struct flow *f = e->waiting; f; f = next) {
		next = f->next;
		if (f->state == FLOW_NAME && !f->setup->sent)
			ask(e, f);
	}
}

/*
 * Repeats the pending questions to a new resolver after the old one has ended, at most LOST_MAX
 * times per flow: an answer of a name server may be what crashes the resolver.
 */
void dial_ask_again(struct egress *e)
{
	struct flow *next;

	e->dial.asked_n = 0;
	for (struct flow *f = e->waiting; f; f = next) {
		next = f->next;
		if (f->state != FLOW_NAME || !f->setup->sent)
			continue;
		f->setup->sent = false;
		if (++f->setup->resolvers_lost > LOST_MAX)
			flow_refuse(e, f, CAP_ALLOW, RULE_NONE, CAUSE_UNANSWERED);
		else
			ask(e, f);
	}
}

static const struct known *known_for(const struct egress *e, struct sv host)
{
	for (size_t i = 0; i < KNOWN; i++)
		if (e->dial.known[i].until_ms > e->now_ms && sv_eq(e->dial.known[i].host, host))
			return &e->dial.known[i];
	return NULL;
}

/*
 * Caches the addresses of a name for the lifetime that the resolver reported. Does not cache an
 * answer with more than KNOWN_ADDRS addresses, because using only some of the addresses would
 * defeat the server's load balancing.
 */
static void keep_known(struct egress *e, struct sv host, const struct resolve_answer *a)
{
	struct known *k = &e->dial.known[e->dial.known_next % KNOWN];

	if (a->ttl == 0 || a->n > KNOWN_ADDRS || known_for(e, host))
		return;
	e->dial.known_next++;
	*k = (struct known){ .host = host, .until_ms = e->now_ms + a->ttl * 1000ull, .n = a->n };
	memcpy(k->addr, a->addr, a->n * sizeof(k->addr[0]));
}

void dial_start(struct egress *e, struct flow *f)
{
	static const struct cap_net_addr loop[] = { { { 127, 0, 0, 1 }, 32, false },
						    { { [15] = 1 }, 128, true } };
	const struct known *k = known_for(e, f->host);
	struct cap_net_addr a;

	f->setup->limit_ms = e->now_ms + DIAL_MS;
	flow_set_due(e, f, f->setup->limit_ms);
	if (k) {
		dial_these(e, f, k->addr, k->n, false);
	} else if (sv_is(f->host, "localhost")) {
		dial_these(e, f, loop, 2, true);
	} else if (cap_addr_parse(f->host, &a)) {
		dial_these(e, f, &a, 1, true);
	} else {
		f->state = FLOW_NAME;
		ask(e, f);
	}
}

/*
 * Stores the addresses of the operator's proxy. Egress does not check these addresses: the operator
 * chose the proxy, and the proxy may be on a private network.
 */
static void proxy_found(struct egress *e, struct flow *f, const struct resolve_answer *a)
{
	struct setup *s = f->setup;

	for (size_t i = 0; i < a->n && i < VIA_MAX; i++)
		s->via[s->via_n++] = a->addr[i];
	if (s->via_n == 0)
		flow_refuse(e, f, CAP_ALLOW, RULE_NONE, CAUSE_UPSTREAM_ADDRESS);
	else
		dial_now(e, f);
}

static void resolved(struct egress *e, struct flow *f, const struct resolve_answer *a)
{
	if (f->setup->resolving_proxy)
		proxy_found(e, f, a);
	else if (a->n == 0)
		flow_refuse(e, f, CAP_ALLOW, RULE_NONE, CAUSE_NO_ADDRESS);
	else
		dial_these(e, f, a->addr, a->n < RESOLVE_MAX ? a->n : RESOLVE_MAX, false);
}

void dial_resolved(struct egress *e, const struct resolve_answer *a)
{
	struct sv host = SV("");
	struct flow *next;

	for (size_t i = 0; i < e->dial.asked_n && host.n == 0; i++)
		if (e->dial.asked[i].id == a->id) {
			host = e->dial.asked[i].host;
			e->dial.asked[i] = e->dial.asked[--e->dial.asked_n];
		}
	if (host.n == 0)
		return;
	keep_known(e, host, a);
	for (struct flow *f = e->waiting; f; f = next) {
		next = f->next;
		if (f->state == FLOW_NAME && f->setup->sent && sv_eq(name_of(e, f), host))
			resolved(e, f, a);
	}
}
