#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/packet.h"
#include "lib/lib_priv.h"

#include "base/banned.h"

/* Of our environment the supervisor gets what finds places on this machine. */
static const char *const passed[] = { "PATH", "TMPDIR", "USER", "XDG_RUNTIME_DIR",
				      "KUBERNETES_SERVICE_HOST" };

/* Everything the child needs, made before there is a child. */
struct launch {
	int program, null, socket, life;
	char *argv[2];
	char *env[ARRAY_LEN(passed) + 1];
};

/*
 * Runs in our memory while this thread stands still: a handful of system calls and
 * exec. Other threads go on, so nothing shared is touched. It never returns, so a
 * sanitizer that marks its frame would leave the marks on our stack.
 */
__attribute__((no_sanitize("address"))) static int launch_child(void *arg)
{
	const struct launch *l = arg;
	/* Out of the way first: each may stand on another's number. */
	const int null = fcntl(l->null, F_DUPFD_CLOEXEC, 10);
	const int socket = fcntl(l->socket, F_DUPFD_CLOEXEC, 10);
	const int life = fcntl(l->life, F_DUPFD_CLOEXEC, 10);
	const int program = fcntl(l->program, F_DUPFD_CLOEXEC, 10);
	sigset_t none;

	sigemptyset(&none);
	if (null >= 0 && socket >= 0 && life >= 0 && program >= 0 && dup2(null, 0) == 0 &&
	    dup2(null, 1) == 1 && dup2(null, 2) == 2 && dup2(socket, SUPER_SOCKET) >= 0 &&
	    dup2(life, SUPER_LIFE) >= 0 &&
	    syscall(SYS_close_range, SUPER_LIFE + 1, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */) == 0) {
		/* A handler of ours must not run here: it goes with the exec, and so do they. */
		for (int i = 1; i < NSIG; i++)
			if (i != SIGKILL && i != SIGSTOP)
				(void)signal(i, SIG_DFL);
		sigprocmask(SIG_SETMASK, &none, NULL);
		syscall(SYS_execveat, program, "", l->argv, l->env, AT_EMPTY_PATH);
	}
	_exit(125);
}

