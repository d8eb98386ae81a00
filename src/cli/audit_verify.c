#include <errno.h>
#include <string.h>
#include <time.h>

#include "audit/verify.h"
#include "base/fd.h"
#include "cli/log.h"
#include "codec/json.h"
#include "witness/ask.h"

#include "base/banned.h"

enum { ASK_MS = 10000 };

/* A verifier key, or a public key as PEM, in a file. */
static int key_file(const char *path, const struct log_place *p, struct pins *ret,
		    struct writ_err *err)
{
	scoped_buf b = BUF_INIT(4096);
	char origin[LOG_ORIGIN_MAX];
	struct sign_public pub;
	struct note_key key;
	int r = fd_read_file(path, &b, err);

	log_origin(p->realm, origin);
	if (r == 0 && sv_starts(buf_view(&b), SV("-----"))) {
		r = keys_parse_public(buf_view(&b), &pub, err);
		if (r == 0)
			r = note_key_init(&key, NOTE_KEY_ED25519, sv_from(origin), &pub, err);
	} else if (r == 0) {
		struct sv rest = buf_view(&b);

		r = note_key_parse(sv_trim(sv_cut(&rest, '\n')), &key, err);
	}
	if (r < 0)
		return r;
	buf_str(&ret->text, "log ");
	note_key_print(&key, &ret->text);
	buf_str(&ret->text, "\nquorum none\n");
	r = buf_check(&ret->text, err);
	return r == 0 ? tlog_policy_parse(buf_view(&ret->text), &ret->policy, err) : r;
}

int log_pins(const struct args *a, const struct log_place *p, struct pins *ret,
	     struct writ_err *err)
{
	char path[LOG_PATH];
	int r;

	if (a->given[OPT_KEY])
		return key_file(a->value[OPT_KEY], p, ret, err);
	if (a->given[OPT_POLICY]) {
		r = pins_read(a->value[OPT_POLICY], ret, err);
		return r == 0 && ret->text.n == 0
			       ? writ_fail(err, WRIT_E_SYS, ENOENT, "%s", a->value[OPT_POLICY])
			       : r;
	}
	r = log_path(p->config, "log.policy", path, err);
	return r == 0 ? pins_read(path, ret, err) : r;
}

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

/* What a copy cannot say of itself: is it all there is? */
static int ask(const struct log_place *p, const struct tlog_policy *pins, struct verify_report *v,
	       struct writ_err *err)
{
	struct witnessed_all *all = arena_new(v->a, struct witnessed_all);
	struct writ_err no = { 0 };

	if (!all)
		return writ_nomem(err);
	if (!witness_configured(pins))
		return 0;
	/* A log that cannot be opened is said to be damaged already. */
	if (witness_ask(p, pins, false, ASK_MS, all, &no) < 0) {
		verify_failed(v, "witness", "none was asked: %s", no.what);
		return 0;
	}
	for (size_t i = 0; i < all->n; i++)
		judge(v, &pins->witness[i], &all->one[i], all->size, !all->enough);
	if (!all->enough)
		verify_failed(v, "witness", "too few have cosigned: the policy wants more");
	return 0;
}

/* --- what is said --- */

static void count(const struct verify_report *v, size_t ret[static VERIFY_BROKEN + 1])
{
	memset(ret, 0, (VERIFY_BROKEN + 1) * sizeof(*ret));
	for (size_t i = 0; i < v->sessions.n; i++)
		ret[v->sessions.v[i].state]++;
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
		verify_state_name(s->state), (unsigned long long)s->entries);
	if (s->end != VERIFY_NONE)
		buf_fmt(b, ", root %s, sealed by entry %llu", root.p, (unsigned long long)s->end);
	buf_ch(b, '\n');
}

static void put_text(const struct log_place *p, const struct verify_report *v,
		     const struct verify_session *one, struct buf *b)
{
	size_t n[VERIFY_BROKEN + 1];

	count(v, n);
	buf_fmt(b, "log of realm " SV_FMT ": %llu entries, %llu of them signed", SV_ARG(p->realm),
		(unsigned long long)v->size, (unsigned long long)v->covered);
	if (v->keys > 1)
		buf_fmt(b, ", by %llu keys in turn", (unsigned long long)v->keys);
	buf_fmt(b, "; %s\n",
		v->pinned ? "self-attested (same user holds the key)" : "signer not pinned");
	if (one)
		put_session(one, b);
	else
		buf_fmt(b,
			"sessions: %zu sealed, %zu open, %zu cut, %zu gone, %zu unknown to the "
			"log, %zu broken\n",
			n[VERIFY_SEALED], n[VERIFY_OPEN], n[VERIFY_CUT], n[VERIFY_GONE],
			n[VERIFY_UNKNOWN], n[VERIFY_BROKEN]);
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
	buf_fmt(b, ",\"%s\":[", name);
	for (size_t i = 0; i < n; i++) {
		buf_fmt(b, "%s{\"place\":", i ? "," : "");
		json_put_str(b, sv_from(f[i].place));
		buf_str(b, ",\"what\":");
		json_put_str(b, sv_from(f[i].what));
		buf_ch(b, '}');
	}
	buf_ch(b, ']');
}

