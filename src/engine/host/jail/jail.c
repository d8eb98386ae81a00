#include "jail/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/packet.h"

#include "base/banned.h"

/* The bytes of writ-init, embedded in this binary for machines where writ-init is not installed. */
extern const unsigned char jail_init_program[];
extern const size_t jail_init_program_len;

const char *jail_step_name(enum jail_step step)
{
	static const char *const names[STEP_COUNT] = { [STEP_NONE] = "start",
#define NAME(id, name, only, needs, run, what, why) [STEP_##id] = (name),
						       JAIL_STEPS(NAME)
#undef NAME
	};

	return step < STEP_COUNT ? names[step] : "unknown";
}

/*
 * Opens the writ-init that is installed next to this binary. The installed file is preferred over
 * the embedded bytes, because an AppArmor profile can allow user namespaces for its path.
 */
static int open_installed(void)
{
	static const char *const tails[] = { "/../libexec/writ/writ-init", "/writ-init" };
	char path[PATH_MAX + 64];
	const ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
	char *slash;
	int fd = -1;

	if (n <= 0 || n >= PATH_MAX)
		return -1;
	path[n] = 0;
	slash = strrchr(path, '/');
	/*
	 * The running program may be in the bin directory, or in the directory of writ-init
	 * (libexec): try both.
	 */
	for (size_t i = 0; slash && fd < 0 && i < ARRAY_LEN(tails); i++) {
		memcpy(slash, tails[i], strlen(tails[i]) + 1);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	return fd;
}

/*
 * SECURITY: jail_start() runs an installed writ-init only if it is byte for byte the embedded
 * writ-init.
 */
static bool is_ours(int fd)
{
	char page[4096];
	size_t at = 0;
	ssize_t n;

	while ((n = pread(fd, page, sizeof(page), (off_t)at)) > 0) {
		if ((size_t)n > jail_init_program_len - at ||
		    memcmp(page, jail_init_program + at, (size_t)n) != 0)
			return false;
		at += (size_t)n;
	}
	return n == 0 && at == jail_init_program_len;
}

static int open_init(int *ret_fd, struct writ_err *err)
{
	scoped_fd fd = open_installed();
	int r;

	if (fd >= 0 && is_ours(fd)) {
		*ret_fd = fd_take(&fd);
		return 0;
	}
	fd_scope_close(&fd);
	fd = memfd_create("writ-init", MFD_CLOEXEC | 16u /* MFD_EXEC */);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("writ-init", MFD_CLOEXEC);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "memfd_create");
	r = fd_write_all(fd, (struct sv){ (const char *)jail_init_program, jail_init_program_len },
			 err);
	if (r == 0)
		*ret_fd = fd_take(&fd);
	return r;
}

/*
 * A test build can be told to leave descriptors open across the exec of writ-init, to prove that
 * the probes notice. An installed writ always marks them close-on-exec.
 */
#ifdef WRIT_PLANT
#define LEAKY(fail_at) ((fail_at) == (0x100 | STEP_CLOSE_FDS))
#else
#define LEAKY(fail_at) false
#endif

/*
 * Arguments of the cloned child. The parent fills in all members before clone(), because the child
 * must not allocate.
 */
struct launch {
	int init, session, keeper;
	unsigned fail_at;
	char *argv[4];
};

/*
 * Runs in the memory of the parent (CLONE_VM | CLONE_VFORK) and makes only a few system calls
 * before exec. Moves the session's and the keeper's socket to their fixed numbers and marks all
 * higher descriptors close-on-exec.
 */
__attribute__((no_sanitize("address"))) static int launch_child(void *arg)
{
	const struct launch *l = arg;
	static char *const env[] = { NULL };
	/*
	 * Duplicate all descriptors to numbers from 10 first: one descriptor may have the number
	 * that another descriptor needs.
	 */
	const int session = fcntl(l->session, F_DUPFD_CLOEXEC, 10);
	const int keeper = fcntl(l->keeper, F_DUPFD_CLOEXEC, 10);
	const int init = fcntl(l->init, F_DUPFD_CLOEXEC, 10);
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/*
	 * Give writ-init /dev/null as standard descriptors. A program that reads writ's output
	 * until end of file must not wait for writ-init.
	 */
	if (session >= 0 && keeper >= 0 && init >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 &&
	    dup2(null, 2) >= 0 && dup2(session, JAIL_FD_SESSION) >= 0 &&
	    dup2(keeper, JAIL_FD_KEEPER) >= 0 &&
	    (LEAKY(l->fail_at) ||
	     syscall(SYS_close_range, JAIL_FD_KEEPER + 1, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */) == 0))
		syscall(SYS_execveat, init, "", l->argv, env, AT_EMPTY_PATH);
	_exit(errno == 0 ? 1 : errno > 125 ? 125 : errno);
}

