#include "parts/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "parts/agents.h"
#include "parts/control.h"
#include "parts/directories.h"
#include "parts/engine.h"
#include "parts/helper.h"
#include "parts/mediation.h"
#include "parts/record.h"
#include "parts/session.h"
#include "parts/tokens.h"
#include "token/wallet.h"

#include "base/banned.h"

/*
 * Agents that a session starts: `writ spawn NAME -- COMMAND` in the jail asks the supervisor over a
 * socket, and the supervisor starts another session on the host, under the policy block of NAME.
 * The agent's jail is not nested in the jail of its parent session, but the agent's session ends
 * when the parent session ends.
 */

enum { TERM_MS = 300, COUNTERS_FD = 6, SPAWNED_MAX = 256 };

/* A running agent, or a connection that asks for an agent. */
struct sub {
	pid_t pid; /* process id of the agent's supervisor; 0: not started yet */
	int pidfd, fd;
	struct sv name;
	char id[SESSION_ID + 1];
};

enum { SUBS_MAX = 16 };

struct agents {
	int spawn;	  /* listening socket; -1: the policy allows no agents */
	struct sv path;	  /* path of the listening socket */
	uint32_t spawned; /* number of agents started so far */
	struct sub subs[SUBS_MAX];
};

static struct agents *spawn_of(const struct session *s)
{
	return session_state(s, &spawn_initial);
}

const struct session_initial spawn_initial = SESSION_INITIAL(struct agents, .spawn = -1);

int spawn_init(struct session *s, struct writ_err *err)
{
	(void)err;
	for (size_t i = 0; i < SUBS_MAX; i++)
		spawn_of(s)->subs[i] = (struct sub){ .fd = -1, .pidfd = -1 };
	return 0;
}

struct sv spawn_path(const struct session *s)
{
	return spawn_of(s)->path;
}

bool spawn_owns(const struct session *s, pid_t pid)
{
	for (size_t i = 0; i < SUBS_MAX; i++)
		if (spawn_of(s)->subs[i].pid == pid)
			return true;
	return false;
}

/* --- does the policy allow agents? --- */

bool spawn_allowed(const struct policy *p)
{
	return cap_set_has(&p->set, CAP_AGENT_SPAWN);
}

/* --- the listening socket --- */

int spawn_start(struct session *s, struct writ_err *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *path;
	scoped_fd fd = -1;
	int r;

	if (!spawn_allowed(s->opt->policy))
		return 0;
	r = directories_run(s, err);
	if (r < 0)
		return r;
	path = arena_fmt(s->a, SV_FMT "/spawn", SV_ARG(directories_get(s)->run));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	(void)snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/spawn",
		       directories_get(s)->run_fd);
	if (!path)
		return writ_nomem(err);
	if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || listen(fd, 8) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open the socket of agents");
	spawn_of(s)->path = sv_from(path);
	spawn_of(s)->spawn = fd_take(&fd);
	return 0;
}

/*
 * SECURITY: only processes of this session may ask for agents. If calls are mediated, the mediator
 * makes the connection for them; otherwise the caller must be in the pid namespace of the jail.
 */
static bool is_inside(const struct session *s, int fd)
{
	char path[64], ours[64], theirs[64];
	struct ucred who;
	socklen_t n = sizeof(who);
	ssize_t a, b;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 || who.pid <= 0)
		return false;
	if (mediation_pid(s) > 0)
		return who.pid == mediation_pid(s);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", engine_init_pid(s));
	a = readlink(path, ours, sizeof(ours));
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", who.pid);
	b = readlink(path, theirs, sizeof(theirs));
	return a > 0 && a == b && memcmp(ours, theirs, (size_t)a) == 0;
}

static void answer(struct sub *sub, const char *fmt, ...) printf_like(2, 3);
static void answer(struct sub *sub, const char *fmt, ...)
{
	scoped_buf b = BUF_INIT(512);
	va_list ap;

	va_start(ap, fmt);
	buf_vfmt(&b, fmt, ap);
	va_end(ap);
	if (sub->fd >= 0)
		(void)!send(sub->fd, b.p ? b.p : "", b.n, MSG_NOSIGNAL | MSG_DONTWAIT);
	fd_close(&sub->fd);
}

