#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lib/run_priv.h"

#include "base/banned.h"

int run_options(const struct writ_run_options *from, struct writ_run_options *ret,
		struct writ_error *err)
{
	if (!from || !lib_options(ret, sizeof(*ret), sizeof(size_t), from))
		return lib_argument(err, "options of an unknown size, or none");
	if (ret->flags & ~(uint32_t)WRIT_RUN_NEUTRAL)
		return lib_argument(err, "flags that this version does not know");
	if (ret->stdio && (ret->output || ret->input_n))
		return lib_argument(err, "either descriptors or input and output, not both");
	if (ret->input_n && !ret->input)
		return lib_argument(err, "input_n without input");
	return 0;
}

json_t *run_params(struct writ *w, const struct writ_run_options *opt, struct writ_err *err)
{
	char *const *argv = (char *const *)(uintptr_t)opt->argv;
	char *const *env = opt->environ ? (char *const *)(uintptr_t)opt->environ : w->environ;
	char *real = opt->cwd ? realpath(opt->cwd, NULL) : NULL;
	json_t *v = NULL;

	if (opt->cwd && !real)
		(void)!writ_fail(err, WRIT_E_SYS, errno, "%s", opt->cwd);
	else
		v = json_pack("{s:o,s:o,s:b}", "argv", rpc_strings(argv), "env", rpc_strings(env),
			      "neutral", !!(opt->flags & WRIT_RUN_NEUTRAL));
	if (v && real)
		(void)json_object_set_new(v, "cwd", rpc_bytes(sv_from(real)));
	if (!v && !err->code)
		(void)!writ_nomem(err);
	free(real);
	return v;
}

/* --- requests and answers --- */

int run_send(struct run *r, const char *what, json_t *params, const int *fds, size_t fds_n,
	     struct writ_err *err)
{
	const bool once = strcmp(what, "proc.run") == 0;
	int e = rpc_request(r->peer.conn, what, params, fds, fds_n,
			    once ? &r->end_id : &r->start_id, err);

	if (e == 0 && !once)
		e = rpc_request(r->peer.conn, "session.wait", json_object(), NULL, 0, &r->end_id,
				err);
	return e;
}

static void copy_text(char *to, size_t room, const json_t *v)
{
	scoped_arena a = ARENA_INIT(1 << 16);
	struct sv text;

	if (rpc_get_bytes(&a, v, &text))
		(void)snprintf(to, room, SV_FMT, SV_ARG(text));
}

/* Stores how the session, or the command of proc.run, ended. */
static void take_end(struct run *r, const json_t *body)
{
	struct writ_exit *e = &r->exit;

	e->code = (int32_t)json_integer_value(json_object_get(body, "exit_code"));
	e->denials = (uint32_t)json_integer_value(json_object_get(body, "denials"));
	memcpy(e->session, r->id, sizeof(e->session));
	copy_text(e->ended_by, sizeof(e->ended_by), json_object_get(body, "ended_by"));
	copy_text(e->why, sizeof(e->why), json_object_get(body, "why"));
	r->ended = true;
}

static int take(struct run *r, const struct rpc_message *m, struct writ_err *err)
{
	if (m->kind == RPC_ERROR)
		return rpc_failure(m, err);
	if (rpc_answers(m, r->start_id))
		copy_text(r->id, sizeof(r->id), json_object_get(m->body, "session"));
	else if (rpc_answers(m, r->end_id))
		take_end(r, m->body);
	return 0;
}

int run_hear(struct run *r, struct writ_err *err)
{
	struct rpc_message m;
	int e = rpc_receive(r->peer.conn, err);

	if (e < 0)
		return err->sys ? e : writ_fail(err, WRIT_E_SYS, 0, "writ ended without an answer");
	while (e >= 0 && rpc_next(r->peer.conn, &m)) {
		e = take(r, &m, err);
		rpc_message_clear(&m);
	}
	rpc_flush(r->peer.conn);
	return e < 0 ? e : 0;
}

