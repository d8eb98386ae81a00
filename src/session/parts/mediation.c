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
#include "parts/record.h"

#include "base/banned.h"

/*
 * The mediator is a separate process: it opens files whose names come from the agent, and has
 * neither a terminal nor the session's other descriptors.
 */

/*
 * After BUSY_MANY events within BUSY_MS, if the newest event is an exec, the supervisor reads
 * events only every QUIET_MS, because a wakeup costs more than a record entry. Events wait in the
 * socket, which is large enough for all of them and outlives the mediator. One round reads at most
 * HEAR_MAX events and takes about HEAR_MS at most.
 */
enum { BUSY_MS = 100, BUSY_MANY = 8, QUIET_MS = 4, HEAR_MAX = 128, HEAR_MS = 20 };

struct mediation {
	pid_t mediator_pid;
	int mediator; /* socket of the mediator; -1: not started yet, or no calls are mediated */
	int listener; /* seccomp listener of the first command until the mediator starts; else -1 */
	bool first;   /* the first exec of the first command was allowed */
	bool quiet;   /* the mediator's socket is not polled in this round, but read after it */
	/* @execs_ms: start of the count @execs; @quiet_ms: end of the time without polling. */
	uint64_t execs_ms, quiet_ms;
	uint32_t execs;
};

static struct mediation *mediation_of(const struct session *s)
{
	return session_state(s, &mediation_initial);
}

const struct session_initial mediation_initial =
	SESSION_INITIAL(struct mediation, .mediator = -1, .listener = -1);

pid_t mediation_pid(const struct session *s)
{
	return mediation_of(s)->mediator_pid;
}

/*
 * The mediator process keeps only its sockets. It has no terminal, no socket to writ-init and no
 * descriptor of the record.
 */
_Noreturn static void mediator_child(struct session *s, int socket)
{
	const bool route = network_route(s) > 0;
	const struct engine_mediate how = { .policy = s->opt->policy,
					    .realm = s->opt->realm,
					    .workspace = s->opt->workspace,
					    .state = s->opt->state,
					    .config = s->opt->config,
					    .route = route ? 1 : 0,
					    .rest = session_trim_memory };
	struct rlimit files;

	if (route) {
		socket = fcntl(socket, F_DUPFD_CLOEXEC, 3);
		if (dup2(network_route(s), 1) < 0 || fcntl(1, F_SETFD, FD_CLOEXEC) < 0)
			_exit(1);
	}
	if (dup2(socket, 0) < 0 || close_range(route ? 2 : 1, ~0u, 0) < 0 ||
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
	_exit(s->opt->plan->engine->mediate(engine_run(s), s->a, &how));
}

static int tell(struct session *s, const struct engine_mediate_message *m, int fd,
		struct writ_err *err)
{
	return packet_send(mediation_of(s)->mediator, (struct sv){ (const char *)m, sizeof(*m) },
			   &fd, fd >= 0, err);
}

static int give(struct session *s, int fd, struct writ_err *err)
{
	const struct engine_mediate_message m = { .type = ENGINE_MEDIATE_LISTENER };
	const int r = tell(s, &m, fd, err);

	close(fd);
	return r;
}

/* Starts the mediator if it is not running, and sends it the listener that the supervisor holds. */
static int ensure(struct session *s, struct writ_err *err)
{
	struct mediation *m = mediation_of(s);
	const int held = m->listener;
	int r = 0;

	/* SECURITY: a mediator that has ended is not replaced: the session ends. */
	if (m->mediator < 0 && m->mediator_pid > 0) {
		r = writ_fail(err, WRIT_E_SYS, 0, "the mediator is gone");
	} else if (m->mediator < 0) {
		r = helper_start(s, mediator_child, "the mediator", &m->mediator_pid, &m->mediator,
				 err);
		network_route_close(s);
	}
	m->listener = -1;
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
	const struct mediation *m = mediation_of(s);

	return m->mediator < 0 && m->listener < 0 && !m->first &&
	       engine_view(s)->read_roots.n == 0 &&
	       cap_set_has(&s->opt->policy->set, CAP_PROC_EXEC);
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
	struct mediation *m = mediation_of(s);
	struct mediate_event e;
	struct writ_err err = { 0 };
	int r;

	/* All processes whose calls the listener receives have ended. */
	if (!(revents & POLLIN)) {
		fd_close(&m->listener);
		/* Prepare the end of the record while pid 1 checks which processes are left. */
		seal_ready(s);
		return;
	}
	if (m->first) {
		r = ensure(s, &err);
	} else {
		r = s->opt->plan->engine->mediate_first(m->listener, &e, &err);
		m->first = r > 0;
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
	struct engine_mediate_message m = { .type = grant ? ENGINE_MEDIATE_GRANT
							  : ENGINE_MEDIATE_REVOKE };
	const size_t n = strlen(cap);
	int r;

	if (!engine_view(s)->traps)
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
				 "nothing is mediated in this session");
	if (n >= sizeof(m.cap))
		return writ_fail(err, WRIT_E_LIMIT, 0, "that rule is too long");
	memcpy(m.cap, cap, n + 1);
	r = ensure(s, err);
	if (r == 0)
		r = tell(s, &m, -1, err);
	/*
	 * SECURITY: the mediator may not have got the listener or this rule. Its calls would all
	 * fail, or it would decide by an older policy than the mounts. End the session.
	 */
	if (r < 0 && session_phase(s) < SESSION_ENDING)
		session_end(s, "its calls cannot be answered", SESSION_FAILED);
	return r;
}

/*
 * Receives an event of the mediator. Returns false if no event is pending or the mediator has
 * ended. SECURITY: a session ends with its mediator.
 */
static bool hear_one(struct session *s, bool *ret_exec)
{
	struct mediate_event e;
	char bytes[sizeof(e)];
	const ssize_t n = recv(mediation_of(s)->mediator, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0 || !event_decode(bytes, (size_t)n, &e)) {
		fd_close(&mediation_of(s)->mediator);
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
	struct mediation *m = mediation_of(s);
	const uint64_t now = clock_boot_ms();
	bool exec = false;
	uint32_t n = 0;

	record_gather(s);
	while (n < HEAR_MAX && m->mediator >= 0 && hear_one(s, &exec)) {
		n++;
		if (clock_boot_ms() >= now + HEAR_MS)
			break;
	}
	record_flush(s);
	if (now - m->execs_ms > BUSY_MS) {
		m->execs_ms = now;
		m->execs = 0;
	}
	m->execs += n;
	/*
	 * After a denial, poll the mediator again at once: people are told of denials, and others
	 * may follow.
	 */
	m->quiet_ms = exec && n < HEAR_MAX && m->execs >= BUSY_MANY ? now + QUIET_MS : 0;
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
