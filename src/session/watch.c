#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/packet.h"
#include "session/session_priv.h"

#include "base/banned.h"

/*
 * The mediator is a process of its own: it touches files whose names come from
 * the agent, and has neither a terminal nor the session's other descriptors.
 */

enum { REST_MS = 1000 };
/*
 * Who runs one program after the other is heard a few times in a row, and from then on every
 * now and then: to wake for each costs more than to write it down. What the mediator has said
 * waits in the socket, where it outlives it. All of it fits.
 */
enum { BUSY_MS = 100, BUSY_MANY = 8, QUIET_MS = 4, HEAR_MAX = 128, HEAR_MS = 20 };
enum watch_type { WATCH_LISTENER = 1, WATCH_GRANT, WATCH_REVOKE };

struct watch_message {
	uint32_t type;
	char cap[CAP_TEXT_MAX];
};

static bool send_event(int socket, const struct mediate_event *e)
{
	char bytes[sizeof(*e)];
	const size_t n = mediate_encode(e, bytes);

	return send(socket, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* One message of the supervisor. False: it is gone, or it makes no sense. */
static bool obey(struct mediator *m, struct arena *a, int socket)
{
	struct watch_message msg;
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
	if (msg.type == WATCH_LISTENER)
		return fd >= 0 && mediate_add(m, fd, &err) == 0;
	msg.cap[sizeof(msg.cap) - 1] = 0;
	e = arena_new(a, struct cap_entry);
	if (!e || cap_parse(a, CAP_GRANT, sv_from(msg.cap), &e->cap, &err) < 0)
		return false;
	e->rule = RULE_NONE;
	if (msg.type == WATCH_GRANT)
		return mediate_grant(m, e, &err) == 0;
	mediate_revoke(m, e);
	return true;
}

/* `shell none`: no rule lets it run anything. */
static bool runs_nothing(const struct cap_set *set)
{
	return !cap_set_has(set, CAP_PROC_EXEC);
}

_Noreturn static void watch_main(struct session *s, int socket)
{
	const struct mediate_options opt = {
		.set = &s->opt->policy->set,
		.realm = s->opt->realm,
		.workspace = s->opt->workspace,
		.private_dirs = s->view.private_dirs.v,
		.private_dirs_n = s->view.private_dirs.n,
		.shared_dirs = s->view.shared_dirs.v,
		.shared_dirs_n = s->view.shared_dirs.n,
		.host_roots = s->view.host_roots.v,
		.host_roots_n = s->view.host_roots.n,
		.read_roots = s->view.read_roots.v,
		.read_roots_n = s->view.read_roots.n,
		.read_all = s->view.read_all,
		.read_fixed = s->view.read_fixed.v,
		.read_fixed_n = s->view.read_fixed.n,
		.shm = s->view.shm,
		.own_mounts = s->view.own_mounts,
		.route = s->route[1] > 0 ? 1 : 0,
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
		/* Once, when nobody has asked for a while: not because the supervisor speaks. */
		if (r == 0 && !rested && poll(&p, 1, 0) == 0) {
			session_rest();
			rested = true;
		} else if (r > 0) {
			rested = false;
		}
		if (r > 0 && !send_event(socket, &e))
			_exit(1);
		/* While there are events, the next wait finds what the supervisor says. */
		while (r == 0 && poll(&p, 1, 0) > 0)
			if (!obey(m, s->a, socket))
				_exit(0);
	}
}

/* Everything but the socket goes: terminal, jail, record. */
_Noreturn static void watch_child(struct session *s, int socket)
{
	struct rlimit files;

	if (s->route[1] > 0) {
		socket = fcntl(socket, F_DUPFD_CLOEXEC, 3);
		if (dup2(s->route[1], 1) < 0 || fcntl(1, F_SETFD, FD_CLOEXEC) < 0)
			_exit(1);
	}
	if (dup2(socket, 0) < 0 || close_range(s->route[1] > 0 ? 2 : 1, ~0u, 0) < 0 ||
	    fcntl(0, F_SETFD, FD_CLOEXEC) < 0)
		_exit(1);
	(void)prctl(PR_SET_DUMPABLE, 0);
	/* Few files for a shell need not be few for who opens them for all of its commands. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	watch_main(s, 0);
}

static int watch_start(struct session *s, struct writ_err *err)
{
	const int r =
		helper_start(s, watch_child, "the mediator", &s->mediator_pid, &s->mediator, err);

	if (s->route[1] > 0)
		close(s->route[1]);
	return r;
}

static int tell(struct session *s, const struct watch_message *m, int fd, struct writ_err *err)
{
	return packet_send(s->mediator, (struct sv){ (const char *)m, sizeof(*m) }, &fd, fd >= 0,
			   err);
}

static int give(struct session *s, int fd, struct writ_err *err)
{
	const struct watch_message m = { .type = WATCH_LISTENER };
	const int r = tell(s, &m, fd, err);

	close(fd);
	return r;
}

/* From here on there is a mediator, and it has every listener. */
static int ensure(struct session *s, struct writ_err *err)
{
	const int held = s->listener;
	int r = 0;

	/* SECURITY: one that is gone is not replaced: the session ends. */
	if (s->mediator < 0 && s->mediator_pid > 0)
		r = writ_fail(err, WRIT_E_SYS, 0, "the mediator is gone");
	else if (s->mediator < 0)
		r = watch_start(s, err);

	s->listener = -1;
	if (r == 0 && held >= 0)
		return give(s, held, err);
	scope_close(&held);
	return r;
}

/*
 * Many commands do nothing that is mediated but to start. The first exec of the
 * first command is still writ-init's own: it is let through here, and a mediator is
 * made when something else comes. Not where an open may come before that exec, nor
 * where there is but one exec to give.
 */
static bool may_wait(const struct session *s)
{
	return s->mediator < 0 && s->listener < 0 && !s->first && s->view.read_roots.n == 0 &&
	       !runs_nothing(&s->opt->policy->set);
}

int watch_listener(struct session *s, int fd, bool first, struct writ_err *err)
{
	int r;

	if (first && may_wait(s)) {
		s->listener = fd;
		return 0;
	}
	r = ensure(s, err);
	if (r == 0)
		return give(s, fd, err);
	close(fd);
	return r;
}

void watch_call(struct session *s, short revents)
{
	struct mediate_event e;
	struct writ_err err = { 0 };
	int r;

	/* Everybody who could ask is gone. */
	if (!(revents & POLLIN)) {
		scope_close(&s->listener);
		s->listener = -1;
		/* pid 1 still has to look at what is left. */
		seal_ready(s);
		return;
	}
	if (s->first) {
		r = ensure(s, &err);
	} else {
		r = mediate_first(s->listener, &e, &err);
		s->first = r > 0;
		if (r > 0)
			denial_note(s, &e);
	}
	if (r < 0) {
		say(s, "%s", err.what);
		session_end(s, "its calls cannot be answered", SESSION_FAILED);
	}
}

int watch_rule(struct session *s, bool grant, const char *cap, struct writ_err *err)
{
	struct watch_message m = { .type = grant ? WATCH_GRANT : WATCH_REVOKE };
	const size_t n = strlen(cap);
	int r;

	if (!s->view.traps)
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
				 "nothing is mediated in this session");
	if (n >= sizeof(m.cap))
		return writ_fail(err, WRIT_E_LIMIT, 0, "that rule is too long");
	memcpy(m.cap, cap, n + 1);
	r = ensure(s, err);
	return r < 0 ? r : tell(s, &m, -1, err);
}

/* One event. False: there is none now. SECURITY: without its mediator a session cannot go on. */
static bool hear_one(struct session *s, bool *ret_exec)
{
	struct mediate_event e;
	char bytes[sizeof(e)];
	const ssize_t n = recv(s->mediator, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0 || !mediate_decode(bytes, (size_t)n, &e)) {
		scope_close(&s->mediator);
		s->mediator = -1;
		if (s->state < SESSION_ENDING)
			session_end(s, "the mediator is gone", SESSION_FAILED);
		return false;
	}
	*ret_exec = e.op == MEDIATE_EXEC && !e.denied;
	denial_note(s, &e);
	return true;
}

void watch_event(struct session *s)
{
	const uint64_t now = clock_ms();
	bool exec = false;
	uint32_t n = 0;

	record_gather(s);
	while (n < HEAR_MAX && s->mediator >= 0 && hear_one(s, &exec)) {
		n++;
		if (clock_ms() >= now + HEAR_MS)
			break;
	}
	record_flush(s);
	if (now - s->execs_ms > BUSY_MS) {
		s->execs_ms = now;
		s->execs = 0;
	}
	s->execs += n;
	/* After a refusal it is heard at once again: people are told, and others may follow. */
	s->quiet_ms = exec && n < HEAR_MAX && s->execs >= BUSY_MANY ? now + QUIET_MS : 0;
}

int watch_quiet(struct session *s, int most)
{
	const uint64_t now = s->quiet_ms ? clock_ms() : 0;

	if (s->quiet_ms <= now) {
		s->quiet_ms = 0;
		return 0;
	}
	return most >= 0 && (uint64_t)most < s->quiet_ms - now ? most : (int)(s->quiet_ms - now);
}
