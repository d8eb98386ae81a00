#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "confine/confine.h"
#include "gitnet/git_priv.h"

#include "base/banned.h"

enum { ARGS_MAX = UPDATES_MAX + 40, HOOK_FD = 5 };
enum { FILE_MAX_MB = 4096 };

/* --- git with the operator's rights --- */

/* Tests whether the agent may be able to create a program in directory @dir. */
static bool is_writable(struct helper *h, const char *dir)
{
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct writ_err err = { 0 };
	struct cap req;

	if (sv_below(sv_from(dir), h->opt->workspace) || sv_below(sv_from(dir), h->opt->state))
		return true;
	buf_fmt(&b, "fs.write:" SV_FMT ":", SV_ARG(h->opt->realm));
	if (cap_put_path(&b, sv_from(dir), &err) < 0)
		return true;
	buf_str(&b, "/ssh");
	return b.failed || cap_parse(h->a, CAP_REQUEST, buf_view(&b), &req, &err) < 0 ||
	       cap_set_decide(h->opt->set, &req).answer != CAP_DENY;
}

/*
 * Filters PATH for the operator's git. SECURITY: git searches PATH for ssh and credential helpers.
 * With a relative entry, or a directory that the agent can write, git would run a program of the
 * agent with the operator's rights.
 */
static const char *filter_path(struct helper *h, struct sv path)
{
	scoped_buf b = BUF_INIT(64 << 10);

	buf_str(&b, "PATH=");
	while (path.n) {
		const struct sv dir = sv_cut(&path, ':');
		const char *text = arena_str(h->a, dir);
		char real[PATH_MAX];

		if (text && text[0] == '/' && realpath(text, real) && !is_writable(h, real))
			buf_fmt(&b, "%s%s", b.n > 5 ? ":" : "", text);
	}
	return b.failed || b.n == 5 ? "PATH=/usr/local/bin:/usr/bin:/bin"
				    : arena_str(h->a, buf_view(&b));
}

static const char *find_git(struct helper *h, struct sv path)
{
	while (path.n) {
		const struct sv dir = sv_cut(&path, ':');
		const char *file = arena_fmt(h->a, SV_FMT "/git", SV_ARG(dir));
		char real[PATH_MAX];

		if (!file || access(file, X_OK) < 0 || !realpath(file, real))
			continue;
		*strrchr(real, '/') = 0;
		h->git_dir = arena_str(h->a, sv_from(real));
		return is_writable(h, real) ? NULL : file;
	}
	return NULL;
}

/*
 * Tests whether the operator's git gets the environment variable @name. Of git's own variables,
 * keeps those about reaching servers, and drops those about the repository (GIT_DIR and others).
 * Keeps all other variables except LANGUAGE, and PATH and LC_ALL, which make_env() sets.
 */
static bool is_kept(struct sv name)
{
	static const char *const kept[] = {
		"GIT_SSH",     "GIT_SSH_COMMAND",      "GIT_SSH_VARIANT",
		"GIT_ASKPASS", "GIT_PROXY_SSL_CAINFO", NULL
	};

	if (!sv_starts(name, SV("GIT_")))
		return !sv_is(name, "LC_ALL") && !sv_is(name, "LANGUAGE") && !sv_is(name, "PATH");
	for (size_t i = 0; kept[i]; i++)
		if (sv_is(name, kept[i]))
			return true;
	return sv_starts(name, SV("GIT_SSL_")) || sv_starts(name, SV("GIT_HTTP_")) ||
	       (sv_starts(name, SV("GIT_CONFIG_")) && !sv_is(name, "GIT_CONFIG_PARAMETERS"));
}

static int make_env(struct helper *h, const char *path, struct writ_err *err)
{
	static char fixed[][40] = { "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=ssh:https",
				    "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C" };
	size_t n = 0, all = 0;

	while (h->opt->environ[all])
		all++;
	/* three more entries: PATH, run.more_env and the terminating NULL */
	h->env = arena_array(h->a, char *, all + ARRAY_LEN(fixed) + 3);
	if (!h->env)
		return writ_nomem(err);
	for (size_t i = 0; i < all; i++) {
		struct sv rest = sv_from(h->opt->environ[i]);

		if (is_kept(sv_cut(&rest, '=')))
			h->env[n++] = h->opt->environ[i];
	}
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		h->env[n++] = fixed[i];
	h->env[n] = (char *)(uintptr_t)path;
	return 0;
}

int gitnet_run_prepare(struct helper *h, struct writ_err *err)
{
	struct sv path = SV("");
	const char *filtered;

	for (char *const *e = h->opt->environ; *e; e++)
		if (sv_starts(sv_from(*e), SV("PATH=")))
			path = sv_skip(sv_from(*e), 5);
	filtered = filter_path(h, path);
	if (!filtered)
		return writ_nomem(err);
	h->git = find_git(h, sv_skip(sv_from(filtered), 5));
	if (!h->git)
		return writ_fail(err, WRIT_E_SYS, ENOENT, "git");
	return make_env(h, filtered, err);
}

static void fill_args(const struct helper *h, const char *const *from, char *to[ARGS_MAX])
{
	size_t n = 0;

	to[n++] = (char *)(uintptr_t)h->git;
	while (*from && n < ARGS_MAX - 1)
		to[n++] = (char *)(uintptr_t)*from++;
	to[n] = NULL;
}

/*
 * Makes @in, @out and @said the descriptors 0 to 2 of a child process, and has the kernel kill the
 * process when its parent dies. Returns false on failure, or if the parent has died already.
 */
