#include <errno.h>
#include <string.h>
#include <time.h>

#include "audit/verify.h"
#include "cli/log.h"
#include "codec/json.h"
#include "witness/ask.h"

#include "base/banned.h"

enum { ASK_MS = 10000 };

static void put_time(struct buf *b, uint64_t seconds)
{
	const time_t t = (time_t)seconds;
	struct tm tm;
	char text[32];

	if (gmtime_r(&t, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm))
		buf_str(b, text);
}

/* --- witnesses --- */

static void judge(struct verify_report *v, const struct tlog_witness *w,
		  const struct witnessed_one *one, uint64_t size, bool required)
{
	scoped_buf place = BUF_INIT(256), text = BUF_INIT(64);

	buf_fmt(&place, "witness " SV_FMT, SV_ARG(w->name));
	switch (one->what) {
	case WITNESSED_COSIGNED:
		put_time(&text, one->time);
		verify_remark(v, place.p, "cosigned all %llu entries that are synced, at %s",
			      (unsigned long long)size, text.p);
		break;
	case WITNESSED_SHORTER:
		verify_failed(
			v, place.p,
			"has seen %llu entries, and the checkpoint here has %llu: the rest was "
			"removed, or this is an older copy",
			(unsigned long long)one->size, (unsigned long long)size);
		break;
	case WITNESSED_DIFFERENT:
		verify_failed(v, place.p, "has seen other entries among the first %llu",
			      (unsigned long long)one->size);
		break;
	case WITNESSED_NOT:
		(required ? verify_failed : verify_remark)(
			v, place.p, "did not say whether it has seen this log: %s%s%s",
			one->err.what, one->err.sys ? ": " : "",
			one->err.sys ? strerror(one->err.sys) : "");
		break;
	}
}

/*
 * Asks the witnesses for their latest checkpoint of the log: a copy of a log cannot prove that no
 * entries were cut off at its end.
 */
static int ask(const struct witness_log *l, const struct tlog_policy *pins, struct verify_report *v,
	       struct writ_err *err)
{
	struct witnessed_all *all = arena_new(v->a, struct witnessed_all);
	struct writ_err no = { 0 };

	if (!all)
		return writ_nomem(err);
	if (!witness_configured(pins))
		return 0;
	/* Report the failure as a finding: a log that cannot be opened is already a finding. */
	if (witness_ask(l, pins, false, ASK_MS, all, &no) < 0) {
		verify_failed(v, "witness", "none was asked: %s", no.what);
		return 0;
	}
	for (size_t i = 0; i < all->n; i++)
		judge(v, &pins->witness[i], &all->one[i], all->size, !all->enough);
	if (!all->enough)
		verify_failed(v, "witness", "too few have cosigned: the policy wants more");
	return 0;
}

/* --- reports --- */

/*
 * Tests whether a record file is unknown to @log but known to the other log (the user's own log and
 * that of writ-signer).
 */
static bool is_elsewhere(struct audit_logs *l, const struct audit_log *log,
			 const struct verify_session *s)
{
	const struct verify_session *at;

	for (size_t i = 0; s->start == VERIFY_NONE && i < l->n; i++) {
		at = &l->log[i] == log ? NULL : verify_find(l->log[i].v, s->id);
		if (at && at->start != VERIFY_NONE)
			return true;
	}
	return false;
}

static void count(struct audit_logs *l, const struct audit_log *log,
		  size_t ret[static VERIFY_BROKEN + 1])
{
	memset(ret, 0, (VERIFY_BROKEN + 1) * sizeof(*ret));
	for (size_t i = 0; i < log->v->sessions.n; i++)
		if (!is_elsewhere(l, log, &log->v->sessions.v[i]))
			ret[log->v->sessions.v[i].state]++;
}

static void put_findings(struct buf *b, const struct verify_finding *f, size_t n, const char *head)
{
	for (size_t i = 0; i < n; i++) {
		buf_str(b, head);
		diag_put_safe(b, sv_from(f[i].place));
		buf_str(b, ": ");
		diag_put_safe(b, sv_from(f[i].what));
		buf_ch(b, '\n');
	}
}

