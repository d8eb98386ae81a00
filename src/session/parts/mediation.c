#include "parts/mediation.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/packet.h"
#include "parts/denials.h"
#include "parts/engine.h"
#include "parts/helper.h"
#include "parts/network.h"
#include "parts/notice.h"
#include "parts/part_id.h"
#include "parts/record.h"

#include "base/banned.h"

/*
 * The mediator is a separate process: it opens files whose names come from the agent, and has
 * neither a terminal nor the session's other descriptors.
 */

enum { REST_MS = 1000 };
/*
 * Many execs in a row: after BUSY_MANY of them, the supervisor reads events only every QUIET_MS,
 * because a wakeup costs more than a record entry. Events wait in the socket, which is large enough
 * for all of them and outlives the mediator.
 */
enum { BUSY_MS = 100, BUSY_MANY = 8, QUIET_MS = 4, HEAR_MAX = 128, HEAR_MS = 20 };
enum mediator_type { MEDIATOR_LISTENER = 1, MEDIATOR_GRANT, MEDIATOR_REVOKE };

struct mediator_message {
	uint32_t type;
	char cap[CAP_TEXT_MAX];
};

struct mediation {
	pid_t mediator_pid;
	int mediator; /* socket of the mediator; -1: not started yet, or no calls are mediated */
	int listener; /* seccomp listener of the first command until the mediator starts; else -1 */
	bool first;   /* the first exec of the first command was allowed */
	bool quiet;   /* the mediator's socket is not polled in this round, but read after it */
	/* Start of the count @execs; end of the time without polling. */
	uint64_t execs_ms, quiet_ms;
	uint32_t execs;
};

static struct mediation *mediation_of(const struct session *s)
{
	return session_state(s, PART_MEDIATION);
}

int mediation_init(struct session *s, struct writ_err *err)
{
	const struct mediation m = { .mediator = -1, .listener = -1 };

	return session_state_new(s, PART_MEDIATION, &m, sizeof(m), err);
}

pid_t mediation_pid(const struct session *s)
{
	return mediation_of(s)->mediator_pid;
}

