#include "egress/egress_priv.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/banned.h"

/*
 * Deliver the last bytes. The session has ended and no program inside is alive, but bytes that
 * programs sent may still be in egress or in the kernel. Egress forwards these bytes, closes or
 * resets each connection as the program did, and drops bytes that servers send back. The time for
 * the delivery is bounded. A peer that did not receive everything gets a reset, never a regular
 * close, so that the peer cannot mistake a truncated stream for a complete one.
 */


/*
 * Closes all listeners. @take: first accepts the connections that wait in the backlog of listeners
 * for hosts and for the proxy port; programs made them before the end.
 */
void egress_finish_listeners(struct egress *e, bool take)
{
	for (size_t i = 0; i < e->listeners.n; i++) {
		struct listener *l = e->listeners.v[i];

		if (l->fd < 0)
			continue;
		if (take && (l->l.what == REACH_HOST || l->l.what == REACH_PROXY) && !l->publish)
			flow_accept(e, l);
		egress_unwatch(e, l->fd);
		close(l->fd);
		l->fd = -1;
	}
}

/*
 * Tests for a flow that waits for an answer which cannot arrive any more: a person's, a new reader,
 * or a socket inside the session.
 */
static bool is_stuck(const struct flow *f)
{
	switch ((enum flow_state)f->state) {
	case FLOW_ASKED:
	case FLOW_INSIDE:
	case FLOW_UNREAD:
		return true;
	case FLOW_NAME:
	case FLOW_HEAD:
	case FLOW_DIAL:
	case FLOW_TUNNEL:
	case FLOW_DEAD:
		break;
	}
	return false;
}

static void refuse_waiting(struct egress *e, bool all)
{
	struct flow *next;

	for (struct flow *f = e->waiting; f; f = next) {
		next = f->next;
		if (!f->for_reader && (all || is_stuck(f)))
			flow_refuse(e, f, f->state == FLOW_ASKED ? CAP_DENY : CAP_ALLOW, RULE_NONE,
				    CAUSE_ENDED);
	}
}

void egress_finish_begin(struct egress *e, uint32_t ms)
{
	struct flow *next;

	egress_wake(e, e->now_ms);
	e->finish.limit_ms = e->now_ms + ms;
	if (e->finish.begun)
		return;
	egress_finish_listeners(e, ms > 0);
	e->finish.begun = true;
	e->finish.moved_ms = e->now_ms;
	refuse_waiting(e, ms == 0);
	for (struct flow *f = ms ? e->flows : NULL; f; f = next) {
		next = f->next;
		/*
		 * Poll every flow once: epoll may not yet have reported that the
		 * program closed its connection.
		 */
		f->side[flow_inner(f)] |= READABLE | HUNG_UP;
		tunnel_run(e, f);
	}
}

/*
 * Adds the number of bytes that the peer outside the session has acknowledged to *@acked. Returns
 * true if the peer has received all bytes and the close.
 */
static bool is_delivered(const struct flow *f, uint64_t *acked)
{
	const int fd = f->fd[!flow_inner(f)];
	struct tcp_info t = { 0 };
	socklen_t n = sizeof(t);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &t, &n) < 0)
		return false;
	*acked += t.tcpi_bytes_acked;
	return (f->side[flow_inner(f)] & SHUT) && t.tcpi_unacked == 0 && t.tcpi_notsent_bytes == 0;
}

static bool has_waiting(const struct egress *e)
{
	for (const struct flow *f = e->waiting; f; f = f->next)
		if (!f->for_reader)
			return true;
	return false;
}

static void give_up(struct egress *e)
{
	struct flow *next;

	refuse_waiting(e, true);
	for (struct flow *f = e->flows; f; f = next) {
		uint64_t acked = 0;

		next = f->next;
		if (is_delivered(f, &acked))
			flow_close(e, f, false, CAUSE_NONE);
		else
			flow_cut(e, f, CAUSE_ENDED);
	}
}

void egress_finish_check(struct egress *e)
{
	uint64_t acked = e->waiting_n;
	struct flow *next;

	if (!e->finish.begun || e->finish.done)
		return;
	for (struct flow *f = e->flows; f; f = next) {
		next = f->next;
		if (is_delivered(f, &acked))
			flow_close(e, f, false, CAUSE_NONE);
	}
	if (acked != e->finish.acked)
		e->finish.moved_ms = e->now_ms;
	e->finish.acked = acked;
	if (e->now_ms >= e->finish.limit_ms || e->now_ms - e->finish.moved_ms >= FINISH_STILL_MS)
		give_up(e);
	if (!e->finish.last_sent && !has_waiting(e)) {
		e->finish.last_sent = true;
		reader_send_last(e);
	}
	if (!e->flows && e->finish.last_sent) {
		e->finish.done = true;
		egress_notify(e, EGRESS_FINISHED, 0, NULL, 0);
		return;
	}
	egress_wake(e, e->now_ms + FINISH_LOOK_MS);
}