static pid_t launch(struct writ *w, struct launch *l)
{
	/* On the stack: the child's own, while we wait for its exec. */
	_Alignas(16) char stack[16384];
	char name[] = "writ-supervise";
	sigset_t all, old;
	size_t n = 0;
	pid_t pid;

	l->argv[0] = name;
	for (char **e = w->environ; *e; e++) {
		struct sv rest = sv_from(*e);
		const struct sv key = sv_cut(&rest, '=');

		for (size_t i = 0; i < ARRAY_LEN(passed) && n < ARRAY_LEN(passed); i++)
			if (sv_is(key, passed[i]))
				l->env[n++] = *e;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = clone(launch_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return pid;
}

int super_open(struct writ *w, struct super *ret, struct writ_err *err)
{
	struct launch l = { .program = w->program, .null = -1, .socket = -1, .life = -1 };
	struct super s = SUPER_INIT;
	int pair[2] = { -1, -1 }, life[2] = { -1, -1 };
	int r = 0;

	l.null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (l.null < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
	    pipe2(life, O_CLOEXEC) < 0) {
		r = writ_fail(err, WRIT_E_SYS, errno, "start a supervisor");
	} else {
		l.socket = pair[1];
		l.life = life[0];
		s.pid = launch(w, &l);
		if (s.pid < 0)
			r = writ_fail(err, WRIT_E_SYS, errno, "start a supervisor");
	}
	if (r == 0) {
		s.socket = take_fd(&pair[0]);
		s.life = take_fd(&life[1]);
		*ret = s;
	}
	scope_close(&l.null);
	for (int i = 0; i < 2; i++) {
		scope_close(&pair[i]);
		scope_close(&life[i]);
	}
	return r;
}

void super_close(struct super *s)
{
	scope_close(&s->life);
	scope_close(&s->socket);
	/* Whoever else waits for all children may have been faster. */
	if (s->pid > 0)
		while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
			;
	*s = (struct super)SUPER_INIT;
}

/* The bytes go in a file of their own: a packet would be too small for some. */
static int write_bytes(struct sv bytes, int *ret, struct writ_err *err)
{
	scoped_fd fd = memfd_create("writ-request", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "memfd_create");
	r = fd_write_all(fd, bytes, err);
	if (r == 0)
		*ret = take_fd(&fd);
	return r;
}

int super_ask(const struct super *s, enum super_ask what, struct sv bytes, const int *fds,
	      size_t fds_n, struct writ_err *err)
{
	const char byte = (char)what;
	struct writ_err why = { 0 };
	scoped_fd file = -1;
	int all[PACKET_FDS];
	int r = fds_n < PACKET_FDS ? write_bytes(bytes, &file, err)
				   : writ_fail(err, WRIT_E_BUG, 0, "too many descriptors");

	if (r < 0)
		return r;
	all[0] = file;
	if (fds_n)
		memcpy(all + 1, fds, fds_n * sizeof(int));
	r = packet_send(s->socket, (struct sv){ &byte, 1 }, all, fds_n + 1, &why);
	/* One that has ended already said why: that is heard next. */
	if (r == 0 || why.sys == EPIPE || why.sys == ECONNRESET)
		return 0;
	*err = why;
	return r;
}

static int wait_for(int fd, int timeout_ms, struct writ_err *err)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	const int64_t end = timeout_ms < 0 ? INT64_MAX : monotonic_ms() + timeout_ms;
	int r;

	do
		r = poll(&p, 1, ms_until(end));
	while (r < 0 && errno == EINTR);
	return r < 0 ? writ_fail(err, WRIT_E_SYS, errno, "wait for the supervisor") : r;
}

int super_hear(const struct super *s, int timeout_ms, void *ret_bytes, size_t room, size_t *ret_n,
	       int *ret_fd, struct writ_err *err)
{
	int fds[PACKET_FDS];
	size_t n, fds_n;
	int r = wait_for(s->socket, timeout_ms, err);

	if (r <= 0)
		return r;
	r = packet_receive(s->socket, ret_bytes, room, &n, fds, &fds_n, err);
	if (r <= 0)
		return r < 0 ? r
			     : writ_fail(err, WRIT_E_SYS, 0, "the supervisor ended without a word");
	for (size_t i = 1; i < fds_n; i++)
		scope_close(&fds[i]);
	if (ret_fd)
		*ret_fd = fds[0];
	else
		scope_close(&fds[0]);
	*ret_n = n;
	return 1;
}

/* --- facts, once per handle --- */

static int ask_facts(struct writ *w, struct host_facts *ret, struct writ_err *err)
{
	struct lib_input in = { .find.where = w->where };
	struct buf b = BUF_INIT(1 << 20);
	struct super s = SUPER_INIT;
	struct super_answer answer = { 0 };
	scoped_fd fd = -1;
	size_t n = 0;
	int r = super_open(w, &s, err);

	if (r == 0)
		r = lib_input_encode(&in, &b, err);
	if (r == 0)
		r = super_ask(&s, SUPER_FACTS, buf_view(&b), NULL, 0, err);
	buf_clear(&b);
	if (r == 0)
		r = super_hear(&s, 60000, &answer, sizeof(answer), &n, &fd, err);
	if (r == 0)
		r = writ_fail(err, WRIT_E_SYS, ETIMEDOUT, "look at this machine");
	if (r > 0 && (n != sizeof(answer) || fd < 0 || answer.err.code)) {
		*err = answer.err;
		r = answer.err.code ? answer.err.code
				    : writ_fail(err, WRIT_E_BUG, 0, "a strange answer");
	}
	if (r > 0)
		r = lseek(fd, 0, SEEK_SET) < 0 ? writ_fail(err, WRIT_E_SYS, errno, "read facts")
					       : fd_read_all(fd, &b, err);
	if (r == 0)
		r = facts_parse(buf_view(&b), ret, err);
	buf_clear(&b);
	super_close(&s);
	return r;
}

int super_facts(struct writ *w, struct host_facts *ret, struct writ_err *err)
{
	int r = 0;

	pthread_mutex_lock(&w->lock);
	if (!w->has_facts)
		r = ask_facts(w, &w->facts, err);
	w->has_facts = w->has_facts || r == 0;
	if (r == 0)
		*ret = w->facts;
	pthread_mutex_unlock(&w->lock);
	return r;
}