static void put_json(const struct log_place *p, const struct verify_report *v,
		     const struct verify_session *one, struct buf *b)
{
	bool first = true;

	buf_fmt(b,
		"{\"verifies\":%s,\"realm\":\"" SV_FMT "\",\"entries\":%llu,\"signed\":%llu,"
		"\"pinned\":%s,\"custody\":\"same-uid\",\"sessions\":[",
		v->failures_n ? "false" : "true", SV_ARG(p->realm), (unsigned long long)v->size,
		(unsigned long long)v->covered, v->pinned ? "true" : "false");
	for (size_t i = 0; i < v->sessions.n; i++) {
		const struct verify_session *s = &v->sessions.v[i];

		if (one && s != one)
			continue;
		buf_fmt(b, "%s{\"session\":\"" SV_FMT "\",\"state\":\"%s\",\"entries\":%llu}",
			first ? "" : ",", SV_ARG(s->id), verify_state_name(s->state),
			(unsigned long long)s->entries);
		first = false;
	}
	buf_ch(b, ']');
	put_json_findings(b, "remarks", v->remarks.v, v->remarks.n);
	put_json_findings(b, "failures", v->failures.v, v->failures.n);
	buf_str(b, "}\n");
}

int audit_look(struct args *a, const struct log_place *p, struct sv session,
	       struct verify_report *v, struct writ_err *err)
{
	const char *log = arena_fmt(a->arena, SV_FMT "/log", SV_ARG(p->state));
	const char *sessions = arena_fmt(a->arena, SV_FMT "/sessions", SV_ARG(p->state));
	struct verify_options opt = { .log = log, .sessions = sessions, .only = session };
	struct pins *pins = arena_new(a->arena, struct pins);
	char *origin = arena_alloc(a->arena, 1, LOG_ORIGIN_MAX);
	int r;

	if (!log || !sessions || !pins || !origin)
		return writ_nomem(err);
	*pins = (struct pins)PINS_INIT;
	log_origin(p->realm, origin);
	opt.origin = sv_from(origin);
	opt.pins = &pins->policy;
	r = log_pins(a, p, pins, err);
	if (r == 0)
		r = realm_verify(&opt, a->arena, v, err);
	if (r == 0 && !v->pinned)
		verify_failed(
			v, "log.policy",
			"signer not pinned: no key of this log is believed here (writ key init "
			"pins the one that is there)");
	if (r == 0)
		r = ask(p, &pins->policy, v, err);
	pins_clear(pins);
	return r;
}

int audit_verify(struct args *a, const struct log_place *p, struct sv session)
{
	struct buf b = BUF_INIT(OUT_MAX);
	struct writ_err err = { 0 };
	struct verify_report *v = arena_new(a->arena, struct verify_report);
	const struct verify_session *one = NULL;
	int r = v ? audit_look(a, p, session, v, &err) : writ_nomem(&err);

	if (r < 0)
		return fail(&err, err.sys == ENOENT ? "there is no log yet" : NULL);
	if (session.n) {
		one = verify_find(v, session);
		if (!one) {
			note("neither the log nor a file knows session " SV_FMT, SV_ARG(session));
			return EXIT_NO;
		}
	}
	if (a->given[OPT_JSON])
		put_json(p, v, one, &b);
	else
		put_text(p, v, one, &b);
	/* Of one session it is asked whether it is what it was. */
	if (one && one->state != VERIFY_SEALED && one->state != VERIFY_OPEN) {
		note("nothing vouches for this session");
		return out(&b, EXIT_NO);
	}
	return out(&b, v->failures_n ? EXIT_NO : EXIT_DONE);
}

int audit_witness(struct args *a, const struct log_place *p)
{
	scoped_pins pins = PINS_INIT;
	struct witnessed_all *all = arena_new(a->arena, struct witnessed_all);
	struct verify_report v = { .a = a->arena };
	struct buf b = BUF_INIT(65536);
	struct writ_err err = { 0 };
	int r = all ? log_pins(a, p, &pins, &err) : writ_nomem(&err);

	if (r == 0 && !witness_configured(&pins.policy))
		r = writ_fail(&err, WRIT_E_SYNTAX, 0,
			      "there is no witness: writ witness add URL VKEY");
	if (r == 0)
		r = witness_ask(p, &pins.policy, true, ASK_MS, all, &err);
	if (r < 0)
		return fail(&err, NULL);
	for (size_t i = 0; i < all->n; i++)
		judge(&v, &pins.policy.witness[i], &all->one[i], all->size, !all->enough);
	put_findings(&b, v.remarks.v, v.remarks.n, "");
	put_findings(&b, v.failures.v, v.failures.n, "FAILED  ");
	return out(&b, v.failures_n ? EXIT_NO : EXIT_DONE);
}
