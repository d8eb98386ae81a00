#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

/*
 * The person's side of a command that is not that of a run. Without a terminal the bytes
 * go between us and the command, and the supervisor is told now and then that some do;
 * with one they go through the supervisor, so that others can join.
 */

enum {
	TEXT_MAX = 8192,
	TICK_MS = 1000, /* between two words that bytes are moving */
	FAIL_MS = 300,	/* for a command that goes on by itself to fail at once */
};

struct view {
	int socket, signals;
	struct front front;
	struct relay *relay;
	struct session_look *look;
	bool attach;  /* the command is not ours to end */
	bool escape;  /* a person may leave it */
	bool waiting; /* it has started, and goes on without us if it does not fail now */
	bool ended;
	int exit;
	struct writ_err failed;
	uint64_t activity, told_ms;
};

/* Directory, arguments and environment, each with a NUL behind it, in a file of ours. */
static int write_request(char *const *argv, char *const *envp, struct sv cwd, size_t ret_n[2],
			 int *ret_fd, struct writ_err *err)
{
	struct buf b = BUF_INIT(JAIL_MAX);
	char *const *const lists[2] = { argv, envp };
	scoped_fd fd = memfd_create("writ-exec", MFD_CLOEXEC);
	int r = 0;

	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "memfd_create");
	buf_add(&b, cwd.p, cwd.n);
	buf_ch(&b, 0);
	for (int i = 0; i < 2; i++) {
		ret_n[i] = 0;
		for (char *const *s = lists[i]; *s; s++, ret_n[i]++)
			buf_add(&b, *s, strlen(*s) + 1);
	}
	r = buf_check(&b, err);
	if (r == 0)
		r = fd_write_all(fd, buf_view(&b), err);
	buf_clear(&b);
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

static int send_exec(struct view *v, char *const *argv, char *const *envp, struct sv cwd,
		     struct writ_err *err)
{
	const mode_t mask = umask(022);
	scoped_fd file = -1;
	size_t n[2], fds_n = 1;
	char text[128];
	int fds[PACKET_FDS];
	int r = write_request(argv, envp, cwd, n, &file, err);

	(void)umask(mask);
	if (r < 0)
		return r;
	fds[0] = file;
	for (int i = 0; i < 3; i++)
		if (v->front.given & 1u << i)
			fds[fds_n++] = v->front.inside[i];
	snprintf(text, sizeof(text), "exec %zu %zu %u %u %u %u %u %d", n[0], n[1], v->front.pty,
		 v->front.given, (unsigned)mask, v->front.rows, v->front.cols, v->look->detach);
	r = packet_send(v->socket, sv_from(text), fds, fds_n, err);
	front_sent(&v->front);
	return r;
}

static void speak(const struct view *v, const char *text)
{
	struct writ_err err = { 0 };

	(void)!packet_send(v->socket, sv_from(text), NULL, 0, &err);
}

/* --- what the supervisor says about the command --- */

/* "tty NEUTRAL JOINED NUMBER" with the terminal and its bytes, "past ..." with bytes only. */
static int join(struct view *v, struct sv rest, const int *fds, size_t fds_n, struct writ_err *err)
{
	struct relay_options *o = &v->front.relay;
	uint64_t neutral, joined, number;
	int r;

	if (!sv_to_u64(sv_cut(&rest, ' '), 1, &neutral) ||
	    !sv_to_u64(sv_cut(&rest, ' '), 1, &joined) || !sv_to_u64(rest, UINT32_MAX, &number))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the session does not make sense");
	o->neutral = neutral || v->look->neutral;
	o->joined = joined;
	o->escape = v->escape;
	v->look->number = (uint32_t)number;
	if (fds_n == 2) {
		o->pty = fds[0];
		o->link = fds[1];
	} else {
		for (int i = 0; i < 3; i++)
			o->on_pty[i] = false;
		o->outer[0] = -1;
		o->inner[1] = fds[0];
	}
	r = front_relay(&v->front, &v->relay, err);
	/* Then they are still who received them to close. */
	if (r < 0)
		v->front = (struct front)FRONT_INIT;
	return r;
}

/* As any program stops, with everything in our pipeline; then the command goes on. */
static void stop(struct view *v)
{
	if (v->relay)
		relay_suspend(v->relay);
	(void)kill(0, SIGTSTP);
	if (v->relay)
		relay_resume(v->relay);
	speak(v, "signal 18");
}

static int take_word(struct view *v, struct sv verb, struct sv rest, const int *fds, size_t *fds_n,
		     struct writ_err *err)
{
	uint64_t code;
	int r;

	if ((sv_is(verb, "tty") && *fds_n == 2) || (sv_is(verb, "past") && *fds_n == 1)) {
		r = join(v, rest, fds, *fds_n, err);
		if (r == 0)
			*fds_n = 0;
		return r;
	}
	if (sv_is(verb, "exit") && sv_to_u64(rest, 255, &code)) {
		v->ended = true;
		v->exit = (int)code;
	} else if (sv_is(verb, "started") && sv_to_u64(rest, UINT32_MAX, &code)) {
		v->look->number = (uint32_t)code;
		v->waiting = true;
	} else if (sv_is(verb, "failed")) {
		(void)!writ_fail(&v->failed, WRIT_E_SYS, 0, SV_FMT, SV_ARG(rest));
	} else if (sv_is(verb, "taken")) {
		v->look->left = v->look->taken = true;
	} else if (sv_is(verb, "stopped")) {
		stop(v);
	} else {
		return writ_fail(err, WRIT_E_DENIED, 0, SV_FMT, SV_ARG(rest));
	}
	return 0;
}

