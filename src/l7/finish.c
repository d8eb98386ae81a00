/* What is still sent for a client that is gone, and the end of the session. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "l7/l7_priv.h"

#include "base/banned.h"

static const char too_late[] = "the session ended before all was sent";

/* Has the server all of the request? */
static bool is_sent(const struct call *q)
{
	const struct server *s = q->server;

	if (q->at == CALL_WAITING)
		return false;
	return !s ||
	       (q->up_sent && s->link.out.n == 0 && (!s->h2 || !nghttp2_session_want_write(s->h2)));
}

/*
 * A request that is whole goes on its way whether or not its client waits for the
 * answer. At the end of the session what came of it is waited for, in bounded time.
 */
static bool is_owed(const struct call *q)
{
	if (q->broken || q->up_discard || q->at == CALL_ASKING || !q->up_end)
		return false;
	return !is_sent(q) || (q->l7->finishing && !q->answered);
}

static bool is_any_owed(const struct client *c)
{
	const struct call *q = c->call;

	if (c->h2) {
		for (q = c->calls; q && !is_owed(q); q = q->next)
			;
		return q;
	}
	if (!q || q->broken)
		return false;
	/* What it has said and nobody has read yet may be the rest of it, or the next one. */
	if (c->link.in.n && !c->last)
		return q->at != CALL_ASKING;
	return !q->tunnel && is_owed(q);
}

void finish_client(struct client *c)
{
	struct link *k = &c->link;
	struct l7 *l = k->l7;

	if (!is_any_owed(c)) {
		link_kill(k);
		return;
	}
	if (k->mute)
		return;
	k->mute = true;
	k->deadline_ms = l7_now_ms(l) + L7_GONE_MS;
	l->leaving++;
}

/* A server has taken what it was to get: that may be all that somebody's end waited for. */
void finish_sent(struct l7 *l)
{
	for (struct link *k = l->leaving ? l->links : NULL; k; k = k->next)
		if (k->mute)
			link_wake(k);
}

void finish_begin(struct l7 *l, uint32_t ms)
{
	l->finish_ms = l7_now_ms(l) + ms;
	if (l->finishing)
		return;
	l->finishing = true;
	l->still_ms = l7_now_ms(l);
	for (struct link *k = l->links; k; k = k->next)
		if (k->what == LINK_CLIENT)
			link_wake(k);
}

static void give_up(struct l7 *l)
{
	for (struct link *k = l->links; k; k = k->next) {
		struct client *c = (struct client *)k;

		if (k->what != LINK_CLIENT || k->dead)
			continue;
		for (struct call *q = c->calls; q; q = q->next)
			if (!is_sent(q)) {
				copy_safe(q->why, sizeof(q->why), sv_from(too_late));
				c->cut |= !c->why;
				client_close(c, too_late);
			}
		link_kill(k);
	}
	l7_bury(l);
}

/* By what servers have confirmed: what is written may still lie in the kernel. */
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

void finish_look(struct l7 *l)
{
	const uint64_t now = l7_now_ms(l);
	bool busy = !l->last;
	uint64_t acked;

	if (!l->finishing || l->finished)
		return;
	acked = count_acked(l);
	if (acked != l->acked)
		l->still_ms = now;
	l->acked = acked;
	if (now >= l->finish_ms || now - l->still_ms >= FINISH_STILL_MS) {
		give_up(l);
		l->finished = true;
	}
	for (struct link *k = l->links; k; k = k->next)
		busy |= k->what == LINK_CLIENT || (k->out.n && !k->dead);
	l->finished |= !busy;
	if (l->finished)
		event_finished(l);
}
