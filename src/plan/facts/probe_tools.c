#include "facts/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "facts/probe_priv.h"
#include "base/clock.h"

#include "base/banned.h"

enum { OUTPUT_MAX = 1024, TOOLS_MS = 2000, RANGE_CLOEXEC = 4 };

#if defined(__aarch64__)
#define QEMU_NAME "qemu-system-aarch64"
#else
#define QEMU_NAME "qemu-system-x86_64"
#endif

#define AT(member) offsetof(struct host_facts, member)

/* clang-format off */
static const struct tool {
	size_t offset;
	const char *name;
} tools[] = {
	{ AT(crun), "crun" }, { AT(runc), "runc" }, { AT(runsc), "runsc" },
	{ AT(podman), "podman" }, { AT(docker), "docker" }, { AT(qemu), QEMU_NAME },
	{ AT(firecracker), "firecracker" }, { AT(wasmtime), "wasmtime" }, { AT(bwrap), "bwrap" },
};
/* clang-format on */

struct run {
	pid_t pid; /* pid of the tool; 0: not running */
	int fd;	   /* pipe with the output of the tool; -1 once closed */
	size_t n;
	char out[OUTPUT_MAX];
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_version_char(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
	       c == '-' || c == '+' || c == '~' || c == '_';
}

/*
 * Returns the length of a version at the front of @s: digits, a dot, digits and any suffix; 0 if @s
 * begins with no version.
 */
static size_t version_len(struct sv s)
{
	size_t n = 0;

	while (n < s.n && is_digit(s.p[n]))
		n++;
	if (n == 0 || n + 1 >= s.n || s.p[n] != '.' || !is_digit(s.p[n + 1]))
		return 0;
	while (n < s.n && is_version_char(s.p[n]))
		n++;
	while (!is_digit(s.p[n - 1]) && s.p[n - 1] < 'A')
		n--; /* drop punctuation at the end of a sentence */
	return n;
}

struct sv facts_tool_version(struct sv text)
{
	for (size_t i = 0; i < text.n; i++) {
		const struct sv rest = sv_skip(text, i);
		const size_t n = version_len(rest);

		if (n)
			return sv_sub(rest, 0, n);
		while (i + 1 < text.n && is_digit(text.p[i]) && is_digit(text.p[i + 1]))
			i++; /* do not start inside a number */
	}
	return SV("");
}

/*
 * Searches only absolute directories of $PATH: a program in the current directory does not belong
 * to the system.
 */
static bool find_tool(const char *path, const char *name, char ret_file[512])
{
	struct sv rest = sv_from(path);
	char file[512];

	while (rest.n) {
		const struct sv dir = sv_cut(&rest, ':');
		const int n = snprintf(file, sizeof(file), SV_FMT "/%s", SV_ARG(dir), name);

		if (dir.n == 0 || dir.p[0] != '/' || n < 0 || (size_t)n >= sizeof(file))
			continue;
		if (access(file, X_OK) == 0) {
			memcpy(ret_file, file, (size_t)n + 1);
			return true;
		}
	}
	return false;
}

/* Casts a string constant for execve(), which does not write to its arguments. */
static char *arg(const char *s)
{
	char *p;

	memcpy(&p, &s, sizeof(p));
	return p;
}

__attribute__((noreturn))
static void tool_child(const char *file, const char *name, const char *path_env, int out,
		       pid_t parent)
{
	char *const argv[] = { arg(name), arg("--version"), NULL };
	char *const envp[] = { arg(path_env), NULL };
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)setpgid(0, 0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(127);
	/*
	 * The caller may have closed descriptors 0 to 2. Move the descriptors for the tool out of
	 * that range before dup2().
	 */
	const int high_null = fcntl(null, F_DUPFD_CLOEXEC, 3);
	const int high_out = fcntl(out, F_DUPFD_CLOEXEC, 3);

	if (high_null < 0 || high_out < 0 || dup2(high_null, 0) < 0 || dup2(high_out, 1) < 0 ||
	    dup2(high_null, 2) < 0 || chdir("/") < 0)
		_exit(127);
	/* Close the caller's descriptors: the tool has no use for them. */
	(void)syscall(SYS_close_range, 3, ~0u, RANGE_CLOEXEC);
	(void)execve(file, argv, envp);
	_exit(127);
}

static void tool_start(const struct tool *t, const char *path, struct run *ret_r)
{
	const pid_t parent = getpid();
	char file[512], env[4096];
	int fds[2];
	pid_t pid;

	if (!find_tool(path, t->name, file) || pipe2(fds, O_CLOEXEC) < 0)
		return;
	(void)snprintf(env, sizeof(env), "PATH=%s", path);
	pid = fork();
	if (pid == 0)
		tool_child(file, t->name, env, fds[1], parent);
	(void)close(fds[1]);
	if (pid < 0) {
		(void)close(fds[0]);
		return;
	}
	ret_r->pid = pid;
	ret_r->fd = fds[0];
}

static void tool_read(struct run *r)
{
	const ssize_t n = read(r->fd, r->out + r->n, sizeof(r->out) - r->n);

	if (n > 0)
		r->n += (size_t)n;
	if (n > 0 && r->n < sizeof(r->out))
		return;
	(void)close(r->fd); /* end of file, error, or buffer full: a version is printed early */
	r->fd = -1;
}

/* Reads the output of all tools until each tool has ended or the time is over. */
static void tools_read(struct run *runs, size_t count, int64_t deadline_ms)
{
	struct pollfd pfds[ARRAY_LEN(tools)];

	for (;;) {
		const int64_t left = deadline_ms - clock_monotonic_ms();
		size_t open_count = 0;

		for (size_t i = 0; i < count; i++) {
			pfds[i] = (struct pollfd){ .fd = runs[i].fd, .events = POLLIN };
			open_count += runs[i].fd >= 0;
		}
		if (open_count == 0 || left <= 0)
			return;
		if (poll(pfds, count, (int)left) <= 0)
			continue;
		for (size_t i = 0; i < count; i++)
			if (runs[i].fd >= 0 && pfds[i].revents)
				tool_read(&runs[i]);
	}
}

static void tool_end(struct run *r)
{
	if (r->fd >= 0)
		(void)close(r->fd);
	facts_group_end(r->pid);
}

int facts_probe_tools(struct host_facts *f, struct writ_err *err)
{
	const char *path = getenv("PATH");
	const struct sigaction dfl = { .sa_handler = SIG_DFL };
	struct run runs[ARRAY_LEN(tools)] = { 0 };
	struct sigaction old;

	if (!path || !path[0] || strlen(path) > 4000)
		path = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
	if (sigaction(SIGCHLD, &dfl, &old) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "sigaction");
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		runs[i].fd = -1;
		tool_start(&tools[i], path, &runs[i]);
	}
	tools_read(runs, ARRAY_LEN(tools), clock_monotonic_ms() + TOOLS_MS);
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		char text[FACT_STR] = { 0 };

		if (runs[i].pid > 0) {
			const struct sv v =
				facts_tool_version((struct sv){ runs[i].out, runs[i].n });

			tool_end(&runs[i]);
			facts_set_text(text, v.n ? v : SV("unknown"));
		}
		memcpy((char *)f + tools[i].offset, text, sizeof(text));
	}
	(void)sigaction(SIGCHLD, &old, NULL);
	return 0;
}
