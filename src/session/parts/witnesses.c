#include <string.h>

#include "parts/notice.h"
#include "parts/record_priv.h"
#include "signer/signer.h"
#include "witness/ask.h"

#include "base/banned.h"

/*
 * When a session has ended, the supervisor asks the witnesses of the realm's log to cosign the log.
 * A witness may be slow or gone: the session's end waits for a bounded time, and the exit code
 * stays that of the command. A missing cosignature is reported and recorded, and the next session
 * that ends asks for it again.
 */

enum { WITNESS_MS = 2000 };

static void append(const struct log_place *place, const struct tlog_witness *w, const char *why)
{
	scoped_entry e = { 0 };
	struct writ_err ignored = { 0 };
	char path[LOG_PATH];
	struct realm log;

	if (audit_log_path(place->state, "log", path, &ignored) < 0 ||
	    realm_open(&log, path, true, &ignored) < 0)
		return;
	entry_begin(&e, "witness.failed");
	entry_str(&e, "witness", w->key.name);
	entry_str(&e, "why", sv_from(why));
	if (realm_append(&log, &e, false, NULL, &ignored) == 0)
		(void)!audit_log_sign(place, &log, false, &ignored);
	realm_close(&log);
}

static void judge(struct session *s, const struct log_place *place, const struct tlog_witness *w,
		  const struct witnessed_one *one)
{
	const char *why = one->err.what;

	switch (one->what) {
	case WITNESSED_COSIGNED:
		return;
	case WITNESSED_SHORTER:
		why = "it has seen more than this log has: entries are gone, or it is an older "
		      "copy";
		break;
	case WITNESSED_DIFFERENT:
		why = "it has seen another log of this name";
		break;
	case WITNESSED_NOT:
		break;
	}
	notice_print(s, "witness " SV_FMT ": %s%s%s", SV_ARG(w->name), why,
		     one->err.sys ? ": " : "", one->err.sys ? strerror(one->err.sys) : "");
	/* writ-signer records only what it has seen itself, and it has not asked the witnesses. */
	if (record_of(s)->signer < 0)
		append(place, w, why);
}

/*
 * Asks witnesses about the log of writ-signer. writ-signer has no network access, so the supervisor
 * passes messages between writ-signer and the witnesses.
 */
static int ask_for_signer(struct session *s, const struct log_place *place,
			  const struct tlog_policy *pins, struct witnessed_all *all,
			  struct writ_err *err)
{
	struct signer_copy *c = arena_new(s->a, struct signer_copy);
	int r;

	if (!c)
		return writ_nomem(err);
	c->realm = place->realm;
	c->sign = true;
	r = seal_signer(s, &c->in, err);
	if (r == 0)
		r = signer_copy_open(c, place->state, err);
	if (r == 0) {
		const struct witness_log log = { { c->state, place->config, place->realm },
						 signer_copy_fetch,
						 signer_copy_store,
						 c };

		r = witness_ask(&log, pins, true, WITNESS_MS, all, err);
	}
	signer_copy_close(c);
	return r;
}

static void ask_all(struct session *s, const struct log_place *place, const struct tlog_policy *p)
{
	struct witnessed_all *all = arena_new(s->a, struct witnessed_all);
	struct writ_err err = { 0 };
	const struct witness_log log = { .place = *place };
	int r;

	if (!all)
		return;
	r = record_of(s)->signer >= 0 ? ask_for_signer(s, place, p, all, &err)
				      : witness_ask(&log, p, true, WITNESS_MS, all, &err);
	if (r < 0)
		notice_print(s, "no witness could be asked: %s", err.what);
	for (size_t i = 0; r == 0 && i < all->n; i++)
		judge(s, place, &p->witness[i], &all->one[i]);
}

int witnesses_read(const struct log_place *place, struct pins *ret, struct writ_err *err)
{
	struct writ_err none = { 0 };
	char path[LOG_PATH];

	if (place->config.n == 0 || audit_log_path(place->config, "log.policy", path, &none) < 0)
		return 0;
	return pins_read(path, ret, err);
}

void witnesses_ask(struct session *s, const struct log_place *place, const struct pins *known)
{
	scoped_pins pins = PINS_INIT;
	struct writ_err err = { 0 };

	if (!known && witnesses_read(place, &pins, &err) < 0)
		notice_print(s, "%s", err.what);
	else if (witness_configured(known ? &known->policy : &pins.policy))
		ask_all(s, place, known ? &known->policy : &pins.policy);
}
