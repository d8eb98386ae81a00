#include "parts/network_priv.h"
#include "parts/signals.h"
#include "parts/tokens.h"

#include "base/banned.h"

/*
 * Delivers the last bytes of a session. No process in the jail is alive any more, but bytes that
 * the processes sent may still be on their way. If the session ended by itself, egress and the
 * reader have a bounded time to deliver these bytes.
 */

enum {
	SAY_MS = 300, /* time for egress and the reader to report the result */
	POLL_MS = 100,
};

/*
 * Returns the time by which the delivery must end: at most FINISH_MS from now, and within the
 * session's time limit and the grace period of a signal.
 */
static uint64_t finish_by(const struct session *s)
{
	const uint64_t length = s->opt->policy->set.limits[LIMIT_SESSION] * 1000;
	const uint64_t asked = signals_asked_ms(s);
	uint64_t by = clock_boot_ms() + FINISH_MS;

	if (length && session_status(s)->started_ms + length < by)
		by = session_status(s)->started_ms + length;
	if (asked && asked + SESSION_GRACE_MS < by)
		by = asked + SESSION_GRACE_MS;
	return by;
}

/* Tells egress and the reader to deliver their remaining bytes within @ms. */
static void tell_finish(const struct session *s, uint64_t ms)
{
	const struct egress_message m = { .type = EGRESS_FINISH, .count = (uint32_t)ms };

	/* Ignore errors: a peer that cannot be reached has ended. */
	if (network_of(s)->egress >= 0)
		(void)!egress_send(network_of(s)->egress, &m, NULL, 0);
	if (network_of(s)->reader >= 0)
		(void)!egress_send(network_of(s)->reader, &m, NULL, 0);
}

/* Starts the delivery if the session ended by itself. A stopped session delivers no more bytes. */
void network_finish_begin(struct session *s)
{
	const uint64_t now = clock_boot_ms(), by = finish_by(s);

	if (session_status(s)->stop_requested || session_status(s)->failed ||
	    !session_status(s)->emptied || by <= now)
		return;
	network_of(s)->finish_ms = by;
	tell_finish(s, by - now);
}

static bool has_finished(const struct session *s)
{
	return (network_of(s)->egress < 0 || network_of(s)->egress_finished) &&
	       (network_of(s)->reader < 0 || network_of(s)->reader_finished);
}

void network_finish(struct session *s)
{
	uint64_t by;

	while (!has_finished(s) && clock_boot_ms() < network_of(s)->finish_ms &&
	       !session_status(s)->stop_requested && !tokens_are_over(s))
		session_step_late(s, POLL_MS);
	/* End the connections that are left, so that egress and the reader report their state. */
	if (!has_finished(s))
		tell_finish(s, 0);
	by = clock_boot_ms() + SAY_MS;
	while (!has_finished(s) && clock_boot_ms() < by)
		session_step_late(s, POLL_MS);
	if (network_of(s)->egress >= 0)
		(void)!network_hear(s, &network_of(s)->egress);
	if (network_of(s)->reader >= 0)
		(void)!network_hear(s, &network_of(s)->reader);
}
