#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

/*
 * Agents that a session starts: `writ spawn NAME -- COMMAND` inside asks us over a socket,
 * and we start another session outside, under what the policy says about NAME. It is a
 * sibling by its walls and a child by its life: it ends when we do.
 */

enum { TEXT_MAX = 64 << 10, WORDS_MAX = 4096, TERM_MS = 300 };

/* --- what a policy needs for it --- */

bool session_spawns(const struct policy *p)
{
	for (size_t i = 0; i < p->set.caps.n; i++)
		if (p->set.caps.v[i].cap.action == CAP_AGENT_SPAWN)
			return true;
	return false;
}

int session_open_spawn(struct arena *a, struct policy *p, struct sv realm, struct writ_err *err)
{
	const char *text = arena_fmt(a, "unix.connect:" SV_FMT ":%s", SV_ARG(realm), SPAWN_SOCKET);
	struct cap_rule *rule;
	struct cap_entry *e;

	if (!session_spawns(p))
		return 0;
	rule = vec_push(a, &p->set.rules);
	e = vec_push(a, &p->set.caps);
	if (!text || !rule || !e)
		return writ_nomem(err);
	/* Not a socket of the host's: it is mounted by itself. */
	*rule = (struct cap_rule){ .file = SV("agents"),
				   .text = SV("writ spawn"),
				   .built_in = true,
				   .shipped = true,
				   .missing = true };
	e->rule = (uint32_t)p->set.rules.n - 1;
	return cap_parse(a, CAP_GRANT, sv_from(text), &e->cap, err);
}

/* --- listening --- */

int spawn_open(struct session *s, struct writ_err *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *path;
	scoped_fd fd = -1;
	int r;

	if (!session_spawns(s->opt->policy))
		return 0;
	r = session_place_run(s, err);
	if (r < 0)
		return r;
	path = arena_fmt(s->a, SV_FMT "/spawn", SV_ARG(s->paths.run));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	(void)snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/spawn", s->paths.run_fd);
	if (!path)
		return writ_nomem(err);
	if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || listen(fd, 8) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open the socket of agents");
	s->paths.spawn = sv_from(path);
	s->spawn = take_fd(&fd);
	return 0;
}

/*
 * SECURITY: only what runs in this session asks here. Where calls are mediated it is the
 * mediator that connects; otherwise the caller is one of the jail's processes.
 */
static bool is_inside(const struct session *s, int fd)
{
	char path[64], ours[64], theirs[64];
	struct ucred who;
	socklen_t n = sizeof(who);
	ssize_t a, b;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 || who.pid <= 0)
		return false;
	if (s->mediator_pid > 0)
		return who.pid == s->mediator_pid;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", s->jail.init);
	a = readlink(path, ours, sizeof(ours));
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", who.pid);
	b = readlink(path, theirs, sizeof(theirs));
	return a > 0 && a == b && memcmp(ours, theirs, (size_t)a) == 0;
}

static void answer(struct sub *sub, const char *fmt, ...) printf_like(2, 3);
static void answer(struct sub *sub, const char *fmt, ...)
{
	struct buf b = BUF_INIT(512);
	va_list ap;

	va_start(ap, fmt);
	buf_vfmt(&b, fmt, ap);
	va_end(ap);
	if (sub->fd >= 0)
		(void)!send(sub->fd, b.p ? b.p : "", b.n, MSG_NOSIGNAL | MSG_DONTWAIT);
	buf_clear(&b);
	scope_close(&sub->fd);
	sub->fd = -1;
}

/* --- one request --- */

struct request {
	struct sv name, cwd;
	char **argv;
	int fds[3];
};

/* "NAME\0CWD\0WORD\0WORD\0" */
static bool read_request(struct arena *a, struct sv text, struct request *ret)
{
	size_t n = 0;

	if (text.n == 0 || text.p[text.n - 1] != 0)
		return false;
	ret->name = sv_cut(&text, 0);
	ret->cwd = sv_cut(&text, 0);
	ret->argv = arena_array(a, char *, WORDS_MAX + 1);
	while (ret->argv && text.n && n < WORDS_MAX) {
		ret->argv[n] = arena_str(a, sv_cut(&text, 0));
		if (!ret->argv[n++])
			return false;
	}
	return ret->argv && n && text.n == 0;
}

