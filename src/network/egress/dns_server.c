#include "egress/egress_priv.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/dns.h"

#include "base/banned.h"

/*
 * The DNS server of the session. The server answers from the policy alone and forwards no query.
 * SECURITY: a forwarded query would carry data of the agent to any name server. A name that some
 * rule reaches gets an address of the session's pool (reach.h). Egress resolves the real name only
 * when a program connects.
 */

enum { TTL = 60, TCP_ROOM = 2 + 512, LOOPBACK = 0x7f000001 };

/* A TCP connection of a client that sends DNS queries. @bytes buffers an incomplete query. */
struct dns_client {
	enum kind kind;
	int fd;
	uint64_t due_ms;
	size_t n;
	char bytes[TCP_ROOM];
	struct dns_client *next;
};

/* A received DNS message, and the client to which the reply goes. */
struct question {
	int fd;
	const void *peer; /* address of a UDP client */
	uint32_t peer_n;  /* 0: @fd is a TCP connection to the client */
	struct sv bytes;
};

static void reply(const struct question *to, const struct dns_query *q, const struct dns_answer *a)
{
	uint8_t out[2 + DNS_REPLY_ROOM];
	const bool is_short = q->udp_size < DNS_REPLY_ROOM && to->peer_n;
	const size_t n = dns_reply_encode(q, a, out + 2, is_short ? q->udp_size : DNS_REPLY_ROOM);

	if (n == 0)
		return;
	dns_frame_put(out, n);
	/*
	 * Drop the reply if the client's socket buffer is full; egress does
	 * not wait for the client.
	 */
	if (to->peer_n)
		(void)!sendto(to->fd, out + 2, n, MSG_DONTWAIT | MSG_NOSIGNAL, to->peer,
			      to->peer_n);
	else
		(void)!send(to->fd, out, n + 2, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void reply_error(const struct question *to, const struct dns_query *q, enum dns_rcode rcode)
{
	const struct dns_answer a = { .rcode = rcode };

	reply(to, q, &a);
}

static void reply_address(const struct question *to, const struct dns_query *q, uint32_t address)
{
	const uint8_t v4[1][4] = { { (uint8_t)(address >> 24), (uint8_t)(address >> 16),
				     (uint8_t)(address >> 8), (uint8_t)address } };
	const struct dns_answer a = {
		.rcode = DNS_NOERROR, .ttl = TTL, .a = v4, .a_n = q->type == DNS_A
	};

	reply(to, q, &a);
}

/* --- names that have an address --- */

/* Writes the ports at which the policy lets programs connect to @name, and returns their number. */
static size_t open_ports(const struct egress *e, struct sv name, uint16_t *ports)
{
	size_t n = reach_ports(&e->reach, name, ports), open = 0;

	for (size_t i = 0; i < n; i++)
		if (reach_way(&e->reach, name, ports[i]) != REACH_CLOSED)
			ports[open++] = ports[i];
	return open;
}

static void refuse_name(struct egress *e, struct sv name)
{
	const struct reach_key key = { .host = name, .port = 443, .proto = REACH_TLS };
	const struct reach_verdict v = reach_decide(&e->reach, &key);
	struct egress_event ev = { .what = EGRESS_LOOKUP, .answer = CAP_DENY, .rule = v.rule };

	/*
	 * The decision about port 443 may allow the name although none of its ports is open. Report
	 * "no rule" then.
	 */
	ev.reason = v.cause != CAUSE_NONE ? (uint8_t)v.reason : CAP_REASON_NO_RULE;
	egress_copy_text(ev.host, sizeof(ev.host), name);
	ev.why = cap_why(v.cause != CAUSE_NONE ? v.cause : CAUSE_NO_RULE, v.detail);
	egress_event(e, &ev);
}

/*
 * Requests the listeners of a name that do not exist yet. The listeners of a name that only a
 * pattern allows are made when the name is first looked up. Returns false if a listener is
 * impossible, for example because there are too many. *@ret_missing is the number of listeners that
 * the reply has to wait for.
 */
static bool make_listeners(struct egress *e, struct sv name, const uint16_t *ports, size_t n,
			   uint32_t *ret_missing)
{
	uint32_t missing = 0;

	for (size_t i = 0; i < e->dns.lookups.n; i++)
		if (sv_eq(e->dns.lookups.v[i].name, name) && e->dns.lookups.v[i].missing > missing)
			missing = e->dns.lookups.v[i].missing;
	for (size_t i = 0; i < n; i++) {
		if (egress_bind(e, name, ports[i]))
			missing++;
		else if (e->mediator.fd <= 0 && !egress_has_listener(e, name, ports[i]))
			return false;
	}
	*ret_missing = missing;
	return true;
}

/*
 * Holds a DNS reply until @missing listeners are bound. A client that received the reply earlier
 * could connect too soon and be refused. Returns false if the reply cannot be held.
 */
static bool hold_reply(struct egress *e, const struct question *from, struct sv name,
		       uint32_t missing)
{
	struct lookup *l =
		e->dns.lookups.n < LOOKUPS_MAX ? vec_push(&e->arena, &e->dns.lookups) : NULL;

	if (!l)
		return false;
	*l = (struct lookup){ .name = reach_name_of(&e->reach, reach_intern(&e->reach, name)),
			      .fd = from->fd,
			      .peer_n = from->peer_n,
			      .missing = missing,
			      .query_n = (uint16_t)from->bytes.n };
	if (from->peer_n > sizeof(l->peer) || from->bytes.n > sizeof(l->query)) {
		e->dns.lookups.n--;
		return false;
	}
	memcpy(l->peer, from->peer ? from->peer : "", from->peer_n);
	memcpy(l->query, from->bytes.p, from->bytes.n);
	return true;
}

static void answer_name(struct egress *e, const struct question *from, const struct dns_query *q)
{
	const struct sv name = wire_host_name(&q->name);
	uint16_t ports[REACH_PORTS_MAX];
	uint32_t address, missing = 0;
	size_t n;

	if (sv_is(name, "localhost") || sv_is(name, REACH_PROXY_NAME)) {
		reply_address(from, q, sv_is(name, "localhost") ? LOOPBACK : REACH_OWN);
		return;
	}
	n = open_ports(e, sv_is(name, REACH_HOST_NAME) ? SV("localhost") : name, ports);
	if (n == 0) {
		refuse_name(e, name);
		reply_error(from, q, DNS_NXDOMAIN);
		return;
	}
	address = reach_intern(&e->reach, name);
	if (!address ||
	    (!sv_is(name, REACH_HOST_NAME) && !make_listeners(e, name, ports, n, &missing)))
		reply_error(from, q, DNS_SERVFAIL);
	else if (missing == 0)
		reply_address(from, q, address);
	else if (!hold_reply(e, from, name, missing))
		reply_error(from, q, DNS_SERVFAIL);
}

static void answer_reverse(struct egress *e, const struct question *from, const struct dns_query *q,
			   const uint8_t v4[4])
{
	const uint32_t address = reach_v4(v4);
	const struct sv name =
		address == LOOPBACK ? SV("localhost") : reach_name_of(&e->reach, address);
	const struct dns_answer a = { .ttl = TTL, .ptr = name };

	if (name.n)
		reply(from, q, &a);
	else
		reply_error(from, q, DNS_NXDOMAIN);
}

static void answer(struct egress *e, const struct question *from, bool tcp)
{
	struct dns_query q;
	struct writ_err err = { 0 };
	uint8_t v4[4];
	const enum dns_verdict v = dns_query_decode(from->bytes, tcp, &q, &err);

	if (v == DNS_DROP)
		return;
	if (v == DNS_REFUSE || q.name.kind != WIRE_HOST_NAME)
		reply_error(from, &q, v == DNS_REFUSE ? q.rcode : DNS_FORMERR);
	else if (q.type == DNS_PTR && dns_ptr_v4(wire_host_name(&q.name), v4))
		answer_reverse(e, from, &q, v4);
	else
		answer_name(e, from, &q);
}

/*
 * Handles the end of a bind for a listener of @host, successful or not. Sends the held replies for
 * @host that wait for no other listener.
 */
void egress_dns_bound(struct egress *e, struct sv host)
{
	for (size_t i = e->dns.lookups.n; i-- > 0;) {
		struct lookup *l = &e->dns.lookups.v[i];
		struct dns_query q;
		struct writ_err err = { 0 };
		const struct question to = { l->fd,
					     l->peer,
					     l->peer_n,
					     { (const char *)l->query, l->query_n } };

		if (!sv_eq(l->name, host))
			continue;
		if (l->missing > 1) {
			l->missing--;
			continue;
		}
		if (dns_query_decode(to.bytes, l->peer_n == 0, &q, &err) == DNS_ASK)
			reply_address(&to, &q, reach_intern(&e->reach, l->name));
		*l = e->dns.lookups.v[--e->dns.lookups.n];
	}
}

/* --- queries over UDP --- */

void egress_dns_datagram(struct egress *e, struct listener *l)
{
	for (int i = 0; i < 64; i++) {
		char bytes[DNS_UDP_MAX + 1];
		struct sockaddr_in peer;
		socklen_t peer_n = sizeof(peer);
		const ssize_t n = recvfrom(l->fd, bytes, sizeof(bytes), MSG_DONTWAIT,
					   (struct sockaddr *)&peer, &peer_n);
		const struct question from = { l->fd, &peer, peer_n, { bytes, (size_t)n } };

		struct expected x;

		if (n < 0)
			return;
		if (!l->shared || egress_shared_take(e, true, ntohs(peer.sin_port), &x))
			answer(e, &from, false);
	}
}

/* --- queries over TCP --- */

static void dns_client_end(struct egress *e, struct dns_client *a)
{
	for (size_t i = e->dns.lookups.n; i-- > 0;)
		if (e->dns.lookups.v[i].peer_n == 0 && e->dns.lookups.v[i].fd == a->fd)
			e->dns.lookups.v[i] = e->dns.lookups.v[--e->dns.lookups.n];
	close(a->fd);
	a->fd = -1;
	a->kind = KIND_DEAD;
	e->dns.clients_n--;
}

void egress_dns_accept(struct egress *e, struct listener *l)
{
	const int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct dns_client *a;

	if (fd < 0) {
		if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
			egress_pause_listener(e, l);
		return;
	}
	a = e->dns.clients_n < TCP_LOOKUPS ? calloc(1, sizeof(*a)) : NULL;
	if (!a) {
		close(fd);
		return;
	}
	a->kind = KIND_LOOKUP;
	a->fd = fd;
	a->due_ms = e->now_ms + HEAD_MS;
	a->next = e->dns.clients;
	e->dns.clients = a;
	e->dns.clients_n++;
	egress_wake(e, a->due_ms);
	egress_watch(e, fd, EPOLLIN, a);
}

void egress_dns_ready(struct egress *e, void *conn)
{
	struct dns_client *a = conn;
	struct writ_err err = { 0 };
	struct sv msg;
	enum wire_state s;
	ssize_t n;

	if (a->fd < 0)
		return;
	n = recv(a->fd, a->bytes + a->n, sizeof(a->bytes) - a->n, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		dns_client_end(e, a);
		return;
	}
	a->n += (size_t)n;
	while ((s = dns_frame((struct sv){ a->bytes, a->n }, &msg, &err)) == WIRE_DONE) {
		const struct question from = { a->fd, NULL, 0, msg };

		answer(e, &from, true);
		a->n -= msg.n + 2;
		memmove(a->bytes, msg.p + msg.n, a->n);
	}
	if (s == WIRE_BAD || a->n == sizeof(a->bytes))
		dns_client_end(e, a);
}

/* Ends TCP connections that were accepted more than HEAD_MS ago, and frees all ended ones. */
void egress_dns_timers(struct egress *e)
{
	struct dns_client **at = &e->dns.clients;

	while (*at) {
		struct dns_client *a = *at;

		if (a->fd >= 0 && e->now_ms >= a->due_ms)
			dns_client_end(e, a);
		if (a->fd < 0) {
			*at = a->next;
			free(a);
			continue;
		}
		egress_wake(e, a->due_ms);
		at = &a->next;
	}
}
