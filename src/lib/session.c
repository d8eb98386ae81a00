#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "lib/run_priv.h"
#include "session/session.h"

#include "base/banned.h"

struct writ_session {
	struct super s;
	struct run_news news;
};

/* Until it runs, or has ended without ever running. */
static int until_it_runs(struct writ_session *s, struct writ_err *err)
{
	int r = 1;

	while (r > 0 && !s->news.id[0] && !s->news.ended)
		r = run_hear(&s->s, -1, &s->news, err);
	if (r >= 0 && !s->news.id[0]) {
		*err = s->news.answer.err;
		return err->code ? err->code
				 : writ_fail(err, WRIT_E_SYS, 0, "the session did not start");
	}
	return r < 0 ? r : 0;
}

static int start(struct writ_session *s, struct writ_policy *p, const struct writ_run_options *opt,
		 struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(64 << 20);
	struct buf b = BUF_INIT(64 << 20);
	struct lib_command c = { .id = SV(""), .state = SV(""), .cwd = SV("") };
	struct run_io io = RUN_IO_INIT;
	int r = run_command(p->w, opt, &c, &a, &b, err);

	if (r == 0)
		r = run_io_open(&io, opt, err);
	if (r == 0)
		r = pool_take(p, opt->pool, &s->s, err);
	if (r == 0)
		r = super_ask(&s->s, SUPER_RUN, buf_view(&b), io.given, 3, err);
	run_io_close(&io);
	buf_clear(&b);
	return r < 0 ? r : until_it_runs(s, err);
}

int writ_session_start(struct writ_policy *p, const struct writ_run_options *options,
		       struct writ_session **ret, struct writ_error *err)
{
	struct writ_run_options opt;
	struct writ_session *s;
	struct writ_err why = { 0 };
	int r = run_options(options, &opt, err);

	if (r < 0)
		return r;
	if (!p || !ret || opt.output || opt.input_n)
		return lib_argument(err,
				    "writ_session_start: a session has descriptors, no callbacks");
	s = calloc(1, sizeof(*s));
	if (!s) {
		(void)!writ_nomem(&why);
		return lib_error(err, &why);
	}
	s->s = (struct super)SUPER_INIT;
	opt.flags |= LIB_RUN_NAMED;
	r = start(s, p, &opt, &why);
	pool_refill(opt.pool);
	if (r < 0) {
		writ_session_free(s);
		return lib_error(err, &why);
	}
	*ret = s;
	return 0;
}

const char *writ_session_id(const struct writ_session *s)
{
	return s->news.id;
}

int writ_session_fd(const struct writ_session *s)
{
	return s->s.socket;
}

int writ_session_wait(struct writ_session *s, int timeout_ms, struct writ_exit *ret,
		      struct writ_error *err)
{
	struct writ_err why = { 0 };
	int r = 1;

	if (!s)
		return lib_argument(err, "writ_session_wait: wait for which session?");
	while (r > 0 && !s->news.ended)
		r = run_hear(&s->s, timeout_ms, &s->news, &why);
	if (r == 0)
		return 0;
	if (r > 0 && s->news.answer.err.code) {
		why = s->news.answer.err;
		r = why.code;
	}
	if (r < 0)
		return lib_error(err, &why);
	run_exit(&s->news, ret);
	return 1;
}

void writ_session_free(struct writ_session *s)
{
	if (!s)
		return;
	super_close(&s->s);
	free(s);
}

/* --- any session of this user --- */

static int ask(struct writ *w, const char *id, const char *request, struct buf *ret_answer,
	       struct writ_error *err)
{
	struct writ_err why = { 0 };
	int r;

	if (!w || !id || !id[0])
		return lib_argument(err, "which session?");
	r = session_ask(w->where.state, sv_from(id), sv_from(request), ret_answer, &why);
	return r < 0 ? lib_error(err, &why) : 0;
}

int writ_session_stop(struct writ *w, const char *id, struct writ_error *err)
{
	struct buf b = BUF_INIT(8192);
	const int r = ask(w, id, "stop", &b, err);

	buf_clear(&b);
	return r;
}

/* The path is made physical here: the session takes it as it is. */
static int rule_of(struct arena *a, const char *rule, const char **ret, struct writ_err *err)
{
	struct sv rest = sv_from(rule);
	const size_t colon = sv_find(rest, ':'), blank = sv_find(rest, ' ');
	const struct sv verb = sv_cut(&rest, colon < blank ? ':' : ' ');
	const char *path = arena_str(a, sv_trim(rest));
	char *real = path ? realpath(path, NULL) : NULL;

	if (!sv_is(verb, "read") && !sv_is(verb, "write")) {
		free(real);
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "only read and write can be granted live, as in \"read /data\"");
	}
	if (!real)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "%s does not exist", path ? path : rule);
	*ret = arena_fmt(a, "allow " SV_FMT " %s", SV_ARG(verb), real);
	free(real);
	return *ret ? 0 : writ_nomem(err);
}

int writ_session_allow(struct writ *w, const char *id, const char *rule, uint32_t *ret_grant,
		       struct writ_error *err)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	struct buf b = BUF_INIT(8192);
	const char *request = NULL;
	struct writ_err why = { 0 };
	struct sv rest;
	uint64_t n = 0;
	int r;

	if (!rule)
		return lib_argument(err, "writ_session_allow: allow what?");
	if (rule_of(&a, rule, &request, &why) < 0)
		return lib_error(err, &why);
	r = ask(w, id, request, &b, err);
	/* "ok 3" */
	rest = buf_view(&b);
	(void)sv_cut(&rest, ' ');
	if (r == 0 && !sv_to_u64(rest, UINT32_MAX, &n)) {
		(void)!writ_fail(&why, WRIT_E_BUG, 0, "a strange answer of the session");
		r = lib_error(err, &why);
	}
	buf_clear(&b);
	if (r == 0 && ret_grant)
		*ret_grant = (uint32_t)n;
	return r;
}

int writ_session_revoke(struct writ *w, const char *id, uint32_t grant, struct writ_error *err)
{
	scoped_arena a = ARENA_INIT(1 << 16);
	struct buf b = BUF_INIT(8192);
	const char *request = arena_fmt(&a, "revoke %u", grant);
	struct writ_err why = { 0 };
	int r;

	if (!request) {
		(void)!writ_nomem(&why);
		return lib_error(err, &why);
	}
	r = ask(w, id, request, &b, err);
	buf_clear(&b);
	return r;
}