static bool send_event(int socket, const struct mediate_event *e)
{
	char bytes[sizeof(*e)];
	const size_t n = mediate_encode(e, bytes);

	return send(socket, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/*
 * Handles a message of the supervisor. False: the supervisor is gone, or the message is malformed.
 */
static bool obey(struct mediator *m, struct arena *a, int socket)
{
	struct mediator_message msg;
	struct iovec iov = { &msg, sizeof(msg) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	const ssize_t n = recvmsg(socket, &h, MSG_CMSG_CLOEXEC);
	struct writ_err err = { 0 };
	struct cap_entry *e;
	int fd = -1;

	if (n != (ssize_t)sizeof(msg))
		return n < 0 && errno == EINTR;
	if (CMSG_FIRSTHDR(&h) && CMSG_FIRSTHDR(&h)->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(fd));
	if (msg.type == MEDIATOR_LISTENER)
		return fd >= 0 && mediate_add(m, fd, &err) == 0;
	msg.cap[sizeof(msg.cap) - 1] = 0;
	e = arena_new(a, struct cap_entry);
	if (!e || cap_parse(a, CAP_GRANT, sv_from(msg.cap), &e->cap, &err) < 0)
		return false;
	e->rule = RULE_NONE;
	if (msg.type == MEDIATOR_GRANT)
		return mediate_grant(m, e, &err) == 0;
	mediate_revoke(m, e);
	return true;
}

/* `shell none`: returns whether no rule lets the session run a program. */
static bool runs_nothing(const struct cap_set *set)
{
	return !cap_set_has(set, CAP_PROC_EXEC);
}

_Noreturn static void mediator_main(struct session *s, int socket)
{
	const struct mediate_options opt = {
		.set = &s->opt->policy->set,
		.realm = s->opt->realm,
		.workspace = s->opt->workspace,
		.private_dirs = engine_view(s)->private_dirs.v,
		.private_dirs_n = engine_view(s)->private_dirs.n,
		.shared_dirs = engine_view(s)->shared_dirs.v,
		.shared_dirs_n = engine_view(s)->shared_dirs.n,
		.host_roots = engine_view(s)->host_roots.v,
		.host_roots_n = engine_view(s)->host_roots.n,
		.read_roots = engine_view(s)->read_roots.v,
		.read_roots_n = engine_view(s)->read_roots.n,
		.read_all = engine_view(s)->read_all,
		.read_fixed = engine_view(s)->read_fixed.v,
		.read_fixed_n = engine_view(s)->read_fixed.n,
		.shm = engine_view(s)->shm,
		.own_mounts = engine_view(s)->own_mounts,
		.route = network_route(s) > 0 ? 1 : 0,
		.umask_trapped = true,
		.no_exec = runs_nothing(&s->opt->policy->set),
	};
	const struct sv closed[] = { s->opt->state, s->opt->config };
	struct mediate_options with = opt;
	struct mediator *m;
	struct writ_err err = { 0 };
	struct sv *opens = arena_array(s->a, struct sv, s->opt->policy->opens.n + 1);
	bool rested = false;

	for (size_t i = 0; opens && i < s->opt->policy->opens.n; i++)
		opens[i] = s->opt->policy->opens.v[i].path;
	with.opens = opens;
	with.opens_n = opens ? s->opt->policy->opens.n : 0;
	with.closed_dirs = closed;
	with.closed_dirs_n = s->opt->config.n ? 2 : 1;
	with.order = arena_fmt(s->a, SV_FMT "/order", SV_ARG(s->opt->state));
	if (!with.order)
		_exit(1);
	if (mediate_new(&with, &m, &err) < 0)
		_exit(1);
	for (;;) {
		struct mediate_event e;
		struct pollfd p = { socket, POLLIN, 0 };
		const int r = mediate_wait(m, socket, rested ? -1 : REST_MS, &e, &err);

		if (r < 0)
			_exit(1);
		/*
		 * Give memory back once no call has come for a while; a message of the supervisor
		 * is no reason.
		 */
		if (r == 0 && !rested && poll(&p, 1, 0) == 0) {
			session_trim_memory();
			rested = true;
		} else if (r > 0) {
			rested = false;
		}
		if (r > 0 && !send_event(socket, &e))
			_exit(1);
		/*
		 * No event is pending: handle messages of the supervisor. While events come,
		 * mediate_wait() returns them first.
		 */
		while (r == 0 && poll(&p, 1, 0) > 0)
			if (!obey(m, s->a, socket))
				_exit(0);
	}
}

/* The mediator process keeps only its sockets: no terminal, jail or record. */
_Noreturn static void mediator_child(struct session *s, int socket)
{
	struct rlimit files;

	if (network_route(s) > 0) {
		socket = fcntl(socket, F_DUPFD_CLOEXEC, 3);
		if (dup2(network_route(s), 1) < 0 || fcntl(1, F_SETFD, FD_CLOEXEC) < 0)
			_exit(1);
	}
	if (dup2(socket, 0) < 0 || close_range(network_route(s) > 0 ? 2 : 1, ~0u, 0) < 0 ||
	    fcntl(0, F_SETFD, FD_CLOEXEC) < 0)
		_exit(1);
	(void)prctl(PR_SET_DUMPABLE, 0);
	/*
	 * The soft limit of open files may suit a shell, but not the mediator, which opens files
	 * for all commands: raise it.
	 */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	mediator_main(s, 0);
}

static int start_mediator(struct session *s, struct writ_err *err)
{
	const int r = helper_start(s, mediator_child, "the mediator",
				   &mediation_of(s)->mediator_pid, &mediation_of(s)->mediator, err);

	network_route_close(s);
	return r;
}

static int tell(struct session *s, const struct mediator_message *m, int fd, struct writ_err *err)
{
	return packet_send(mediation_of(s)->mediator, (struct sv){ (const char *)m, sizeof(*m) },
			   &fd, fd >= 0, err);
}

static int give(struct session *s, int fd, struct writ_err *err)
{
	const struct mediator_message m = { .type = MEDIATOR_LISTENER };
	const int r = tell(s, &m, fd, err);

	close(fd);
	return r;
}

/* Starts the mediator if it is not running, and sends it the listener that the supervisor holds. */
static int ensure(struct session *s, struct writ_err *err)
{
	const int held = mediation_of(s)->listener;
	int r = 0;

	/* SECURITY: a mediator that has ended is not replaced: the session ends. */
	if (mediation_of(s)->mediator < 0 && mediation_of(s)->mediator_pid > 0)
		r = writ_fail(err, WRIT_E_SYS, 0, "the mediator is gone");
	else if (mediation_of(s)->mediator < 0)
		r = start_mediator(s, err);

	mediation_of(s)->listener = -1;
	if (r == 0 && held >= 0)
		return give(s, held, err);
	fd_scope_close(&held);
	return r;
}

/*
 * Returns whether the start of the mediator can wait. Many commands make no mediated call but their
 * first exec, which writ-init makes: the supervisor allows that exec itself, and starts the
 * mediator on the next call. The mediator cannot wait if opens are mediated, which may precede the
 * exec, or if the policy allows no program (`shell none`).
 */
static bool may_wait(const struct session *s)
{
	return mediation_of(s)->mediator < 0 && mediation_of(s)->listener < 0 &&
	       !mediation_of(s)->first && engine_view(s)->read_roots.n == 0 &&
	       !runs_nothing(&s->opt->policy->set);
}

int mediation_listener(struct session *s, int fd, bool first, struct writ_err *err)
{
	int r;

	if (first && may_wait(s)) {
		mediation_of(s)->listener = fd;
		return 0;
	}
	r = ensure(s, err);
	if (r == 0)
		return give(s, fd, err);
	close(fd);
	return r;
}

static void on_call(struct session *s, short revents)
{
	struct mediate_event e;
	struct writ_err err = { 0 };
	int r;

	/* All processes whose calls the listener receives have ended. */
	if (!(revents & POLLIN)) {
		fd_scope_close(&mediation_of(s)->listener);
		mediation_of(s)->listener = -1;
		/* Prepare the end of the record while pid 1 checks which processes are left. */
		seal_ready(s);
		return;
	}
	if (mediation_of(s)->first) {
		r = ensure(s, &err);
	} else {
		r = mediate_first(mediation_of(s)->listener, &e, &err);
		mediation_of(s)->first = r > 0;
		if (r > 0)
			denials_note(s, &e);
	}
	if (r < 0) {
		notice_print(s, "%s", err.what);
		session_end(s, "its calls cannot be answered", SESSION_FAILED);
	}
}

int mediation_rule(struct session *s, bool grant, const char *cap, struct writ_err *err)
{
	struct mediator_message m = { .type = grant ? MEDIATOR_GRANT : MEDIATOR_REVOKE };
	const size_t n = strlen(cap);
	int r;

	if (!engine_view(s)->traps)
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
				 "nothing is mediated in this session");
	if (n >= sizeof(m.cap))
		return writ_fail(err, WRIT_E_LIMIT, 0, "that rule is too long");
	memcpy(m.cap, cap, n + 1);
	r = ensure(s, err);
	return r < 0 ? r : tell(s, &m, -1, err);
}

/*
 * Receives an event of the mediator. False: none is pending. SECURITY: a session ends with its
 * mediator.
 */
static bool hear_one(struct session *s, bool *ret_exec)
{
	struct mediate_event e;
	char bytes[sizeof(e)];
	const ssize_t n = recv(mediation_of(s)->mediator, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0 || !mediate_decode(bytes, (size_t)n, &e)) {
		fd_scope_close(&mediation_of(s)->mediator);
		mediation_of(s)->mediator = -1;
		if (session_phase(s) < SESSION_ENDING)
			session_end(s, "the mediator is gone", SESSION_FAILED);
		return false;
	}
	*ret_exec = e.op == MEDIATE_EXEC && !e.denied;
	denials_note(s, &e);
	return true;
}

static void recv_events(struct session *s)
{
	const uint64_t now = clock_boot_ms();
	bool exec = false;
	uint32_t n = 0;

	record_gather(s);
	while (n < HEAR_MAX && mediation_of(s)->mediator >= 0 && hear_one(s, &exec)) {
		n++;
		if (clock_boot_ms() >= now + HEAR_MS)
			break;
	}
	record_flush(s);
	if (now - mediation_of(s)->execs_ms > BUSY_MS) {
		mediation_of(s)->execs_ms = now;
		mediation_of(s)->execs = 0;
	}
	mediation_of(s)->execs += n;
	/*
	 * After a denial, poll the mediator again at once: people are told of denials, and others
	 * may follow.
	 */
	mediation_of(s)->quiet_ms =
		exec && n < HEAR_MAX && mediation_of(s)->execs >= BUSY_MANY ? now + QUIET_MS : 0;
}

int mediation_deadline(struct session *s, int least)
{
	struct mediation *m = mediation_of(s);
	const uint64_t now = m->quiet_ms ? clock_boot_ms() : 0;

	m->quiet = m->quiet_ms > now;
	if (!m->quiet) {
		m->quiet_ms = 0;
		return least;
	}
	return (uint64_t)least < m->quiet_ms - now ? least : (int)(m->quiet_ms - now);
}

void mediation_poll(struct session *s, struct session_poll *set)
{
	const struct mediation *m = mediation_of(s);
	const bool runs = session_phase(s) == SESSION_RUNNING;

	session_poll_add(set, m->quiet ? -1 : m->mediator, POLLIN);
	session_poll_add(set, runs ? m->listener : -1, POLLIN);
}

void mediation_on_event(struct session *s, const struct pollfd *p, size_t n)
{
	const struct mediation *m = mediation_of(s);

	(void)n;
	/*
	 * Record the mediator's events before later events of the same round, which they preceded.
	 */
	if (p[0].revents || (m->quiet && m->mediator >= 0))
		recv_events(s);
	if (p[1].revents)
		on_call(s, p[1].revents);
}

/* Shuts down the socket to the mediator, which sends its last events and exits. */
void mediation_finish(struct session *s)
{
	const struct mediation *m = mediation_of(s);

	if (m->mediator >= 0)
		(void)shutdown(m->mediator, SHUT_WR);
	while (m->mediator >= 0) {
		struct pollfd p = { m->mediator, POLLIN, 0 };

		if (poll(&p, 1, SESSION_GRACE_MS) <= 0)
			break;
		recv_events(s);
	}
}

void mediation_hold(struct session *s, int fd)
{
	struct mediation *m = mediation_of(s);

	if (m->listener < 0)
		m->listener = fd;
	else
		fd_scope_close(&fd);
}

void mediation_clear(struct session *s)
{
	struct mediation *m = mediation_of(s);

	fd_scope_close(&m->listener);
	if (m->mediator_pid <= 0)
		return;
	fd_scope_close(&m->mediator);
	if (engine_may_leave(s))
		kill(m->mediator_pid, SIGKILL);
	else
		helper_end(m->mediator_pid, SESSION_GRACE_MS);
}
