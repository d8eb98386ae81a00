#include <errno.h>
#include <string.h>

#include "session/session_priv.h"
#include "signer/signer.h"
#include "witness/ask.h"

#include "base/banned.h"

/*
 * A witness is asked when a session has ended. It may be slow or gone: the session's end
 * waits a little and no longer, and its exit code is that of its command. What was not
 * cosigned is said, and is on record; it is made up for by the next session that ends.
 */

enum { WITNESS_MS = 2000 };

static void append(const struct log_place *place, const struct tlog_witness *w, const char *why)
{
	scoped_entry e = { 0 };
	struct writ_err ignored = { 0 };
	char path[LOG_PATH];
	struct realm log;

	if (log_path(place->state, "log", path, &ignored) < 0 ||
	    realm_open(&log, path, true, &ignored) < 0)
		return;
	entry_begin(&e, "witness.failed");
	entry_str(&e, "witness", w->key.name);
	entry_str(&e, "why", sv_from(why));
	if (realm_append(&log, &e, false, NULL, &ignored) == 0)
		(void)!log_sign(place, &log, false, &ignored);
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
	say(s, "witness " SV_FMT ": %s%s%s", SV_ARG(w->name), why, one->err.sys ? ": " : "",
	    one->err.sys ? strerror(one->err.sys) : "");
	/* writ-signer writes down what it has seen itself, and it has not asked anybody. */
	if (s->signer < 0)
		append(place, w, why);
}

/* The log of writ-signer, which reaches nobody: we carry what is said back and forth. */
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
						 signer_copy_keep,
						 c };

		r = witness_ask(&log, pins, true, WITNESS_MS, all, err);
	}
	signer_copy_close(c);
	return r;
}

void witnessed(struct session *s, const struct log_place *place)
{
	scoped_pins pins = PINS_INIT;
	struct witnessed_all *all;
	struct writ_err err = { 0 };
	char path[LOG_PATH];
	int r;

	if (place->config.n == 0 || log_path(place->config, "log.policy", path, &err) < 0)
		return;
	r = pins_read(path, &pins, &err);
	if (r < 0) {
		say(s, "%s", err.what);
		return;
	}
	if (!witness_configured(&pins.policy))
		return;
	all = arena_new(s->a, struct witnessed_all);
	if (!all)
		return;
	r = s->signer >= 0 ? ask_for_signer(s, place, &pins.policy, all, &err)
			   : witness_ask(&(struct witness_log){ .place = *place }, &pins.policy,
					 true, WITNESS_MS, all, &err);
	if (r < 0)
		say(s, "no witness could be asked: %s", err.what);
	for (size_t i = 0; r == 0 && i < all->n; i++)
		judge(s, place, &pins.policy.witness[i], &all->one[i]);
}
