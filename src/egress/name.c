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
 * Names are answered from the policy alone: no question ever leaves. A name that
 * some rule reaches has an address of its own here; whether there is such a host
 * shows when somebody connects.
 */

enum { TTL = 60, TCP_ROOM = 2 + 512, LOOKUP_MS = 5000 };

/* A connection that asks for names; bytes wait until a question is whole. */
struct asker {
	enum kind kind;
	int fd;
	uint64_t due_ms;
	size_t n;
	char bytes[TCP_ROOM];
	struct asker *next;
};

static void reply(struct egress *e, int fd, const void *peer, uint32_t peer_n,
		  const struct dns_query *q, const struct dns_answer *a)
{
	uint8_t out[2 + DNS_REPLY_ROOM];
	const size_t n = dns_reply_encode(q, a, out + 2,
					  q->udp_size < DNS_REPLY_ROOM && peer_n ? q->udp_size
										 : DNS_REPLY_ROOM);

	(void)e;
	if (n == 0)
		return;
	dns_frame_put(out, n);
	/* Whoever does not read its answers does not get them. */
	if (peer_n)
		(void)!sendto(fd, out + 2, n, MSG_DONTWAIT | MSG_NOSIGNAL, peer, peer_n);
	else
		(void)!send(fd, out, n + 2, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void reply_address(struct egress *e, int fd, const void *peer, uint32_t peer_n,
			  const struct dns_query *q, uint32_t address)
{
	const uint8_t v4[1][4] = { { (uint8_t)(address >> 24), (uint8_t)(address >> 16),
				     (uint8_t)(address >> 8), (uint8_t)address } };
	const struct dns_answer a = {
		.rcode = DNS_NOERROR, .ttl = TTL, .a = v4, .a_n = q->type == DNS_A
	};

	reply(e, fd, peer, peer_n, q, &a);
}

/* --- which names there are --- */

/* Is there a port of @name that is not closed altogether? */
static bool is_open(const struct egress *e, struct sv name, uint16_t *ports, size_t *ret_n)
{
	size_t n = reach_ports(&e->reach, name, ports), open = 0;

	for (size_t i = 0; i < n; i++)
		if (reach_way(&e->reach, name, ports[i]) != REACH_CLOSED)
			ports[open++] = ports[i];
	*ret_n = open;
	return open > 0;
}

static void refuse_name(struct egress *e, struct sv name)
{
	const struct reach_key key = { .host = name, .port = 443, .proto = REACH_TLS };
	const struct reach_verdict v = reach_decide(&e->reach, &key);
	struct egress_event ev = { .what = EGRESS_LOOKUP, .answer = CAP_DENY, .rule = v.rule };

	copy_text(ev.host, sizeof(ev.host), name);
	copy_text(ev.why, sizeof(ev.why), sv_from(v.why ? v.why : "no rule allows it"));
	egress_event(e, &ev);
}

/*
 * Listeners for what a pattern allows are made when the name first comes up. False:
 * there cannot be so many. *@ret_missing are on their way, for whoever asked first.
 */
static bool make_listeners(struct egress *e, struct sv name, const uint16_t *ports, size_t n,
			   uint32_t *ret_missing)
{
	uint32_t missing = 0;

	for (size_t i = 0; i < e->lookups.n; i++)
		if (sv_eq(e->lookups.v[i].name, name) && e->lookups.v[i].missing > missing)
			missing = e->lookups.v[i].missing;
	for (size_t i = 0; i < n; i++) {
		if (egress_bind(e, name, ports[i]))
			missing++;
		else if (e->route_socket <= 0 && !egress_has_listener(e, name, ports[i]))
			return false;
	}
	*ret_missing = missing;
	return true;
}

struct question {
	int fd;
	const void *peer;
	uint32_t peer_n;
	struct sv bytes;
};

/* The answer waits until somebody listens there. */
static bool hold(struct egress *e, const struct question *from, struct sv name, uint32_t missing)
{
	struct lookup *l = e->lookups.n < LOOKUPS_MAX ? vec_push(&e->arena, &e->lookups) : NULL;

	if (!l)
		return false;
	*l = (struct lookup){ .name = reach_name_of(&e->reach, reach_intern(&e->reach, name)),
			      .fd = from->fd,
			      .peer_n = from->peer_n,
			      .missing = missing,
			      .query_n = (uint16_t)from->bytes.n };
	if (from->peer_n > sizeof(l->peer) || from->bytes.n > sizeof(l->query)) {
		e->lookups.n--;
		return false;
	}
	memcpy(l->peer, from->peer ? from->peer : "", from->peer_n);
	memcpy(l->query, from->bytes.p, from->bytes.n);
	return true;
}

static void answer_name(struct egress *e, const struct question *from, const struct dns_query *q)
{
	const struct dns_answer none = { .rcode = DNS_NXDOMAIN }, busy = { .rcode = DNS_SERVFAIL };
	const struct sv name = wire_host_name(&q->name);
	uint16_t ports[REACH_PORTS_MAX];
	uint32_t address, missing = 0;
	size_t n;

	if (sv_is(name, "localhost")) {
		reply_address(e, from->fd, from->peer, from->peer_n, q, 0x7f000001);
		return;
	}
	if (sv_is(name, REACH_PROXY_NAME)) {
		reply_address(e, from->fd, from->peer, from->peer_n, q, REACH_OWN);
		return;
	}
	if (!is_open(e, sv_is(name, REACH_HOST_NAME) ? SV("localhost") : name, ports, &n)) {
		refuse_name(e, name);
		reply(e, from->fd, from->peer, from->peer_n, q, &none);
		return;
	}
	address = reach_intern(&e->reach, name);
	if (!address) {
		reply(e, from->fd, from->peer, from->peer_n, q, &busy);
		return;
	}
	if (!sv_is(name, REACH_HOST_NAME) && !make_listeners(e, name, ports, n, &missing))
		reply(e, from->fd, from->peer, from->peer_n, q, &busy);
	else if (missing == 0)
		reply_address(e, from->fd, from->peer, from->peer_n, q, address);
	else if (!hold(e, from, name, missing))
		reply(e, from->fd, from->peer, from->peer_n, q, &busy);
}

static void answer_reverse(struct egress *e, const struct question *from, const struct dns_query *q,
			   const uint8_t v4[4])
{
	const uint32_t address =
		(uint32_t)v4[0] << 24 | (uint32_t)v4[1] << 16 | (uint32_t)v4[2] << 8 | v4[3];
	const struct dns_answer a = { .rcode = DNS_NOERROR,
				      .ttl = TTL,
				      .ptr = address == 0x7f000001
						     ? SV("localhost")
						     : reach_name_of(&e->reach, address) };
	const struct dns_answer none = { .rcode = DNS_NXDOMAIN };

	reply(e, from->fd, from->peer, from->peer_n, q, a.ptr.n ? &a : &none);
}

static void answer(struct egress *e, const struct question *from, bool tcp)
{
	struct dns_query q;
	struct writ_err err = { 0 };
	uint8_t v4[4];
	const enum dns_verdict v = dns_query_decode(from->bytes, tcp, &q, &err);
	const struct dns_answer wrong = { .rcode = v == DNS_REFUSE ? q.rcode : DNS_FORMERR };

	if (v == DNS_DROP)
		return;
	if (v == DNS_REFUSE || q.name.kind != WIRE_HOST_NAME)
		reply(e, from->fd, from->peer, from->peer_n, &q, &wrong);
	else if (q.type == DNS_PTR && dns_ptr_v4(wire_host_name(&q.name), v4))
		answer_reverse(e, from, &q, v4);
	else
		answer_name(e, from, &q);
}

/* One more listener for @host is there, or cannot be. */
void name_bound(struct egress *e, struct sv host)
{
	for (size_t i = e->lookups.n; i-- > 0;) {
		struct lookup *l = &e->lookups.v[i];
		struct dns_query q;
		struct writ_err err = { 0 };
		const struct sv bytes = { (const char *)l->query, l->query_n };

		if (!sv_eq(l->name, host))
			continue;
		if (l->missing > 1) {
			l->missing--;
			continue;
		}
		if (dns_query_decode(bytes, l->peer_n == 0, &q, &err) == DNS_ASK)
			reply_address(e, l->fd, l->peer, l->peer_n, &q,
				      reach_intern(&e->reach, l->name));
		*l = e->lookups.v[--e->lookups.n];
	}
}

/* --- datagrams --- */

void name_datagram(struct egress *e, struct listener *l)
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
		if (!l->shared || shared_take(e, true, ntohs(peer.sin_port), &x))
			answer(e, &from, false);
	}
}

