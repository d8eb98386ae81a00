/*
 * test_relay - real commands behind real terminals and pipes
 *
 * A session here is a child of ours with its own session and, where asked for, a
 * controlling terminal; the person is the far end of a pipe, a file or a pseudo terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "tap.h"
#include "term/relay.h"

enum { WAIT_MS = 20000, BIG = 64 << 20 };

struct run {
	struct relay *r;
	pid_t pid;
	int far[3];	   /* the person's side; -1: not held by the test */
	struct buf got[3]; /* what came out there; far[0] of a terminal, too */
	struct sv feed;	   /* what goes into far[0] */
	bool feed_end;	   /* and then close it */
	bool full, closed, ended;
	int status;
	struct writ_err err;
};

static void must(bool yes, const char *what)
{
	if (yes)
		return;
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static long now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void make_pipe(int p[2])
{
	must(pipe2(p, O_CLOEXEC) == 0, "pipe");
}

static void nonblock(int fd)
{
	must(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0, "fcntl");
}

static int temp_file(const char *text)
{
	char name[] = "/tmp/test_relay.XXXXXX";
	const int fd = mkostemp(name, O_CLOEXEC);

	must(fd >= 0 && unlink(name) == 0, "mkostemp");
	must(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "write");
	must(lseek(fd, 0, SEEK_SET) == 0, "lseek");
	return fd;
}

static struct sv file_text(int fd, struct buf *b)
{
	struct writ_err err;

	must(lseek(fd, 0, SEEK_SET) == 0 && fd_read_all(fd, b, &err) == 0, "read");
	return buf_view(b);
}

/* The session's side: standard descriptors from the slave or from pipes, as asked. */
static void child(const char *cmd, const bool on_pty[3], int slave, int side[3])
{
	(void)setsid();
	(void)signal(SIGPIPE, SIG_DFL);
	if (slave >= 0 && ioctl(slave, TIOCSCTTY, 0) < 0)
		_exit(125);
	for (int i = 0; i < 3; i++) {
		const int fd = on_pty[i] ? slave : side[i];

		if (fd < 0)
			(void)close(i);
		else if (dup2(fd, i) < 0)
			_exit(125);
	}
	(void)execl("/bin/sh", "sh", "-c", cmd, NULL);
	_exit(127);
}

/* @o: outer and on_pty are given, inner and pty are made here. */
static void start(struct run *w, struct relay_options *o, const char *cmd)
{
	int side[3] = { -1, -1, -1 }, slave = -1;

	o->pty = -1;
	if (o->on_pty[0] || o->on_pty[1] || o->on_pty[2]) {
		must(openpty(&o->pty, &slave, NULL, NULL, NULL) == 0, "openpty");
		must(fcntl(o->pty, F_SETFD, FD_CLOEXEC) == 0 &&
			     fcntl(slave, F_SETFD, FD_CLOEXEC) == 0,
		     "cloexec");
	}
	for (int i = 0; i < 3; i++) {
		int p[2] = { -1, -1 };

		if (!o->on_pty[i] && o->outer[i] >= 0)
			make_pipe(p);
		side[i] = i ? p[1] : p[0];
		o->inner[i] = i ? p[0] : p[1];
		w->got[i].max = (size_t)BIG * 2;
		if (w->far[i] >= 0)
			nonblock(w->far[i]);
	}
	/* First the relay: the command must find size and modes as they are to be. */
	must(relay_new(o, &w->r, &w->err) == 0, w->err.what);
	(void)fflush(stdout);
	w->pid = fork();
	must(w->pid >= 0, "fork");
	if (w->pid == 0)
		child(cmd, o->on_pty, slave, side);
	for (int i = 0; i < 3; i++)
		if (side[i] >= 0)
			(void)close(side[i]);
	if (slave >= 0)
		(void)close(slave);
}

static void far_turn(struct run *w)
{
	static char chunk[1 << 17];

	if (w->feed.n && w->far[0] >= 0) {
		const ssize_t n = write(w->far[0], w->feed.p, w->feed.n);

		w->feed = sv_skip(w->feed, n > 0 ? (size_t)n : 0);
	} else if (w->feed_end && w->far[0] >= 0) {
		(void)close(w->far[0]);
		w->far[0] = -1;
	}
	for (int i = 0; i < 3; i++) {
		const ssize_t n = w->far[i] < 0 ? 0 : read(w->far[i], chunk, sizeof(chunk));

		if (n > 0)
			buf_add(&w->got[i], chunk, (size_t)n);
	}
}

/* One round of an owner's loop. */
static void pump(struct run *w, int ms)
{
	struct pollfd fds[RELAY_POLLS + 3];
	size_t n = relay_poll(w->r, fds), all = n;
	enum relay_event event = RELAY_NOTHING;

	must(n <= RELAY_POLLS, "too many descriptors to poll");
	for (int i = 0; i < 3; i++)
		if (w->far[i] >= 0)
			fds[all++] = (struct pollfd){
				.fd = w->far[i],
				.events = (short)(POLLIN | (!i && w->feed.n ? POLLOUT : 0))
			};
	(void)poll(fds, all, ms);
	must(relay_step(w->r, fds, n, &event, &w->err) == 0, w->err.what);
	must(!(event == RELAY_OUTPUT_FULL && w->full), "full is told once");
	must(!(event == RELAY_CLOSED && w->closed), "closed is told once");
	w->full |= event == RELAY_OUTPUT_FULL;
	w->closed |= event == RELAY_CLOSED;
	far_turn(w);
	if (!w->ended)
		w->ended = waitpid(w->pid, &w->status, WNOHANG) == w->pid;
}

static bool has(const struct buf *b, const char *text)
{
	return b->n && memmem(b->p, b->n, text, strlen(text));
}

/* Until @text has come out at @i. */
static bool expect(struct run *w, int i, const char *text)
{
	const long end = now_ms() + WAIT_MS;

	while (!has(&w->got[i], text) && now_ms() < end)
		pump(w, 10);
	if (!has(&w->got[i], text))
		tap_note("no \"%s\" in \"" SV_FMT "\"", text, SV_ARG(buf_view(&w->got[i])));
	return has(&w->got[i], text);
}

/* Until the command has ended and its output is here; returns the exit status or -signal. */
static int finish(struct run *w)
{
	const long end = now_ms() + 3 * WAIT_MS;
	int code;

	while (!(w->ended && w->closed) && now_ms() < end)
		pump(w, 10);
	must(w->ended && w->closed, "the session ends");
	code = relay_finish(w->r, NULL, NULL, &w->err);
	must(code == 0 || w->err.code == code, "an error says what it is");
	far_turn(w);
	relay_free(w->r);
	return WIFEXITED(w->status) ? WEXITSTATUS(w->status) : -WTERMSIG(w->status);
}

static void forget(struct run *w)
{
	for (int i = 0; i < 3; i++) {
		buf_clear(&w->got[i]);
		if (w->far[i] >= 0)
			(void)close(w->far[i]);
	}
}

#define NO_FAR                                                                                     \
	{                                                                                          \
		-1, -1, -1                                                                         \
	}

/* --- pipes --- */

static void test_pipes(void)
{
	struct run w = { .far = NO_FAR, .feed = SV("one\ntwo\n"), .feed_end = true };
	struct relay_options o = { 0 };
	int in[2], out[2], err[2];

	make_pipe(in), make_pipe(out), make_pipe(err);
	o.outer[0] = in[0], o.outer[1] = out[1], o.outer[2] = err[1];
	w.far[0] = in[1], w.far[1] = out[0], w.far[2] = err[0];
	start(&w, &o, "tr a-z A-Z; echo oops >&2; exit 7");
	ok(finish(&w) == 7, "pipes: the exit status is the command's");
	is_sv(buf_view(&w.got[1]), SV("ONE\nTWO\n"), "pipes: input and output");
	is_sv(buf_view(&w.got[2]), SV("oops\n"), "pipes: errors apart");
	ok(!(fcntl(in[0], F_GETFL) & O_NONBLOCK) && !(fcntl(out[1], F_GETFL) & O_NONBLOCK),
	   "pipes: shared descriptors keep their flags");
	(void)close(in[0]), (void)close(out[1]), (void)close(err[1]);
	forget(&w);
}

static void test_sockets(void)
{
	struct run w = { .far = NO_FAR, .feed_end = true };
	struct relay_options o = { .outer = { -1, -1, -1 } };
	int in[2], out[2];
	char *data = malloc(1 << 20);

	must(data != NULL, "memory");
	memset(data, 'x', 1 << 20);
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) == 0 &&
		     socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out) == 0,
	     "socketpair");
	o.outer[0] = in[0], o.outer[1] = out[1];
	w.far[0] = in[1], w.far[1] = out[0];
	w.feed = (struct sv){ data, 1 << 20 };
	start(&w, &o, "cat");
	ok(finish(&w) == 0 && w.got[1].n == 1 << 20 && !memcmp(w.got[1].p, data, 1 << 20),
	   "sockets: a megabyte there and back");
	(void)close(in[0]), (void)close(out[1]);
	free(data);
	forget(&w);
}

