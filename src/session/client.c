#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

enum { ANSWER_MAX = 8192 };

static int run_dir(struct sv state, struct arena *a, struct writ_err *err)
{
	const char *path = arena_fmt(a, SV_FMT "/run", SV_ARG(state));
	const int fd = path ? open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC) : -1;

	if (!path)
		return writ_nomem(err);
	return fd < 0 ? writ_fail(err, WRIT_E_SYS, errno, "no session is running") : fd;
}

/* A connected socket to the session @id, whose name is whole. */
static int connect_to(int run, const char *id, struct writ_err *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	scoped_fd dir = openat(run, id, O_DIRECTORY | O_PATH | O_CLOEXEC);
	scoped_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (dir < 0 || fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "session %s", id);
	snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/control", dir);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "session %s does not answer", id);
	return take_fd(&fd);
}

static int ask(int run, const char *id, struct sv request, struct buf *ret, struct writ_err *err)
{
	char text[ANSWER_MAX];
	scoped_fd fd = connect_to(run, id, err);
	ssize_t n;

	if (fd < 0)
		return fd;
	if (send(fd, request.p, request.n, MSG_NOSIGNAL) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "session %s", id);
	do {
		n = recv(fd, text, sizeof(text), 0);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return writ_fail(err, WRIT_E_SYS, n < 0 ? errno : 0, "session %s ended", id);
	if (n >= 6 && memcmp(text, "error ", 6) == 0)
		return writ_fail(err, WRIT_E_DENIED, 0, "%.*s", (int)n - 6, text + 6);
	buf_add(ret, text, (size_t)n);
	return buf_check(ret, err);
}

/* The whole name of the one session that begins with @id; the only one if it is empty. */
static int find(int run, struct sv id, char ret[SESSION_ID + 1], struct writ_err *err)
{
	const int copy = fcntl(run, F_DUPFD_CLOEXEC, 3);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;
	size_t found = 0;

	if (!d)
		return writ_fail(err, WRIT_E_SYS, errno, "list the sessions");
	rewinddir(d);
	while ((e = readdir(d))) {
		const struct sv name = sv_from(e->d_name);

		if (name.n != SESSION_ID || !sv_starts(name, id))
			continue;
		memcpy(ret, name.p, SESSION_ID + 1);
		found++;
	}
	closedir(d);
	if (found == 1)
		return 0;
	return writ_fail(err, WRIT_E_SYNTAX, 0,
			 found ? "more than one session begins with \"" SV_FMT "\"; see writ ps"
			       : "no session \"" SV_FMT "\" is running; see writ ps",
			 SV_ARG(id));
}

int session_ask(struct sv state, struct sv id, struct sv request, struct buf *ret_answer,
		struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_fd run = run_dir(state, &a, err);
	char name[SESSION_ID + 1];
	int r = run < 0 ? run : find(run, id, name, err);

	return r < 0 ? r : ask(run, name, request, ret_answer, err);
}

/* --- one more command in a running session --- */

struct exec {
	int socket;
	struct front front;
	struct relay *relay;
	bool ended;
	int exit;
	struct writ_err failed;
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

static int send_exec(struct exec *e, char *const *argv, char *const *envp, struct sv cwd,
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
		if (e->front.given & 1u << i)
			fds[fds_n++] = e->front.inside[i];
	snprintf(text, sizeof(text), "exec %zu %zu %u %u %u %u %u", n[0], n[1], e->front.pty,
		 e->front.given, (unsigned)mask, e->front.rows, e->front.cols);
	r = packet_send(e->socket, sv_from(text), fds, fds_n, err);
	front_sent(&e->front);
	return r;
}

/* What the supervisor says about our command. */
static int hear(struct exec *e, struct writ_err *err)
{
	char text[ANSWER_MAX];
	int fds[PACKET_FDS] = { -1, -1, -1, -1 };
	size_t n, fds_n;
	struct sv rest, verb;
	uint64_t code;
	int r = packet_receive(e->socket, text, sizeof(text), &n, fds, &fds_n, err);

	if (r == 0)
		return writ_fail(err, WRIT_E_SYS, 0, "the session ended");
	if (r < 0)
		return r;
	rest = (struct sv){ text, n };
	verb = sv_cut(&rest, ' ');
	r = 0;
	if (sv_is(verb, "tty") && fds_n == 1) {
		e->front.relay.pty = fds[0];
		fds_n = 0;
		r = relay_new(&e->front.relay, &e->relay, err);
	} else if (sv_is(verb, "exit") && sv_to_u64(rest, 255, &code)) {
		e->ended = true;
		e->exit = (int)code;
	} else if (sv_is(verb, "failed")) {
		(void)!writ_fail(&e->failed, WRIT_E_SYS, 0, SV_FMT, SV_ARG(rest));
	} else {
		r = writ_fail(err, WRIT_E_DENIED, 0, SV_FMT, SV_ARG(rest));
	}
	for (size_t i = 0; i < fds_n; i++)
		close(fds[i]);
	return r;
}

static void on_signal(struct exec *e, int signals)
{
	struct signalfd_siginfo i;
	struct writ_err err = { 0 };
	char text[32];

	if (read(signals, &i, sizeof(i)) != (ssize_t)sizeof(i))
		return;
	if (i.ssi_signo == SIGWINCH && e->relay) {
		relay_resize(e->relay);
		return;
	}
	snprintf(text, sizeof(text), "signal %u", i.ssi_signo);
	(void)!packet_send(e->socket, sv_from(text), NULL, 0, &err);
}

static int relay_until_end(struct exec *e, int signals, struct writ_err *err)
{
	int r = 0;

	while (r >= 0 && !e->ended) {
		struct pollfd p[2 + RELAY_POLLS] = { { e->socket, POLLIN, 0 },
						     { signals, POLLIN, 0 } };
		const size_t n = e->relay ? relay_poll(e->relay, p + 2) : 0;
		enum relay_event event;

		if (poll(p, (nfds_t)(2 + n), -1) < 0)
			continue;
		if (n)
			r = relay_step(e->relay, p + 2, n, &event, err);
		if (p[1].revents)
			on_signal(e, signals);
		if (r >= 0 && p[0].revents)
			r = hear(e, err);
	}
	if (e->relay && r >= 0)
		r = relay_finish(e->relay, err);
	return r;
}

int session_exec(struct sv state, struct sv id, char *const *argv, char *const *envp, struct sv cwd,
		 int *ret_exit, struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_fd run = run_dir(state, &a, err);
	struct exec e = { .socket = -1, .front = FRONT_INIT };
	char name[SESSION_ID + 1];
	sigset_t set;
	scoped_fd signals = -1;
	int r = run < 0 ? run : find(run, id, name, err);

	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (r == 0)
		r = e.socket = connect_to(run, name, err);
	if (r >= 0)
		r = front_open(&e.front, NULL, false, err);
	if (r == 0)
		r = send_exec(&e, argv, envp, cwd, err);
	if (r == 0 && !e.front.pty)
		r = relay_new(&e.front.relay, &e.relay, err);
	if (r == 0)
		r = relay_until_end(&e, signals, err);
	relay_free(e.relay);
	scope_close(&e.socket);
	if (r >= 0 && e.failed.what[0])
		*err = e.failed;
	*ret_exit = e.exit;
	return r < 0 ? r : 0;
}

/* --- all sessions --- */

/* "ok PID SECONDS STATE DENIALS LENGTH WORKSPACE COMMAND" */
static bool parse_status(struct sv text, struct session_info *ret)
{
	uint64_t pid, age, denials, n;
	struct sv word;

	(void)sv_cut(&text, ' ');
	if (!sv_to_u64(sv_cut(&text, ' '), INT32_MAX, &pid) ||
	    !sv_to_u64(sv_cut(&text, ' '), UINT32_MAX, &age))
		return false;
	word = sv_cut(&text, ' ');
	if (word.n >= sizeof(ret->state) || !sv_to_u64(sv_cut(&text, ' '), UINT32_MAX, &denials) ||
	    !sv_to_u64(sv_cut(&text, ' '), text.n, &n) || n >= sizeof(ret->workspace) || n > text.n)
		return false;
	ret->pid = (int64_t)pid;
	ret->started = age;
	ret->denials = (uint32_t)denials;
	memcpy(ret->state, word.p, word.n);
	memcpy(ret->workspace, text.p, n);
	text = sv_sub(sv_skip(text, n), 0, sizeof(ret->command) - 1);
	memcpy(ret->command, text.p, text.n);
	return true;
}

int session_list(struct sv state, struct arena *a,
		 bool (*each)(void *, const struct session_info *), void *ctx, struct writ_err *err)
{
	const char *path = arena_fmt(a, SV_FMT "/run", SV_ARG(state));
	scoped_fd run = path ? open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC) : -1;
	DIR *d = path ? opendir(path) : NULL;
	struct dirent *e;
	bool more = true;

	if (!path)
		return writ_nomem(err);
	if (!d || run < 0) {
		if (d)
			closedir(d);
		return errno == ENOENT ? 0 : writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	}
	while (more && (e = readdir(d))) {
		struct session_info info = { 0 };
		struct writ_err gone = { 0 };
		struct buf b = BUF_INIT(ANSWER_MAX);

		if (strlen(e->d_name) != SESSION_ID)
			continue;
		memcpy(info.id, e->d_name, SESSION_ID);
		/* One that died hard has a directory and nobody who answers. */
		if (ask(run, info.id, SV("status"), &b, &gone) == 0 &&
		    parse_status(buf_view(&b), &info))
			more = each(ctx, &info);
		buf_clear(&b);
	}
	closedir(d);
	return 0;
}
