#include <string.h>

#include "parts/network_priv.h"

#include "base/banned.h"

/*
 * A name that is refused again and again does not fill the record: the first refusal is recorded at
 * once, and further refusals of the name within a second are counted and recorded as one entry. If
 * more than BURSTS_MAX names are refused within a second, one entry counts the rest. Every refusal
 * is counted.
 */

enum { WINDOW_MS = 1000 };

static bool is_over(const struct burst *b, uint64_t now)
{
	return now >= b->since_ms + WINDOW_MS;
}

static void write_counted(struct session *s, const struct burst *b)
{
	struct egress_event e = {
		.what = EGRESS_LOOKUP, .answer = CAP_DENY, .rule = b->rule, .why = b->why
	};

	memcpy(e.host, b->host, sizeof(e.host));
	if (b->more)
		network_record(s, &e, b->more);
}

/* Records the counts whose second has passed; with @all records and clears all counts. */
static void flush(struct session *s, bool all)
{
	const uint64_t now = clock_boot_ms();
	size_t n = 0;

	for (size_t i = 0; i < network_of(s)->bursts_n; i++) {
		if (all || is_over(&network_of(s)->bursts[i], now))
			write_counted(s, &network_of(s)->bursts[i]);
		else if (n++ < i)
			network_of(s)->bursts[n - 1] = network_of(s)->bursts[i];
	}
	network_of(s)->bursts_n = n;
	if (network_of(s)->others.more && (all || is_over(&network_of(s)->others, now))) {
		write_counted(s, &network_of(s)->others);
		network_of(s)->others.more = 0;
	}
}

static struct burst burst_of(const struct egress_event *e, uint64_t now)
{
	struct burst b = { .rule = e->rule, .since_ms = now, .why = e->why };

	memcpy(b.host, e->host, sizeof(b.host));
	return b;
}

static void count_other(struct session *s, const struct egress_event *e, uint64_t now)
{
	if (!network_of(s)->others.more) {
		network_of(s)->others = burst_of(e, now);
		memcpy(network_of(s)->others.host, "*", 2);
		network_of(s)->others.rule = RULE_NONE;
	}
	network_of(s)->others.more++;
}

/* Counts the refusal of a name. Returns true if the caller is to record and show the refusal. */
bool denied_names_is_first(struct session *s, const struct egress_event *e)
{
	const uint64_t now = clock_boot_ms();

	flush(s, false);
	for (size_t i = 0; i < network_of(s)->bursts_n; i++)
		if (sv_eq(sv_from(network_of(s)->bursts[i].host), sv_from(e->host))) {
			network_of(s)->bursts[i].more++;
			return false;
		}
	if (network_of(s)->bursts_n == BURSTS_MAX) {
		count_other(s, e, now);
		return false;
	}
	network_of(s)->bursts[network_of(s)->bursts_n++] = burst_of(e, now);
	return true;
}

/* Returns the milliseconds until the next count is to be recorded, at most @least. */
int denied_names_deadline(struct session *s, int least)
{
	const uint64_t now = clock_boot_ms();
	uint64_t due = now + (uint64_t)least;

	flush(s, false);
	for (size_t i = 0; i < network_of(s)->bursts_n; i++)
		if (network_of(s)->bursts[i].more &&
		    network_of(s)->bursts[i].since_ms + WINDOW_MS < due)
			due = network_of(s)->bursts[i].since_ms + WINDOW_MS;
	if (network_of(s)->others.more && network_of(s)->others.since_ms + WINDOW_MS < due)
		due = network_of(s)->others.since_ms + WINDOW_MS;
	return due > now ? (int)(due - now) : 0;
}

void denied_names_finish(struct session *s)
{
	flush(s, true);
}