static void test_closed(void)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .outer = { -1, -1, -1 } };
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	start(&w, &o, "exit 5");
	ok(finish(&w) == 5, "nothing joined: a command without descriptors");
	w = (struct run){ .far = NO_FAR };
	o = (struct relay_options){ .outer = { null, null, null } };
	start(&w, &o, "cat; head -c 1000000 /dev/zero; exit 6");
	ok(finish(&w) == 6, "/dev/null on all three");
	(void)close(null);
}

static void test_full_disk(void)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .outer = { -1, open("/dev/full", O_WRONLY | O_CLOEXEC), -1 } };

	start(&w, &o, "echo lost; echo more; exit 0");
	(void)finish(&w);
	ok(w.err.code == WRIT_E_SYS && w.err.sys == ENOSPC, "a full disk is told at the end: %s",
	   w.err.what);
	(void)close(o.outer[1]);
}

static void test_append(void)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .outer = { -1, temp_file("old\n"), -1 } };
	scoped_buf b = BUF_INIT(100);

	must(fcntl(o.outer[1], F_SETFL, O_APPEND) == 0, "append");
	start(&w, &o, "echo new");
	ok(finish(&w) == 0, "`>> file`");
	is_sv(file_text(o.outer[1], &b), SV("old\nnew\n"), "`>> file` appends");
	(void)close(o.outer[1]);
}

