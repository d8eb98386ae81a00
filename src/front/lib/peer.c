#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "lib/lib_priv.h"

#include "base/banned.h"

/*
 * Environment variables that writ needs to find directories and the platform. The process of writ
 * receives no other variable.
 */
static const char *const passed[] = { "PATH", "TMPDIR", "USER", "XDG_RUNTIME_DIR",
				      "KUBERNETES_SERVICE_HOST" };

enum { SERVED_FD = 3 }; /* descriptor at which the verb serve-fd expects its socket */

/* Arguments of the child process, prepared before clone(). */
struct launch {
	int program, null, socket;
	char *argv[3];
	char *env[ARRAY_LEN(passed) + 1];
};

/*
 * Runs in the child, which shares the library's memory until exec, while the calling thread is
 * suspended. Other threads of the program continue, so the child only makes system calls and
 * changes no shared data. This function never returns: a sanitizer that poisons its stack frame
 * would leave the poison on the caller's stack.
 */
__attribute__((no_sanitize("address"))) static int launch_child(void *arg)
{
	const struct launch *l = arg;
	/*
	 * Duplicate the descriptors to numbers from 10 up first: dup2() to 0..3 could overwrite one
	 * of the originals.
	 */
	const int null = fcntl(l->null, F_DUPFD_CLOEXEC, 10);
	const int socket = fcntl(l->socket, F_DUPFD_CLOEXEC, 10);
	const int program = fcntl(l->program, F_DUPFD_CLOEXEC, 10);
	sigset_t none;

	sigemptyset(&none);
	if (null >= 0 && socket >= 0 && program >= 0 && dup2(null, 0) == 0 && dup2(null, 1) == 1 &&
	    dup2(null, 2) == 2 && dup2(socket, SERVED_FD) >= 0 &&
	    syscall(SYS_close_range, SERVED_FD + 1, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */) == 0) {
		/*
		 * Reset all signal handlers before unblocking signals: a handler of the program
		 * must not run in this child.
		 */
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
	/*
	 * The child's stack. It may be on the parent's stack, because CLONE_VFORK suspends this
	 * thread until the child's exec.
	 */
	_Alignas(16) char stack[16384];
	char name[] = "writ", verb[] = "serve-fd";
	sigset_t all, old;
	size_t n = 0;
	pid_t pid;

	l->argv[0] = name;
	l->argv[1] = verb;
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

int lib_peer_open(struct writ *w, struct lib_peer *ret, struct writ_err *err)
{
	struct launch l = { .program = w->program, .null = -1, .socket = -1 };
	scoped_fd null = open("/dev/null", O_RDWR | O_CLOEXEC);
	scoped_fd ours = -1, theirs = -1;
	struct lib_peer p = { 0 };
	int pair[2];

	if (w->program < 0) {
		*err = w->no_program;
		return err->code;
	}
	if (null < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "start writ");
	ours = pair[0];
	theirs = pair[1];
	l.null = null;
	l.socket = theirs;
	p.pid = launch(w, &l);
	if (p.pid < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "start writ");
	p.conn = rpc_new(fd_take(&ours));
	if (!p.conn) {
		lib_peer_close(&p);
		return writ_nomem(err);
	}
	*ret = p;
	return 0;
}

void lib_peer_close(struct lib_peer *p)
{
	rpc_free(p->conn);
	/* The program may have reaped the child itself; waitpid() then fails, and the loop ends. */
	if (p->pid > 0)
		while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
			;
	*p = (struct lib_peer){ 0 };
}

/* --- facts, once per handle --- */

enum { FACTS_MS = 60000 };

static int ask_facts(struct writ *w, struct host_facts *ret, struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(4 << 20);
	scoped_json *answer = NULL;
	struct lib_peer p = { 0 };
	struct sv text;
	int r = lib_peer_open(w, &p, err);

	if (r == 0)
		r = rpc_call(p.conn, "host.facts",
			     json_pack("{s:o}", "state", rpc_bytes(w->where.state)), FACTS_MS,
			     &answer, err);
	lib_peer_close(&p);
	if (r < 0)
		return r;
	if (!rpc_get_bytes(&a, json_object_get(answer, "facts"), &text))
		return writ_fail(err, WRIT_E_BUG, 0, "a strange answer");
	return facts_parse(text, ret, err);
}

int lib_facts(struct writ *w, struct host_facts *ret, struct writ_err *err)
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
