#include "session/session_priv.h"

#include <errno.h>
#include <unistd.h>

#include "attest/attest.h"
#include "audit/logkey.h"
#include "signer/signer.h"

#include "base/banned.h"

/*
 * The realm's log knows of every session: that it began, under which policy and plan, and
 * how long its own log was when it ended, and which root it had. What was signed there
 * cannot be changed any more, so neither can the log of the session.
 *
 * Where `writ signer install` was done, that log is kept by writ-signer, which is told
 * every line as it is written; else by us.
 */

static const char *below(struct session *s, const char *name)
{
	return arena_fmt(s->a, SV_FMT "/%s", SV_ARG(s->opt->state), name);
}

static void begin(struct entry *e, const struct session *s, const char *event)
{
	entry_begin(e, event);
	entry_str(e, "session", sv_from(s->id));
}

/* --- the log is ours --- */

static int append(struct session *s, const struct entry *e, bool ends, struct writ_err *err)
{
	const struct log_place place = { s->opt->state, s->opt->config, s->opt->realm };
	const char *path = below(s, "log");
	struct realm log;
	int r = path ? realm_open(&log, path, true, err) : writ_nomem(err);

	if (r < 0)
		return r;
	r = realm_append(&log, e, s->opt->durable, NULL, err);
	/* Also the first of all: whoever ends it hard finds a key that is pinned. */
	if (r == 0 && (ends || (log.checkpoint.size == 0 && log.latest.size == 0)))
		r = log_sign(&place, &log, s->opt->durable, err);
	realm_close(&log);
	return r;
}

static int start_own(struct session *s, const struct signer_about *about, struct writ_err *err)
{
	scoped_entry e = { 0 };

	begin(&e, s, "session.start");
	entry_str(&e, "custody", sv_from(custody_name(CUSTODY_SAME_UID)));
	entry_digest(&e, "plan", &about->plan);
	entry_digest(&e, "policy", &about->policy);
	entry_str(&e, "tier", about->tier);
	entry_str(&e, "adapter", about->adapter);
	entry_str(&e, "version", about->version);
	return append(s, &e, false, err);
}

static int end_own(struct session *s, const struct digest *root, struct writ_err *err)
{
	scoped_entry e = { 0 };

	begin(&e, s, "session.end");
	entry_num(&e, "exit", s->exit_code < 0 ? 0 : (uint64_t)s->exit_code);
	entry_num(&e, "entries", s->log.tree.size);
	entry_digest(&e, "root", root);
	return append(s, &e, true, err);
}

/* --- somebody else keeps it --- */

static int tell(void *ctx, struct sv lines, struct writ_err *err)
{
	const struct session *s = ctx;

	return signer_tell(s->signer, lines, err);
}

int seal_signer(struct session *s, struct signer_install *ret, struct writ_err *err)
{
	const struct sv named = environ_get(s->opt->environ, SV("WRIT_SIGNER"));

	return signer_find(named.n ? arena_str(s->a, named) : NULL, ret, err);
}

int seal_start(struct session *s, struct writ_err *err)
{
	const struct signer_about about = { .realm = s->opt->realm,
					    .session = sv_from(s->id),
					    .tier = sv_from(plan_tier_name(s->opt->plan->tier)),
					    .adapter = SV("host"),
					    .version = SV(WRIT_VERSION),
					    .plan = s->plan,
					    .policy = s->policy,
					    .durable = s->opt->durable };
	struct signer_install in = { 0 };
	int r = seal_signer(s, &in, err);

	if (r == 0 && !in.there)
		r = start_own(s, &about, err);
	/* SECURITY: who has set it up wants it; there is no other log instead. */
	else if (r == 0 && signer_begin(&in, &about, &s->signer, err) < 0)
		r = err->code = WRIT_E_UNENFORCEABLE;
	if (r < 0)
		return r;
	if (s->signer >= 0) {
		s->log.tell = tell;
		s->log.ctx = s;
	}
	s->sealing = true;
	return 0;
}

void seal_lost(struct session *s)
{
	scoped_buf b = BUF_INIT(SIGNER_MESSAGE_MAX);
	struct writ_err err = { 0 };
	char letter = 0;

	/* Its last word, if it had one. */
	if (signer_receive(s->signer, &b, &letter, &err) == 0)
		(void)!writ_fail(&err, WRIT_E_SYS, 0, "%.110s",
				 letter == SIGNER_FAIL && b.n ? b.p : "writ-signer is gone");
	scope_close(&s->signer);
	s->signer = -1;
	s->log.broken = true;
	record_failed(s, &err);
}

int seal_end(struct session *s)
{
	const struct log_place place = { s->opt->state, s->opt->config, s->opt->realm };
	const struct digest root = tree_frontier_root(&s->log.tree);
	struct writ_err err = { 0 };
	int r;

	if (!s->sealing)
		return 0;
	/* Said when it happened. */
	if (s->log.broken)
		return WRIT_E_SYS;
	if (s->signer >= 0)
		r = signer_end(s->signer, s->exit_code < 0 ? 0 : (uint64_t)s->exit_code,
			       s->log.tree.size, &root, &err);
	else
		r = end_own(s, &root, &err);
	if (r < 0)
		say(s, "the log of this realm cannot be written: %s", err.what);
	else
		witnessed(s, &place);
	return r < 0 || s->log_failed ? WRIT_E_SYS : 0;
}