/* `x | head -1`: the command must die as it would without us. */
static void test_epipe(void)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .outer = { -1, -1, -1 } };
	int out[2];

	make_pipe(out);
	o.outer[1] = out[1];
	start(&w, &o, "exec yes");
	(void)close(out[0]);
	ok(finish(&w) == -SIGPIPE, "a closed outer pipe is SIGPIPE inside");
	ok(w.err.code == 0, "and no error of ours");
	(void)close(out[1]);
}

static void test_slow_reader(void)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .outer = { -1, -1, -1 } };
	int out[2];
	uint64_t held;

	make_pipe(out);
	o.outer[1] = out[1];
	start(&w, &o, "head -c 8000000 /dev/zero; exit 3");
	for (int i = 0; i < 40; i++)
		pump(&w, 10);
	held = relay_output(w.r);
	ok(held > 0 && held <= 65536 && !w.ended, "nobody reads: the command waits (%llu taken)",
	   (unsigned long long)held);
	w.far[1] = out[0];
	nonblock(out[0]);
	ok(finish(&w) == 3 && w.got[1].n == 8000000, "and then all of it comes");
	(void)close(out[1]);
	forget(&w);
}

/* --- input that goes back --- */

static void test_give_back_file(void)
{
	static const char text[] = "1\n2\n3\n4\n5\n";
	const int fd = temp_file(text);
	char line[3] = "";
	int seen = 0;

	while (read(fd, line, 2) == 2) {
		struct run w = { .far = NO_FAR };
		struct relay_options o = { .outer = { fd, -1, -1 } };

		seen++;
		start(&w, &o, seen % 2 ? "exit 0" : "sleep 0.1; exit 0");
		must(finish(&w) == 0, "exit 0");
	}
	ok(seen == 5, "`while read; do true; done < file` sees all lines (%d)", seen);
	must(lseek(fd, 0, SEEK_SET) == 0, "lseek");
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .outer = { fd, -1, -1 } };

	start(&w, &o, "read a; read b; sleep 0.1");
	ok(finish(&w) == 0 && lseek(fd, 0, SEEK_CUR) == 4,
	   "what was read is gone, the rest is not");
	(void)close(fd);
}

static void test_give_back_pipe(void)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .outer = { -1, -1, -1 } };
	char left[100];
	struct sv rest = { left, 0 };
	int in[2];
	ssize_t n;

	make_pipe(in);
	must(write(in[1], "1\n2\n", 4) == 4 && write(in[1], "3\n", 2) == 2, "write");
	(void)close(in[1]);
	o.outer[0] = in[0];
	start(&w, &o, "exit 0");
	ok(finish(&w) == 0, "piped input, not read");
	start(&w, &o, "read a; test $a = 1; exit $?");
	w.ended = w.closed = false;
	ok(finish(&w) == 0, "piped input: the next one reads one line");
	n = read(in[0], left, sizeof(left));
	rest.n = n > 0 ? (size_t)n : 0;
	is_sv(rest, SV("2\n3\n"), "piped input: the rest stays");
	(void)close(in[0]);
}

/* --- much --- */

static void test_big(void)
{
	struct run w = { .far = NO_FAR, .feed_end = true };
	struct relay_options o = { .outer = { -1, -1, -1 } };
	uint32_t *data = malloc(BIG), x = 1;
	const long begin = now_ms();
	int in[2], out[2];

	must(data != NULL, "memory");
	for (size_t i = 0; i < BIG / 4; i++)
		data[i] = x = x * 1664525U + 1013904223U;
	make_pipe(in), make_pipe(out);
	o.outer[0] = in[0], o.outer[1] = out[1];
	w.far[0] = in[1], w.far[1] = out[0];
	w.feed = (struct sv){ (const char *)data, BIG };
	start(&w, &o, "exec cat");
	ok(finish(&w) == 0 && w.got[1].n == BIG && !memcmp(w.got[1].p, data, BIG),
	   "64 MiB through `cat` come back the same");
	tap_note("64 MiB in and out in %ld ms", now_ms() - begin);
	free(data);
	(void)close(in[0]), (void)close(out[1]);
	forget(&w);
}