static void put_session(const struct verify_session *s, struct buf *b)
{
	scoped_buf root = BUF_INIT(80);

	digest_hex(&s->root, &root);
	buf_fmt(b, "session " SV_FMT ": %s, %llu entries", SV_ARG(s->id),
		s->state == VERIFY_UNSIGNED ? "ended, not signed yet" : verify_state_name(s->state),
		(unsigned long long)s->entries);
	if (s->end != VERIFY_NONE)
		buf_fmt(b, ", root %s, sealed by entry %llu", root.p, (unsigned long long)s->end);
	buf_ch(b, '\n');
}

static void put_text(struct audit_logs *l, const struct audit_log *log,
		     const struct verify_session *one, struct buf *b)
{
	const struct verify_report *v = log->v;
	size_t n[VERIFY_BROKEN + 1];

	count(l, log, n);
	buf_fmt(b, "log of realm " SV_FMT ": %llu entries, %llu of them signed",
		SV_ARG(log->view.place.realm), (unsigned long long)v->size,
		(unsigned long long)v->covered);
	if (v->keys > 1)
		buf_fmt(b, ", by %llu keys in turn", (unsigned long long)v->keys);
	buf_fmt(b, "; %s\n", v->pinned ? cli_log_view_words(&log->view) : "signer not pinned");
	if (one)
		put_session(one, b);
	else
		buf_fmt(b,
			"sessions: %zu sealed, %zu ended and not signed yet, %zu open, %zu cut, "
			"%zu gone, %zu unknown to the log, %zu broken\n",
			n[VERIFY_SEALED], n[VERIFY_UNSIGNED], n[VERIFY_OPEN], n[VERIFY_CUT],
			n[VERIFY_GONE], n[VERIFY_UNKNOWN], n[VERIFY_BROKEN]);
	put_findings(b, v->remarks.v, v->remarks.n, "note    ");
	put_findings(b, v->failures.v, v->failures.n, "FAILED  ");
	if (v->failures_n > v->failures.n)
		buf_fmt(b, "FAILED  and %zu more\n", v->failures_n - v->failures.n);
	if (v->failures_n)
		buf_fmt(b, "does not verify: %zu failure%s\n", v->failures_n,
			v->failures_n == 1 ? "" : "s");
	else
		buf_str(b, "verifies\n");
}

static void put_json_findings(struct buf *b, const char *name, const struct verify_finding *f,
			      size_t n)
{
	json_put_key(b, name);
	buf_ch(b, '[');
	for (size_t i = 0; i < n; i++) {
		json_put_sep(b);
		buf_ch(b, '{');
		json_put_member(b, "place", sv_from(f[i].place));
		json_put_member(b, "what", sv_from(f[i].what));
		buf_ch(b, '}');
	}
	buf_ch(b, ']');
}

static void put_json(struct audit_logs *l, const struct audit_log *log,
		     const struct verify_session *one, bool verifies, struct buf *b)
{
	const struct verify_report *v = log->v;

	buf_ch(b, '{');
	json_put_flag(b, "verifies", verifies);
	json_put_member(b, "realm", log->view.place.realm);
	json_put_number(b, "entries", v->size);
	json_put_number(b, "signed", v->covered);
	json_put_flag(b, "pinned", v->pinned);
	json_put_member(b, "custody", sv_from(attest_custody_name(log->view.held ? CUSTODY_OTHER_UID
									: CUSTODY_SAME_UID)));
	buf_str(b, ",\"sessions\":[");
	for (size_t i = 0; i < v->sessions.n; i++) {
		const struct verify_session *s = &v->sessions.v[i];

		if ((one && s != one) || is_elsewhere(l, log, s))
			continue;
		json_put_sep(b);
		buf_ch(b, '{');
		json_put_member(b, "session", s->id);
		json_put_member(b, "state", sv_from(verify_state_name(s->state)));
		json_put_number(b, "entries", s->entries);
		buf_ch(b, '}');
	}
	buf_ch(b, ']');
	put_json_findings(b, "remarks", v->remarks.v, v->remarks.n);
	put_json_findings(b, "failures", v->failures.v, v->failures.n);
}

