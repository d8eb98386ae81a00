#include "parts/terminal.h"

#include <string.h>

#include "parts/commands.h"
#include "parts/engine.h"
#include "parts/notice.h"
#include "parts/record.h"
#include "parts/signals.h"
#include "parts/std_fds.h"
#include "parts/tokens.h"

#include "base/banned.h"

struct terminal {
	struct std_fds fds;
	/* Relay between writ's descriptors and the command's; NULL: not started. */
	struct relay *relay;
	uint64_t activity; /* activity counter of the relay, when it was last read */
	/* At the end: time when a reader last read output, or when no stop was requested yet. */
	uint64_t read_ms;
	bool interactive; /* standard input is a terminal */
	bool stopped;	  /* the command is stopped, and another program has the terminal */
};

static struct terminal *terminal_of(const struct session *s)
{
	return session_state(s, &terminal_initial);
}

const struct session_initial terminal_initial =
	SESSION_INITIAL(struct terminal, .fds = STD_FDS_INIT);

int terminal_open(struct session *s, struct command_ask *ask, struct writ_err *err)
{
	struct terminal *t = terminal_of(s);
	const int r = std_fds_open(&t->fds, s->opt->stdio, !engine_view(s)->own_mounts, err);

	if (r < 0)
		return r;
	t->fds.relay.output_max = s->opt->policy->set.limits[LIMIT_OUTPUT];
	t->fds.relay.neutral = s->opt->neutral;
	t->interactive = t->fds.relay.on_pty[0];
	ask->pty = t->fds.pty;
	ask->given = t->fds.given;
	ask->fds = t->fds.inside;
	ask->rows = t->fds.rows;
	ask->cols = t->fds.cols;
	/* The jail makes the terminal later, and terminal_attach() starts the relay then. */
	if (t->fds.pty && t->fds.relay.pty < 0)
		return 0;
	return std_fds_relay(&t->fds, &t->relay, err);
}

void terminal_sent(struct session *s)
{
	std_fds_sent(&terminal_of(s)->fds);
}

int terminal_attach(struct session *s, int pty, struct writ_err *err)
{
	struct terminal *t = terminal_of(s);

	t->fds.relay.pty = pty;
	return pty < 0 ? WRIT_E_SYS : std_fds_relay(&t->fds, &t->relay, err);
}

/* --- stopping and continuing --- */

bool terminal_is_stopped(const struct session *s)
{
	return terminal_of(s)->stopped;
}

bool terminal_is_interactive(const struct session *s)
{
	return terminal_of(s)->interactive;
}

void terminal_resume(struct session *s)
{
	struct terminal *t = terminal_of(s);
	const bool stopped = t->stopped;

	t->stopped = false;
	if (t->relay)
		relay_resume(t->relay);
	if (stopped)
		signals_send(s, SIGCONT);
}

void terminal_suspend(struct session *s)
{
	struct terminal *t = terminal_of(s);

	if (t->relay)
		relay_suspend(t->relay);
	t->stopped = true;
}

void terminal_stop(struct session *s)
{
	if (terminal_of(s)->stopped)
		return;
	terminal_suspend(s);
	if (!job_stop(s))
		terminal_resume(s);
}

void terminal_resize(struct session *s)
{
	struct terminal *t = terminal_of(s);

	if (t->relay)
		relay_resize(t->relay);
}

void terminal_hold(struct session *s, bool hold)
{
	struct terminal *t = terminal_of(s);

	if (t->relay)
		relay_hold(t->relay, hold);
}

/* --- the loop --- */

void terminal_poll(struct session *s, struct session_poll *set)
{
	struct terminal *t = terminal_of(s);
	struct pollfd p[RELAY_POLLS];
	const size_t n = t->relay && !t->stopped ? relay_poll(t->relay, p) : 0;

	for (size_t i = 0; i < n; i++)
		session_poll_add(set, p[i].fd, p[i].events);
}

void terminal_on_event(struct session *s, const struct pollfd *p, size_t n)
{
	enum relay_event e = RELAY_NOTHING;
	struct writ_err err = { 0 };

	if (n == 0)
		return;
	if (relay_step(terminal_of(s)->relay, p, n, &e, &err) < 0) {
		notice_print(s, "%s", err.what);
		session_end(s, "input or output failed", SESSION_FAILED);
		return;
	}
	if (e == RELAY_OUTPUT_FULL)
		record_limit(s, "output", NULL, 0);
}

int terminal_deadline(struct session *s, int least)
{
	enum { FOREGROUND_MS = 1000 };
	struct terminal *t = terminal_of(s);

	if (t->relay && relay_activity(t->relay) != t->activity) {
		t->activity = relay_activity(t->relay);
		session_touch(s);
	}
	/* Only repeated checks show that the job is in the foreground again. */
	return t->interactive && least > FOREGROUND_MS ? FOREGROUND_MS : least;
}

/* --- the end --- */

/*
 * Returns whether to wait further for a reader of the output, which may take its time. After the
 * session's time limit, the end of its token or a request to stop, waits only for a reader that
 * keeps reading.
 */
static bool waits_for_reader(void *ctx)
{
	struct session *s = ctx;
	struct terminal *t = terminal_of(s);
	const struct session_status *status = session_status(s);
	const uint64_t now = clock_boot_ms(),
		       length = s->opt->policy->set.limits[LIMIT_SESSION] * 1000;

	session_step_late(s, 0);
	if ((length && now >= status->started_ms + length) || tokens_are_over(s))
		session_stop_request(s);
	if (relay_activity(t->relay) != t->activity || !status->stop_requested || !t->read_ms) {
		t->activity = relay_activity(t->relay);
		t->read_ms = now;
	}
	return now < t->read_ms + SESSION_GRACE_MS;
}

void terminal_finish(struct session *s)
{
	struct terminal *t = terminal_of(s);
	struct writ_err err = { 0 };

	if (!t->relay || relay_finish(t->relay, waits_for_reader, s, &err) == 0)
		return;
	/* A session whose output could not be written is no success. */
	notice_print(s, "%s%s%s", err.what, err.sys ? ": " : "", err.sys ? strerror(err.sys) : "");
	session_exit_spoil(s);
}

void terminal_release(struct session *s)
{
	struct terminal *t = terminal_of(s);

	relay_free(t->relay);
	t->relay = NULL;
}

void terminal_clear(struct session *s)
{
	struct terminal *t = terminal_of(s);

	terminal_release(s);
	std_fds_clear(&t->fds);
	if (t->stopped)
		job_wake(s);
}