static void test_file_in_out(void)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .outer = { temp_file(""), temp_file(""), -1 } };
	scoped_buf a = BUF_INIT(BIG), b = BUF_INIT(BIG);

	for (int i = 0; i < 200000; i++)
		must(dprintf(o.outer[0], "line %d\n", i) > 0, "write");
	must(lseek(o.outer[0], 0, SEEK_SET) == 0, "lseek");
	start(&w, &o, "exec cat");
	ok(finish(&w) == 0 && lseek(o.outer[0], 0, SEEK_CUR) > 2000000, "`< a > b`: all is read");
	ok(sv_eq(file_text(o.outer[0], &a), file_text(o.outer[1], &b)), "`< a > b`: copied");
	(void)close(o.outer[0]), (void)close(o.outer[1]);
}

static void test_limit(uint64_t max, const char *cmd, bool full, size_t passed)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .outer = { -1, -1, -1 }, .output_max = max };
	scoped_buf marker = BUF_INIT(200);
	int out[2], err[2];

	make_pipe(out), make_pipe(err);
	o.outer[1] = out[1], o.outer[2] = err[1];
	w.far[1] = out[0], w.far[2] = err[0];
	if (full)
		buf_fmt(&marker,
			"\nwrit: output limit of %llu bytes reached; the rest is dropped\n",
			(unsigned long long)max);
	start(&w, &o, cmd);
	ok(finish(&w) == 9, "limit: the exit status stays");
	ok(w.got[1].n == passed, "limit: %zu bytes pass (%zu)", passed, w.got[1].n);
	is_sv(buf_view(&w.got[2]), buf_view(&marker), "limit: the marker, once and only if needed");
	ok(w.full == full, "limit: told");
	(void)close(out[1]), (void)close(err[1]);
	forget(&w);
}

/* --- terminals --- */

struct screen {
	int master, slave;
	struct termios modes;
};

static void screen_open(struct screen *s)
{
	const struct winsize size = { .ws_row = 33, .ws_col = 101 };

	must(openpty(&s->master, &s->slave, NULL, NULL, &size) == 0, "openpty");
	must(fcntl(s->master, F_SETFD, FD_CLOEXEC) == 0 &&
		     fcntl(s->slave, F_SETFD, FD_CLOEXEC) == 0,
	     "cloexec");
	must(tcgetattr(s->slave, &s->modes) == 0, "tcgetattr");
	s->modes.c_cc[VERASE] = 8; /* a mark to know it by */
	must(tcsetattr(s->slave, TCSANOW, &s->modes) == 0, "tcsetattr");
	must(tcgetattr(s->slave, &s->modes) == 0, "tcgetattr");
}

static bool screen_is(const struct screen *s, bool raw)
{
	struct termios m = { 0 };

	must(tcgetattr(s->slave, &m) == 0, "tcgetattr");
	if (raw)
		return !(m.c_lflag & (ICANON | ECHO | ISIG)) && !(m.c_oflag & OPOST);
	return m.c_iflag == s->modes.c_iflag && m.c_oflag == s->modes.c_oflag &&
	       m.c_cflag == s->modes.c_cflag && m.c_lflag == s->modes.c_lflag &&
	       !memcmp(m.c_cc, s->modes.c_cc, sizeof(m.c_cc));
}

static void screen_close(struct screen *s)
{
	(void)close(s->slave);
}

static void keys(struct run *w, const char *text)
{
	must(write(w->far[0], text, strlen(text)) == (ssize_t)strlen(text), "keys");
}

/* A terminal for all three, and a command on it. */
static void start_on(struct screen *s, struct run *w, struct relay_options *o, const char *script)
{
	screen_open(s);
	o->outer[0] = o->outer[1] = o->outer[2] = s->slave;
	w->far[0] = s->master;
	start(w, o, script);
}

static void test_terminal(void)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .on_pty = { true, true, true } };
	struct screen s;
	struct winsize size = { .ws_row = 44, .ws_col = 120 };

	start_on(
		&s, &w, &o,
		"trap 'echo got-winch; stty size' WINCH; trap 'echo got-int' INT; stty -a | tr ';' "
		"'\\n';"
		"stty size; tty -s && echo a-tty; read x; echo \"x is $x.\";"
		"until [ \"$x\" = end ]; do read x && echo more; done; stty raw -echo; exit 4");
	ok(screen_is(&s, true), "terminal: raw while it runs");
	ok(expect(&w, 0, "33 101\r\n"), "terminal: the size is the person's");
	ok(expect(&w, 0, "a-tty\r\n"), "terminal: inside it is one");
	ok(has(&w.got[0], "erase = ^H"), "terminal: and has the person's keys");
	keys(&w, "hello\r");
	ok(expect(&w, 0, "hello\r\nx is hello.\r\n"), "terminal: keys are echoed inside, once");
	must(ioctl(s.master, TIOCSWINSZ, &size) == 0, "TIOCSWINSZ");
	relay_resize(w.r);
	keys(&w, "\r");
	ok(expect(&w, 0, "got-winch") && expect(&w, 0, "44 120\r\n"), "terminal: resize arrives");
	ok(expect(&w, 0, "more"), "terminal: goes on");
	keys(&w, "\003");
	ok(expect(&w, 0, "got-int"), "terminal: Ctrl-C is a signal inside");

	relay_suspend(w.r);
	ok(screen_is(&s, false), "suspend: the modes are back exactly");
	pump(&w, 10);
	ok(screen_is(&s, false), "suspend: and stay");
	relay_resume(w.r);
	ok(screen_is(&s, true), "resume: raw again");
	keys(&w, "end\r");
	ok(finish(&w) == 4, "terminal: exit status");
	ok(screen_is(&s, false), "terminal: back as it was, though raw was left on inside");
	screen_close(&s);
	forget(&w);
}

