#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

static int exit_of(int status)
{
	return WIFSIGNALED(status) ? SESSION_SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

/* --- what writ-init says: one table of state and event --- */

struct heard {
	struct jail_message m;
	int fd; /* the first; taken by whoever handles it */
	int fds[JAIL_SOCKETS_MAX];
	size_t fds_n;
	pid_t pid;
	struct jail_probed probed;
};

static void on_hello(struct session *s, struct heard *h)
{
	struct writ_err err = { 0 };

	s->jail.init = h->pid;
	if (cgroup_used(&s->cgroup) && cgroup_add(&s->cgroup, h->pid, &err) < 0) {
		s->err = err;
		s->failed = true;
		session_end(s, NULL, SESSION_FAILED);
	}
}

/*
 * The host works beside the agent: replacing a covered file by rename takes the
 * cover away. The mediator refuses by name, so nothing opens; but it is noticed.
 */
static void watch_mounts(struct session *s)
{
	const struct cap_set *set = &s->opt->policy->set;
	char path[64];

	if (!s->view.own_mounts || s->jail.init <= 0)
		return;
	for (size_t i = 0; i < set->nots.n; i++)
		if (set->nots.v[i].cap.action == CAP_FS_READ) {
			snprintf(path, sizeof(path), "/proc/%d/mountinfo", s->jail.init);
			s->mounts = open(path, O_RDONLY | O_CLOEXEC);
			return;
		}
}

void hear_mounts(struct session *s)
{
	struct entry entry = { 0 };
	char drop[4096];

	/* Read to the end, or it would be reported again at once. */
	if (lseek(s->mounts, 0, SEEK_SET) < 0)
		return;
	while (read(s->mounts, drop, sizeof(drop)) > 0)
		;
	if (grant_is_moving(s))
		return;
	record_begin(s, &entry, "mounts");
	record_str(&entry, "what", SV("a mount of the session changed from outside"));
	record_end(s, &entry);
}

static void on_sealed(struct session *s, struct heard *h)
{
	struct entry entry = { 0 };

	s->state = SESSION_RUNNING;
	if (h->fd >= 0 && s->feed < 0)
		s->feed = take_fd(&h->fd);
	s->started_ms = s->active_ms = clock_ms();
	record_begin(s, &entry, "sealed");
	record_num(&entry, "steps", h->m.value);
	record_end(s, &entry);
	watch_mounts(s);
	readback_sealed(s, &s->probing.read);
	if (s->opt->ready_fd > 0)
		(void)!write(s->opt->ready_fd, s->id, SESSION_ID);
	if (s->opt->named)
		session_rest();
	/* From here on nothing of whoever started us is held. */
	if (s->opt->ready_fd > 0 && s->opt->detach) {
		const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		(void)!chdir("/");
		(void)dup2(null, STDERR_FILENO);
		scope_close(&null);
	}
}

static void on_started(struct session *s, struct heard *h)
{
	struct writ_err err = { 0 };

	if (h->m.id != 1 || s->opt->detach) {
		more_terminal(s, h->m.id, take_fd(&h->fd));
		return;
	}
	s->front.relay.pty = take_fd(&h->fd);
	if (s->front.relay.pty < 0 || front_relay(&s->front, &s->relay, &err) < 0) {
		s->err = err;
		s->failed = true;
		session_end(s, NULL, SESSION_FAILED);
	}
}

static void on_listener(struct session *s, struct heard *h)
{
	struct writ_err err = { 0 };

	/* SECURITY: before anybody can answer its exec. */
	probe_listener(s, h->m.id);
	/* It stands still until it is killed. */
	if (s->state != SESSION_RUNNING && s->listener < 0) {
		s->listener = take_fd(&h->fd);
		return;
	}
	if (h->fd < 0 || watch_listener(s, take_fd(&h->fd), h->m.id == 1, &err) < 0) {
		s->err = err;
		s->failed = true;
		session_end(s, NULL, SESSION_FAILED);
	}
}

static void on_failed(struct session *s, struct heard *h)
{
	struct entry entry = { 0 };

	record_begin(s, &entry, "failed");
	record_str(&entry, "step", sv_from(jail_step_name((enum jail_step)h->m.step)));
	record_str(&entry, "what", sv_from(h->m.err.what));
	record_num(&entry, "errno", h->m.err.sys);
	record_end(s, &entry);
	if (h->m.id > 1 || (h->m.id == 1 && s->opt->detach)) {
		more_failed(s, h->m.id, &h->m.err);
		return;
	}
	command_why(s, &h->m.err, &s->err);
	s->failed = true;
	s->failed_step = (enum jail_step)h->m.step;
	if (h->m.step != STEP_EXEC)
		s->state = SESSION_ENDED;
}

static void on_exited(struct session *s, struct heard *h)
{
	const bool more = h->m.id != 1 || s->opt->detach;
	int status = exit_of((int)h->m.value);
	struct entry entry = { 0 };

	probe_shut(s, h->m.id);
	if (more)
		status = more_exited(s, h->m.id, status);
	record_begin(s, &entry, "exited");
	record_num(&entry, "command", h->m.id);
	record_num(&entry, "status", status);
	record_end(s, &entry);
	if (!more && !s->has_exit) {
		s->exit_code = status;
		s->has_exit = true;
	}
}

static void on_stopped(struct session *s, struct heard *h)
{
	if (h->m.id == 1 && !s->opt->detach)
		pulse_stop(s);
	else
		more_stopped(s, h->m.id);
}

static void on_empty(struct session *s, struct heard *h)
{
	(void)h;
	s->emptied = true;
	s->state = SESSION_ENDED;
}

static void on_probed(struct session *s, struct heard *h)
{
	probe_heard(s, &h->m, &h->probed, h->pid);
}

static void on_nothing(struct session *s, struct heard *h)
{
	(void)s, (void)h;
}

static void on_sockets(struct session *s, struct heard *h)
{
	net_listeners(s, h->m.id, h->fds, h->fds_n);
}

enum { HEARD_FIRST = JAIL_HELLO, HEARD_COUNT = JAIL_EMPTY - JAIL_HELLO + 1 };

/* clang-format off */
/* HELLO, SOCKETS, SEALED, LISTENER, STARTED, FAILED, EXITED, STOPPED, PROBED, EMPTY. A hole ends the session. */
static void (*const table[][HEARD_COUNT])(struct session *s, struct heard *h) = {
	[SESSION_STARTING] = { on_hello,   on_sockets, on_sealed,  NULL,        NULL,       on_failed,  NULL,       NULL,       NULL,       NULL },
	[SESSION_RUNNING]  = { NULL,       NULL,       NULL,       on_listener, on_started, on_failed,  on_exited,  on_stopped, on_probed,  on_empty },
	[SESSION_ENDING]   = { on_nothing, on_nothing, on_nothing, on_nothing,  on_nothing, on_failed,  on_exited,  on_nothing, on_probed,  on_empty },
	[SESSION_ENDED]    = { on_nothing, on_nothing, on_nothing, on_nothing,  on_nothing, on_nothing, on_nothing, on_nothing, on_nothing, on_nothing },
};
/* clang-format on */

void hear_message(struct session *s)
{
	struct heard h = { .fd = -1 };
	struct writ_err err = { 0 };
	const int r =
		jail_receive_many(s->jail.session, &h.m, h.fds, &h.fds_n, &h.pid, &h.probed, &err);
	const uint32_t at = h.m.type - HEARD_FIRST;

	if (r <= 0) {
		/* SECURITY: the end without "sealed" is a failed start. */
		if (s->state == SESSION_STARTING && !s->failed) {
			s->failed = true;
			(void)!writ_fail(&s->err, WRIT_E_SYS, 0, "writ-init ended without a word");
		}
		s->state = SESSION_ENDED;
		return;
	}
	h.fd = h.fds_n ? h.fds[0] : -1;
	if (at < HEARD_COUNT && table[s->state][at])
		table[s->state][at](s, &h);
	else
		session_end(s, "writ-init spoke out of turn", SESSION_FAILED);
	scope_close(&h.fd);
	for (size_t i = 1; i < h.fds_n; i++)
		close(h.fds[i]);
}
