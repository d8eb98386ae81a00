#include "parts/control.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "parts/client.h"
#include "parts/commands.h"
#include "parts/directories.h"
#include "parts/ending.h"
#include "parts/notice.h"

#include "base/banned.h"

enum { STARVED_MS = 10 };

static const char socket_name[] = "control";

struct control {
	int control;			       /* the listening socket; -1: not open yet */
	struct rpc_conn *clients[CLIENTS_MAX]; /* connections of clients; NULL: a free place */
};

static struct control *control_of(const struct session *s)
{
	return session_state(s, &control_initial);
}

const struct session_initial control_initial = SESSION_INITIAL(struct control, .control = -1);

int control_init(struct session *s, struct writ_err *err)
{
	(void)err;
	control_of(s)->clients[0] = s->opt->owner;
	return 0;
}

struct rpc_conn *control_conn(const struct session *s, size_t client)
{
	return control_of(s)->clients[client];
}

/*
 * Binds the socket in the run directory of the session, by way of a descriptor: the path of a Unix
 * socket must be short.
 */
static int control_open(struct session *s, struct writ_err *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	scoped_fd fd = -1;
	int r = 0;

	if (control_of(s)->control >= 0)
		return 0;
	r = directories_run(s, err);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/%s",
		 directories_get(s)->run_fd, socket_name);
	if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || listen(fd, 8) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open the control socket");
	control_of(s)->control = fd_take(&fd);
	return 0;
}

static void close_client(struct session *s, size_t client)
{
	struct rpc_conn **c = &control_of(s)->clients[client];

	/* The starter of the session closes the owner's connection. */
	if (*c != s->opt->owner)
		rpc_free(*c);
	*c = NULL;
}

void control_clear(struct session *s)
{
	const struct session_report report = ending_report(s);
	struct caller who;

	fd_scope_close(&control_of(s)->control);
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct rpc_conn *c = control_conn(s, i);

		if (!c || c == s->opt->owner)
			continue;
		who = (struct caller){ .conn = c };
		while ((who.call = rpc_find_call(c, SESSION_CALL_END, 0)))
			rpc_result(c, who.call, session_report_json(&report), NULL, 0);
		while ((who.call = rpc_find_call(c, CALL_WAIT, 1)))
			commands_answer_exit(&who, 1, report.exit);
		close_client(s, i);
	}
}

/*
 * Returns whether @pid is in the supervisor's user namespace. In tier A, a process of the jail is
 * not, whatever user it runs as.
 */
static bool is_outside(pid_t pid)
{
	char path[64], ours[64], theirs[64];
	ssize_t a, b;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	a = readlink("/proc/self/ns/user", ours, sizeof(ours));
	b = readlink(path, theirs, sizeof(theirs));
	return a > 0 && a == b && memcmp(ours, theirs, (size_t)a) == 0;
}

int control_accept_from(int listener)
{
	const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	/*
	 * accept() failed for lack of resources: the connection stays pending and poll() would
	 * report it again at once, so pause.
	 */
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		clock_sleep_ms(STARVED_MS);
	return fd;
}

/*
 * SECURITY: only the user who runs the session, or root, may widen the session, and never a process
 * in the jail.
 */
static void control_accept(struct session *s)
{
	struct ucred who;
	socklen_t n = sizeof(who);
	scoped_fd fd = control_accept_from(control_of(s)->control);
	static const char busy[] =
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":"
		"\"this session has too many clients\",\"data\":{\"code\":\"limit\"}}}\n";

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 ||
	    (who.uid != geteuid() && who.uid != 0) ||
	    (who.uid == geteuid() && !is_outside(who.pid)))
		return;
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (!control_conn(s, i)) {
			control_of(s)->clients[i] = rpc_new(fd_take(&fd));
			return;
		}
	(void)!send(fd, busy, sizeof(busy) - 1, MSG_NOSIGNAL);
}

bool control_find_call(struct session *s, uint32_t kind, uint32_t number, struct caller *ret)
{
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct rpc_conn *c = control_conn(s, i);
		struct rpc_call *call = c ? rpc_find_call(c, kind, number) : NULL;

		if (!call)
			continue;
		*ret = (struct caller){ .conn = c, .call = call, .client = i };
		return true;
	}
	return false;
}

void control_started(struct session *s)
{
	struct caller who;

	if (!control_find_call(s, SESSION_CALL_FIRST, 0, &who))
		return;
	rpc_result(who.conn, who.call,
		   s->opt->argv[0] ? json_pack("{s:s,s:i}", "session", s->id, "proc", 1)
				   : json_pack("{s:s}", "session", s->id),
		   NULL, 0);
}

/*
 * Reads once from a client and answers the requests that have come, so that a client that never
 * stops sending takes turns with other clients. The end of the owner's connection ends the session
 * as SIGTERM does: the command receives the signal and time to clean up.
 */
static void control_serve(struct session *s, size_t client, short revents)
{
	struct rpc_conn *c = control_conn(s, client);
	struct rpc_message m;
	struct writ_err err = { 0 };

	if (revents & POLLOUT)
		rpc_flush(c);
	if (revents & (POLLIN | POLLHUP | POLLERR) && rpc_receive(c, &err) < 0)
		rpc_lose(c, "the connection was closed");
	while (rpc_next(c, &m)) {
		control_dispatch(s, client, &m);
		rpc_message_clear(&m);
	}
	if (!rpc_is_lost(c))
		return;
	commands_hang_up(s, client);
	if (c == s->opt->owner)
		(void)kill(getpid(), SIGTERM);
	close_client(s, client);
}

/* --- the loop --- */

int control_start(struct session *s, struct writ_err *err)
{
	/* The id is published before the session runs: requests may come at once. */
	return s->opt->named ? control_open(s, err) : 0;
}

void control_reach(struct session *s)
{
	struct writ_err err = { 0 };

	if (session_phase(s) != SESSION_RUNNING || control_of(s)->control >= 0)
		return;
	if (control_open(s, &err) == 0) {
		session_trim_memory();
		return;
	}
	notice_print(s, "%s: %s", err.what, strerror(err.sys));
	session_end(s, "it could not be spoken to", SESSION_FAILED);
}

int control_deadline(struct session *s, int least)
{
	const uint64_t due = session_status(s)->started_ms + CONTROL_ALONE_MS,
		       now = clock_boot_ms();

	if (session_phase(s) != SESSION_RUNNING || control_of(s)->control >= 0)
		return least;
	if (now >= due) {
		control_reach(s);
		return 0;
	}
	return due - now < (uint64_t)least ? (int)(due - now) : least;
}

void control_poll(struct session *s, struct session_poll *set)
{
	const struct control *c = control_of(s);

	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		const struct rpc_conn *conn = c->clients[i];

		session_poll_add(set, conn ? conn->fd : -1,
				 conn && rpc_wants_write(conn) ? POLLIN | POLLOUT : POLLIN);
	}
	session_poll_add(set, c->control, POLLIN);
}

/*
 * Handles clients before new connections: a new client must not take the place, and the events, of
 * a client that has just left.
 */
void control_on_event(struct session *s, const struct pollfd *p, size_t n)
{
	const struct control *c = control_of(s);

	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (p[i].revents && c->clients[i] && c->clients[i]->fd == p[i].fd)
			control_serve(s, i, p[i].revents);
	if (p[n - 1].revents)
		control_accept(s);
}
