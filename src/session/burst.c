#include <string.h>

#include "session/session_priv.h"

#include "base/banned.h"

/*
 * Names that are refused over and over fill no record: each is written down when it first
 * comes, and what follows within a second is counted and written as one. So are names
 * above so many in a second. No question is lost from the sum.
 */

enum { WINDOW_MS = 1000 };

static bool is_over(const struct burst *b, uint64_t now)
{
	return now >= b->since_ms + WINDOW_MS;
}

static void write_counted(struct session *s, const struct burst *b)
{
	struct egress_event e = { .what = EGRESS_LOOKUP, .answer = CAP_DENY, .rule = b->rule };

	memcpy(e.host, b->host, sizeof(e.host));
	memcpy(e.why, b->why, sizeof(e.why));
	if (b->more)
		net_record(s, &e, b->more);
}

/* Writes down what is due; @all: everything, and forgets. */
void burst_flush(struct session *s, bool all)
{
	const uint64_t now = clock_ms();
	size_t n = 0;

	for (size_t i = 0; i < s->bursts_n; i++) {
		if (all || is_over(&s->bursts[i], now))
			write_counted(s, &s->bursts[i]);
		else if (n++ < i)
			s->bursts[n - 1] = s->bursts[i];
	}
	s->bursts_n = n;
	if (s->others.more && (all || is_over(&s->others, now))) {
		write_counted(s, &s->others);
		s->others.more = 0;
	}
}

static struct burst burst_of(const struct egress_event *e, uint64_t now)
{
	struct burst b = { .rule = e->rule, .since_ms = now };

	memcpy(b.host, e->host, sizeof(b.host));
	memcpy(b.why, e->why, sizeof(b.why));
	return b;
}

static void count_other(struct session *s, const struct egress_event *e, uint64_t now)
{
	if (!s->others.more) {
		s->others = burst_of(e, now);
		memcpy(s->others.host, "*", 2);
		s->others.rule = RULE_NONE;
	}
	s->others.more++;
}

/* A name was refused. True: it is to be written down, and shown. */
bool burst_is_first(struct session *s, const struct egress_event *e)
{
	const uint64_t now = clock_ms();

	burst_flush(s, false);
	for (size_t i = 0; i < s->bursts_n; i++)
		if (sv_eq(sv_from(s->bursts[i].host), sv_from(e->host))) {
			s->bursts[i].more++;
			return false;
		}
	if (s->bursts_n == BURSTS_MAX) {
		count_other(s, e, now);
		return false;
	}
	s->bursts[s->bursts_n++] = burst_of(e, now);
	return true;
}

/* Milliseconds until something is to be written down, if that is less than @least. */
int burst_timeout(struct session *s, int least)
{
	const uint64_t now = clock_ms();
	uint64_t due = now + (uint64_t)least;

	burst_flush(s, false);
	for (size_t i = 0; i < s->bursts_n; i++)
		if (s->bursts[i].more && s->bursts[i].since_ms + WINDOW_MS < due)
			due = s->bursts[i].since_ms + WINDOW_MS;
	if (s->others.more && s->others.since_ms + WINDOW_MS < due)
		due = s->others.since_ms + WINDOW_MS;
	return due > now ? (int)(due - now) : 0;
}