/* A shell inside has jobs of its own. */
static void test_job_control(void)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .on_pty = { true, true, true } };
	struct screen s;

	start_on(&s, &w, &o, "ENV= PS1='ready> ' exec sh -i");
	ok(expect(&w, 0, "ready> "), "jobs: a shell asks");
	keys(&w, "sh -c 'echo runs; exec sleep 100'; echo stop-$?\r");
	ok(expect(&w, 0, "runs\r\n"), "jobs: a command runs");
	keys(&w, "\032");
	ok(expect(&w, 0, "stop-148\r\n"), "jobs: Ctrl-Z stops it");
	keys(&w, "kill -9 %1; kill -9 $$\r");
	ok(finish(&w) == -SIGKILL && screen_is(&s, false), "jobs: the shell ends");
	screen_close(&s);
	forget(&w);
}

/* `x > file`: keys and errors on the terminal. */
static void test_stdout_file(void)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .on_pty = { true, false, true } };
	scoped_buf b = BUF_INIT(1000);
	struct screen s;

	screen_open(&s);
	o.outer[0] = o.outer[2] = s.slave;
	o.outer[1] = temp_file("");
	w.far[0] = s.master;
	start(&w, &o, "test -t 1 || echo not; printf 'ask?' >&2; read x; echo \"<$x>\"");
	ok(expect(&w, 0, "ask?"), "`x > file`: errors on the terminal");
	ok(screen_is(&s, true), "`x > file`: raw");
	keys(&w, "yes\r");
	ok(finish(&w) == 0, "`x > file`: ends");
	is_sv(file_text(o.outer[1], &b), SV("not\n<yes>\n"), "`x > file`: byte for byte");
	ok(screen_is(&s, false), "`x > file`: restored");
	screen_close(&s);
	(void)close(o.outer[1]);
	forget(&w);
}

/* `echo | x`: the terminal is only shown on. */
static void test_stdin_pipe(void)
{
	struct run w = { .far = NO_FAR, .feed = SV("piped\n"), .feed_end = true };
	struct relay_options o = { .on_pty = { false, true, true } };
	struct screen s;
	int in[2];

	screen_open(&s);
	make_pipe(in);
	o.outer[0] = in[0], o.outer[1] = o.outer[2] = s.slave;
	w.far[0] = in[1], w.far[1] = s.master;
	start(&w, &o, "test -t 0 || echo no-tty; test -t 1 && echo tty; cat");
	ok(screen_is(&s, false), "`echo | x`: modes are not touched");
	ok(finish(&w) == 0, "`echo | x`: ends at the end of its input");
	is_sv(buf_view(&w.got[1]), SV("no-tty\r\ntty\r\npiped\r\n"),
	      "`echo | x`: one CR for a line");
	screen_close(&s);
	(void)close(in[0]);
	forget(&w);
}

/* `x | less`: the keys are the pager's, until the command asks for them in raw mode. */
static void test_pager(void)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .on_pty = { true, false, true } };
	struct termios pager;
	struct screen s;
	int out[2], queued = 0;

	screen_open(&s);
	make_pipe(out);
	o.outer[0] = o.outer[2] = s.slave, o.outer[1] = out[1];
	w.far[0] = s.master, w.far[1] = out[0];
	start(&w, &o,
	      "echo text; read x; echo \"x is $x\"; stty -echo </dev/tty; echo secret? >/dev/tty;"
	      "read y; echo \"y is $y\"; stty echo </dev/tty");
	ok(expect(&w, 1, "text\n") && screen_is(&s, false), "`x | less`: modes are left alone");
	pager = s.modes;
	cfmakeraw(&pager);
	must(tcsetattr(s.slave, TCSANOW, &pager) == 0, "tcsetattr");
	keys(&w, "q");
	for (int i = 0; i < 5; i++)
		pump(&w, 10);
	must(ioctl(s.slave, FIONREAD, &queued) == 0, "FIONREAD");
	ok(queued == 1, "`x | less`: a pager's key stays in its terminal");
	must(tcflush(s.slave, TCIFLUSH) == 0 && tcsetattr(s.slave, TCSANOW, &s.modes) == 0, "quit");
	keys(&w, "line\n");
	ok(expect(&w, 1, "x is line\n"), "`x | less`: a line typed in line mode goes in");
	ok(expect(&w, 0, "secret?") && screen_is(&s, true),
	   "`x | less`: a password prompt takes over");
	keys(&w, "hush\r");
	ok(expect(&w, 1, "y is hush\n") && !has(&w.got[0], "hush"),
	   "`x | less`: and does not echo");
	ok(finish(&w) == 0 && screen_is(&s, false), "`x | less`: restored");
	screen_close(&s);
	(void)close(out[1]);
	forget(&w);
}

