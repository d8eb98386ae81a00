#include <errno.h>
#include <unistd.h>

#include "attest/attest.h"
#include "audit/logkey.h"
#include "audit/pin.h"
#include "base/fd.h"
#include "parts/commands.h"
#include "parts/notice.h"
#include "parts/record_priv.h"
#include "signer/signer.h"

#include "base/banned.h"

/*
 * The realm's log has an entry for the start of every session, with its policy and plan, and for
 * the end of every session, with the length and the root hash of its record. A record that is
 * changed later does not match the signed log.
 *
 * After `writ signer install`, writ-signer keeps the realm's log, and receives every line of the
 * record as it is written; otherwise the supervisor keeps the realm's log.
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

/* --- the supervisor keeps the realm's log --- */

/*
 * A cache of the realm's log from one entry to the next: the log is read and checked once, unless
 * another process appends to it.
 */
struct seal {
	const char *path;
	struct realm log;
	struct log_key key; /* signing key of the log; wiped after each use */
	bool has_key;
	struct pins pins;
	bool has_pins;
};

static void forget_key(struct seal *l)
{
	audit_log_key_wipe(&l->key);
	l->has_key = false;
}

static struct log_place place_of(const struct session *s)
{
	return (struct log_place){ s->opt->state, s->opt->config, s->opt->realm };
}

static int append_open(struct session *s, const struct entry *e, bool ends, struct writ_err *err)
{
	const struct log_place place = place_of(s);
	struct seal *l = record_of(s)->seal;
	int r = realm_append(&l->log, e, s->opt->durable, NULL, err);

	/*
	 * Sign the log at the end of a session, and after the very first entry of the log: if that
	 * session is killed, the log has a pinned key all the same.
	 */
	if (r < 0 || !(ends || (l->log.checkpoint.size == 0 && l->log.latest.size == 0)))
		return r;
	return l->has_key ? realm_sign(&l->log, &l->key.key, &l->key.sec, s->opt->durable, err)
			  : audit_log_sign(&place, &l->log, s->opt->durable, err);
}

static int append(struct session *s, const struct entry *e, bool ends, struct writ_err *err)
{
	struct seal *l = record_of(s)->seal;
	bool same;
	int r = realm_resume(&l->log, l->path, &same, err);

	/* SECURITY: forget the cached key: an entry of another process may have changed it. */
	if (r < 0 || !same)
		forget_key(l);
	if (r == 0)
		r = append_open(s, e, ends, err);
	forget_key(l);
	if (r < 0 || ends)
		realm_close(&l->log);
	else
		realm_suspend(&l->log);
	return r;
}

static int start_own(struct session *s, const struct signer_about *about, struct writ_err *err)
{
	scoped_entry e = { 0 };

	begin(&e, s, "session.start");
	entry_str(&e, "custody", sv_from(attest_custody_name(CUSTODY_SAME_UID)));
	entry_digest(&e, "plan", &about->plan);
	entry_digest(&e, "policy", &about->policy);
	entry_str(&e, "tier", about->tier);
	entry_str(&e, "adapter", about->adapter);
	entry_str(&e, "version", about->version);
	record_of(s)->seal = arena_new(s->a, struct seal);
	if (!record_of(s)->seal)
		return writ_nomem(err);
	record_of(s)->seal->log = (struct realm)REALM_INIT;
	record_of(s)->seal->path = below(s, "log");
	return record_of(s)->seal->path ? append(s, &e, false, err) : writ_nomem(err);
}

void seal_ready(struct session *s)
{
	const struct log_place place = place_of(s);
	struct writ_err none = { 0 };
	struct seal *l = record_of(s)->seal;
	bool same;

	/*
	 * Do nothing for a detached session, which goes on after its first command. Errors are
	 * ignored: seal_finish() meets and reports them again.
	 */
	if (!record_of(s)->sealing || !l || s->opt->detach || l->has_pins ||
	    realm_resume(&l->log, l->path, &same, &none) < 0)
		return;
	l->has_key = audit_log_key_current(&place, &l->log, &l->key, &none) == 0;
	realm_suspend(&l->log);
	l->pins = (struct pins)PINS_INIT;
	l->has_pins = witnesses_read(&place, &l->pins, &none) == 0;
}

