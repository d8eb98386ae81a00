#include "loop/loop_priv.h"

#include <errno.h>
#include <string.h>

#include "crypto/crypto.h"

#include "base/banned.h"

/* --- state of parts --- */

static int new_state(struct session *s, const struct session_initial *initial, struct writ_err *err)
{
	struct session_core *c = s->core;
	void *state = arena_alloc(s->a, 1, initial->size);

	if (!state)
		return writ_nomem(err);
	if (initial->value)
		memcpy(state, initial->value, initial->size);
	c->states[c->states_n].initial = initial;
	c->states[c->states_n++].state = state;
	return 0;
}

void *session_state(const struct session *s, const struct session_initial *initial)
{
	const struct session_core *c = s->core;

	for (size_t i = 0; i < c->states_n; i++)
		if (c->states[i].initial == initial)
			return c->states[i].state;
	return NULL;
}

/* --- state of the session --- */

const struct session_status *session_status(const struct session *s)
{
	return &s->core->status;
}

enum session_phase session_phase(const struct session *s)
{
	return s->core->status.phase;
}

void session_running(struct session *s)
{
	struct session_status *t = &s->core->status;

	t->phase = SESSION_RUNNING;
	t->started_ms = t->active_ms = clock_boot_ms();
}

void session_ending(struct session *s)
{
	struct session_status *t = &s->core->status;

	if (t->phase >= SESSION_ENDING)
		return;
	t->phase = SESSION_ENDING;
	t->killed_ms = clock_boot_ms();
}

void session_ended(struct session *s)
{
	s->core->status.phase = SESSION_ENDED;
}

void session_emptied(struct session *s)
{
	s->core->status.emptied = true;
	session_ended(s);
}

void session_exit(struct session *s, int code)
{
	struct session_status *t = &s->core->status;

	if (t->has_exit)
		return;
	t->exit_code = code;
	t->has_exit = true;
}

void session_exit_spoil(struct session *s)
{
	struct session_status *t = &s->core->status;

	if (t->exit_code == 0)
		t->exit_code = SESSION_FAILED;
}

void session_set_ended_by(struct session *s, const char *why)
{
	s->core->status.ended_by = why;
}

void session_stop_request(struct session *s)
{
	s->core->status.stop_requested = true;
}

void session_touch(struct session *s)
{
	s->core->status.active_ms = clock_boot_ms();
}

void session_fail(struct session *s, const struct writ_err *err, enum engine_stage at,
		  const char *step)
{
	struct session_status *t = &s->core->status;

	t->failed = true;
	t->err = *err;
	t->failed_at = at;
	t->failed_step = step;
}

void session_end(struct session *s, const char *why, int exit_code)
{
	const struct session_core *c = s->core;

	session_stop_request(s);
	if (c->status.phase >= SESSION_ENDING)
		return;
	session_ending(s);
	session_set_ended_by(s, why);
	session_exit(s, exit_code);
	for (size_t i = 0; i < c->parts_n; i++)
		if (c->parts[i].kill && c->parts[i].kill(s) < 0)
			session_ended(s);
}

int session_make_id(char ret_id[static SESSION_ID + 1], struct writ_err *err)
{
	static const char digits[] = "abcdefghijkmnpqrstuvwxyz23456789";
	uint8_t bytes[SESSION_ID];
	const int r = crypto_random(bytes, sizeof(bytes), err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < SESSION_ID; i++)
		ret_id[i] = digits[bytes[i] & 31];
	ret_id[SESSION_ID] = 0;
	return 0;
}

int session_set_id(struct session *s, struct writ_err *err)
{
	if (s->opt->state.n == 0)
		return writ_fail(err, WRIT_E_SYS, ENOENT, "there is no place for state: set HOME");
	/* A jail that was started early is in a cgroup named by the id: keep that id. */
	if (!s->opt->id || !s->opt->id[0])
		return session_make_id(s->id, err);
	memcpy(s->id, s->opt->id, sizeof(s->id));
	return 0;
}