static void test_only_stdin(void)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .on_pty = { true, false, false } };
	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct screen s;

	screen_open(&s);
	o.outer[0] = s.slave, o.outer[1] = o.outer[2] = null;
	w.far[0] = s.master;
	start(&w, &o, "echo lost; echo prompt >/dev/tty; read x; echo $x >/dev/tty");
	ok(expect(&w, 0, "prompt\r\n"), "only stdin: /dev/tty inside shows");
	keys(&w, "k\r");
	ok(finish(&w) == 0 && has(&w.got[0], "k\r\nk\r\n"), "only stdin: with echo");
	screen_close(&s);
	(void)close(null);
	forget(&w);
}

/* A command that closes its terminal is not hung up, and Ctrl-C is the person's again. */
static void test_leaves_terminal(void)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .on_pty = { true, true, true } };
	struct screen s;

	start_on(&s, &w, &o, "echo bye; exec </dev/null >/dev/null 2>&1; sleep 0.3; exit 8");
	ok(expect(&w, 0, "bye\r\n"), "leaving: last words");
	while (!w.closed)
		pump(&w, 10);
	ok(screen_is(&s, false) && !w.ended,
	   "leaving: the terminal is back before the command ends");
	ok(finish(&w) == 8, "leaving: it is not hung up");
	screen_close(&s);
	forget(&w);
}

static void test_hangup(void)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .on_pty = { true, true, true } };
	struct screen s;

	screen_open(&s);
	o.outer[0] = o.outer[1] = o.outer[2] = s.slave;
	start(&w, &o, "while :; do echo still here; sleep 0.05; done");
	pump(&w, 10);
	(void)close(s.master);
	ok(finish(&w) == -SIGHUP, "a person's terminal goes away: SIGHUP inside");
	screen_close(&s);
	forget(&w);
}

/* Job control of ours: only a session leader with this terminal can show it. */
static void background(int slave)
{
	struct relay_options o = { .on_pty = { true, true, true } };
	struct run w = { .far = NO_FAR };
	struct termios before, after;
	pid_t job;
	int st = 0;

	(void)signal(SIGTTOU, SIG_IGN);
	if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) < 0 || tcgetattr(slave, &before) < 0)
		_exit(20);
	job = fork();
	if (job == 0) {
		(void)signal(SIGTTOU, SIG_DFL);
		(void)setpgid(0, 0);
		o.outer[0] = o.outer[1] = o.outer[2] = slave;
		start(&w, &o, "echo from-behind; sleep 0.2");
		st = finish(&w);
		_exit(st == 0 && tcgetattr(slave, &after) == 0 && after.c_lflag == before.c_lflag
			      ? 0
			      : 21);
	}
	if (waitpid(job, &st, WUNTRACED) != job || !WIFEXITED(st))
		_exit(22);
	_exit(WEXITSTATUS(st));
}

static void test_background(void)
{
	scoped_buf got = BUF_INIT(1000);
	struct screen s;
	char chunk[256];
	int st = 0;
	pid_t pid;
	ssize_t n;

	screen_open(&s);
	(void)fflush(stdout);
	pid = fork();
	must(pid >= 0, "fork");
	if (pid == 0) {
		(void)close(s.master);
		background(s.slave);
	}
	(void)close(s.slave);
	while ((n = read(s.master, chunk, sizeof(chunk))) > 0)
		buf_add(&got, chunk, (size_t)n);
	ok(waitpid(pid, &st, 0) == pid && WIFEXITED(st) && WEXITSTATUS(st) == 0,
	   "`x &`: neither stopped nor raw (%d)", st);
	ok(has(&got, "from-behind"), "`x &`: its output shows");
	(void)close(s.master);
}

static void test_neutral_terminal(void)
{
	struct run w = { .far = NO_FAR };
	struct relay_options o = { .on_pty = { true, true, true }, .neutral = true };
	struct screen s;

	start_on(&s, &w, &o, "printf '\\033]52;c;aGk=\\007\\033[31mred\\033[c\\033]0;t\\033\\\\'");
	ok(finish(&w) == 0, "neutral: a command ends");
	is_sv(buf_view(&w.got[0]), SV("\033[31mred" NEUTRAL_RESET),
	      "neutral: colours, then a reset");
	screen_close(&s);
	forget(&w);
}

/* --- the neutraliser alone --- */

