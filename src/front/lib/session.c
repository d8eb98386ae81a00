#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "lib/run_priv.h"
#include "parts/session.h"
#include "rpc/rpc.h"

#include "base/banned.h"

struct writ_session {
	struct run run;
};

static int wait_readable(const struct run *r, int64_t until, struct writ_err *err)
{
	struct pollfd p = { .fd = r->peer.conn->fd, .events = POLLIN };
	int n;

	do {
		if (rpc_wants_write(r->peer.conn))
			p.events = POLLIN | POLLOUT;
		n = poll(&p, 1, clock_ms_until(until));
		if (n > 0 && p.revents & POLLOUT)
			rpc_flush(r->peer.conn);
	} while ((n < 0 && errno == EINTR) || (n > 0 && !(p.revents & ~POLLOUT)));
	return n < 0 ? writ_fail(err, WRIT_E_SYS, errno, "wait for a session") : n;
}

static int start(struct run *run, struct writ_policy *p, const struct writ_run_options *opt,
		 struct writ_err *err)
{
	const bool kept = !opt->argv || !opt->argv[0];
	struct run_io io = RUN_IO_INIT;
	json_t *params = run_params(p->w, opt, err);
	int r = params ? run_io_open(&io, opt, err) : err->code;

	if (r == 0)
		r = lib_pool_take(p, opt->pool, &run->peer, &run->open_id, err);
	if (r == 0)
		(void)json_object_set_new(params, "named", json_true());
	if (r == 0 && kept)
		r = run_send(run, "session.keep", params, NULL, 0, err);
	else if (r == 0)
		r = run_send(run, "proc.start", params, io.given, 3, err);
	else
		json_decref(params);
	run_io_close(&io);
	while (r >= 0 && !run->id[0] && !run->ended) {
		r = wait_readable(run, INT64_MAX, err);
		if (r > 0)
			r = run_hear(run, err);
	}
	if (r >= 0 && !run->id[0])
		return writ_fail(err, WRIT_E_SYS, 0, "the session did not start");
	return r < 0 ? r : 0;
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
	s = lib_new(sizeof(*s), err);
	if (!s)
		return WRIT_ERROR_MEMORY;
	r = start(&s->run, p, &opt, &why);
	lib_pool_refill(opt.pool);
	if (r < 0) {
		writ_session_free(s);
		return lib_error(err, &why);
	}
	*ret = s;
	return 0;
}

const char *writ_session_id(const struct writ_session *s)
{
	return s->run.id;
}

int writ_session_fd(const struct writ_session *s)
{
	return s->run.peer.conn->fd;
}

int writ_session_wait(struct writ_session *s, int timeout_ms, struct writ_exit *ret,
		      struct writ_error *err)
{
	const int64_t until = timeout_ms < 0 ? INT64_MAX : clock_monotonic_ms() + timeout_ms;
	struct writ_err why = { 0 };
	int r = 1;

	if (!s)
		return lib_argument(err, "writ_session_wait: wait for which session?");
	while (r > 0 && !s->run.ended) {
		r = wait_readable(&s->run, until, &why);
		if (r > 0)
			r = run_hear(&s->run, &why) < 0 ? why.code : 1;
	}
	if (r <= 0)
		return r < 0 ? lib_error(err, &why) : 0;
	run_exit(&s->run, ret);
	return 1;
}

void writ_session_free(struct writ_session *s)
{
	if (!s)
		return;
	lib_peer_close(&s->run.peer);
	free(s);
}

/* --- any session of this user --- */

/* Sends a request to the session @id and waits for the answer. Takes ownership of @params. */
static int ask(struct writ *w, const char *id, const char *method, json_t *params, json_t **ret,
	       struct writ_error *err)
{
	struct writ_err why = { 0 };

	if (!w || !id || !id[0]) {
		json_decref(params);
		return lib_argument(err, "which session?");
	}
	return session_call(w->where.state, sv_from(id), method, params, ret, &why) < 0
		       ? lib_error(err, &why)
		       : 0;
}

int writ_session_stop(struct writ *w, const char *id, struct writ_error *err)
{
	return ask(w, id, "session.close", json_object(), NULL, err);
}

/*
 * Parses a rule to be granted to a running session. Resolves a path to its physical form, because
 * the session uses the path without resolving it. NULL on failure, with the reason in @err.
 */
static json_t *rule_of(const char *rule, struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	struct sv rest = sv_from(rule);
	const size_t colon = sv_find(rest, ':'), blank = sv_find(rest, ' ');
	const struct sv verb = sv_cut(&rest, colon < blank ? ':' : ' ');
	const char *path = arena_str(&a, sv_trim(rest));
	char *real = path ? realpath(path, NULL) : NULL;
	json_t *v = NULL;

	if (!sv_is(verb, "read") && !sv_is(verb, "write"))
		(void)!writ_fail(err, WRIT_E_SYNTAX, 0,
				 "only read and write can be granted live, as in \"read /data\"");
	else if (!real)
		(void)!writ_fail(err, WRIT_E_SYNTAX, 0, "%s does not exist", path ? path : rule);
	else
		v = json_pack("{s:o,s:o}", "action", rpc_bytes(verb), "object",
			      rpc_bytes(sv_from(real)));
	if (real && !v && !err->code)
		(void)!writ_nomem(err);
	free(real);
	return v;
}

int writ_session_allow(struct writ *w, const char *id, const char *rule, uint32_t *ret_grant,
		       struct writ_error *err)
{
	scoped_json *answer = NULL;
	struct writ_err why = { 0 };
	json_t *params;
	int r;

	if (!rule)
		return lib_argument(err, "writ_session_allow: allow what?");
	params = rule_of(rule, &why);
	if (!params)
		return lib_error(err, &why);
	r = ask(w, id, "grant.allow", params, &answer, err);
	if (r == 0 && ret_grant)
		*ret_grant = (uint32_t)json_integer_value(json_object_get(answer, "grant"));
	return r;
}

int writ_session_revoke(struct writ *w, const char *id, uint32_t grant, struct writ_error *err)
{
	return ask(w, id, "grant.revoke", json_pack("{s:I}", "grant", (json_int_t)grant), NULL,
		   err);
}