/* --- verification --- */

static int look(struct args *a, const struct log_place *p, struct sv session,
		const struct note_key *signer, struct audit_log *log, struct writ_err *err)
{
	const char *path = arena_fmt(a->arena, SV_FMT "/log", SV_ARG(log->view.place.state));
	const char *sessions = arena_fmt(a->arena, SV_FMT "/sessions", SV_ARG(p->state));
	struct verify_options opt = { .log = path, .sessions = sessions, .only = session };
	struct pins *pins = arena_new(a->arena, struct pins);
	char *origin = arena_alloc(a->arena, 1, LOG_ORIGIN_MAX);
	int r;

	log->v = arena_new(a->arena, struct verify_report);
	if (!path || !sessions || !pins || !origin || !log->v)
		return writ_nomem(err);
	*pins = (struct pins)PINS_INIT;
	audit_log_origin(p->realm, origin);
	opt.origin = sv_from(origin);
	opt.pins = &pins->policy;
	r = cli_log_pins(a, &log->view, signer, pins, err);
	if (r == 0)
		r = realm_verify(&opt, a->arena, log->v, err);
	if (r == 0 && !log->v->pinned)
		verify_failed(
			log->v, "log.policy",
			"signer not pinned: no key of this log is believed here (writ key init "
			"pins the one that is there)");
	/* Ask witnesses only about the log to which new sessions are added. */
	if (r == 0 && (log->view.held || !signer))
		r = ask(&log->view.asks, &pins->policy, log->v, err);
	pins_clear(pins);
	return r;
}

int cli_audit_look(struct args *a, const struct log_place *p, struct sv session, bool sign,
		   struct audit_logs *ret, struct writ_err *err)
{
	const struct note_key *signer = NULL;
	struct signer_install in;
	int r = cli_log_signer(&in, err);

	ret->n = 0;
	if (r == 0 && in.there) {
		r = cli_log_view_held(a, p, &in, sign, &ret->log[0].view, err);
		if (r == 0 && ret->log[0].view.copy.there) {
			signer = &ret->log[0].view.key;
			ret->n = 1;
			r = look(a, p, session, signer, &ret->log[0], err);
		} else if (r == 0) {
			cli_log_view_close(&ret->log[0].view);
		}
	}
	if (r == 0 && (!in.there || cli_log_is_here(p))) {
		cli_log_view_own(p, &ret->log[ret->n].view);
		r = look(a, p, session, signer, &ret->log[ret->n], err);
		ret->n += r == 0;
	}
	if (r == 0 && ret->n == 0)
		r = writ_fail(err, WRIT_E_SYS, ENOENT, "writ-signer keeps no log of this realm");
	if (r < 0)
		cli_audit_looked(ret);
	return r;
}

void cli_audit_looked(struct audit_logs *l)
{
	for (size_t i = 0; i < l->n; i++)
		cli_log_view_close(&l->log[i].view);
	l->n = 0;
}

struct audit_log *cli_audit_log_of(struct audit_logs *l, struct sv session)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct verify_session *at = verify_find(l->log[i].v, session);

		if (at && at->start != VERIFY_NONE)
			return &l->log[i];
	}
	return &l->log[0];
}

static int report_one(const struct args *a, struct audit_logs *l, struct sv session)
{
	struct audit_log *log = cli_audit_log_of(l, session);
	const struct verify_session *one = verify_find(log->v, session);
	struct buf b = BUF_INIT(OUT_MAX);

	if (!one)
		return cli_end(EXIT_NO, "neither the log nor a file knows session " SV_FMT,
			       SV_ARG(session));
	if (a->given[OPT_JSON]) {
		put_json(l, log, one, log->v->failures_n == 0, &b);
		buf_str(&b, "}\n");
	} else {
		put_text(l, log, one, &b);
	}
	/*
	 * For a single session, succeed only if its record is sealed or open and no check failed.
	 */
	if (one->state == VERIFY_SEALED || one->state == VERIFY_OPEN)
		return cli_out(&b, log->v->failures_n ? EXIT_NO : EXIT_DONE);
	cli_note(one->state == VERIFY_UNSIGNED
			 ? "nothing vouches for this session until the log is signed again"
			 : "nothing vouches for this session");
	return cli_out(&b, EXIT_NO);
}