/* --- a request for an agent --- */

struct request {
	struct spawn_request ask;
	struct token_id sid; /* session id for the agent's token */
	int fds[3];
};

static const struct policy_agent *find_agent(const struct session *s, struct sv name)
{
	const struct policy *p = s->opt->policy;
	scoped_arena a = ARENA_INIT(1 << 16);
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
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
	return found;
}

/* Runs in the new process: keeps only the descriptors that the agent is given, and the counters. */
static void take_descriptors(const struct request *q, int counters)
{
	int high[4] = { -1, -1, -1, -1 };

	for (int i = 0; i < 4; i++) {
		const int fd = i < 3 ? q->fds[i] : counters;

		/*
		 * Move the descriptors to high numbers first: each may have the number that another
		 * is to get.
		 */
		high[i] = fcntl(fd, F_DUPFD_CLOEXEC, 100);
		if (high[i] < 0 && fd >= 0)
			_exit(SESSION_FAILED);
	}
	for (int i = 0; i < 4; i++)
		if (high[i] >= 0 &&
		    (dup2(high[i], 3 + i) < 0 || fcntl(3 + i, F_SETFD, FD_CLOEXEC) < 0))
			_exit(SESSION_FAILED);
	if (dup2(5, 2) < 0 || close_range(high[3] < 0 ? COUNTERS_FD : COUNTERS_FD + 1, ~0u, 0) < 0)
		_exit(SESSION_FAILED);
}

_Noreturn static void give_up(const struct writ_err *err, const struct session_token *t, int code)
{
	const bool refused = t && t->why && t->why->code != TOKEN_E_NONE;

	(void)dprintf(2, "writ: %s%s%s%s%s\n", refused ? token_code_name(t->why->code) : "",
		      refused ? ": " : "", err->what, err->sys ? ": " : "",
		      err->sys ? strerror(err->sys) : "");
	_exit(refused ? SESSION_POLICY : code);
}

_Noreturn static void become_agent(struct session *s, const struct policy_agent *agent,
				   const struct request *q, const char *id, pid_t parent)
{
	static const int stdio[3] = { 3, 4, 5 };
	const struct session_token *from = s->opt->token;
	const struct wallet_level level = meter_level(s);
	struct session_token token = { 0 };
	struct policy p;
	const struct session_agent who = { .name = agent->name,
					   .parent = sv_from(s->id),
					   .id = id,
					   .policy = &p,
					   .token = from ? &token : NULL,
					   .level = &level,
					   .counters = COUNTERS_FD,
					   .argv = q->ask.argv,
					   .environ = s->opt->environ,
					   .cwd = q->ask.cwd,
					   .stdio = stdio,
					   .neutral = s->opt->neutral };
	struct writ_err err = { 0 };
	int code = SESSION_FAILED;

	helper_begin(parent);
	take_descriptors(q, from ? -1 : meter_fd(s));
	if (from && delegate_token(s, agent, &q->sid, &token, &err) < 0)
		give_up(&err, &token, SESSION_FAILED);
	if (delegate_policy(s, agent, &p, &err) < 0)
		give_up(&err, NULL, SESSION_FAILED);
	if (s->opt->start_agent(s->opt->ctx, &who, &code, &err) < 0)
		give_up(&err, who.token,
			err.code == WRIT_E_UNENFORCEABLE ? SESSION_REFUSED : SESSION_FAILED);
	if (err.what[0])
		give_up(&err, NULL, code);
	_exit(code);
}

static void record(struct session *s, const char *event, struct sv agent, const char *id, int exit)
{
	struct entry entry = record_begin(event);

	/* An unknown name is text from the jail, and private. */
	record_str(&entry, id ? "agent" : "object", agent);
	if (id)
		record_str(&entry, "session", sv_from(id));
	if (exit >= 0)
		record_num(&entry, "exit", exit);
	record_end(s, &entry);
}