static int hear(struct view *v, struct writ_err *err)
{
	char text[TEXT_MAX];
	int fds[PACKET_FDS] = { -1, -1, -1, -1 };
	size_t n, fds_n;
	struct sv rest, verb;
	int r = packet_receive(v->socket, text, sizeof(text), &n, fds, &fds_n, err);

	if (r == 0)
		return writ_fail(err, WRIT_E_SYS, 0, "the session ended");
	if (r < 0)
		return r;
	rest = (struct sv){ text, n };
	verb = sv_cut(&rest, ' ');
	r = take_word(v, verb, rest, fds, &fds_n, err);
	for (size_t i = 0; i < fds_n; i++)
		close(fds[i]);
	return r;
}

/* --- what we are told otherwise --- */

static void leave(struct view *v)
{
	speak(v, "detach");
	v->look->left = true;
}

static void on_signal(struct view *v)
{
	struct signalfd_siginfo i;
	char text[32];

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
	snprintf(text, sizeof(text), "signal %u", i.ssi_signo);
	speak(v, text);
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

/* Of a terminal it knows by itself. */
static void tell_activity(struct view *v)
{
	const uint64_t now = clock_ms();

	if (!v->relay || v->front.relay.link || relay_activity(v->relay) == v->activity ||
	    now < v->told_ms + TICK_MS)
		return;
	v->activity = relay_activity(v->relay);
	v->told_ms = now;
	speak(v, "active");
}

static int relay_until_end(struct view *v, struct writ_err *err)
{
	int r = 0;

	while (r >= 0 && !v->ended && !v->look->left) {
		struct pollfd p[2 + RELAY_POLLS] = { { v->socket, POLLIN, 0 },
						     { v->signals, POLLIN, 0 } };
		const size_t n = v->relay ? relay_poll(v->relay, p + 2) : 0;
		enum relay_event event = RELAY_NOTHING;
		const int got = poll(p, (nfds_t)(2 + n), v->waiting ? FAIL_MS : -1);

		if (got == 0 && v->waiting)
			leave(v);
		if (got <= 0)
			continue;
		if (n)
			r = relay_step(v->relay, p + 2, n, &event, err);
		if (event == RELAY_DETACH)
			leave(v);
		tell_activity(v);
		if (p[1].revents)
			on_signal(v);
		if (r >= 0 && p[0].revents)
			r = hear(v, err);
	}
	if (v->relay && r >= 0)
		r = relay_finish(v->relay, NULL, NULL, err);
	return r;
}

/* --- start and end --- */

/* What is a terminal shows and types; if standard output is none, it gets the bytes. */
static void attach_front(struct front *f)
{
	*f = (struct front)FRONT_INIT;
	if (isatty(0)) {
		f->relay.outer[0] = 0;
		f->relay.on_pty[0] = true;
	}
	f->relay.outer[1] = 1;
	f->relay.on_pty[1] = true;
}

/* Nobody looks: a terminal of the size of ours, if we have one. */
static void detached_front(struct front *f)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };

	*f = (struct front)FRONT_INIT;
	(void)ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
	f->pty = 7;
	f->rows = size.ws_row;
	f->cols = size.ws_col;
}

static int finish(struct view *v, int r, int *ret_exit, struct writ_err *err)
{
	relay_free(v->relay);
	front_clear(&v->front);
	scope_close(&v->socket);
	scope_close(&v->signals);
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
		.signals = -1, .front = FRONT_INIT, .look = look ? look : &plain, .escape = look
	};
	int r = v.socket = client_open(state, id, v.look->id, err);

	if (r >= 0)
		r = open_signals(&v, err);
	if (r == 0 && v.look->detach)
		detached_front(&v.front);
	else if (r == 0)
		r = front_open(&v.front, NULL, false, err);
	if (r == 0)
		r = send_exec(&v, argv, envp, cwd, err);
	if (r == 0 && !v.front.pty)
		r = front_relay(&v.front, &v.relay, err);
	if (r == 0)
		r = relay_until_end(&v, err);
	return finish(&v, r, ret_exit, err);
}

int session_attach(struct sv state, struct sv id, struct session_look *look, int *ret_exit,
		   struct writ_err *err)
{
	struct view v = {
		.signals = -1, .front = FRONT_INIT, .look = look, .attach = true, .escape = true
	};
	char text[32];
	int r = v.socket = client_open(state, id, look->id, err);

	if (r >= 0)
		r = open_signals(&v, err);
	if (r < 0)
		return finish(&v, r, ret_exit, err);
	attach_front(&v.front);
	snprintf(text, sizeof(text), "attach %u", look->number);
	r = packet_send(v.socket, sv_from(text), NULL, 0, err);
	if (r == 0)
		r = relay_until_end(&v, err);
	return finish(&v, r, ret_exit, err);
}
