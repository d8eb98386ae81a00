#include "session/session_priv.h"

#include <errno.h>
#include <unistd.h>

#include "attest/attest.h"
#include "audit/logkey.h"
#include "audit/pin.h"
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

/*
 * What is known of the log stays in memory from one entry of ours to the next, so that it is
 * read and checked once as long as nobody else appends to it.
 */
struct seal {
	const char *path;
	struct realm log;
	struct log_key key; /* wiped as soon as it was used */
	bool has_key;
	struct pins pins;
	bool has_pins;
};

static void forget_key(struct seal *l)
{
	log_key_wipe(&l->key);
	l->has_key = false;
}

static struct log_place place_of(const struct session *s)
{
	return (struct log_place){ s->opt->state, s->opt->config, s->opt->realm };
}

static int append_open(struct session *s, const struct entry *e, bool ends, struct writ_err *err)
{
	const struct log_place place = place_of(s);
	struct seal *l = s->seal;
	int r = realm_append(&l->log, e, s->opt->durable, NULL, err);

	/* Also the first of all: whoever ends it hard finds a key that is pinned. */
	if (r < 0 || !(ends || (l->log.checkpoint.size == 0 && l->log.latest.size == 0)))
		return r;
	return l->has_key ? realm_sign(&l->log, &l->key.key, &l->key.sec, s->opt->durable, err)
			  : log_sign(&place, &l->log, s->opt->durable, err);
}

static int append(struct session *s, const struct entry *e, bool ends, struct writ_err *err)
{
	struct seal *l = s->seal;
	bool same;
	int r = realm_again(&l->log, l->path, &same, err);

	/* SECURITY: a key is changed by an entry; then this one is the old one. */
	if (r < 0 || !same)
		forget_key(l);
	if (r == 0)
		r = append_open(s, e, ends, err);
	forget_key(l);
	if (r < 0 || ends)
		realm_close(&l->log);
	else
		realm_rest(&l->log);
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
	s->seal = arena_new(s->a, struct seal);
	if (!s->seal)
		return writ_nomem(err);
	s->seal->log = (struct realm)REALM_INIT;
	s->seal->path = below(s, "log");
	return s->seal->path ? append(s, &e, false, err) : writ_nomem(err);
}

void seal_ready(struct session *s)
{
	const struct log_place place = place_of(s);
	struct writ_err none = { 0 };
	struct seal *l = s->seal;
	bool same;

	/* A session that stays goes on without its first command. What fails here fails again. */
	if (!s->sealing || !l || s->opt->detach || l->has_pins ||
	    realm_again(&l->log, l->path, &same, &none) < 0)
		return;
	l->has_key = log_key_now(&place, &l->log, &l->key, &none) == 0;
	realm_rest(&l->log);
	l->pins = (struct pins)PINS_INIT;
	l->has_pins = witnessed_read(&place, &l->pins, &none) == 0;
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

void seal_clear(struct session *s)
{
	if (!s->seal)
		return;
	forget_key(s->seal);
	pins_clear(&s->seal->pins);
	realm_close(&s->seal->log);
}

int seal_end(struct session *s)
{
	const struct log_place place = place_of(s);
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
		witnessed(s, &place, s->seal && s->seal->has_pins ? &s->seal->pins : NULL);
	return r < 0 || s->log_failed ? WRIT_E_SYS : 0;
}