static const struct policy_agent *find_agent(const struct session *s, struct sv name)
{
	const struct policy *p = s->opt->policy;
	scoped_arena a = ARENA_INIT(1 << 16);
	struct buf b = BUF_INIT(CAP_TEXT_MAX);
	struct writ_err err = { 0 };
	const struct policy_agent *found = NULL;
	struct cap req;

	buf_fmt(&b, "agent.spawn:" SV_FMT ":/", SV_ARG(s->opt->realm));
	cap_put_seg(&b, name);
	if (name.n && !b.failed && cap_parse(&a, CAP_REQUEST, buf_view(&b), &req, &err) == 0 &&
	    cap_set_decide(&p->set, &req).answer == CAP_ALLOW)
		for (size_t i = 0; i < p->agents.n; i++)
			if (sv_eq(p->agents.v[i].name, name))
				found = &p->agents.v[i];
	buf_clear(&b);
	return found;
}

/* In the new process: nothing of ours but what it is given. */
_Noreturn static void run_agent(struct session *s, const struct policy_agent *agent,
				const struct request *q, const char *id, pid_t parent)
{
	struct policy p = *agent->lists;
	struct session_begun begun = { .cgroup = { 0 } };
	struct session_options opt = *s->opt;
	struct plan *plan = NULL;
	struct writ_err err = { 0 };
	int code = SESSION_FAILED, stdio[3], high[3];
	sigset_t none;

	sigemptyset(&none);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	(void)setsid();
	for (int i = 0; i < 3; i++) {
		stdio[i] = 3 + i;
		/* Out of the way first: what was given may stand on any number. */
		high[i] = fcntl(q->fds[i], F_DUPFD_CLOEXEC, 100);
		if (high[i] < 0)
			_exit(SESSION_FAILED);
	}
	for (int i = 0; i < 3; i++)
		if (dup2(high[i], 3 + i) < 0 || fcntl(3 + i, F_SETFD, FD_CLOEXEC) < 0)
			_exit(SESSION_FAILED);
	if (dup2(5, 2) < 0 || close_range(6, ~0u, 0) < 0)
		_exit(SESSION_FAILED);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	p.set = agent->set;
	p.has_base = s->opt->policy->has_base;
	memcpy(begun.id, id, sizeof(begun.id));
	if (!cap_set_index(s->a, &p.set) ||
	    plan_new(s->a, &p.set, s->opt->plan->facts, &s->opt->plan->opt, &plan, &err) < 0)
		_exit(SESSION_FAILED);
	if (!plan_runs(plan))
		_exit(SESSION_REFUSED);
	opt.policy = &p;
	opt.plan = plan;
	opt.argv = q->argv;
	opt.cwd = q->cwd;
	opt.program = opt.profile = SV("");
	opt.early = NULL;
	opt.begun = &begun;
	opt.stdio = stdio;
	opt.status_fd = -1;
	opt.ready_fd = opt.job = 0;
	opt.detach = opt.named = opt.explain = false;
	opt.quiet = opt.leaves = true;
	opt.await = NULL;
	opt.parent = sv_from(s->id);
	opt.agent = agent->name;
	if (session_run(s->a, &opt, &code, &err) < 0)
		code = err.code == WRIT_E_UNENFORCEABLE ? SESSION_REFUSED : SESSION_FAILED;
	if (err.what[0])
		(void)dprintf(2, "writ: %s%s%s\n", err.what, err.sys ? ": " : "",
			      err.sys ? strerror(err.sys) : "");
	_exit(code);
}

static void record(struct session *s, const char *event, struct sv agent, const char *id, int exit)
{
	struct entry entry = { 0 };

	record_begin(s, &entry, event);
	record_str(&entry, "agent", agent);
	if (id)
		record_str(&entry, "session", sv_from(id));
	if (exit >= 0)
		record_num(&entry, "exit", exit);
	record_end(s, &entry);
}

