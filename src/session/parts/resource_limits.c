#include "parts/resource_limits.h"

#include "parts/engine.h"
#include "parts/notice.h"
#include "parts/record.h"

#include "base/banned.h"

struct limits {
	uint64_t idle_ms; /* time of the last activity when the session was first found idle */
	bool out_of_memory;
};

static struct limits *limits_of(const struct session *s)
{
	return session_state(s, &limits_initial);
}

const struct session_initial limits_initial = SESSION_INITIAL(struct limits, .idle_ms = 0);

bool limits_out_of_memory(const struct session *s)
{
	return limits_of(s)->out_of_memory;
}

static void time_is_up(struct session *s, const char *limit)
{
	record_limit(s, limit, NULL, 0);
	if (!session_status(s)->has_exit)
		session_end(s, limit, SESSION_TIMEOUT);
}

/*
 * Returns the milliseconds until @limit seconds after @since, at most @least; if they have passed,
 * ends the session.
 */
static int until(struct session *s, enum cap_limit limit, uint64_t since, int least,
		 const char *name)
{
	const uint64_t length = s->opt->policy->set.limits[limit] * 1000;
	const uint64_t now = clock_boot_ms();

	if (!length || session_phase(s) != SESSION_RUNNING)
		return least;
	if (now >= since + length) {
		time_is_up(s, name);
		return 0;
	}
	return since + length - now < (uint64_t)least ? (int)(since + length - now) : least;
}

/*
 * Enforces the limit `idle`. The supervisor may not have run for as long as the limit. Activity
 * that arrived meanwhile counts, so the loop handles pending events once before the session ends as
 * idle.
 */
static int until_idle(struct session *s, int least)
{
	const uint64_t length = s->opt->policy->set.limits[LIMIT_IDLE] * 1000;
	const uint64_t active = session_status(s)->active_ms;
	struct limits *l = limits_of(s);

	if (length && session_phase(s) == SESSION_RUNNING && clock_boot_ms() >= active + length &&
	    l->idle_ms != active) {
		l->idle_ms = active;
		return 0;
	}
	return until(s, LIMIT_IDLE, active, least, "idle");
}

int limits_deadline(struct session *s, int least)
{
	const uint64_t started = session_status(s)->started_ms;

	least = until(s, LIMIT_SESSION, started, least, "session");
	/*
	 * With `run` the limit `command` ends the session; commands.c ends single commands of a
	 * detached session.
	 */
	if (!s->opt->detach)
		least = until(s, LIMIT_COMMAND, started, least, "command");
	return until_idle(s, least);
}

void limits_finish(struct session *s)
{
	struct engine_hits hits = { 0 };
	struct writ_err err = { 0 };

	if (!engine_run(s)->limited || s->opt->plan->engine->hits(engine_run(s), &hits, &err) < 0)
		return;
	limits_of(s)->out_of_memory = hits.oom > 0;
	if (hits.oom) {
		record_limit(s, "memory", "killed", (int64_t)hits.oom);
		notice_print(s, "the memory limit was reached, and %llu processes were killed",
			     (unsigned long long)hits.oom);
	}
	if (hits.pids) {
		record_limit(s, "pids", "refused", (int64_t)hits.pids);
		notice_print(s, "the limit of processes was reached: %llu were not started",
			     (unsigned long long)hits.pids);
	}
}
