#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "session/session_priv.h"

#include "base/banned.h"

enum { REQUEST_MAX = 8192, STARVED_MS = 10 };

static const char socket_name[] = "control";

/* In our own run directory, reached by descriptor: names of sockets are short. */
int control_open(struct session *s, struct writ_err *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	scoped_fd fd = -1;
	int r = 0;

	if (s->control >= 0)
		return 0;
	r = session_place_run(s, err);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/%s", s->paths.run_fd,
		 socket_name);
	if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || listen(fd, 8) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open the control socket");
	s->control = take_fd(&fd);
	return 0;
}

void control_close(struct session *s)
{
	scope_close(&s->control);
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		scope_close(&s->clients[i].fd);
}

/* Does @pid live in our own user namespace? An agent does not, whoever it runs as. */
static bool is_outside(pid_t pid)
{
	char path[64], ours[64], theirs[64];
	ssize_t a, b;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	a = readlink("/proc/self/ns/user", ours, sizeof(ours));
	b = readlink(path, theirs, sizeof(theirs));
	return a > 0 && a == b && memcmp(ours, theirs, (size_t)a) == 0;
}

int session_accept(int listener)
{
	const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	/* Who knocks stays there, and poll() says so again at once. */
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		sleep_ms(STARVED_MS);
	return fd;
}

/* SECURITY: only the user who runs the session, or root, may widen it, and never from inside. */
void control_accept(struct session *s)
{
	struct ucred who;
	socklen_t n = sizeof(who);
	scoped_fd fd = session_accept(s->control);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 ||
	    (who.uid != geteuid() && who.uid != 0) ||
	    (who.uid == geteuid() && !is_outside(who.pid)))
		return;
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (s->clients[i].fd < 0) {
			s->clients[i] = (struct client){ .fd = take_fd(&fd) };
			return;
		}
}

void control_drop(struct session *s, size_t client)
{
	struct screen *c = screen_get(s, s->clients[client].command);

	if (c && c->link >= 0 && c->client == client)
		screen_leave(c);
	scope_close(&s->clients[client].fd);
	s->clients[client] = (struct client){ .fd = -1 };
}

void control_answer(struct session *s, size_t client, const char *fmt, ...)
{
	struct buf b = BUF_INIT(REQUEST_MAX);
	va_list ap;

	va_start(ap, fmt);
	buf_vfmt(&b, fmt, ap);
	va_end(ap);
	(void)!send(s->clients[client].fd, b.p ? b.p : "", b.n, MSG_NOSIGNAL | MSG_DONTWAIT);
	buf_clear(&b);
	control_drop(s, client);
}

void control_keeper(struct session *s)
{
	struct jail_message m;
	struct writ_err err = { 0 };
	pid_t pid;
	int fd = -1;
	const int r = jail_receive(s->jail.keeper, &m, &fd, &pid, &err);

	if (r > 0 && m.type == JAIL_BOUND) {
		net_bound(s, m.id, fd);
		scope_close(&fd);
		return;
	}
	scope_close(&fd);
	if (r <= 0) {
		scope_close(&s->jail.keeper);
		s->jail.keeper = -1;
		if (s->state == SESSION_RUNNING)
			session_end(s, "the keeper is gone", SESSION_FAILED);
		return;
	}
	if (m.type == JAIL_DONE)
		grant_done(s, m.id, &m.err);
}

static void denied(struct session *s, size_t client, struct sv number)
{
	uint64_t n;

	if (!sv_to_u64(number, DENIALS_MAX, &n) || n == 0 || n > s->denials.n) {
		control_answer(s, client, "error there is no denial " SV_FMT " in this session",
			       SV_ARG(number));
		return;
	}
	if (s->denials.v[n - 1].op == MEDIATE_GIT) {
		control_answer(s, client,
			       "error a repository is granted by a rule of the policy only");
		return;
	}
	control_answer(s, client, "ok %s %s",
		       s->denials.v[n - 1].op == MEDIATE_NET	? "net"
		       : s->denials.v[n - 1].op == MEDIATE_READ ? "read"
								: "write",
		       s->denials.v[n - 1].object);
}

static void status(struct session *s, size_t client)
{
	static const char *const names[] = { "starting", "running", "ending", "ended" };
	struct buf b = BUF_INIT(REQUEST_MAX);

	for (char *const *arg = s->opt->argv; *arg; arg++)
		buf_fmt(&b, "%s%.200s", arg == s->opt->argv ? "" : " ", *arg);
	control_answer(s, client, "ok %d %llu %s %zu %zu %.*s%.200s", getpid(),
		       (unsigned long long)(clock_ms() - s->started_ms) / 1000, names[s->state],
		       s->denials.n, s->opt->workspace.n, SV_ARG(s->opt->workspace),
		       b.p ? b.p : "");
	buf_clear(&b);
}

void control_serve(struct session *s, size_t client)
{
	char text[REQUEST_MAX];
	int fds[PACKET_FDS] = { -1, -1, -1, -1 };
	size_t fds_n = 0, n = 0;
	struct writ_err err = { 0 };
	struct sv rest, verb;

	if (packet_receive(s->clients[client].fd, text, sizeof(text), &n, fds, &fds_n, &err) <= 0) {
		/* Whoever waited for a command has gone, and the command goes too. */
		more_hang_up(s, client);
		return;
	}
	rest = (struct sv){ text, n };
	verb = sv_cut(&rest, ' ');
	if (s->state == SESSION_ENDED && !sv_is(verb, "stop") && !sv_is(verb, "status"))
		control_answer(s, client, "error this session is not running");
	else if (sv_is(verb, "allow"))
		grant_more(s, client, rest);
	else if (sv_is(verb, "revoke"))
		grant_take_back(s, client, rest);
	else if (sv_is(verb, "denial"))
		denied(s, client, rest);
	else if (sv_is(verb, "status"))
		status(s, client);
	else if (sv_is(verb, "exec"))
		more_exec(s, client, rest, fds, fds_n);
	else if (sv_is(verb, "attach"))
		more_attach(s, client, rest);
	else if (sv_is(verb, "detach"))
		more_detach(s, client);
	else if (sv_is(verb, "active"))
		s->active_ms = clock_ms();
	else if (sv_is(verb, "signal"))
		more_signal(s, client, rest);
	else if (sv_is(verb, "stop")) {
		control_answer(s, client, "ok");
		session_end(s, "stopped from outside", SESSION_SIGNALLED + 15);
	} else {
		control_answer(s, client, "error unknown request");
	}
	for (size_t i = 0; i < fds_n; i++)
		close(fds[i]);
}