static void start_agent(struct session *s, struct sub *sub, const struct request *q)
{
	const struct policy_agent *agent = find_agent(s, q->name);
	const pid_t parent = getpid();
	struct writ_err err = { 0 };

	if (!agent) {
		record(s, "spawn.denied", q->name, NULL, -1);
		answer(sub, "error no rule lets this session start an agent of that name");
		return;
	}
	if (session_make_id(sub->id, &err) < 0) {
		answer(sub, "error %s", err.what);
		return;
	}
	/* Both logs name the other: it is in ours before there is another. */
	record(s, "spawn", agent->name, sub->id, -1);
	sub->name = agent->name;
	sub->pid = fork();
	if (sub->pid == 0)
		run_agent(s, agent, q, sub->id, parent);
	if (sub->pid > 0)
		sub->pidfd = (int)syscall(SYS_pidfd_open, sub->pid, 0);
	if (sub->pid <= 0 || sub->pidfd < 0) {
		if (sub->pid > 0)
			(void)kill(sub->pid, SIGKILL);
		sub->pid = 0;
		answer(sub, "error it could not be started");
	}
}

static void hear_request(struct session *s, struct sub *sub)
{
	scoped_arena a = ARENA_INIT(4 << 20);
	char *text = arena_alloc(&a, TEXT_MAX, 1);
	int fds[PACKET_FDS] = { -1, -1, -1, -1 };
	struct request q = { .fds = { -1, -1, -1 } };
	struct writ_err err = { 0 };
	size_t n = 0, fds_n = 0;

	if (!text || packet_receive(sub->fd, text, TEXT_MAX, &n, fds, &fds_n, &err) <= 0) {
		scope_close(&sub->fd);
		sub->fd = -1;
		return;
	}
	memcpy(q.fds, fds, sizeof(q.fds));
	if (fds_n != 3 || !read_request(&a, (struct sv){ text, n }, &q))
		answer(sub, "error that is no request");
	else if (s->state != SESSION_RUNNING)
		answer(sub, "error the session is ending");
	else
		start_agent(s, sub, &q);
	for (size_t i = 0; i < PACKET_FDS; i++)
		scope_close(&fds[i]);
}

/* --- the loop --- */

size_t spawn_poll(const struct session *s, struct pollfd ret[static 1 + 2 * SUBS_MAX])
{
	size_t n = 0;

	ret[n++] = (struct pollfd){ .fd = s->spawn, .events = POLLIN };
	for (size_t i = 0; i < SUBS_MAX; i++) {
		ret[n++] = (struct pollfd){ .fd = s->subs[i].fd, .events = POLLIN };
		ret[n++] = (struct pollfd){ .fd = s->subs[i].pidfd, .events = POLLIN };
	}
	return n;
}

static void take_connection(struct session *s)
{
	scoped_fd fd = accept4(s->spawn, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 || !is_inside(s, fd))
		return;
	for (size_t i = 0; i < SUBS_MAX; i++)
		if (s->subs[i].fd < 0 && s->subs[i].pid == 0) {
			s->subs[i] = (struct sub){ .fd = take_fd(&fd), .pidfd = -1 };
			return;
		}
}

