#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "session/session_priv.h"

#include "base/banned.h"

void session_end(struct session *s, const char *why, int exit_code)
{
	const struct jail_message m = { .type = JAIL_END };
	struct writ_err err = { 0 };

	s->hurried = true;
	if (s->state >= SESSION_ENDING)
		return;
	s->state = SESSION_ENDING;
	s->killed_ms = clock_ms();
	s->ended_by = why;
	if (!s->has_exit) {
		s->exit_code = exit_code;
		s->has_exit = true;
	}
	if (jail_send(s->jail.session, &m, NULL, 0, SV(""), &err) < 0)
		s->state = SESSION_ENDED;
}

/*
 * Out of memory or processes: said once, on record and on the terminal. True if
 * somebody was killed for memory.
 */
static bool note_hits(struct session *s)
{
	struct cgroup_hits hits = { 0 };
	struct writ_err err = { 0 };
	struct entry entry = { 0 };

	if (!s->cgroup.n || cgroup_hits(&s->cgroup, &hits, &err) < 0)
		return false;
	if (hits.oom) {
		record_begin(s, &entry, "limit");
		record_str(&entry, "limit", SV("memory"));
		record_num(&entry, "killed", (int64_t)hits.oom);
		record_end(s, &entry);
		say(s, "the memory limit was reached, and %llu processes were killed",
		    (unsigned long long)hits.oom);
	}
	if (hits.pids) {
		record_begin(s, &entry, "limit");
		record_str(&entry, "limit", SV("pids"));
		record_num(&entry, "refused", (int64_t)hits.pids);
		record_end(s, &entry);
		say(s, "the limit of processes was reached: %llu were not started",
		    (unsigned long long)hits.pids);
	}
	return hits.oom > 0;
}

/* Nobody inside could say how it ended: all were killed at once, or something broke. */
static void end_unheard(struct session *s, bool out_of_memory)
{
	if (s->has_exit)
		return;
	s->exit_code = out_of_memory ? 128 + SIGKILL : SESSION_FAILED;
	s->has_exit = true;
	if (out_of_memory)
		s->ended_by = "memory";
	if (s->ended_by)
		return;
	s->ended_by = "writ-init ended without a word";
	say(s, "%s%s", s->ended_by, s->strays ? "" : ", and everything with it");
}

/* A part of ours is gone, and so the session. */
static void note_failed(struct session *s)
{
	struct entry entry = { 0 };

	if (!s->ended_by || s->exit_code != SESSION_FAILED)
		return;
	record_begin(s, &entry, "failed");
	record_str(&entry, "what", sv_from(s->ended_by));
	record_end(s, &entry);
}

static void put_member(struct buf *b, const char *key, struct sv value)
{
	buf_fmt(b, ",\"%s\":", key);
	json_put_str(b, value);
}

static void report_status(const struct session *s)
{
	struct buf b = BUF_INIT(4096);
	struct writ_err err = { 0 };

	if (s->opt->status_fd < 0)
		return;
	buf_fmt(&b, "{\"session\":\"%s\",\"exit\":%d,\"started\":%s,\"denials\":%zu", s->id,
		s->exit_code, s->failed ? "false" : "true", s->denials.n);
	if (s->ended_by)
		put_member(&b, "ended_by", sv_from(s->ended_by));
	if (s->failed) {
		put_member(&b, "step", sv_from(jail_step_name(s->failed_step)));
		put_member(&b, "error", sv_from(s->err.what));
	}
	buf_str(&b, "}\n");
	(void)!fd_write_all(s->opt->status_fd, buf_view(&b), &err);
	buf_clear(&b);
}

static void finish(struct session *s)
{
	struct entry entry = { 0 };
	struct writ_err err = { 0 };
	bool out_of_memory;

	if (s->failed && s->failed_step != STEP_EXEC) {
		s->exit_code =
			s->err.code == WRIT_E_UNENFORCEABLE ? SESSION_REFUSED : SESSION_FAILED;
		s->has_exit = true;
	}
	strays_end(s);
	spawn_end(s);
	net_finish_begin(s);
	/* Output that could not be written is not a success. */
	if (s->relay && relay_finish(s->relay, finish_waits, s, &err) < 0) {
		say(s, "%s%s%s", err.what, err.sys ? ": " : "", err.sys ? strerror(err.sys) : "");
		if (s->exit_code == 0)
			s->exit_code = SESSION_FAILED;
	}
	/* What the mediator still has to say: it sends that, finds us gone, and ends. */
	if (s->mediator >= 0)
		(void)shutdown(s->mediator, SHUT_WR);
	while (s->mediator >= 0) {
		struct pollfd p = { s->mediator, POLLIN, 0 };

		if (poll(&p, 1, GRACE_MS) <= 0)
			break;
		watch_event(s);
	}
	look_finish(s);
	/* The terminal is given back first: its keys may end what is still to come. */
	relay_free(s->relay);
	s->relay = NULL;
	net_finish(s);
	out_of_memory = note_hits(s);
	if (s->interactive && (s->failed || !s->opt->explain))
		denial_show_all(s);
	if (s->ended_by && s->exit_code == SESSION_TIMEOUT)
		say(s, "the %s limit was reached%s", s->ended_by,
		    s->strays ? "" : ", and everything was ended");
	else if (s->ended_by)
		say(s, "%s", s->ended_by);
	burst_flush(s, true);
	end_unheard(s, out_of_memory);
	note_failed(s);
	record_begin(s, &entry, "end");
	record_num(&entry, "exit", s->exit_code);
	record_num(&entry, "denials", (int64_t)s->denials.n);
	record_num(&entry, "not_recorded", (int64_t)s->dropped);
	record_num(&entry, "entries", (int64_t)s->log.tree.size);
	if (s->strays)
		record_num(&entry, "left", s->strays);
	record_end(s, &entry);
	/* A record that nobody vouches for is not a success either. */
	if (seal_end(s) < 0 && s->exit_code == 0)
		s->exit_code = SESSION_FAILED;
	report_status(s);
}

