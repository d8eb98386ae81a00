#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "loop/loop.h"
#include "parts/client.h"
#include "parts/std_fds.h"
#include "rpc/rpc.h"

#include "base/banned.h"

/*
 * The client of a command that `exec` or `attach` shows to a person. Without a terminal, bytes pass
 * directly between the client and the command, and the client reports activity to the supervisor
 * now and then. With a terminal, bytes pass through the supervisor, so that other clients can join.
 */

enum {
	TICK_MS = 1000, /* least time between two reports of activity */
	POLL_RELAY = 3,
	FAIL_MS = 300, /* after this time without a failure, the client leaves a detached command */
};

struct view {
	struct rpc_conn *conn;
	int signals;
	/* @start_id: id of the request proc.start or proc.attach; @wait_id: id of proc.wait */
	int64_t start_id, wait_id;
	struct std_fds front;
	struct relay *relay;
	struct session_look *look;
	bool attach; /* `attach`: the command does not end with this client */
	bool escape; /* a person may leave the command with the escape key */
	/* A detached command has started: the client leaves unless it fails within FAIL_MS. */
	bool waiting;
	bool ended;
	bool left_alone; /* session_look.owner became readable, and the command was sent SIGTERM */
	int exit;
	struct writ_err failed;
	uint64_t activity, told_ms;
};

static int send_exec(struct view *v, char *const *argv, char *const *envp, struct sv cwd,
		     struct writ_err *err)
{
	const mode_t mask = umask(022);
	size_t fds_n = 0;
	int fds[3];
	int r;

	(void)umask(mask);
	for (int i = 0; i < 3; i++)
		if (v->front.given & 1u << i)
			fds[fds_n++] = v->front.inside[i];
	r = rpc_request(v->conn, "proc.start",
			json_pack("{s:o,s:o,s:o,s:i,s:i,s:i,s:i,s:i,s:b}", "argv",
				  rpc_strings(argv), "env", rpc_strings(envp), "cwd",
				  rpc_bytes(cwd), "pty", (int)v->front.pty, "stdio",
				  (int)v->front.given, "umask", (int)mask, "rows", v->front.rows,
				  "cols", v->front.cols, "detach", v->look->detach),
			fds, fds_n, &v->start_id, err);
	std_fds_sent(&v->front);
	return r;
}

/* Sends a request about the command and ignores the answer. */
static void speak(const struct view *v, const char *method, int sig)
{
	struct writ_err err = { 0 };
	json_t *params = json_pack("{s:i}", "proc", (int)v->look->number);

	if (sig && params)
		(void)json_object_set_new(params, "signal", json_integer(sig));
	(void)!rpc_request(v->conn, method, params, NULL, 0, NULL, &err);
}

/* --- answers of the supervisor about the command --- */

/*
 * Joins the terminal of a command. The answer @m has two descriptors (the terminal, and the socket
 * that carries its bytes), or one, from which the last output of an ended command is read.
 */
static int join(struct view *v, struct rpc_message *m, struct writ_err *err)
{
	struct relay_options *o = &v->front.relay;
	int r;

	o->neutral = json_is_true(json_object_get(m->body, "neutral")) || v->look->neutral;
	o->joined = json_is_true(json_object_get(m->body, "joined"));
	o->escape = v->escape;
	if (m->fds_n == 2) {
		o->pty = rpc_take_fd(m, 0);
		o->link = rpc_take_fd(m, 1);
	} else {
		for (int i = 0; i < 3; i++)
			o->on_pty[i] = false;
		o->outer[0] = -1;
		o->inner[1] = rpc_take_fd(m, 0);
	}
	r = std_fds_relay(&v->front, &v->relay, err);
	if (r < 0) {
		fd_scope_close(&o->pty);
		if (o->link > 0)
			fd_scope_close(&o->link);
		fd_scope_close(&o->inner[1]);
		v->front = (struct std_fds)STD_FDS_INIT;
	}
	return r;
}

/*
 * Handles a command that has stopped: stops this client with its process group, so that the shell
 * takes over. Once the client is continued, it continues the command.
 */
static void stop(struct view *v)
{
	if (v->relay)
		relay_suspend(v->relay);
	(void)kill(0, SIGTSTP);
	if (v->relay)
		relay_resume(v->relay);
	speak(v, "proc.signal", SIGCONT);
}