/* Nothing has come and nobody has gone. */
static bool is_silent(const struct sub *sub)
{
	char c;

	return recv(sub->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* Whoever waited for it has gone: so does the agent. */
static void hang_up(struct sub *sub)
{
	(void)kill(sub->pid, SIGTERM);
	scope_close(&sub->fd);
	sub->fd = -1;
}

static void reap(struct session *s, struct sub *sub)
{
	int status = 0, code;

	if (waitpid(sub->pid, &status, WNOHANG) != sub->pid)
		return;
	code = WIFEXITED(status) ? WEXITSTATUS(status) : SESSION_SIGNALLED + WTERMSIG(status);
	record(s, "spawn.end", sub->name, sub->id, code);
	answer(sub, "exit %d", code);
	scope_close(&sub->pidfd);
	*sub = (struct sub){ .fd = -1, .pidfd = -1 };
}

void spawn_step(struct session *s)
{
	s->active_ms = clock_ms();
	if (s->spawn >= 0)
		take_connection(s);
	for (size_t i = 0; i < SUBS_MAX; i++) {
		struct sub *sub = &s->subs[i];

		if (sub->pid > 0)
			reap(s, sub);
		if (sub->fd < 0 || is_silent(sub))
			continue;
		if (sub->pid > 0)
			hang_up(sub);
		else
			hear_request(s, sub);
	}
}

static bool wait_all(struct session *s, int ms)
{
	const uint64_t end = clock_ms() + (uint64_t)ms;
	bool any;

	do {
		struct pollfd p[SUBS_MAX];

		any = false;
		for (size_t i = 0; i < SUBS_MAX; i++) {
			p[i] = (struct pollfd){ .fd = s->subs[i].pidfd, .events = POLLIN };
			if (s->subs[i].pid > 0)
				reap(s, &s->subs[i]);
			any |= s->subs[i].pid > 0;
		}
		if (any)
			(void)poll(p, SUBS_MAX, 50);
	} while (any && clock_ms() < end);
	return !any;
}

static void signal_all(const struct session *s, int number)
{
	for (size_t i = 0; i < SUBS_MAX; i++)
		if (s->subs[i].pid > 0)
			(void)kill(s->subs[i].pid, number);
}

/* First they may tidy up, then their sessions end, then they do. */
void spawn_end(struct session *s)
{
	scope_close(&s->spawn);
	s->spawn = -1;
	for (int i = 0; i < 2; i++) {
		signal_all(s, SIGTERM);
		if (wait_all(s, i ? GRACE_MS : TERM_MS))
			return;
	}
	signal_all(s, SIGKILL);
	(void)wait_all(s, GRACE_MS);
}

/* Whose agent this is. */
void spawn_record(struct session *s)
{
	struct entry entry = { 0 };

	if (s->opt->parent.n == 0)
		return;
	record_begin(s, &entry, "parent");
	record_str(&entry, "agent", s->opt->agent);
	record_str(&entry, "session", s->opt->parent);
	record_end(s, &entry);
}

/* --- the other side: a program inside --- */

static int ask_outside(int fd, struct sv name, char *const *argv, struct sv cwd,
		       struct writ_err *err)
{
	struct buf b = BUF_INIT(TEXT_MAX);
	const int stdio[3] = { 0, 1, 2 };
	int r;

	buf_sv(&b, name);
	buf_ch(&b, 0);
	buf_sv(&b, cwd);
	buf_ch(&b, 0);
	for (; *argv; argv++) {
		buf_str(&b, *argv);
		buf_ch(&b, 0);
	}
	r = buf_check(&b, err);
	if (r == 0)
		r = packet_send(fd, buf_view(&b), stdio, 3, err);
	buf_clear(&b);
	return r;
}

int session_spawn(struct sv name, char *const *argv, struct sv cwd, int *ret_exit,
		  struct writ_err *err)
{
	const struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = SPAWN_SOCKET };
	scoped_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int fds[PACKET_FDS];
	struct sv rest;
	char text[512];
	uint64_t code;
	size_t n = 0, fds_n = 0;
	int r;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "no agent can be started from here (%s)",
				 SPAWN_SOCKET);
	r = ask_outside(fd, name, argv, cwd, err);
	if (r == 0)
		r = packet_receive(fd, text, sizeof(text), &n, fds, &fds_n, err);
	if (r < 0)
		return r;
	rest = (struct sv){ text, n };
	if (r > 0 && sv_is(sv_cut(&rest, ' '), "exit") && sv_to_u64(rest, 255, &code)) {
		*ret_exit = (int)code;
		return 0;
	}
	return writ_fail(err, WRIT_E_DENIED, 0, SV_FMT,
			 SV_ARG(rest.n ? rest : SV("the session has ended")));
}