/* Chooses the id of the agent's session: from the agent's token, or a new one. */
static int name_agent(const struct session *s, struct request *q, char id[static SESSION_ID + 1],
		      struct writ_err *err)
{
	const int r = s->opt->token ? wallet_new_id(s->opt->token->wallet, &q->sid, err)
				    : session_make_id(id, err);

	if (r == 0 && s->opt->token)
		tokens_session_name(&q->sid, id);
	return r;
}

static void start_agent(struct session *s, struct sub *sub, struct request *q)
{
	const struct policy_agent *agent = find_agent(s, q->ask.name);
	const pid_t parent = getpid();
	struct writ_err err = { 0 };

	if (!agent) {
		record(s, "spawn.denied", q->ask.name, NULL, -1);
		answer(sub, "error no rule lets this session start an agent of that name");
		return;
	}
	/*
	 * SECURITY: limit the number of agents that one session starts. Each agent leaves a record,
	 * and only the newest records are kept: without this limit, a session could push the
	 * records of other sessions out.
	 */
	if (spawn_of(s)->spawned == SPAWNED_MAX) {
		answer(sub, "error this session has started as many agents as a session may");
		return;
	}
	spawn_of(s)->spawned++;
	if (name_agent(s, q, sub->id, &err) < 0) {
		answer(sub, "error %s", err.what);
		return;
	}
	/*
	 * Write this entry, which names the agent's session, before that session exists. The record
	 * of the agent's session names this session (spawn_record()).
	 */
	record(s, "spawn", agent->name, sub->id, -1);
	sub->name = agent->name;
	sub->pid = fork();
	if (sub->pid == 0)
		become_agent(s, agent, q, sub->id, parent);
	if (sub->pid > 0)
		sub->pidfd = (int)syscall(SYS_pidfd_open, sub->pid, 0);
	if (sub->pid <= 0 || sub->pidfd < 0) {
		helper_kill(&sub->pid);
		sub->pid = 0;
		record(s, "spawn.end", agent->name, sub->id, SESSION_FAILED);
		answer(sub, "error it could not be started");
	}
}

static const char *const stdio_names[3] = { "input", "output", "error" };

/*
 * Finds the first standard descriptor that an agent must not get. Returns its kind, with its number
 * in *@ret_at; NULL: there is none.
 */
static const char *find_odd(const struct request *q, int *ret_at)
{
	const char *odd = NULL;

	for (int i = 0; i < 3 && !odd; i++) {
		odd = spawn_refuses(q->fds[i]);
		*ret_at = i;
	}
	return odd;
}

static void hear_request(struct session *s, struct sub *sub)
{
	scoped_arena a = ARENA_INIT(4 << 20);
	char *text = arena_alloc(&a, SPAWN_TEXT_MAX, 1);
	int fds[PACKET_FDS] = { -1, -1, -1, -1 };
	struct request q = { .fds = { -1, -1, -1 } };
	struct writ_err err = { 0 };
	size_t n = 0, fds_n = 0;
	const char *odd;
	int odd_at = 0;

	if (!text || packet_receive(sub->fd, text, SPAWN_TEXT_MAX, &n, fds, &fds_n, &err) <= 0) {
		fd_close(&sub->fd);
		return;
	}
	memcpy(q.fds, fds, sizeof(q.fds));
	odd = fds_n == 3 ? find_odd(&q, &odd_at) : NULL;
	if (fds_n != 3 || !spawn_read(&a, (struct sv){ text, n }, &q.ask))
		answer(sub, "error that is no request");
	else if (odd)
		answer(sub, "error standard %s is %s, and an agent gets files, pipes and sockets",
		       stdio_names[odd_at], odd);
	else if (session_phase(s) != SESSION_RUNNING)
		answer(sub, "error the session is ending");
	else
		start_agent(s, sub, &q);
	for (size_t i = 0; i < PACKET_FDS; i++)
		fd_scope_close(&fds[i]);
}

/* --- the loop --- */

