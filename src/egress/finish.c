#include "egress/egress_priv.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/banned.h"

/*
 * The session is over and nobody inside is alive, but what they have sent may still
 * lie here or in the kernel. It goes on to where it was going and is closed as they
 * closed it; what comes back is dropped. All of that is bounded, and whoever did not
 * get everything sees a reset, never an end that looks like one.
 */

static const char too_late[] = "the session ended before all was sent";

/* Those who came before the end are still taken; then there is nowhere to come to. */
void finish_listeners(struct egress *e, bool take)
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

/* Waits for something that does not come any more: a person, a process, a socket inside. */
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
				    too_late);
	}
}

void finish_begin(struct egress *e, uint32_t ms)
{
	struct flow *next;

	egress_wake(e, e->now_ms);
	e->finish_ms = e->now_ms + ms;
	if (e->finishing)
		return;
	finish_listeners(e, ms > 0);
	e->finishing = true;
	e->moved_ms = e->now_ms;
	refuse_waiting(e, ms == 0);
	for (struct flow *f = ms ? e->flows : NULL; f; f = next) {
		next = f->next;
		/* Whether it has ended is looked for now: what epoll knows of it is still to come.
		 */
		f->side[flow_inner(f)] |= READABLE | HUNG_UP;
		tunnel_run(e, f);
	}
}

/*
 * How far the other end has it, by what it has confirmed. True: it has all, our end
 * included, or what it has not yet is the kernel's to send.
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

static bool anybody_waits(const struct egress *e)
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
			flow_close(e, f, false, NULL);
		else
			flow_cut(e, f, too_late);
	}
}

void finish_look(struct egress *e)
{
	uint64_t acked = e->waiting_n;
	struct flow *next;

	if (!e->finishing || e->finished)
		return;
	for (struct flow *f = e->flows; f; f = next) {
		next = f->next;
		if (is_delivered(f, &acked))
			flow_close(e, f, false, NULL);
	}
	if (acked != e->acked)
		e->moved_ms = e->now_ms;
	e->acked = acked;
	if (e->now_ms >= e->finish_ms || e->now_ms - e->moved_ms >= FINISH_STILL_MS)
		give_up(e);
	if (!e->last_told && !anybody_waits(e)) {
		e->last_told = true;
		reader_last(e);
	}
	if (!e->flows && e->last_told) {
		e->finished = true;
		egress_tell(e, EGRESS_FINISHED, 0, NULL, 0);
		return;
	}
	egress_wake(e, e->now_ms + FINISH_LOOK_MS);
}
