/* Deliver requests whose client has left, and the last requests of a session. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "l7/l7_priv.h"

#include "base/banned.h"


/*
 * Tests whether the reader has passed the whole request of a call to the kernel, or the call
 * needs no server any more.
 */
static bool is_sent(const struct call *q)
{
	const struct server *s = q->server;

	if (q->at == CALL_WAITING)
		return false;
	return !s || (q->req.sent && s->link.out.n == 0 &&
		      (!s->h2 || !nghttp2_session_want_write(s->h2)));
}

/*
 * Tests whether the reader must still deliver the call. The reader sends a complete request even if
 * its client does not wait for the response. At the end of the session the reader also waits, for a
 * bounded time, for the head of the response.
 */
static bool must_deliver(const struct call *q)
{
	if (q->broken || q->req.discard || q->at == CALL_ASKING || !q->req.ended)
		return false;
	return !is_sent(q) || (q->l7->finish.begun && !q->answered);
}

static bool has_undelivered(const struct client *c)
{
	const struct call *q = c->call;

	if (c->h2) {
		for (q = c->calls; q && !must_deliver(q); q = q->next)
			;
		return q;
	}
	if (!q || q->broken)
		return false;
	/*
	 * Unparsed bytes of the client may be the rest of this request, or the
	 * next request: keep both.
	 */
	if (c->link.in.n && !c->last)
		return q->at != CALL_ASKING;
	return !q->tunnel && must_deliver(q);
}

void l7_finish_client(struct client *c)
{
	struct link *k = &c->link;
	struct l7 *l = k->l7;

	if (!has_undelivered(c)) {
		l7_link_kill(k);
		return;
	}
	if (k->peer_gone)
		return;
	k->peer_gone = true;
	k->deadline_ms = l7_now_ms(l) + L7_GONE_MS;
	l->finish.leaving++;
}

/*
 * Wakes the clients that have left, after the reader has sent all output of a connection to a
 * server: a call of such a client may need no more delivery.
 */
void l7_finish_sent(struct l7 *l)
{
	for (struct link *k = l->finish.leaving ? l->links : NULL; k; k = k->next)
		if (k->peer_gone)
			l7_link_wake(k);
}

void l7_finish_begin(struct l7 *l, uint32_t ms)
{
	l->finish.limit_ms = l7_now_ms(l) + ms;
	if (l->finish.begun)
		return;
	l->finish.begun = true;
	l->finish.moved_ms = l7_now_ms(l);
	for (struct link *k = l->links; k; k = k->next)
		if (k->what == LINK_CLIENT)
			l7_link_wake(k);
}

static void give_up(struct l7 *l)
{
	for (struct link *k = l->links; k; k = k->next) {
		struct client *c = (struct client *)k;

		if (k->what != LINK_CLIENT || k->dead)
			continue;
		for (struct call *q = c->calls; q; q = q->next)
			if (!is_sent(q)) {
				q->why = cap_why(CAUSE_ENDED, NULL);
				c->cut |= c->why.cause == CAUSE_NONE;
				client_close(c, CAUSE_ENDED, NULL);
			}
		l7_link_kill(k);
	}
	l7_free_dead(l);
}

/*
 * Returns the number of bytes that servers have acknowledged; bytes that were only written may
 * still be in the kernel.
 */
static uint64_t count_acked(const struct l7 *l)
{
	uint64_t sum = 0;

	for (const struct link *k = l->links; k; k = k->next) {
		struct tcp_info t = { 0 };
		socklen_t n = sizeof(t);

		if (k->what == LINK_SERVER && k->fd >= 0 &&
		    getsockopt(k->fd, IPPROTO_TCP, TCP_INFO, &t, &n) == 0)
			sum += t.tcpi_bytes_acked;
	}
	return sum;
}

void l7_finish_check(struct l7 *l)
{
	const uint64_t now = l7_now_ms(l);
	bool busy = !l->finish.last;
	uint64_t acked;

	if (!l->finish.begun || l->finish.done)
		return;
	acked = count_acked(l);
	if (acked != l->finish.acked)
		l->finish.moved_ms = now;
	l->finish.acked = acked;
	if (now >= l->finish.limit_ms || now - l->finish.moved_ms >= FINISH_STILL_MS) {
		give_up(l);
		l->finish.done = true;
	}
	for (struct link *k = l->links; k; k = k->next)
		busy |= k->what == LINK_CLIENT || (k->out.n && !k->dead);
	l->finish.done |= !busy;
	if (l->finish.done)
		l7_event_finished(l);
}