void spawn_poll(struct session *s, struct session_poll *set)
{
	const struct agents *a = spawn_of(s);

	session_poll_add(set, a->spawn, POLLIN);
	for (size_t i = 0; i < SUBS_MAX; i++) {
		session_poll_add(set, a->subs[i].fd, POLLIN);
		session_poll_add(set, a->subs[i].pidfd, POLLIN);
	}
}

static void take_connection(struct session *s)
{
	scoped_fd fd = control_accept_from(spawn_of(s)->spawn);

	if (fd < 0 || !is_inside(s, fd))
		return;
	for (size_t i = 0; i < SUBS_MAX; i++)
		if (spawn_of(s)->subs[i].fd < 0 && spawn_of(s)->subs[i].pid == 0) {
			spawn_of(s)->subs[i] = (struct sub){ .fd = fd_take(&fd), .pidfd = -1 };
			return;
		}
}

/* Returns whether no message is pending and the peer is connected. */
static bool is_silent(const struct sub *sub)
{
	char c;

	return recv(sub->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* Ends the agent of a client that has disconnected. */
static void hang_up(struct sub *sub)
{
	(void)kill(sub->pid, SIGTERM);
	fd_close(&sub->fd);
}

static void reap(struct session *s, struct sub *sub)
{
	int status = 0, code;

	if (waitpid(sub->pid, &status, WNOHANG) != sub->pid)
		return;
	code = WIFEXITED(status) ? WEXITSTATUS(status) : SESSION_SIGNALLED + WTERMSIG(status);
	record(s, "spawn.end", sub->name, sub->id, code);
	answer(sub, "exit %d", code);
	fd_scope_close(&sub->pidfd);
	*sub = (struct sub){ .fd = -1, .pidfd = -1 };
}

static void spawn_event(struct session *s)
{
	session_touch(s);
	if (spawn_of(s)->spawn >= 0)
		take_connection(s);
	for (size_t i = 0; i < SUBS_MAX; i++) {
		struct sub *sub = &spawn_of(s)->subs[i];

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

void spawn_on_event(struct session *s, const struct pollfd *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i].revents) {
			spawn_event(s);
			return;
		}
}

static bool wait_all(struct session *s, int ms)
{
	const uint64_t end = clock_boot_ms() + (uint64_t)ms;
	bool any;

	do {
		struct pollfd p[SUBS_MAX];

		any = false;
		for (size_t i = 0; i < SUBS_MAX; i++) {
			p[i] = (struct pollfd){ .fd = spawn_of(s)->subs[i].pidfd,
						.events = POLLIN };
			if (spawn_of(s)->subs[i].pid > 0)
				reap(s, &spawn_of(s)->subs[i]);
			any |= spawn_of(s)->subs[i].pid > 0;
		}
		if (any)
			(void)poll(p, SUBS_MAX, 50);
	} while (any && clock_boot_ms() < end);
	return !any;
}

static void signal_all(const struct session *s, int number)
{
	for (size_t i = 0; i < SUBS_MAX; i++)
		if (spawn_of(s)->subs[i].pid > 0)
			(void)kill(spawn_of(s)->subs[i].pid, number);
}

/*
 * Ends all agents. The first SIGTERM lets the agents' commands clean up, the second makes the
 * agents' supervisors end their sessions, and SIGKILL kills supervisors that are left.
 */
void spawn_finish(struct session *s)
{
	fd_close(&spawn_of(s)->spawn);
	for (int i = 0; i < 2; i++) {
		signal_all(s, SIGTERM);
		if (wait_all(s, i ? SESSION_GRACE_MS : TERM_MS))
			return;
	}
	signal_all(s, SIGKILL);
	(void)wait_all(s, SESSION_GRACE_MS);
}

/* Records the session that started this agent. */
void spawn_record(struct session *s)
{
	struct entry entry;

	if (!s->opt->agent)
		return;
	entry = record_begin("parent");
	record_str(&entry, "agent", s->opt->agent->name);
	record_str(&entry, "session", s->opt->agent->parent);
	record_end(s, &entry);
}
