#include <poll.h>

#include "session/session_priv.h"

#include "base/banned.h"

/*
 * The last bytes. Nothing inside is alive any more, but what it sent may not have
 * arrived; egress and the reader have a bounded time for it, and only where the
 * session ended by itself.
 */

enum {
	SAY_MS = 300, /* for them to say how it ended */
	POLL_MS = 100,
};

/* How long it may still take: never longer than the session itself. */
static uint64_t finish_by(const struct session *s)
{
	const uint64_t length = s->opt->policy->set.limits[LIMIT_SESSION] * 1000;
	uint64_t by = clock_ms() + FINISH_MS;

	if (length && s->started_ms + length < by)
		by = s->started_ms + length;
	if (s->asked_ms && s->asked_ms + GRACE_MS < by)
		by = s->asked_ms + GRACE_MS;
	return by;
}

/* Both have @ms for what they hold. */
static void tell_finish(const struct session *s, uint64_t ms)
{
	const struct egress_message m = { .type = EGRESS_FINISH, .count = (uint32_t)ms };

	/* Who cannot be told is gone. */
	if (s->egress >= 0)
		(void)!egress_send(s->egress, &m, NULL, 0);
	if (s->reader >= 0)
		(void)!egress_send(s->reader, &m, NULL, 0);
}

/* Only of a session that ended by itself: what was to be ended ends. */
void net_finish_begin(struct session *s)
{
	const uint64_t now = clock_ms(), by = finish_by(s);

	if (s->hurried || s->failed || !s->emptied || by <= now)
		return;
	s->finish_ms = by;
	tell_finish(s, by - now);
}

static bool has_finished(const struct session *s)
{
	return (s->egress < 0 || s->egress_finished) && (s->reader < 0 || s->reader_finished);
}

/* What may still be said to us: that it is to end now. */
static void finish_step(struct session *s, int ms)
{
	struct pollfd p[4 + CLIENTS_MAX] = { { s->signals, POLLIN, 0 },
					     { s->control, POLLIN, 0 },
					     { s->egress, POLLIN, 0 },
					     { s->reader, POLLIN, 0 } };

	for (size_t i = 0; i < CLIENTS_MAX; i++)
		p[4 + i] = (struct pollfd){ s->clients[i].fd, POLLIN, 0 };
	if (poll(p, ARRAY_LEN(p), ms) <= 0)
		return;
	if (p[0].revents)
		pulse_hurry(s);
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (p[4 + i].revents)
			control_serve(s, i);
	if (p[1].revents)
		control_accept(s);
	if (p[2].revents)
		net_event(s);
	if (p[3].revents)
		net_read_event(s);
}

/*
 * Who reads what the command printed may take their time; but whoever wants the session to
 * end, and its limits, are heard, and after that only somebody who goes on reading is waited for.
 */
bool finish_waits(void *ctx)
{
	struct session *s = ctx;
	const uint64_t now = clock_ms(), length = s->opt->policy->set.limits[LIMIT_SESSION] * 1000;

	finish_step(s, 0);
	if ((length && now >= s->started_ms + length) || token_is_over(s))
		s->hurried = true;
	if (relay_activity(s->relay) != s->activity || !s->hurried || !s->read_ms) {
		s->activity = relay_activity(s->relay);
		s->read_ms = now;
	}
	return now < s->read_ms + GRACE_MS;
}

void net_finish(struct session *s)
{
	uint64_t by;

	while (!has_finished(s) && clock_ms() < s->finish_ms && !s->hurried && !token_is_over(s))
		finish_step(s, POLL_MS);
	/* Whatever there is ends now; the record says how. */
	if (!has_finished(s))
		tell_finish(s, 0);
	by = clock_ms() + SAY_MS;
	while (!has_finished(s) && clock_ms() < by)
		finish_step(s, POLL_MS);
	if (s->egress >= 0)
		(void)!net_hear(s, &s->egress);
	if (s->reader >= 0)
		(void)!net_hear(s, &s->reader);
}
