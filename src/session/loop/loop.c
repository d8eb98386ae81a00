#include "loop/loop_priv.h"

#include <errno.h>

#include "base/banned.h"

/*
 * poll() refuses more entries than the process may have open files, and that limit may be tight:
 * the array for poll() omits entries whose descriptor is negative.
 */
static int poll_open(struct session_poll *set, int ms)
{
	struct pollfd open[SESSION_POLLS_MAX];
	size_t at[SESSION_POLLS_MAX], n = 0;
	int r;

	for (size_t i = 0; i < set->n; i++)
		if (set->p[i].fd >= 0) {
			open[n] = set->p[i];
			at[n++] = i;
		}
	r = poll(open, (nfds_t)n, ms);
	for (size_t i = 0; i < n; i++)
		set->p[at[i]].revents = r > 0 ? open[i].revents : 0;
	return r;
}

void session_poll_add(struct session_poll *set, int fd, short events)
{
	if (set->n < SESSION_POLLS_MAX)
		set->p[set->n++] = (struct pollfd){ .fd = fd, .events = events };
}

/* Waits for events. Gives memory back to the kernel once no event has come for a while. */
static int wait_for(struct session_core *c, struct session_poll *set, int ms)
{
	enum { STILL_MS = 1000 };
	const bool trims = c->stirred && (ms < 0 || ms >= STILL_MS);
	const int r = poll_open(set, trims ? STILL_MS : ms);

	if (r > 0)
		c->stirred = true;
	if (r == 0 && trims) {
		session_trim_memory();
		c->stirred = false;
	}
	return r;
}

/* Returns the milliseconds until the next deadline of any part. */
static int next_deadline(struct session *s)
{
	enum { HOUR_MS = 3600000 };
	struct session_core *c = s->core;
	int least = HOUR_MS;

	if (c->status.phase == SESSION_ENDING) {
		const uint64_t now = clock_boot_ms(), end = c->status.killed_ms + SESSION_GRACE_MS;

		/*
		 * pid 1 of the jail has tried to kill the other processes for the whole grace
		 * period. End the session: the session kills pid 1, and the kernel then kills the
		 * other processes of the jail.
		 */
		if (now >= end) {
			session_ended(s);
			return 0;
		}
		least = (int)(end - now);
	}
	for (size_t i = 0; i < c->parts_n; i++)
		if (c->parts[i].deadline)
			least = c->parts[i].deadline(s, least);
	return least;
}

/* For each row of the table, the index of its first descriptor in the poll set. */
struct slices {
	size_t at[SESSION_PARTS_MAX + 1];
};

static void fill(struct session *s, bool late, struct session_poll *set, struct slices *ret)
{
	const struct session_core *c = s->core;

	set->n = 0;
	for (size_t i = 0; i < c->parts_n; i++) {
		ret->at[i] = set->n;
		if (c->parts[i].poll && (!late || c->parts[i].late))
			c->parts[i].poll(s, set);
	}
	ret->at[c->parts_n] = set->n;
}

static void dispatch(struct session *s, bool late, const struct session_poll *set,
		     const struct slices *slices)
{
	const struct session_core *c = s->core;

	for (size_t i = 0; i < c->parts_n; i++)
		if (c->parts[i].on_event && (!late || c->parts[i].late))
			c->parts[i].on_event(s, set->p + slices->at[i],
					     slices->at[i + 1] - slices->at[i]);
}

void session_step(struct session *s)
{
	const int ms = next_deadline(s);
	struct session_poll set;
	struct slices slices;

	fill(s, false, &set, &slices);
	if (wait_for(s->core, &set, ms) < 0) {
		/*
		 * EINVAL: the limit of open files of this process is below the number of entries.
		 */
		if (errno != EINTR)
			session_end(s, "too few descriptors", SESSION_FAILED);
		return;
	}
	dispatch(s, false, &set, &slices);
}

void session_step_late(struct session *s, int ms)
{
	struct session_poll set;
	struct slices slices;

	fill(s, true, &set, &slices);
	if (poll_open(&set, ms) > 0)
		dispatch(s, true, &set, &slices);
}
