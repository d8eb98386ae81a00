#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "parts/commands.h"
#include "parts/denials.h"
#include "parts/engine_priv.h"
#include "parts/grants.h"
#include "parts/mediation.h"
#include "parts/network.h"
#include "parts/probe.h"
#include "parts/record.h"
#include "parts/terminal.h"

#include "base/banned.h"

static int exit_of(int status)
{
	return WIFSIGNALED(status) ? SESSION_SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

/* --- messages of writ-init: one table of phase and type --- */

/* Takes the only descriptor of the event; the caller owns it. -1: none. */
static int take_fd(struct engine_event *h)
{
	return h->fds_n ? fd_take(&h->fds[0]) : -1;
}

static void on_hello(struct session *s, struct engine_event *h)
{
	if (h->err.code) {
		session_fail(s, &h->err, ENGINE_STAGE_NONE, "start");
		session_end(s, NULL, SESSION_FAILED);
	}
}

/*
 * Watches the mounts of the jail if the policy denies reading a file. In the jail such a file is
 * covered by a mount. A process on the host that renames another file onto it removes the cover.
 * The mediator refuses the file by its name, so no process in the jail can open the file; the
 * record notes the change.
 */
static void watch_mounts(struct session *s)
{
	const struct cap_set *set = &s->opt->policy->set;
	char path[64];

	if (!engine_view(s)->own_mounts || engine_init_pid(s) <= 0)
		return;
	for (size_t i = 0; i < set->nots.n; i++)
		if (set->nots.v[i].cap.action == CAP_FS_READ) {
			snprintf(path, sizeof(path), "/proc/%d/mountinfo", engine_init_pid(s));
			engine_of(s)->mounts = open(path, O_RDONLY | O_CLOEXEC);
			return;
		}
}

void engine_mounts_changed(struct session *s)
{
	char drop[4096];

	/* Read mountinfo to its end, or poll() would report the change again at once. */
	if (lseek(engine_of(s)->mounts, 0, SEEK_SET) < 0)
		return;
	while (read(engine_of(s)->mounts, drop, sizeof(drop)) > 0)
		;
	if (!grants_are_moving(s))
		record_what(s, "mounts", "a mount of the session changed from outside");
}

static void on_sealed(struct session *s, struct engine_event *h)
{
	struct entry entry = record_begin("sealed");

	session_running(s);
	denials_feed(s, take_fd(h));
	record_num(&entry, "steps", h->value);
	record_end(s, &entry);
	watch_mounts(s);
	probes_sealed(s);
	control_started(s);
	if (s->opt->ready_fd > 0)
		(void)!write(s->opt->ready_fd, s->id, SESSION_ID);
	if (s->opt->named)
		session_trim_memory();
	/*
	 * Release the last resources of the process that started this session: its working
	 * directory and its standard error.
	 */
	if (s->opt->ready_fd > 0 && s->opt->detach) {
		const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		(void)!chdir("/");
		(void)dup2(null, STDERR_FILENO);
		fd_scope_close(&null);
	}
}

static void on_started(struct session *s, struct engine_event *h)
{
	struct writ_err err = { 0 };

	if (h->id != 1 || s->opt->detach) {
		commands_terminal(s, h->id, take_fd(h));
		return;
	}
	if (terminal_attach(s, take_fd(h), &err) < 0) {
		session_fail(s, &err, ENGINE_STAGE_NONE, "start");
		session_end(s, NULL, SESSION_FAILED);
	}
}

static void on_listener(struct session *s, struct engine_event *h)
{
	struct writ_err err = { 0 };

	/*
	 * SECURITY: record the conditions of the command, and decide about them, before any process
	 * can answer its exec.
	 */
	probes_listener(s, h->id);
	if (session_phase(s) != SESSION_RUNNING) {
		mediation_hold(s, take_fd(h));
		return;
	}
	if (h->fds_n == 0 || mediation_listener(s, take_fd(h), h->id == 1, &err) < 0) {
		session_fail(s, &err, ENGINE_STAGE_NONE, "start");
		session_end(s, NULL, SESSION_FAILED);
	}
}

static void on_failed(struct session *s, struct engine_event *h)
{
	struct entry entry = record_begin("failed");
	struct writ_err why;

	record_str(&entry, "step", sv_from(h->step));
	record_str(&entry, "what", sv_from(h->err.what));
	record_num(&entry, "errno", h->err.sys);
	record_end(s, &entry);
	if (h->id > 1 || (h->id == 1 && s->opt->detach)) {
		commands_failed(s, h->id, &h->err);
		return;
	}
	command_why(s, &h->err, &why);
	session_fail(s, &why, h->stage, h->step);
	if (h->stage != ENGINE_STAGE_EXEC)
		session_ended(s);
}

static void on_exited(struct session *s, struct engine_event *h)
{
	const bool more = h->id != 1 || s->opt->detach;
	int status = exit_of((int)h->value);
	struct entry entry;

	probes_shut(s, h->id);
	if (more)
		status = commands_exited(s, h->id, status);
	entry = record_begin("exited");
	record_num(&entry, "command", h->id);
	record_num(&entry, "status", status);
	record_end(s, &entry);
	if (!more)
		session_exit(s, status);
}

static void on_stopped(struct session *s, struct engine_event *h)
{
	if (h->id == 1 && !s->opt->detach)
		terminal_stop(s);
	else
		commands_stopped(s, h->id);
}

static void on_empty(struct session *s, struct engine_event *h)
{
	(void)h;
	session_emptied(s);
}

static void on_nothing(struct session *s, struct engine_event *h)
{
	(void)s, (void)h;
}

static void on_sockets(struct session *s, struct engine_event *h)
{
	network_listeners(s, h->id, h->fds, h->fds_n);
}

enum { EVENT_FIRST = ENGINE_HELLO, EVENT_COUNT = ENGINE_EMPTY - ENGINE_HELLO + 1 };

/* clang-format off */
/*
 * Columns: HELLO, SOCKETS, SEALED, LISTENER, STARTED, FAILED, EXITED, STOPPED, PROBED, EMPTY. A
 * message without a handler ends the session.
 */
static void (*const table[][EVENT_COUNT])(struct session *s, struct engine_event *h) = {
	[SESSION_STARTING] = { on_hello,   on_sockets, on_sealed,  NULL,        NULL,       on_failed,  NULL,       NULL,       NULL,       NULL },
	[SESSION_RUNNING]  = { NULL,       NULL,       NULL,       on_listener, on_started, on_failed,  on_exited,  on_stopped, probes_result, on_empty },
	[SESSION_ENDING]   = { on_nothing, on_nothing, on_nothing, on_nothing,  on_nothing, on_failed,  on_exited,  on_nothing, probes_result, on_empty },
	[SESSION_ENDED]    = { on_nothing, on_nothing, on_nothing, on_nothing,  on_nothing, on_nothing, on_nothing, on_nothing, on_nothing, on_nothing },
};
/* clang-format on */

void init_messages_recv(struct session *s)
{
	struct engine_event e = { .fds_n = 0 };
	struct writ_err err = { 0 };
	const int r = s->opt->plan->engine->receive(engine_of(s)->run, &e, &err);
	/* A type below EVENT_FIRST wraps around to an index that is not in the table. */
	const uint32_t at = (uint32_t)e.type - EVENT_FIRST;

	if (r <= 0) {
		/* SECURITY: without the report "sealed" of writ-init, the start has failed. */
		if (session_phase(s) == SESSION_STARTING && !session_status(s)->failed) {
			(void)!writ_fail(&err, WRIT_E_SYS, 0, "writ-init ended without a word");
			session_fail(s, &err, ENGINE_STAGE_NONE, "start");
		}
		session_ended(s);
		return;
	}
	if (at < EVENT_COUNT && table[session_phase(s)][at])
		table[session_phase(s)][at](s, &e);
	else
		session_end(s, "writ-init spoke out of turn", SESSION_FAILED);
	for (size_t i = 0; i < e.fds_n; i++)
		if (e.fds[i] >= 0)
			close(e.fds[i]);
}

void init_messages_poll(struct session *s, struct session_poll *set)
{
	session_poll_add(set, engine_of(s)->run->fd, POLLIN);
}

void init_messages_on_event(struct session *s, const struct pollfd *p, size_t n)
{
	(void)n;
	if (p[0].revents)
		init_messages_recv(s);
}
