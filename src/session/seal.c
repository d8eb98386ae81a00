#include "session/session_priv.h"

#include <errno.h>
#include <time.h>

#include "audit/logkey.h"

#include "base/banned.h"

/*
 * The realm's log knows of every session: that it began, under which policy and plan, and
 * how long its own log was when it ended, and which root it had. What was signed there
 * cannot be changed any more, so neither can the log of the session.
 */

static const char *below(struct session *s, const char *name)
{
	return arena_fmt(s->a, SV_FMT "/%s", SV_ARG(s->opt->state), name);
}

static void begin(struct entry *e, const struct session *s, const char *event)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	entry_begin(e, event, (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000);
	entry_str(e, "session", sv_from(s->id));
}

int seal_start(struct session *s, struct writ_err *err)
{
	const struct log_place place = { s->opt->state, s->opt->config, s->opt->realm };
	const char *path = below(s, "log");
	const struct digest plan = crypto_sha256(s->guarantees);
	scoped_entry e = { 0 };
	struct digest policy;
	struct realm log;
	int r = path ? cap_set_digest(&s->opt->policy->set, &policy, err) : writ_nomem(err);

	if (r == 0)
		r = realm_open(&log, path, true, err);
	if (r < 0)
		return r;
	begin(&e, s, "session.start");
	entry_digest(&e, "plan", &plan);
	entry_digest(&e, "policy", &policy);
	r = realm_append(&log, &e, s->opt->durable, NULL, err);
	/* The first of all: whoever ends it hard finds a key that is pinned. */
	if (r == 0 && log.checkpoint.size == 0 && log.latest.size == 0)
		r = log_sign(&place, &log, s->opt->durable, err);
	realm_close(&log);
	s->sealing = r == 0;
	return r;
}

void seal_end(struct session *s)
{
	const char *path = below(s, "log");
	const struct log_place place = { s->opt->state, s->opt->config, s->opt->realm };
	const struct digest root = tree_frontier_root(&s->log.tree);
	scoped_entry e = { 0 };
	struct writ_err err = { 0 };
	struct realm log;
	int r;

	if (!s->sealing || s->log.broken || !path)
		return;
	r = realm_open(&log, path, true, &err);
	if (r == 0) {
		begin(&e, s, "session.end");
		entry_num(&e, "exit", s->exit_code < 0 ? 0 : (uint64_t)s->exit_code);
		entry_num(&e, "entries", s->log.tree.size);
		entry_digest(&e, "root", &root);
		r = realm_append(&log, &e, s->opt->durable, NULL, &err);
		if (r == 0)
			r = log_sign(&place, &log, s->opt->durable, &err);
		realm_close(&log);
	}
	if (r < 0)
		say(s, "the log of this realm cannot be written: %s", err.what);
	else
		witnessed(s, &place);
}