static int report_all(const struct args *a, struct audit_logs *l)
{
	struct buf b = BUF_INIT(OUT_MAX);
	size_t failures = 0;

	for (size_t i = 0; i < l->n; i++)
		failures += l->log[i].v->failures_n;
	for (size_t i = 0; i < l->n; i++) {
		if (a->given[OPT_JSON]) {
			buf_str(&b, i ? ",\"own\":" : "");
			put_json(l, &l->log[i], NULL, (i ? l->log[i].v->failures_n : failures) == 0,
				 &b);
		} else {
			put_text(l, &l->log[i], NULL, &b);
		}
	}
	if (a->given[OPT_JSON])
		buf_fmt(&b, "%s}\n", l->n > 1 ? "}" : "");
	return cli_out(&b, failures ? EXIT_NO : EXIT_DONE);
}

int cli_audit_verify(struct args *a, const struct log_place *p, struct sv session)
{
	struct audit_logs *l = arena_new(a->arena, struct audit_logs);
	struct writ_err err = { 0 };
	int r = l ? cli_audit_look(a, p, session, false, l, &err) : writ_nomem(&err);

	if (r < 0)
		return cli_fail(&err, err.sys == ENOENT ? "there is no log yet" : NULL);
	r = session.n ? report_one(a, l, session) : report_all(a, l);
	cli_audit_looked(l);
	return r;
}

/*
 * Opens the log that records new sessions. If writ-signer keeps that log, it first signs the log.
 */
static int view_now(struct args *a, const struct log_place *p, struct log_view *ret,
		    struct writ_err *err)
{
	struct signer_install in;
	int r = cli_log_signer(&in, err);

	if (r < 0 || !in.there) {
		cli_log_view_own(p, ret);
		return r;
	}
	r = cli_log_view_held(a, p, &in, true, ret, err);
	if (r == 0 && !ret->copy.there) {
		cli_log_view_close(ret);
		r = writ_fail(err, WRIT_E_SYS, 0, "writ-signer keeps no log of this realm yet");
	}
	return r;
}

int cli_audit_witness(struct args *a, const struct log_place *p)
{
	scoped_pins pins = PINS_INIT;
	struct witnessed_all *all = arena_new(a->arena, struct witnessed_all);
	struct log_view *view = arena_new(a->arena, struct log_view);
	struct verify_report v = { .a = a->arena };
	struct buf b = BUF_INIT(65536);
	struct writ_err err = { 0 };
	int r = all && view ? view_now(a, p, view, &err) : writ_nomem(&err);

	if (r < 0)
		return cli_fail(&err, NULL);
	r = cli_log_pins(a, view, view->held ? &view->key : NULL, &pins, &err);
	if (r == 0 && !witness_configured(&pins.policy))
		r = writ_fail(&err, WRIT_E_SYNTAX, 0,
			      "there is no witness: writ witness add URL VKEY");
	if (r == 0)
		r = witness_ask(&view->asks, &pins.policy, true, ASK_MS, all, &err);
	cli_log_view_close(view);
	if (r < 0)
		return cli_fail(&err, NULL);
	for (size_t i = 0; i < all->n; i++)
		judge(&v, &pins.policy.witness[i], &all->one[i], all->size, !all->enough);
	put_findings(&b, v.remarks.v, v.remarks.n, "");
	put_findings(&b, v.failures.v, v.failures.n, "FAILED  ");
	return cli_out(&b, v.failures_n ? EXIT_NO : EXIT_DONE);
}