static void clear(struct session *s)
{
	/* pid 1 said that all others are dead, and is about to end itself. */
	const bool leave = s->opt->leaves && s->emptied && !s->cgroup.unit[0];

	/* Who lets go of its mounts last takes them apart: not us, if somebody else can. */
	scope_close(&s->feed);
	scope_close(&s->mounts);
	scope_close(&s->inside);
	if (!leave)
		jail_close(&s->jail);
	scope_close(&s->listener);
	look_end(s);
	if (s->mediator_pid > 0) {
		scope_close(&s->mediator);
		if (leave)
			kill(s->mediator_pid, SIGKILL);
		else
			helper_end(s->mediator_pid, GRACE_MS);
	}
	probe_clear(s);
	seal_clear(s);
	net_clear(s);
	gitnet_clear(s);
	secrets_wipe(s);
	token_close(s);
	meter_close(s);
	if (!leave && cgroup_used(&s->cgroup))
		cgroup_close(&s->cgroup);
	relay_free(s->relay);
	s->relay = NULL;
	front_clear(&s->front);
	control_close(s);
	screen_clear(s);
	slog_close(&s->log);
	scope_close(&s->signer);
	scope_close(&s->signals);
	session_place_clear(s);
	if (s->stopped)
		job_wake(s);
	/* What is left ends with us, but a cgroup has to be seen empty. */
	if (cgroup_used(&s->cgroup)) {
		jail_leave(&s->jail);
		cgroup_close(&s->cgroup);
	}
}

int session_run(struct arena *a, const struct session_options *opt, int *ret_exit,
		struct writ_err *err)
{
	struct session s = { .a = a,
			     .opt = opt,
			     .log = SLOG_INIT,
			     .probing = { .listener = -1 },
			     .feed = -1,
			     .jail = JAIL_INIT,
			     .mediator = -1,
			     .egress = -1,
			     .reader = -1,
			     .totals_fd = -1,
			     .git = -1,
			     .git_listener = -1,
			     .git_hand = -1,
			     .asking_tty = -1,
			     .early = { -1, -1, -1 },
			     .listener = -1,
			     .signer = -1,
			     .signals = -1,
			     .control = -1,
			     .mounts = -1,
			     .inside = -1,
			     .look = -1,
			     .spawn = -1,
			     .shared_fd = -1,
			     .front = FRONT_INIT,
			     .paths = { .run_fd = -1 } };
	int r;

	for (size_t i = 0; i < CLIENTS_MAX; i++)
		s.clients[i].fd = -1;
	for (size_t i = 0; i < SUBS_MAX; i++)
		s.subs[i] = (struct sub){ .fd = -1, .pidfd = -1 };
	screen_init(&s);
	r = session_begin(&s, err);
	if (opt->ret_id)
		memcpy(opt->ret_id, s.id, sizeof(s.id));
	if (r < 0 && s.jail.session >= 0) {
		session_hear_why(&s, err);
		s.failed = true;
		s.err = *err;
		s.state = SESSION_ENDED;
		r = 0;
	}
	if (r == 0 && s.failed)
		s.state = SESSION_ENDED;
	while (r == 0 && s.state != SESSION_ENDED)
		session_step(&s);
	if (r == 0)
		finish(&s);
	clear(&s);
	if (r == 0 && s.opt->explain && !s.failed)
		denial_explain_all(&s);
	if (r == 0 && s.failed && s.failed_step != STEP_EXEC) {
		*err = s.err;
		return s.err.code == WRIT_E_UNENFORCEABLE ? WRIT_E_UNENFORCEABLE : WRIT_E_SYS;
	}
	if (r == 0 && s.failed)
		*err = s.err;
	*ret_exit = s.has_exit ? s.exit_code : SESSION_FAILED;
	return r;
}
