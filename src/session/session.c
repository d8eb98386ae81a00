#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

/* @ALONE_MS: what ends sooner is never spoken to, and gets no control socket. */
enum { GRACE_MS = 2000, ALONE_MS = 20 };

/* --- ending --- */

void session_end(struct session *s, const char *why, int exit_code)
{
	const struct jail_message m = { .type = JAIL_END };
	struct writ_err err = { 0 };

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

static int exit_of(int status)
{
	return WIFSIGNALED(status) ? SESSION_SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

/* --- what writ-init says: one table of state and event --- */

struct heard {
	struct jail_message m;
	int fd; /* taken by whoever handles it */
	pid_t pid;
};

static void on_hello(struct session *s, struct heard *h)
{
	struct writ_err err = { 0 };

	s->jail.init = h->pid;
	if (s->cgroup.n && cgroup_add(&s->cgroup, h->pid, &err) < 0) {
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

static void on_mounts(struct session *s)
{
	struct buf b = BUF_INIT(4096);
	char drop[4096];

	/* Read to the end, or it would be reported again at once. */
	if (lseek(s->mounts, 0, SEEK_SET) < 0)
		return;
	while (read(s->mounts, drop, sizeof(drop)) > 0)
		;
	record_begin(s, &b, "mounts");
	record_str(&b, "what", SV("a mount of the session changed from outside"));
	record_end(s, &b);
}

static void on_sealed(struct session *s, struct heard *h)
{
	struct buf b = BUF_INIT(4096);

	s->state = SESSION_RUNNING;
	if (h->fd >= 0 && s->feed < 0)
		s->feed = take_fd(&h->fd);
	s->started_ms = s->active_ms = clock_ms();
	record_begin(s, &b, "sealed");
	record_num(&b, "steps", h->m.value);
	record_end(s, &b);
	watch_mounts(s);
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

	if (h->m.id != 1) {
		control_terminal(s, h->m.id, h->fd);
		return;
	}
	s->front.relay.pty = take_fd(&h->fd);
	if (s->front.relay.pty < 0 || relay_new(&s->front.relay, &s->relay, &err) < 0) {
		s->err = err;
		s->failed = true;
		session_end(s, NULL, SESSION_FAILED);
	}
}

static void on_listener(struct session *s, struct heard *h)
{
	struct writ_err err = { 0 };

	if (h->fd < 0 || watch_listener(s, take_fd(&h->fd), h->m.id == 1, &err) < 0) {
		s->err = err;
		s->failed = true;
		session_end(s, NULL, SESSION_FAILED);
	}
}

static void on_failed(struct session *s, struct heard *h)
{
	struct buf b = BUF_INIT(4096);

	record_begin(s, &b, "failed");
	record_str(&b, "step", sv_from(jail_step_name((enum jail_step)h->m.step)));
	record_str(&b, "what", sv_from(h->m.err.what));
	record_num(&b, "errno", h->m.err.sys);
	record_end(s, &b);
	if (h->m.id > 1) {
		control_failed(s, h->m.id, &h->m.err);
		return;
	}
	s->err = h->m.err;
	s->failed = true;
	s->failed_step = (enum jail_step)h->m.step;
	if (h->m.step != STEP_EXEC)
		s->state = SESSION_ENDED;
}

static void on_exited(struct session *s, struct heard *h)
{
	const int status = (int)h->m.value;
	struct buf b = BUF_INIT(4096);

	record_begin(s, &b, "exited");
	record_num(&b, "command", h->m.id);
	record_num(&b, "status", exit_of(status));
	record_end(s, &b);
	if (h->m.id != 1) {
		control_exited(s, h->m.id, exit_of(status));
		return;
	}
	if (!s->has_exit) {
		s->exit_code = exit_of(status);
		s->has_exit = true;
	}
}

static void forward(struct session *s, int number)
{
	const struct jail_message m = { .type = JAIL_SIGNAL, .id = 1, .value = number };
	struct writ_err err = { 0 };

	(void)!jail_send(s->jail.session, &m, NULL, 0, SV(""), &err);
}

/*
 * Gives the terminal back and stops as any program would, with everything in our
 * pipeline. Where no shell could let us go on, the kernel ignores this.
 */
static void stop_ourselves(struct session *s)
{
	sigset_t set;

	if (s->relay)
		relay_suspend(s->relay);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)kill(0, SIGTSTP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	if (s->relay)
		relay_resume(s->relay);
	forward(s, SIGCONT);
}

static void on_stopped(struct session *s, struct heard *h)
{
	if (h->m.id == 1)
		stop_ourselves(s);
}

static void on_empty(struct session *s, struct heard *h)
{
	(void)h;
	s->emptied = true;
	s->state = SESSION_ENDED;
}

static void on_nothing(struct session *s, struct heard *h)
{
	(void)s, (void)h;
}

enum { HEARD_FIRST = JAIL_HELLO, HEARD_COUNT = JAIL_EMPTY - JAIL_HELLO + 1 };

/* clang-format off */
/* HELLO, SEALED, LISTENER, STARTED, FAILED, EXITED, STOPPED, EMPTY. A hole ends the session. */
static void (*const table[][HEARD_COUNT])(struct session *s, struct heard *h) = {
	[SESSION_STARTING] = { on_hello,   on_sealed,  NULL,        NULL,       on_failed,  NULL,       NULL,       NULL },
	[SESSION_RUNNING]  = { NULL,       NULL,       on_listener, on_started, on_failed,  on_exited,  on_stopped, on_empty },
	[SESSION_ENDING]   = { on_nothing, on_nothing, on_nothing,  on_nothing, on_failed,  on_exited,  on_nothing, on_empty },
	[SESSION_ENDED]    = { on_nothing, on_nothing, on_nothing,  on_nothing, on_nothing, on_nothing, on_nothing, on_nothing },
};
/* clang-format on */

static void hear(struct session *s)
{
	struct heard h = { .fd = -1 };
	struct writ_err err = { 0 };
	const int r = jail_receive(s->jail.session, &h.m, &h.fd, &h.pid, &err);
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
	if (at < HEARD_COUNT && table[s->state][at])
		table[s->state][at](s, &h);
	else
		session_end(s, "writ-init spoke out of turn", SESSION_FAILED);
	scope_close(&h.fd);
}

/* --- signals and time --- */

static void on_signal(struct session *s)
{
	struct signalfd_siginfo i;

	if (read(s->signals, &i, sizeof(i)) != (ssize_t)sizeof(i))
		return;
	/* Before there is a command, the signal is for us. */
	if (s->state == SESSION_STARTING && i.ssi_signo != SIGWINCH && i.ssi_signo != SIGTSTP) {
		session_end(s, NULL, SESSION_SIGNALLED + (int)i.ssi_signo);
		return;
	}
	switch ((int)i.ssi_signo) {
	case SIGWINCH:
		if (s->relay)
			relay_resize(s->relay);
		break;
	case SIGTSTP:
		forward(s, SIGSTOP);
		stop_ourselves(s);
		break;
	case SIGHUP:
	case SIGTERM:
		/* The command may tidy up; after the grace everything ends. */
		forward(s, (int)i.ssi_signo);
		if (!s->asked_ms)
			s->asked_ms = clock_ms();
		else
			session_end(s, NULL, SESSION_SIGNALLED + (int)i.ssi_signo);
		break;
	case SIGINT:
	case SIGQUIT:
	case SIGUSR1:
	case SIGUSR2:
		forward(s, (int)i.ssi_signo);
		break;
	}
}

static int open_signals(struct session *s, struct writ_err *err)
{
	static const int wanted[] = { SIGWINCH, SIGTSTP, SIGHUP,  SIGTERM,
				      SIGINT,	SIGQUIT, SIGUSR1, SIGUSR2 };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		struct sigaction now;

		/* Who started us wants these ignored: nohup. */
		if (sigaction(wanted[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN)
			continue;
		sigaddset(&set, wanted[i]);
	}
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "block signals");
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signals < 0 ? writ_fail(err, WRIT_E_SYS, errno, "signalfd") : 0;
}

static void time_is_up(struct session *s, const char *limit)
{
	struct buf b = BUF_INIT(4096);

	record_begin(s, &b, "limit");
	record_str(&b, "limit", sv_from(limit));
	record_end(s, &b);
	if (s->has_exit)
		return;
	session_end(s, limit, SESSION_TIMEOUT);
}

/* Milliseconds until @limit seconds after @since are over; acts if they are. */
static int until(struct session *s, enum cap_limit limit, uint64_t since, int least,
		 const char *name)
{
	const uint64_t length = s->opt->policy->set.limits[limit] * 1000;
	const uint64_t now = clock_ms();

	if (!length || s->state != SESSION_RUNNING)
		return least;
	if (now >= since + length) {
		time_is_up(s, name);
		return 0;
	}
	return since + length - now < (uint64_t)least ? (int)(since + length - now) : least;
}

void session_reach(struct session *s)
{
	struct writ_err err = { 0 };

	if (s->state != SESSION_RUNNING || s->control >= 0)
		return;
	if (control_open(s, &err) == 0) {
		session_rest();
		return;
	}
	say(s, "%s: %s", err.what, strerror(err.sys));
	session_end(s, "it could not be spoken to", SESSION_FAILED);
}

static int next_timeout(struct session *s)
{
	const uint64_t now = clock_ms();
	/* A job that was sent to the background and fetched back is noticed by looking. */
	int t = s->interactive ? 1000 : 3600000;

	if (s->relay && relay_activity(s->relay) != s->activity) {
		s->activity = relay_activity(s->relay);
		s->active_ms = now;
	}
	if (s->state == SESSION_ENDING) {
		/* pid 1 is killing; if it cannot finish, the kernel does. */
		if (now >= s->killed_ms + GRACE_MS) {
			s->state = SESSION_ENDED;
			return 0;
		}
		return (int)(s->killed_ms + GRACE_MS - now);
	}
	if (s->control < 0 && s->state == SESSION_RUNNING) {
		if (now >= s->started_ms + ALONE_MS) {
			session_reach(s);
			return 0;
		}
		t = (int)(s->started_ms + ALONE_MS - now);
	}
	if (s->asked_ms && now >= s->asked_ms + GRACE_MS)
		session_end(s, NULL, SESSION_SIGNALLED + SIGTERM);
	else if (s->asked_ms)
		t = (int)(s->asked_ms + GRACE_MS - now);
	t = until(s, LIMIT_SESSION, s->started_ms, t, "session");
	t = until(s, LIMIT_COMMAND, s->started_ms, t, "command");
	return until(s, LIMIT_IDLE, s->active_ms, t, "idle");
}

/* --- the loop --- */

enum {
	POLL_SIGNALS = 0,
	POLL_JAIL,
	POLL_KEEPER,
	POLL_MEDIATOR,
	POLL_CONTROL,
	POLL_MOUNTS,
	POLL_LISTENER,
	POLL_RELAY,
	POLL_CLIENTS = POLL_RELAY + RELAY_POLLS,
	POLL_COUNT = POLL_CLIENTS + CLIENTS_MAX
};

static void on_relay(struct session *s, const struct pollfd *p, size_t n)
{
	enum relay_event e = RELAY_NOTHING;
	struct writ_err err = { 0 };
	struct buf b = BUF_INIT(4096);

	if (relay_step(s->relay, p, n, &e, &err) < 0) {
		say(s, "%s", err.what);
		session_end(s, "input or output failed", SESSION_FAILED);
		return;
	}
	if (e == RELAY_OUTPUT_FULL) {
		record_begin(s, &b, "limit");
		record_str(&b, "limit", SV("output"));
		record_end(s, &b);
	}
}

static void step(struct session *s)
{
	struct pollfd p[POLL_COUNT];
	size_t relay_n, count;

	for (size_t i = 0; i < POLL_COUNT; i++)
		p[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	p[POLL_SIGNALS].fd = s->signals;
	p[POLL_JAIL].fd = s->jail.session;
	p[POLL_KEEPER].fd = s->jail.keeper;
	p[POLL_MEDIATOR].fd = s->mediator;
	p[POLL_CONTROL].fd = s->control;
	p[POLL_LISTENER].fd = s->state == SESSION_RUNNING ? s->listener : -1;
	p[POLL_MOUNTS] = (struct pollfd){ .fd = s->mounts, .events = POLLPRI };
	relay_n = s->relay ? relay_poll(s->relay, p + POLL_RELAY) : 0;
	count = POLL_RELAY + relay_n;
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (s->clients[i].fd >= 0) {
			p[POLL_CLIENTS + i].fd = s->clients[i].fd;
			count = POLL_CLIENTS + i + 1;
		}
	if (poll(p, (nfds_t)count, next_timeout(s)) < 0) {
		/* More places than this process may have open files. */
		if (errno != EINTR)
			session_end(s, "too few descriptors", SESSION_FAILED);
		return;
	}
	if (relay_n)
		on_relay(s, p + POLL_RELAY, relay_n);
	if (p[POLL_SIGNALS].revents)
		on_signal(s);
	if (p[POLL_MEDIATOR].revents)
		watch_event(s);
	if (p[POLL_LISTENER].revents)
		watch_call(s, p[POLL_LISTENER].revents);
	if (p[POLL_KEEPER].revents)
		control_keeper(s);
	if (p[POLL_MOUNTS].revents & (POLLPRI | POLLERR))
		on_mounts(s);
	if (p[POLL_CONTROL].revents)
		control_accept(s);
	for (size_t i = 0; i + POLL_CLIENTS < count; i++)
		if (p[POLL_CLIENTS + i].revents)
			control_serve(s, i);
	if (p[POLL_JAIL].revents)
		hear(s);
}

/* --- start and end --- */

static int open_cgroup(struct session *s, struct writ_err *err)
{
	const struct host_facts *f = s->opt->plan->facts;
	const uint64_t *l = s->opt->policy->set.limits;
	const struct cgroup_limits limits = { .memory = f->cgroup_memory ? l[LIMIT_MEMORY] : 0,
					      .cpu = f->cgroup_cpu ? l[LIMIT_CPU] : 0,
					      .pids = f->cgroup_pids ? l[LIMIT_PIDS] : 0 };

	return cgroup_open(f, &limits, s->id, &s->cgroup, err);
}

static void record_start(struct session *s)
{
	struct buf b = BUF_INIT(1 << 20);

	record_begin(s, &b, "start");
	record_str(&b, "session", sv_from(s->id));
	record_num(&b, "supervisor", getpid());
	record_str(&b, "workspace", s->opt->workspace);
	buf_str(&b, ",\"command\":[");
	for (char *const *arg = s->opt->argv; *arg; arg++) {
		if (arg != s->opt->argv)
			buf_ch(&b, ',');
		json_put_str(&b, sv_from(*arg));
	}
	buf_str(&b, "],\"guarantees\":");
	buf_sv(&b, s->guarantees);
	record_end(s, &b);
}

/* As text, before there is a command to wait for it. */
static int make_guarantees(struct session *s, struct writ_err *err)
{
	struct buf b = BUF_INIT(1 << 20);
	int r;

	plan_json(s->opt->plan, &b);
	r = buf_check(&b, err);
	if (r == 0 && !arena_sv(s->a, buf_view(&b), &s->guarantees))
		r = writ_nomem(err);
	buf_clear(&b);
	return r;
}

/* The command that the session was made for; a kept session may have none. */
static int first_command(struct session *s, struct writ_err *err)
{
	const mode_t mask = umask(022);
	struct command_ask ask = { .id = 1,
				   .last = !s->opt->detach,
				   .argv = s->opt->argv,
				   .environ = s->opt->environ,
				   .cwd = s->opt->cwd,
				   .program = s->opt->program,
				   .umask = mask };
	int r = 0;

	(void)umask(mask);
	s->commands = 1;
	if (!s->opt->argv[0])
		return 0;
	if (!s->opt->detach)
		r = front_open(&s->front, s->opt->stdio, !s->view.own_mounts, err);
	if (r < 0)
		return r;
	s->front.relay.output_max = s->opt->policy->set.limits[LIMIT_OUTPUT];
	s->front.relay.neutral = s->opt->neutral;
	s->interactive = s->front.relay.on_pty[0];
	ask.pty = s->front.pty;
	ask.given = s->front.given;
	ask.fds = s->front.inside;
	ask.rows = s->front.rows;
	ask.cols = s->front.cols;
	/* A terminal of the jail's own is still to come, and the relay with it. */
	if (!s->opt->detach && (!s->front.pty || s->front.relay.pty >= 0))
		r = relay_new(&s->front.relay, &s->relay, err);
	if (r == 0)
		r = command_send(s, &ask, err);
	front_sent(&s->front);
	return r;
}

static int wait_for_keeper(struct session *s, struct writ_err *err)
{
	struct jail_message m;
	pid_t pid;
	int fd = -1;
	const int r = jail_receive(s->jail.keeper, &m, &fd, &pid, err);

	scope_close(&fd);
	if (r > 0 && m.type == JAIL_KEEPER)
		return 0;
	return r < 0 ? r : writ_fail(err, WRIT_E_SYS, 0, "writ-init ended without a word");
}

/* What writ-init said before it could not be spoken to any more is the reason. */
static void hear_why(struct session *s, struct writ_err *err)
{
	struct writ_err none = { 0 };

	if (s->record < 0 && (s->guarantees.n || make_guarantees(s, &none) == 0) &&
	    session_place_record(s, &none) == 0)
		record_start(s);
	for (int i = 0; i < 16 && !s->failed && s->state != SESSION_ENDED; i++) {
		struct pollfd p = { s->jail.session, POLLIN, 0 };

		if (poll(&p, 1, 100) <= 0)
			return;
		hear(s);
	}
	if (s->failed && s->failed_step != STEP_NONE)
		*err = s->err;
}

/* Nobody says what to run any more: nothing was, and there is nothing to record. */
static void await(struct session *s, struct writ_err *err)
{
	s->late = *s->opt;
	if (s->opt->await(s->opt->await_ctx, &s->late, err) < 0) {
		s->err = *err;
		s->failed = true;
	}
	s->opt = &s->late;
}

/* The login name to show inside. */
static struct sv user_of(char *const *envp)
{
	const struct sv user = environ_get(envp, SV("USER"));

	return user.n == 0 || !sv_is_graph(user) || sv_find(user, ':') != SIZE_MAX ? SV("agent")
										   : user;
}

int session_early(struct arena *a, const struct host_facts *facts, char *const *envp,
		  struct jail *j, struct writ_err *err)
{
	const struct jail_message m = { .type = JAIL_PREPARE };
	scoped_fd program = -1;
	int r = host_prepare(a, facts, user_of(envp), &program, err);

	/* One that cannot be spoken to says why itself, when it is needed. */
	if (r == 0 && jail_send(j->session, &m, &program, 1, SV(""), err) == 0)
		j->prepared = true;
	return r;
}

static int start(struct session *s, struct writ_err *err)
{
	struct host_place place;
	struct jail_message m = { .type = JAIL_BUILD };
	scoped_fd program = -1;
	int r = open_signals(s, err);

	if (r == 0)
		r = session_place_make(s, err);
	if (r == 0)
		r = open_cgroup(s, err);
	place = (struct host_place){ .home = s->paths.home,
				     .tmp = s->paths.tmp,
				     .info = s->paths.info,
				     .rules = s->paths.rules,
				     .state = s->paths.state,
				     .user = user_of(s->opt->environ),
				     .prepared = s->opt->early && s->opt->early->prepared,
				     .workspace = s->opt->workspace,
				     .own = { s->opt->state, s->opt->config } };
	if (r == 0)
		r = host_compile(s->a, s->opt->plan, s->opt->policy, &place, s->opt->fail_at,
				 &s->view, &program, err);
	if (r < 0)
		return r;
	if (s->opt->early && s->opt->early->pid > 0) {
		s->jail = *s->opt->early;
		*s->opt->early = (struct jail)JAIL_INIT;
	} else {
		r = jail_start(s->view.own_mounts, s->opt->fail_at, &s->jail, err);
	}
	/* The keeper takes hold of the jail's mounts while it still can. */
	if (r == 0 && s->jail.keeper >= 0)
		r = wait_for_keeper(s, err);
	if (r == 0)
		r = jail_send(s->jail.session, &m, &program, 1, SV(""), err);
	if (r == 0 && s->jail.keeper >= 0)
		r = jail_send(s->jail.keeper, &m, &program, 1, SV(""), err);
	/* It is being built meanwhile. */
	if (r == 0)
		r = make_guarantees(s, err);
	if (r == 0 && s->opt->await)
		await(s, err);
	if (r == 0 && s->failed)
		return 0;
	if (r == 0)
		r = session_place_record(s, err);
	if (r == 0)
		record_start(s);
	/* SECURITY: no command before pid 1 is where its limits are. */
	while (r == 0 && s->cgroup.n && s->jail.init == 0 && s->state == SESSION_STARTING &&
	       !s->failed)
		hear(s);
	if (r == 0 && s->failed)
		return 0;
	if (r == 0)
		r = first_command(s, err);
	/* Who is told its name may use it at once. */
	return r < 0 || !s->opt->named ? r : control_open(s, err);
}

/* Out of memory, processes or time: said once, on record and on the terminal. */
static void note_hits(struct session *s)
{
	struct cgroup_hits hits = { 0 };
	struct writ_err err = { 0 };
	struct buf b = BUF_INIT(4096);

	if (!s->cgroup.n || cgroup_hits(&s->cgroup, &hits, &err) < 0)
		return;
	if (hits.oom) {
		record_begin(s, &b, "limit");
		record_str(&b, "limit", SV("memory"));
		record_num(&b, "killed", (int64_t)hits.oom);
		record_end(s, &b);
		say(s, "the memory limit was reached, and %llu processes were killed",
		    (unsigned long long)hits.oom);
	}
	if (hits.pids) {
		record_begin(s, &b, "limit");
		record_str(&b, "limit", SV("pids"));
		record_num(&b, "refused", (int64_t)hits.pids);
		record_end(s, &b);
		say(s, "the limit of processes was reached: %llu were not started",
		    (unsigned long long)hits.pids);
	}
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
		record_str(&b, "ended_by", sv_from(s->ended_by));
	if (s->failed) {
		record_str(&b, "step", sv_from(jail_step_name(s->failed_step)));
		record_str(&b, "error", sv_from(s->err.what));
	}
	buf_str(&b, "}\n");
	(void)!fd_write_all(s->opt->status_fd, buf_view(&b), &err);
	buf_clear(&b);
}

static void finish(struct session *s)
{
	struct buf b = BUF_INIT(4096);
	struct writ_err err = { 0 };

	if (s->failed && s->failed_step != STEP_EXEC) {
		s->exit_code = SESSION_FAILED;
		s->has_exit = true;
	}
	/* Output that could not be written is not a success. */
	if (s->relay && relay_finish(s->relay, &err) < 0) {
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
	relay_free(s->relay);
	s->relay = NULL;
	note_hits(s);
	if (s->interactive)
		denial_show_all(s);
	if (s->ended_by && s->exit_code == SESSION_TIMEOUT)
		say(s, "the %s limit was reached, and everything was ended", s->ended_by);
	else if (s->ended_by)
		say(s, "%s", s->ended_by);
	record_begin(s, &b, "end");
	record_num(&b, "exit", s->exit_code);
	record_num(&b, "denials", (int64_t)s->denials.n);
	record_num(&b, "not_recorded", (int64_t)s->dropped);
	record_end(s, &b);
	report_status(s);
}

static void clear(struct session *s)
{
	/* pid 1 said that all others are dead. A cgroup has to be seen empty. */
	const bool leave = s->opt->leaves && s->emptied && !s->cgroup.n;

	if (leave)
		jail_leave(&s->jail);
	jail_close(&s->jail);
	scope_close(&s->listener);
	if (s->mediator_pid > 0) {
		scope_close(&s->mediator);
		kill(s->mediator_pid, SIGKILL);
		while (!leave && waitpid(s->mediator_pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (s->cgroup.n)
		cgroup_close(&s->cgroup);
	if (s->relay)
		relay_free(s->relay);
	else
		front_clear(&s->front);
	s->relay = NULL;
	control_close(s);
	scope_close(&s->record);
	scope_close(&s->feed);
	scope_close(&s->signals);
	scope_close(&s->mounts);
	session_place_clear(s);
	/* What others could not clear away themselves. */
	session_sweep(s->opt->state);
	if (s->opt->plan->facts->cgroup_pids || s->opt->plan->facts->cgroup_memory)
		cgroup_sweep(s->opt->plan->facts);
}

int session_run(struct arena *a, const struct session_options *opt, int *ret_exit,
		struct writ_err *err)
{
	struct session s = { .a = a,
			     .opt = opt,
			     .record = -1,
			     .feed = -1,
			     .jail = JAIL_INIT,
			     .mediator = -1,
			     .listener = -1,
			     .signals = -1,
			     .control = -1,
			     .mounts = -1,
			     .front = FRONT_INIT,
			     .paths = { .run_fd = -1 } };
	int r;

	for (size_t i = 0; i < CLIENTS_MAX; i++)
		s.clients[i].fd = -1;
	r = start(&s, err);
	if (r < 0 && s.jail.session >= 0) {
		hear_why(&s, err);
		s.failed = true;
		s.err = *err;
		s.state = SESSION_ENDED;
		r = 0;
	}
	if (r == 0 && s.failed)
		s.state = SESSION_ENDED;
	while (r == 0 && s.state != SESSION_ENDED)
		step(&s);
	if (r == 0)
		finish(&s);
	clear(&s);
	if (r == 0 && s.failed && s.failed_step != STEP_EXEC) {
		*err = s.err;
		return WRIT_E_SYS;
	}
	if (r == 0 && s.failed)
		*err = s.err;
	*ret_exit = s.has_exit ? s.exit_code : SESSION_FAILED;
	return r;
}