static int pair(int ret[2], struct writ_err *err)
{
	const int on = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "socketpair");
	if (setsockopt(ret[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0)
		return 0;
	close(ret[0]);
	close(ret[1]);
	return writ_fail(err, WRIT_E_SYS, errno, "SO_PASSCRED");
}

int jail_start(bool own_namespaces, unsigned fail_at, struct jail *ret, struct writ_err *err)
{
	_Alignas(16) char stack[16384];
	const bool waits = own_namespaces && geteuid() == 0;
	char number[16], name[] = "writ-init", tier[2] = { own_namespaces ? 'A' : 'B', 0 };
	scoped_fd init = -1;
	struct launch l = { .argv = { name, tier, fail_at ? number : NULL, NULL } };
	int session[2] = { -1, -1 }, keeper[2] = { -1, -1 };
	pid_t pid;
	int r = open_init(&init, err);

	if (r == 0)
		r = pair(session, err);
	if (r == 0)
		r = pair(keeper, err);
	if (r < 0)
		goto out;
	if (waits)
		tier[0] = 'J';
	snprintf(number, sizeof(number), "%u", fail_at);
	l.init = init;
	l.fail_at = fail_at;
	l.session = session[1];
	l.keeper = keeper[1];
	pid = clone(launch_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &l);
	if (pid < 0) {
		r = writ_fail(err, WRIT_E_SYS, errno, "start writ-init");
		goto out;
	}
	*ret = (struct jail){ .pid = pid,
			      .session = fd_take(&session[0]),
			      .keeper = own_namespaces ? fd_take(&keeper[0]) : -1,
			      .waits = waits };
out:
	for (int i = 0; i < 2; i++) {
		fd_scope_close(&session[i]);
		fd_scope_close(&keeper[i]);
	}
	return r;
}

void jail_join(struct jail *j, const int *dirs, size_t n, size_t unified)
{
	const struct jail_message m = { .type = JAIL_JOIN, .value = (int64_t)unified };
	struct writ_err none = { 0 };

	if (!j->waits)
		return;
	j->waits = false;
	/*
	 * A writ-init that waits must never wait forever. If the message cannot be sent, end of
	 * file makes writ-init exit.
	 */
	if (jail_send(j->keeper, &m, dirs, n, SV(""), &none) < 0)
		(void)shutdown(j->keeper, SHUT_WR);
}

void jail_kill(struct jail *j)
{
	if (j->pid > 0) {
		kill(j->pid, SIGKILL);
		while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	j->pid = 0;
}

void jail_close(struct jail *j)
{
	jail_kill(j);
	jail_leave(j);
}

void jail_leave(struct jail *j)
{
	fd_scope_close(&j->session);
	fd_scope_close(&j->keeper);
	*j = (struct jail)JAIL_INIT;
}

int jail_send(int socket, const struct jail_message *m, const int *fds, size_t fds_n,
	      struct sv text, struct writ_err *err)
{
	struct iovec iov[2] = { { (void *)(uintptr_t)m, sizeof(*m) },
				{ (void *)(uintptr_t)text.p, text.n } };

	if (packet_send_parts(socket, iov, text.n ? 2 : 1, fds, fds_n, err) < 0)
		return writ_fail(err, err->code, err->sys, "speak to writ-init");
	return 0;
}

struct control {
	int fds[JAIL_SOCKETS_MAX];
	size_t fds_n;
	pid_t pid;
};

static void take_control(struct msghdr *msg, struct control *ret)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		const size_t n = c->cmsg_len - CMSG_LEN(0);
		struct ucred cred;

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS && n == sizeof(cred)) {
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			ret->pid = cred.pid;
		}
		for (size_t at = 0; c->cmsg_type == SCM_RIGHTS && at + sizeof(int) <= n &&
				    ret->fds_n < JAIL_SOCKETS_MAX;
		     at += sizeof(int))
			memcpy(&ret->fds[ret->fds_n++], CMSG_DATA(c) + at, sizeof(int));
	}
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

int jail_receive_many(int socket, struct jail_message *ret, int *ret_fds, size_t *ret_n,
		      pid_t *ret_pid, struct jail_probed *ret_probed, struct writ_err *err)
{
	struct jail_message m;
	struct jail_probed probed;
	struct iovec iov[2] = { { &m, sizeof(m) }, { &probed, sizeof(probed) } };
	size_t want;
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(JAIL_SOCKETS_MAX * sizeof(int)) +
			  CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct msghdr msg = { .msg_iov = iov,
			      .msg_iovlen = 2,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct control got = { .fds_n = 0 };
	int reset = 0;
	ssize_t n;

	do {
		n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
		/*
		 * ECONNRESET: the peer exited without reading all messages from the supervisor.
		 * Messages that the peer sent earlier are still queued, so retry once.
		 */
		reset += n < 0 && errno == ECONNRESET;
	} while (n < 0 && (errno == EINTR || (errno == ECONNRESET && reset == 1)));
	if (n < 0 && errno == ECONNRESET)
		n = 0;
	if (n < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "hear from writ-init");
	if (n > 0)
		take_control(&msg, &got);
	want = (size_t)n >= sizeof(m) && m.type == JAIL_PROBED && ret_probed
		       ? sizeof(m) + sizeof(probed)
		       : sizeof(m);
	if (n > 0 && (size_t)n != want) {
		close_all(got.fds, got.fds_n);
		return writ_fail(err, WRIT_E_BUG, 0, "a message of %zd bytes from writ-init", n);
	}
	if (n == 0)
		return 0;
	/* SECURITY: the sender may have sent text without a NUL. Terminate the text. */
	m.err.what[sizeof(m.err.what) - 1] = 0;
	*ret = m;
	if (want > sizeof(m))
		*ret_probed = probed;
	memcpy(ret_fds, got.fds, got.fds_n * sizeof(int));
	*ret_n = got.fds_n;
	*ret_pid = got.pid;
	return 1;
}

int jail_receive(int socket, struct jail_message *ret, int *ret_fd, pid_t *ret_pid,
		 struct writ_err *err)
{
	int fds[JAIL_SOCKETS_MAX];
	size_t n = 0;
	const int r = jail_receive_many(socket, ret, fds, &n, ret_pid, NULL, err);

	if (r > 0) {
		*ret_fd = n ? fds[0] : -1;
		close_all(fds + 1, n > 1 ? n - 1 : 0);
	}
	return r;
}
