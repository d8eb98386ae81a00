#include "egress/egress_priv.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/banned.h"

/*
 * The listeners inside the session: one for each name and port that a rule reaches. A listener of a
 * name that only a pattern allows is made when the name is first looked up.
 */

struct listener *egress_add_listener(struct egress *e, const struct reach_listener *l)
{
	struct listener **at = vec_push(&e->arena, &e->listeners);
	struct listener *new = at ? arena_new(&e->arena, struct listener) : NULL;

	if (!new)
		_exit(1);
	*new = (struct listener){ .kind = KIND_LISTENER, .fd = -1, .l = *l };
	if (l->what == REACH_HOST)
		new->way = (uint8_t)reach_way(&e->reach, l->host, l->port);
	*at = new;
	return new;
}

void egress_open_listener(struct egress *e, struct listener *l, int fd)
{
	const int on = 1;

	if (e->finish.begun) {
		close(fd);
		return;
	}
	l->fd = fd;
	/* Sockets that the listener accepts inherit this option. */
	if (l->l.what != REACH_DNS_UDP)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	egress_watch(e, fd, EPOLLIN, l);
}

void egress_pause_listener(struct egress *e, struct listener *l)
{
	egress_rewatch(e, l->fd, 0, l);
	l->paused = e->starved = true;
	egress_wake(e, e->now_ms + PAUSE_MS);
}

void egress_resume_listeners(struct egress *e)
{
	e->starved = false;
	for (size_t i = 0; i < e->listeners.n; i++) {
		struct listener *l = e->listeners.v[i];

		if (l->paused)
			egress_rewatch(e, l->fd, EPOLLIN, l);
		l->paused = false;
	}
}

bool egress_has_listener(const struct egress *e, struct sv host, uint16_t port)
{
	for (size_t i = 0; i < e->listeners.n; i++)
		if (e->listeners.v[i]->l.port == port && sv_eq(e->listeners.v[i]->l.host, host))
			return true;
	return false;
}

/*
 * Sends the supervisor the bind requests that are due. At most BINDS_MAX requests are without an
 * answer: if supervisor and egress each sent more than the socket buffer of the other holds, both
 * processes would block for ever.
 */
void egress_request_binds(struct egress *e)
{
	for (; e->bind_next < e->listeners.n && e->binding < BINDS_MAX; e->bind_next++) {
		struct listener *l = e->listeners.v[e->bind_next];
		struct egress_bind b = { .port = l->l.port, .v6 = l->l.v6 };

		if (!l->wanted)
			continue;
		memcpy(b.addr, l->l.addr, sizeof(b.addr));
		e->binding++;
		/*
		 * Bit 31 of the id marks a request for a listener; requests for flows to published
		 * ports do not set bit 31.
		 */
		egress_notify(e, EGRESS_BIND, (uint32_t)e->bind_next | 1u << 31, &b, sizeof(b));
	}
	for (struct flow *f = e->waiting; f && e->binding < BINDS_MAX; f = f->next) {
		const struct egress_bind b = { .port = f->port, .dial = 1 };

		if (f->state != FLOW_INSIDE || f->setup->sent)
			continue;
		f->setup->sent = true;
		e->binding++;
		egress_notify(e, EGRESS_BIND, f->id, &b, sizeof(b));
	}
}

/* Retries the bind of a listener whose earlier bind failed. Returns false if there is none. */
static bool bind_again(struct egress *e, struct sv host, uint16_t port)
{
	for (size_t i = 0; i < e->listeners.n; i++) {
		struct listener *l = e->listeners.v[i];

		if (!l->failed || l->l.port != port || !sv_eq(l->l.host, host))
			continue;
		l->failed = false;
		l->wanted = true;
		e->bind_next = i < e->bind_next ? i : e->bind_next;
		egress_request_binds(e);
		return true;
	}
	return false;
}

/*
 * Requests a listener for @host and @port. Returns false if the listener already
 * exists, or cannot be made.
 */
bool egress_bind(struct egress *e, struct sv host, uint16_t port)
{
	struct reach_listener l;

	/* On a shared network one port serves all destinations (shared_network.c). */
	if (e->mediator.fd > 0)
		return false;
	if (bind_again(e, host, port))
		return true;
	if (egress_has_listener(e, host, port) || e->listeners.n >= REACH_LISTENERS_MAX ||
	    !arena_sv(&e->arena, host, &host) || !reach_listener_for(&e->reach, host, port, &l))
		return false;
	egress_add_listener(e, &l)->wanted = true;
	egress_request_binds(e);
	return true;
}

/*
 * Records that a bind failed, probably because a program inside has bound the port on all
 * addresses. Connections to the name then reach that program, so egress reports the failure to the
 * supervisor, once per listener.
 */
static void note_failed(struct egress *e, struct listener *l)
{
	struct egress_event ev = { .what = EGRESS_OPEN,
				   .answer = CAP_DENY,
				   .rule = RULE_NONE,
				   .port = l->l.port,
				   .why = cap_why(CAUSE_PORT_TAKEN, NULL) };

	l->failed = true;
	if (l->reported)
		return;
	l->reported = true;
	egress_copy_text(ev.host, sizeof(ev.host), l->l.host);
	egress_event(e, &ev);
}

void egress_bound(struct egress *e, uint32_t id, int fd)
{
	struct listener *l;

	e->binding -= e->binding > 0;
	if (!(id & 1u << 31)) {
		flow_inside(e, id, fd);
		egress_request_binds(e);
		return;
	}
	id &= ~(1u << 31);
	if (id >= e->listeners.n || !e->listeners.v[id]->wanted) {
		if (fd >= 0)
			close(fd);
		return;
	}
	l = e->listeners.v[id];
	l->wanted = false;
	if (fd >= 0)
		egress_open_listener(e, l, fd);
	else
		note_failed(e, l);
	egress_request_binds(e);
	egress_dns_bound(e, l->l.host);
}