/* --- connections --- */

static void asker_end(struct egress *e, struct asker *a)
{
	for (size_t i = e->lookups.n; i-- > 0;)
		if (e->lookups.v[i].peer_n == 0 && e->lookups.v[i].fd == a->fd)
			e->lookups.v[i] = e->lookups.v[--e->lookups.n];
	close(a->fd);
	a->fd = -1;
	a->kind = KIND_DEAD;
	e->tcp_lookups--;
}

void name_accept(struct egress *e, struct listener *l)
{
	const int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct asker *a;

	if (fd < 0) {
		if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
			egress_rest(e, l);
		return;
	}
	a = e->tcp_lookups < TCP_LOOKUPS ? calloc(1, sizeof(*a)) : NULL;
	if (!a) {
		close(fd);
		return;
	}
	a->kind = KIND_LOOKUP;
	a->fd = fd;
	a->due_ms = e->now_ms + HEAD_MS;
	a->next = e->askers;
	e->askers = a;
	e->tcp_lookups++;
	egress_wake(e, a->due_ms);
	egress_watch(e, fd, EPOLLIN, a);
}

void name_ready(struct egress *e, void *conn, uint32_t events)
{
	struct asker *a = conn;
	struct writ_err err = { 0 };
	struct sv msg;
	enum wire_state s;
	ssize_t n;

	(void)events;
	if (a->fd < 0)
		return;
	n = recv(a->fd, a->bytes + a->n, sizeof(a->bytes) - a->n, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		asker_end(e, a);
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
		asker_end(e, a);
}

/* Ends those that say nothing, and frees the ended ones. */
void name_timers(struct egress *e)
{
	struct asker **at = &e->askers;

	while (*at) {
		struct asker *a = *at;

		if (a->fd >= 0 && e->now_ms >= a->due_ms)
			asker_end(e, a);
		if (a->fd < 0) {
			*at = a->next;
			free(a);
			continue;
		}
		egress_wake(e, a->due_ms);
		at = &a->next;
	}
}