/*
 * Handles the answer to proc.start or proc.attach, which has the number of the command and perhaps
 * its terminal. Asks for the end of the command.
 */
static int on_started(struct view *v, struct rpc_message *m, struct writ_err *err)
{
	uint64_t number = 0;
	int r = 0;

	if (!rpc_get_number(m->body, "proc", UINT32_MAX, &number) || number == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the session does not make sense");
	v->look->number = (uint32_t)number;
	v->waiting = v->look->detach;
	if (m->fds_n == 1 || m->fds_n == 2)
		r = join(v, m, err);
	return r < 0 ? r
		     : rpc_request(v->conn, "proc.wait", json_pack("{s:i}", "proc", (int)number),
				   NULL, 0, &v->wait_id, err);
}

static void on_notification(struct view *v, const struct rpc_message *m)
{
	scoped_arena a = ARENA_INIT(1 << 16);
	struct sv why = SV("");

	if (strcmp(m->method, "proc.failed") == 0) {
		(void)!rpc_get_bytes(&a, json_object_get(m->body, "why"), &why);
		(void)!writ_fail(&v->failed, WRIT_E_SYS, 0, SV_FMT, SV_ARG(why));
	} else if (strcmp(m->method, "proc.taken") == 0) {
		v->look->left = v->look->taken = true;
	} else if (strcmp(m->method, "proc.stopped") == 0) {
		stop(v);
	}
}

static int on_message(struct view *v, struct rpc_message *m, struct writ_err *err)
{
	uint64_t code;

	if (m->kind == RPC_NOTIFICATION) {
		on_notification(v, m);
	} else if (rpc_answers(m, v->start_id) || rpc_answers(m, v->wait_id)) {
		if (m->kind == RPC_ERROR)
			return rpc_failure(m, err);
		if (rpc_answers(m, v->start_id))
			return on_started(v, m, err);
		if (!rpc_get_number(m->body, "exit_code", 255, &code))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "the session does not make sense");
		v->ended = true;
		v->exit = (int)code;
	} else if (m->kind == RPC_ERROR && !m->id) {
		return rpc_failure(m, err);
	}
	return 0;
}

static int hear(struct view *v, struct writ_err *err)
{
	struct rpc_message m;
	int r = rpc_receive(v->conn, err);

	if (r < 0)
		return err->sys ? r : writ_fail(err, WRIT_E_SYS, 0, "the session ended");
	while (r >= 0 && !v->ended && rpc_next(v->conn, &m)) {
		r = on_message(v, &m, err);
		rpc_message_clear(&m);
	}
	return r;
}

/* --- other events: signals and bytes --- */

static void leave(struct view *v)
{
	speak(v, "proc.detach", 0);
	v->look->left = true;
}

static void on_signal(struct view *v)
{
	struct signalfd_siginfo i;

	if (read(v->signals, &i, sizeof(i)) != (ssize_t)sizeof(i))
		return;
	if (i.ssi_signo == SIGWINCH) {
		if (v->relay)
			relay_resize(v->relay);
		return;
	}
	if (v->attach) {
		leave(v);
		return;
	}
	speak(v, "proc.signal", (int)i.ssi_signo);
}

static int open_signals(struct view *v, struct writ_err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	v->signals = signalfd(-1, &set, SFD_CLOEXEC);
	return v->signals < 0 ? writ_fail(err, WRIT_E_SYS, errno, "signalfd") : 0;
}

/*
 * Tells the supervisor that the command has moved bytes, at most once per TICK_MS. Only needed
 * without a terminal, where bytes pass directly between client and command: the bytes of a terminal
 * pass through the supervisor.
 */
static void tell_activity(struct view *v)
{
	const uint64_t now = clock_boot_ms();

	if (!v->relay || v->front.relay.link || relay_activity(v->relay) == v->activity ||
	    now < v->told_ms + TICK_MS)
		return;
	v->activity = relay_activity(v->relay);
	v->told_ms = now;
	speak(v, "session.active", 0);
}