static const struct {
	const char *name, *in, *out;
} neutral_cases[] = {
	/* clang-format off */
	{ "text", "a\tb\r\nc\b d\n", "a\tb\r\nc\b d\n" },
	{ "colours", "\033[1;38;2;1;2;3mx\033[4:3m\033[m", "\033[1;38;2;1;2;3mx\033[4:3m\033[m" },
	{ "cursor", "\033[2A\033[3;4H\033[K\033[2J\0337\0338\033M\033[?25l", "\033[2A\033[3;4H\033[K\033[2J\0337\0338\033M\033[?25l" },
	{ "attributes off", "\033(B\033[m", "\033(B\033[m" },
	{ "other charsets", "\033(0q\033)0\033%G\033#8", "q" },
	{ "title", "a\033]0;evil\007b", "ab" },
	{ "title with ST", "a\033]2;evil\033\\b", "ab" },
	{ "title of screen", "a\033kevil\033\\b", "ab" },
	{ "clipboard", "\033]52;c;aGVsbG8=\007x", "x" },
	{ "link", "\033]8;;http://a/\033\\text\033]8;;\033\\", "text" },
	{ "DCS", "\033P$qm\033\\x", "x" },
	{ "DCS over lines", "\033Pq#0\n#1\033\\x", "x" },
	{ "APC, PM, SOS", "\033_a\033\\\033^b\033\\\033Xc\033\\x", "x" },
	{ "a string left open ends with its line", "\033]0;evil\nseen", "\nseen" },
	{ "a string cut by CAN", "\033]0;evil\030seen", "seen" },
	{ "a string cut by a sequence", "\033]0;evil\033[1mseen", "\033[1mseen" },
	{ "reports", "\033[6n\033[c\033[>c\033[=c\033[21t\033[?6n\033[x\033Z\033[?1$p", "" },
	{ "modes", "\033[?1049h\033[?2004h\033[?1000h\033[4h\033[20l\033[2h\033=\033>\033[!p\033[2 q", "" },
	{ "reset, tab stops, printer, scroll region", "\033c\033H\033[3g\033[5i\033[2;3r", "" },
	{ "scrollback", "\033[3J", "" },
	{ "mouse tracking", "\033[1;2;3;4;5T\033[2T", "\033[2T" },
	{ "huge numbers", "\033[99999999bx", "x" },
	{ "control inside a sequence", "\033[3\n1mx", "\n1mx" },
	{ "escape inside a sequence", "\033[3\033[1mx", "\033[1mx" },
	{ "controls", "\001\005\007\013\014\016\017\177", "^A^E^G^K^L^N^O^?" },
	{ "raw C1", "\x9b" "31m\x9d" "0;t\x9c", "\xef\xbf\xbd" "31m\xef\xbf\xbd" "0;t\xef\xbf\xbd" },
	{ "C1 as characters", "\xc2\x9b" "6n", "<U+009B>6n" },
	{ "letters whose bytes look like C1", "\xc3\x9b\xe2\x82\x9d\xf0\x9f\x98\x80", "\xc3\x9b\xe2\x82\x9d\xf0\x9f\x98\x80" },
	{ "bidi", "a\xe2\x80\xae" "b\xe2\x81\xa6" "c", "a<U+202E>b<U+2066>c" },
	{ "bad UTF-8",
	  "\xc0\xaf|\xe0\x80|\xed\xa0\x80|\xf5|\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd|" },
	{ "a sequence behind a broken letter", "\xe2\x82\033[c\033[1m", "\xef\xbf\xbd\033[1m" },
	/* clang-format on */
};

static void test_neutral_cases(void)
{
	for (size_t i = 0; i < ARRAY_LEN(neutral_cases); i++) {
		struct neutral n = { 0 };
		scoped_buf b = BUF_INIT(1000);

		neutral_step(&n, sv_from(neutral_cases[i].in), &b);
		is_sv(buf_view(&b), sv_from(neutral_cases[i].out), neutral_cases[i].name);
	}
}

static void test_neutral_long(const char *head, char fill, size_t count, const char *tail,
			      const char *want, const char *name)
{
	struct neutral n = { 0 };
	scoped_buf in = BUF_INIT(4 << 20), out = BUF_INIT(4 << 20);

	buf_str(&in, head);
	buf_fill(&in, fill, count);
	buf_str(&in, tail);
	neutral_step(&n, buf_view(&in), &out);
	is_sv(buf_view(&out), sv_from(want), name);
}