static int end_own(struct session *s, const struct digest *root, struct writ_err *err)
{
	scoped_entry e = { 0 };

	begin(&e, s, "session.end");
	entry_num(&e, "exit",
		  session_status(s)->exit_code < 0 ? 0 : (uint64_t)session_status(s)->exit_code);
	entry_num(&e, "entries", record_of(s)->log.tree.size);
	entry_digest(&e, "root", root);
	return append(s, &e, true, err);
}

/* --- writ-signer keeps the realm's log --- */

static int tell(void *ctx, struct sv lines, struct writ_err *err)
{
	const struct session *s = ctx;

	return signer_send_lines(record_of(s)->signer, lines, err);
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
					    .adapter = sv_from(s->opt->plan->engine->name),
					    .version = SV(WRIT_VERSION),
					    .plan = record_of(s)->plan,
					    .policy = record_of(s)->policy,
					    .durable = s->opt->durable };
	struct signer_install in = { 0 };
	int r = seal_signer(s, &in, err);

	if (r == 0 && !in.there)
		r = start_own(s, &about, err);
	/* SECURITY: an installed writ-signer is never replaced by a log of the supervisor. */
	else if (r == 0 && signer_begin(&in, &about, &record_of(s)->signer, err) < 0)
		r = err->code = WRIT_E_UNENFORCEABLE;
	if (r < 0)
		return r;
	if (record_of(s)->signer >= 0) {
		record_of(s)->log.publish = tell;
		record_of(s)->log.ctx = s;
	}
	record_of(s)->sealing = true;
	return 0;
}

void seal_lost(struct session *s)
{
	scoped_buf b = BUF_INIT(SIGNER_MESSAGE_MAX);
	struct writ_err err = { 0 };
	char letter = 0;

	/* writ-signer may have sent the reason for its end. */
	if (signer_receive(record_of(s)->signer, &b, &letter, &err) == 0)
		(void)!writ_fail(&err, WRIT_E_SYS, 0, "%.110s",
				 letter == SIGNER_FAIL && b.n ? b.p : "writ-signer is gone");
	fd_close(&record_of(s)->signer);
	record_of(s)->log.broken = true;
	record_fail(s, &err);
}

void seal_clear(struct session *s)
{
	if (!record_of(s)->seal)
		return;
	forget_key(record_of(s)->seal);
	pins_clear(&record_of(s)->seal->pins);
	realm_close(&record_of(s)->seal->log);
}

int seal_finish(struct session *s)
{
	const struct log_place place = place_of(s);
	const struct digest root = tree_frontier_root(&record_of(s)->log.tree);
	struct writ_err err = { 0 };
	int r;

	if (!record_of(s)->sealing)
		return 0;
	/* The failure of the record was reported when it happened. */
	if (record_of(s)->log.broken)
		return WRIT_E_SYS;
	if (record_of(s)->signer >= 0)
		r = signer_end(record_of(s)->signer,
			       session_status(s)->exit_code < 0
				       ? 0
				       : (uint64_t)session_status(s)->exit_code,
			       record_of(s)->log.tree.size, &root, &err);
	else
		r = end_own(s, &root, &err);
	if (r < 0)
		notice_print(s, "the log of this realm cannot be written: %s", err.what);
	else
		witnesses_ask(s, &place,
			      record_of(s)->seal && record_of(s)->seal->has_pins
				      ? &record_of(s)->seal->pins
				      : NULL);
	return r < 0 || record_of(s)->log_failed ? WRIT_E_SYS : 0;
}