static bool set_standard_fds(int in, int out, int said, pid_t parent)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	in = fcntl(in, F_DUPFD_CLOEXEC, 16);
	out = fcntl(out, F_DUPFD_CLOEXEC, 16);
	said = fcntl(said, F_DUPFD_CLOEXEC, 16);
	return getppid() == parent && dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(said, 2) == 2;
}

_Noreturn static void operator_child(const struct helper *h, const struct run *r, int out, int said,
				     pid_t parent)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char *argv[ARGS_MAX];
	size_t n = 0;

	fill_args(h, r->argv, argv);
	while (h->env[n])
		n++;
	h->env[n] = (char *)(uintptr_t)r->more_env;
	if (null >= 0 &&
	    set_standard_fds(null, out < 0 ? null : out, said < 0 ? null : said, parent) &&
	    chdir("/") == 0 && close_range(3, ~0u, 0) == 0)
		execve(h->git, argv, h->env);
	_exit(127);
}

int gitnet_run_wait(pid_t pid)
{
	int status;
	pid_t got;

	do {
		got = waitpid(pid, &status, 0);
	} while (got < 0 && errno == EINTR);
	return got == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Reads git's standard output and error until both pipes close. Returns false on timeout. */
static bool drain(int fds[2], struct buf *to[2], int64_t end)
{
	char bytes[4096];

	while (fds[0] >= 0 || fds[1] >= 0) {
		struct pollfd p[2] = { { fds[0], POLLIN, 0 }, { fds[1], POLLIN, 0 } };
		const int64_t left = end - clock_monotonic_ms();

		if (left <= 0 ||
		    (poll(p, 2, left > INT_MAX ? INT_MAX : (int)left) < 0 && errno != EINTR))
			return false;
		for (int i = 0; i < 2; i++) {
			const ssize_t n = p[i].revents ? read(fds[i], bytes, sizeof(bytes)) : -2;

			if (n > 0 && to[i])
				buf_add(to[i], bytes, (size_t)n);
			if (n == 0 || n == -1) {
				close(fds[i]);
				fds[i] = -1;
			}
		}
	}
	return true;
}

int gitnet_run_git(const struct helper *h, const struct run *r)
{
	const int64_t end = clock_monotonic_ms() + r->timeout_ms;
	const pid_t parent = getpid();
	struct buf *to[2] = { r->out, r->said };
	int a[2] = { -1, -1 }, b[2] = { -1, -1 };
	bool intime = false;
	pid_t pid = -1;
	int status;

	if (pipe2(a, O_CLOEXEC) == 0 && pipe2(b, O_CLOEXEC) == 0)
		pid = fork();
	if (pid == 0) {
		(void)setpgid(0, 0);
		operator_child(h, r, a[1], b[1], parent);
	}
	fd_scope_close(&a[1]);
	fd_scope_close(&b[1]);
	if (pid > 0) {
		int fds[2] = { a[0], b[0] };

		(void)setpgid(pid, pid);
		intime = drain(fds, to, end);
		a[0] = fds[0];
		b[0] = fds[1];
	}
	fd_scope_close(&a[0]);
	fd_scope_close(&b[0]);
	if (pid <= 0)
		return -1;
	if (!intime)
		(void)kill(-pid, SIGKILL);
	status = gitnet_run_wait(pid);
	return intime ? status : -1;
}

/* --- git that parses bytes of the agent --- */

_Noreturn static void confined_child(const struct helper *h, const struct confined *c, pid_t parent)
{
	static char home[] = "HOME=/nonexistent", nosys[] = "GIT_CONFIG_NOSYSTEM=1",
		    global[] = "GIT_CONFIG_GLOBAL=/dev/null", lang[] = "LC_ALL=C",
		    path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
	char *env[] = { home, nosys, global, lang, path, (char *)(uintptr_t)c->protocol, NULL };
	const struct confine_tree trees[] = {
		{ "/usr", CONFINE_RUN },	{ "/lib", CONFINE_RUN },
		{ "/lib64", CONFINE_RUN },	{ "/bin", CONFINE_RUN },
		{ "/nix/store", CONFINE_RUN },	{ "/etc/ld.so.cache", CONFINE_READ },
		{ "/dev/null", CONFINE_WRITE }, { "/dev/urandom", CONFINE_READ },
		{ h->git_dir, CONFINE_RUN },	{ h->hooks, CONFINE_RUN },
		{ c->reads, CONFINE_READ },	{ c->writes, CONFINE_WRITE },
	};
	const struct rlimit files = { (rlim_t)FILE_MAX_MB << 20, (rlim_t)FILE_MAX_MB << 20 };
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int hook = c->hook < 0 ? null : fcntl(c->hook, F_DUPFD_CLOEXEC, 16);
	struct writ_err err = { 0 };
	char *argv[ARGS_MAX];

	fill_args(h, c->argv, argv);
	if (null < 0 || !set_standard_fds(c->socket, c->socket, null, parent))
		_exit(126);
	if (dup2(hook, HOOK_FD) < 0 || close_range(HOOK_FD + 1, ~0u, 0) < 0 ||
	    close_range(3, HOOK_FD - 1, 0) < 0 || chdir("/") < 0 ||
	    setrlimit(RLIMIT_FSIZE, &files) < 0)
		_exit(126);
	/*
	 * SECURITY: confine_command() fails where Landlock is missing; the request is then not
	 * served at all.
	 */
	if (confine_command(trees, ARRAY_LEN(trees), &err) < 0)
		_exit(126);
	execve(h->git, argv, env);
	_exit(127);
}

pid_t gitnet_run_confined(const struct helper *h, const struct confined *c)
{
	const pid_t parent = getpid();
	const pid_t pid = fork();

	if (pid == 0)
		confined_child(h, c, parent);
	return pid;
}