/* Any cut gives the same, and what came out once comes out again unchanged. */
static void test_neutral_laws(void)
{
	static const char pool[] = "\033\033\033[]P;?0129mhJc\\\a\n\x9b\xc2\xe2\x80\xae\xf0\x9f ab";
	uint32_t x = 7;
	int same = 0, again = 0;
	const int rounds = 3000;

	for (int k = 0; k < rounds; k++) {
		struct neutral a = { 0 }, b = { 0 }, c = { 0 };
		scoped_buf in = BUF_INIT(200), whole = BUF_INIT(4000), cut = BUF_INIT(4000),
			   twice = BUF_INIT(16000);

		for (int i = 0; i < 120; i++) {
			x = x * 1664525U + 1013904223U;
			buf_ch(&in, pool[(x >> 16) % (sizeof(pool) - 1)]);
		}
		neutral_step(&a, buf_view(&in), &whole);
		for (size_t at = 0; at < in.n;) {
			x = x * 1664525U + 1013904223U;
			const size_t n = 1 + (x >> 16) % 7;

			neutral_step(&b, sv_sub(buf_view(&in), at, n), &cut);
			at += n;
		}
		neutral_step(&c, buf_view(&whole), &twice);
		same += sv_eq(buf_view(&whole), buf_view(&cut));
		again += sv_eq(buf_view(&whole), buf_view(&twice));
	}
	ok(same == rounds, "neutral: cuts do not matter (%d of %d)", same, rounds);
	ok(again == rounds, "neutral: twice is once (%d of %d)", again, rounds);
}

static void test_wrong_options(void)
{
	struct relay_options o = {
		.outer = { 0, 1, 2 }, .inner = { -1, -1, -1 }, .pty = -1, .on_pty = { true }
	};
	struct relay *r = NULL;
	struct writ_err err = { 0 };

	ok(relay_new(&o, &r, &err) == WRIT_E_BUG && !r, "a terminal without a master is refused");
}

/* Somebody else has the terminal; we have its bytes, tell its size, and may leave. */
static void test_link(void)
{
	struct relay_options o = { .on_pty = { true, true, true }, .inner = { -1, -1, -1 } };
	struct winsize size = { 0 };
	struct termios before, after;
	struct screen s, held;
	struct relay *r;
	struct writ_err err = { 0 };
	enum relay_event event = RELAY_NOTHING;
	struct pollfd p[RELAY_POLLS];
	char text[64] = "";
	int link[2];

	screen_open(&s);
	screen_open(&held);
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) == 0, "socketpair");
	must(tcgetattr(held.slave, &before) == 0, "tcgetattr");
	before.c_lflag &= ~(tcflag_t)ICANON;
	must(tcsetattr(held.slave, TCSANOW, &before) == 0, "tcsetattr");
	o.outer[0] = o.outer[1] = o.outer[2] = s.slave;
	o.pty = dup(held.master);
	o.link = link[0];
	o.joined = o.escape = true;
	must(relay_new(&o, &r, &err) == 0, "relay_new");
	ok(screen_is(&s, true), "link: raw while it runs");
	ok(ioctl(held.slave, TIOCGWINSZ, &size) == 0 && size.ws_row == 33,
	   "link: the size is told");
	ok(tcgetattr(held.slave, &after) == 0 && after.c_lflag == before.c_lflag,
	   "link: the modes of a terminal that is in use stay");
	must(write(s.master, "ab\035dc", 5) == 5 && write(link[1], "out", 3) == 3, "write");
	for (int i = 0; i < 100 && event != RELAY_DETACH; i++) {
		const size_t n = relay_poll(r, p);

		if (poll(p, n, 100) > 0)
			must(relay_step(r, p, n, &event, &err) == 0, "relay_step");
	}
	ok(event == RELAY_DETACH, "link: the escape is told");
	ok(read(link[1], text, sizeof(text)) == 2 && text[0] == 'a',
	   "link: keys before it are sent");
	must(relay_finish(r, NULL, NULL, &err) == 0, "relay_finish");
	relay_free(r);
	ok(read(s.master, text, sizeof(text)) == 3 && text[0] == 'o', "link: bytes are shown");
	ok(read(link[1], text, sizeof(text)) == 0, "link: it is closed at the end");
	ok(screen_is(&s, false), "link: the terminal is given back");
	close(link[1]);
	screen_close(&s);
	screen_close(&held);
}

int main(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	test_link();
	test_wrong_options();
	test_pipes();
	test_sockets();
	test_closed();
	test_full_disk();
	test_append();
	test_epipe();
	test_slow_reader();
	test_give_back_file();
	test_give_back_pipe();
	test_big();
	test_file_in_out();
	test_limit(1000000, "yes | head -c 10000000; exit 9", true, 1000000);
	test_limit(1000, "head -c 1000 /dev/zero; exit 9", false, 1000);
	test_limit(1000, "head -c 1001 /dev/zero; exit 9", true, 1000);
	test_terminal();
	test_job_control();
	test_stdout_file();
	test_stdin_pipe();
	test_pager();
	test_only_stdin();
	test_leaves_terminal();
	test_hangup();
	test_background();
	test_neutral_terminal();
	test_neutral_cases();
	test_neutral_long("\033[1", ';', 100, "mx", "x",
			  "a sequence longer than we hold is dropped");
	test_neutral_long("\033[", '1', 4096 + 3, "m", "111m", "an endless sequence ends");
	test_neutral_long("\033]0;", 'A', 5000, " seen", " seen",
			  "an endless title ends with a word");
	test_neutral_long("\033P", '~', 500000, "\033\\x", "x", "a large image is dropped whole");
	test_neutral_laws();
	return tap_done();
}