void session_await(struct session *s, struct writ_err *err)
{
	struct session_options *late = &s->core->late;

	*late = *s->opt;
	if (s->opt->await(s->opt->ctx, late, err) < 0)
		session_fail(s, err, ENGINE_STAGE_NONE, "start");
	s->opt = late;
}

/* --- lifetime --- */

static int init_parts(struct session *s, struct writ_err *err)
{
	const struct session_core *c = s->core;
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->parts_n; i++) {
		if (c->parts[i].initial)
			r = new_state(s, c->parts[i].initial, err);
		if (r == 0 && c->parts[i].init)
			r = c->parts[i].init(s, err);
	}
	return r;
}

static int start_parts(struct session *s, struct writ_err *err)
{
	const struct session_core *c = s->core;
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->parts_n && !c->status.failed; i++)
		if (c->parts[i].start)
			r = c->parts[i].start(s, err);
	return r;
}

/*
 * Returns true if so much of the session exists after a failed start that it must finish in the
 * ordinary way.
 */
static bool recover(struct session *s, struct writ_err *err)
{
	const struct session_core *c = s->core;

	for (size_t i = 0; i < c->parts_n; i++)
		if (c->parts[i].recover && c->parts[i].recover(s, err)) {
			session_fail(s, err, c->status.failed_at,
				     c->status.failed_step ? c->status.failed_step : "start");
			return true;
		}
	return false;
}

static void finish_parts(struct session *s)
{
	struct session_core *c = s->core;
	struct session_status *t = &c->status;

	if (t->failed && t->failed_at != ENGINE_STAGE_EXEC) {
		t->exit_code =
			t->err.code == WRIT_E_UNENFORCEABLE ? SESSION_REFUSED : SESSION_FAILED;
		t->has_exit = true;
	}
	for (size_t i = 0; i < c->parts_n; i++)
		if (c->parts[i].finish)
			c->parts[i].finish(s);
}

static void clear_parts(struct session *s)
{
	const struct session_core *c = s->core;

	for (size_t i = c->parts_n; i > 0; i--)
		if (c->parts[i - 1].clear)
			c->parts[i - 1].clear(s);
}

static void report_parts(struct session *s)
{
	const struct session_core *c = s->core;

	for (size_t i = 0; i < c->parts_n; i++)
		if (c->parts[i].report)
			c->parts[i].report(s);
}

/* Runs all callbacks of the parts, from the first start to the last report. */
static int run(struct session *s, struct writ_err *err)
{
	const struct session_options *given = s->opt;
	const struct session_status *t = &s->core->status;
	int r = start_parts(s, err);

	if (given->id)
		memcpy(given->id, s->id, sizeof(s->id));
	if (r < 0 && recover(s, err))
		r = 0;
	if (r < 0) {
		clear_parts(s);
		return r;
	}
	if (t->failed)
		session_ended(s);
	while (t->phase != SESSION_ENDED)
		session_step(s);
	finish_parts(s);
	clear_parts(s);
	report_parts(s);
	return 0;
}

int session_loop(struct arena *a, const struct session_options *opt,
		 const struct session_part *parts, size_t n, int *ret_exit, struct writ_err *err)
{
	struct session_core core = { .parts = parts, .parts_n = n };
	struct session s = { .a = a, .opt = opt, .core = &core };
	const struct session_status *t = &core.status;
	int r = init_parts(&s, err);

	if (r == 0)
		r = run(&s, err);
	if (r == 0 && t->failed) {
		*err = t->err;
		if (t->failed_at != ENGINE_STAGE_EXEC)
			return t->err.code == WRIT_E_UNENFORCEABLE ? WRIT_E_UNENFORCEABLE
								   : WRIT_E_SYS;
	}
	*ret_exit = t->has_exit ? t->exit_code : SESSION_FAILED;
	return r;
}