void run_exit(const struct run *r, struct writ_exit *ret)
{
	size_t size = ret ? ret->size : 0;

	if (size > sizeof(r->exit))
		size = sizeof(r->exit);
	if (size > sizeof(size_t))
		memcpy((char *)ret + sizeof(size_t), (const char *)&r->exit + sizeof(size_t),
		       size - sizeof(size_t));
}

/* --- running --- */

/*
 * Delay before the pool is refilled. An immediate start of another process would slow down the
 * command that has just started, and many commands end within this time.
 */
enum { REFILL_MS = 10 };

/*
 * Sends the command to the process of writ and relays the command's input and output until the
 * command has ended. Takes ownership of @params.
 */
static int carry(struct run *run, const char *what, json_t *params,
		 const struct writ_run_options *opt, struct writ_err *err)
{
	bool refilled = false;
	int64_t refill = INT64_MAX;
	struct run_io io = RUN_IO_INIT;
	int r = run_io_open(&io, opt, err);

	if (r == 0)
		r = run_send(run, what, params, io.given, 3, err);
	else
		json_decref(params);
	run_io_sent(&io);
	while (r >= 0 && !run->ended) {
		r = run_io_carry(&io, opt, run->peer.conn, refill, err);
		if (r > 0) {
			lib_pool_refill(opt->pool);
			refilled = true;
			refill = INT64_MAX;
		} else if (r == 0) {
			const bool begun = run->id[0];

			r = run_hear(run, err);
			if (!begun && run->id[0])
				refill = clock_monotonic_ms() + REFILL_MS;
		}
	}
	if (!refilled)
		lib_pool_refill(opt->pool);
	/* Read the bytes that the output pipes still hold, until the pipes report their end. */
	if (r >= 0)
		r = run_io_carry(&io, opt, NULL, INT64_MAX, err);
	run_io_close(&io);
	return r;
}

static int finish(int r, struct run *run, const struct writ_err *why, struct writ_exit *ret,
		  struct writ_error *err)
{
	lib_peer_close(&run->peer);
	if (r < 0)
		return lib_error(err, why);
	run_exit(run, ret);
	return 0;
}

int writ_run(struct writ_policy *p, const struct writ_run_options *options, struct writ_exit *ret,
	     struct writ_error *err)
{
	struct run run = { 0 };
	struct writ_run_options opt;
	struct writ_err why = { 0 };
	json_t *params;
	int r = run_options(options, &opt, err);

	if (r < 0)
		return r;
	if (!p || !opt.argv || !opt.argv[0])
		return lib_argument(err, "writ_run: run what?");
	params = run_params(p->w, &opt, &why);
	if (!params)
		return lib_error(err, &why);
	r = lib_pool_take(p, opt.pool, &run.peer, &run.open_id, &why);
	if (r == 0)
		r = carry(&run, "proc.start", params, &opt, &why);
	else
		json_decref(params);
	return finish(r, &run, &why, ret, err);
}

int writ_session_exec(struct writ *w, const char *id, const struct writ_run_options *options,
		      struct writ_exit *ret, struct writ_error *err)
{
	struct run run = { 0 };
	struct writ_run_options opt;
	struct writ_err why = { 0 };
	json_t *params;
	int r = run_options(options, &opt, err);

	if (r < 0)
		return r;
	if (!w || !id || !id[0] || !opt.argv || !opt.argv[0] || opt.pool)
		return lib_argument(err, "writ_session_exec: run what, and in which session?");
	params = run_params(w, &opt, &why);
	if (!params)
		return lib_error(err, &why);
	if (json_object_set_new(params, "session", rpc_bytes(sv_from(id))) < 0 ||
	    json_object_set_new(params, "state", rpc_bytes(w->where.state)) < 0)
		r = writ_nomem(&why);
	if (r == 0)
		r = lib_peer_open(w, &run.peer, &why);
	if (r == 0)
		r = carry(&run, "proc.run", params, &opt, &why);
	else
		json_decref(params);
	return finish(r, &run, &why, ret, err);
}