static int relay_until_end(struct view *v, struct writ_err *err)
{
	int r = 0;

	while (r >= 0 && !v->ended && !v->look->left) {
		struct pollfd p[POLL_RELAY + RELAY_POLLS] = {
			{ v->conn->fd, (short)(POLLIN | (rpc_wants_write(v->conn) ? POLLOUT : 0)),
			  0 },
			{ v->signals, POLLIN, 0 },
			{ v->look->owner > 0 && !v->left_alone ? v->look->owner : -1, POLLIN, 0 }
		};
		const size_t n = v->relay ? relay_poll(v->relay, p + POLL_RELAY) : 0;
		enum relay_event event = RELAY_NOTHING;
		const int got = poll(p, (nfds_t)(POLL_RELAY + n), v->waiting ? FAIL_MS : -1);

		if (got == 0 && v->waiting)
			leave(v);
		if (got <= 0)
			continue;
		if (n)
			r = relay_step(v->relay, p + POLL_RELAY, n, &event, err);
		if (event == RELAY_DETACH)
			leave(v);
		tell_activity(v);
		if (p[1].revents)
			on_signal(v);
		if (p[2].revents) {
			v->left_alone = true;
			speak(v, "proc.signal", SIGTERM);
		}
		if (p[0].revents & POLLOUT)
			rpc_flush(v->conn);
		if (r >= 0 && p[0].revents & ~POLLOUT)
			r = hear(v, err);
	}
	if (v->relay && r >= 0)
		r = relay_finish(v->relay, NULL, NULL, err);
	return r;
}

/* --- start and end --- */

/*
 * A standard input that is a terminal sends keys. Standard output receives the bytes of the
 * terminal, whether or not standard output is a terminal.
 */
static void attach_front(struct std_fds *f)
{
	*f = (struct std_fds)STD_FDS_INIT;
	if (isatty(0)) {
		f->relay.outer[0] = 0;
		f->relay.on_pty[0] = true;
	}
	f->relay.outer[1] = 1;
	f->relay.on_pty[1] = true;
}

/*
 * Gives a command that runs without a client a terminal. Its size is that of the caller's terminal,
 * or 24 rows of 80 columns if the caller has none.
 */
static void detached_front(struct std_fds *f)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };

	*f = (struct std_fds)STD_FDS_INIT;
	(void)ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
	f->pty = 7;
	f->rows = size.ws_row;
	f->cols = size.ws_col;
}

static int finish(struct view *v, int r, int *ret_exit, struct writ_err *err)
{
	relay_free(v->relay);
	std_fds_clear(&v->front);
	rpc_free(v->conn);
	fd_scope_close(&v->signals);
	if (r >= 0 && v->failed.what[0])
		*err = v->failed;
	if (r >= 0)
		*ret_exit = v->exit;
	return r < 0 ? r : 0;
}

int session_exec(struct sv state, struct sv id, char *const *argv, char *const *envp, struct sv cwd,
		 struct session_look *look, int *ret_exit, struct writ_err *err)
{
	struct session_look plain = { 0 };
	struct view v = {
		.signals = -1, .front = STD_FDS_INIT, .look = look ? look : &plain, .escape = look
	};
	int r = session_client_open(state, id, v.look->id, &v.conn, err);

	if (r == 0)
		r = open_signals(&v, err);
	if (r == 0 && v.look->detach)
		detached_front(&v.front);
	else if (r == 0)
		r = std_fds_open(&v.front, NULL, false, err);
	if (r == 0)
		r = send_exec(&v, argv, envp, cwd, err);
	if (r == 0 && !v.front.pty)
		r = std_fds_relay(&v.front, &v.relay, err);
	if (r == 0)
		r = relay_until_end(&v, err);
	return finish(&v, r, ret_exit, err);
}

int session_attach(struct sv state, struct sv id, struct session_look *look, int *ret_exit,
		   struct writ_err *err)
{
	struct view v = {
		.signals = -1, .front = STD_FDS_INIT, .look = look, .attach = true, .escape = true
	};
	int r = session_client_open(state, id, look->id, &v.conn, err);

	if (r == 0)
		r = open_signals(&v, err);
	if (r < 0)
		return finish(&v, r, ret_exit, err);
	attach_front(&v.front);
	r = rpc_request(v.conn, "proc.attach", json_pack("{s:i}", "proc", (int)look->number), NULL,
			0, &v.start_id, err);
	if (r == 0)
		r = relay_until_end(&v, err);
	return finish(&v, r, ret_exit, err);
}
