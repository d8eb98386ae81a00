#include "parts/hints.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "parts/directories.h"
#include "parts/engine.h"
#include "parts/helper.h"

#include "base/banned.h"

/*
 * Finds files of the host that a command line names and that are not visible in the jail. The
 * kernel refuses to read such a file without asking the mediator, so the supervisor does not see
 * the read fail. But a command that was given the name of a file of this machine, and cannot read
 * that file, should be told why.
 *
 * SECURITY: the agent chooses these names, and a lookup on a dead file system blocks. So a helper
 * process looks the names up, and holds no resource that another process waits for. A helper that
 * does not answer is abandoned, and no further helper is started.
 */

/*
 * LOOK_MS: processor time for one command line; IDLE_MS: idle time before the helper exits;
 * LOOKS_MAX: most pending command lines; WORDS_MAX: most words of a command line that are checked.
 */
enum { LOOK_MS = 5, IDLE_MS = 1000, LOOKS_MAX = 64, WORDS_MAX = 64 };

struct look {
	/* Root directory of the jail, as the first program saw it; -1: not opened yet. */
	int inside;
	pid_t look_pid;
	int look;	  /* socket of the helper; -1: none */
	uint32_t looks;	  /* number of requests that the helper has not answered */
	/* time of the helper's last answer, or of the request after an idle time */
	uint64_t look_ms;
	bool look_lost;	  /* the helper did not answer in time, and was abandoned */
};

static struct look *look_of(const struct session *s)
{
	return session_state(s, &look_initial);
}

const struct session_initial look_initial = SESSION_INITIAL(struct look, .inside = -1, .look = -1);

static bool tell(int socket, const struct mediate_event *e, int flags)
{
	char bytes[sizeof(*e)];
	const size_t n = event_encode(e, bytes);

	return send(socket, bytes, n, MSG_NOSIGNAL | flags) == (ssize_t)n;
}

/*
 * Opens the root directory of the jail through the process @pid. All processes in the jail have the
 * same root, and @pid may have ended when a later process needs it.
 */
static void see_inside(struct session *s, int pid)
{
	char at[64];

	if (look_of(s)->inside >= 0)
		return;
	(void)snprintf(at, sizeof(at), "/proc/%d/root", pid);
	look_of(s)->inside = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* --- in the helper process --- */

/* Returns whether the policy does not let the session read @path, with the reason in @e. */
static bool is_unreadable(struct session *s, struct sv path, struct mediate_event *e)
{
	const struct cap_set *set = &s->opt->policy->set;
	scoped_arena a = ARENA_INIT(1 << 16);
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct writ_err err = { 0 };
	struct cap req;
	bool denied = false;

	buf_fmt(&b, "fs.read:" SV_FMT ":", SV_ARG(s->opt->realm));
	if (cap_put_path(&b, path, &err) == 0 && !b.failed &&
	    cap_parse(&a, CAP_REQUEST, buf_view(&b), &req, &err) == 0) {
		const struct cap_verdict v = cap_set_decide(set, &req);
		const char *hop = v.rule == RULE_NONE ? cap_set_hop_message(set, &v) : NULL;

		denied = v.answer != CAP_ALLOW;
		e->cause = hop ? CAUSE_HOP : CAUSE_NO_RULE;
		(void)snprintf(e->extra, sizeof(e->extra), "%s", hop ? hop : "");
		e->reason = hop ? CAP_REASON_TOKEN : CAP_REASON_NO_RULE;
	}
	return denied;
}

/*
 * Returns whether @path is in a directory that every jail has for itself, whatever the host has
 * under the same name.
 */
static bool is_own_place(const struct session *s, struct sv path)
{
	static const char *const own[] = { "/proc", "/dev", "/tmp", "/var/tmp", NULL };

	/* With --explain, also report files in /tmp and /var/tmp of the host. */
	for (size_t i = 0; own[i] && !(s->opt->explain && i > 1); i++)
		if (sv_below(path, sv_from(own[i])))
			return true;
	return false;
}

/* Returns whether @path is visible in the jail. Files that the engine provides always are. */
static bool is_visible(const struct session *s, struct sv path)
{
	char at[PATH_MAX];
	const int n = snprintf(at, sizeof(at), "." SV_FMT, SV_ARG(path));

	if (engine_view(s)->own_mounts && s->opt->plan->engine->provides(path))
		return true;
	return look_of(s)->inside >= 0 && n > 0 && (size_t)n < sizeof(at) &&
	       faccessat(look_of(s)->inside, at, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * Resolves @path with one open(), which limits the number of links that the kernel follows: an
 * agent can make long chains of links.
 */
static bool resolve(const char *path, char real[static PATH_MAX], struct stat *ret_st)
{
	char link[32];
	scoped_fd fd = open(path, O_PATH | O_CLOEXEC);
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = fd < 0 ? -1 : readlink(link, real, PATH_MAX);
	if (n <= 0 || n == PATH_MAX || fstat(fd, ret_st) < 0)
		return false;
	real[n] = 0;
	return true;
}

static void look_at_argument(struct session *s, const struct mediate_event *e, struct sv arg,
			     int socket)
{
	scoped_arena a = ARENA_INIT(1 << 16);
	struct mediate_event d = {
		.op = MEDIATE_READ,
		.denied = true,
		.rule = RULE_NONE,
		.pid = e->pid,
	};
	const struct sv home = engine_view(s)->home;
	const char *path;
	char real[PATH_MAX];
	struct stat st;
	bool moved = false;

	/* Check the part after "=" in arguments such as --file=/x and of=/x. */
	if (arg.n && arg.p[0] != '/')
		(void)sv_cut(&arg, '=');
	if (arg.n < 2 || arg.p[0] != '/')
		return;
	path = arena_str(&a, arg);
	/*
	 * A path below the home of the jail stands for the same path below the home of the person.
	 */
	if (engine_view(s)->own_mounts && s->opt->home.n && sv_below(arg, home) &&
	    arg.n > home.n + 1) {
		const char *kept = arena_fmt(&a, SV_FMT SV_FMT, SV_ARG(directories_get(s)->home),
					     SV_ARG(sv_skip(arg, home.n)));

		moved = kept && access(kept, F_OK) < 0;
		path = arena_fmt(&a, SV_FMT SV_FMT, SV_ARG(s->opt->home),
				 SV_ARG(sv_skip(arg, home.n)));
	}
	if (is_visible(s, arg) || !path || !resolve(path, real, &st) ||
	    (!moved && is_own_place(s, sv_from(real))) || (!moved && sv_below(arg, home)))
		return;
	if (!is_unreadable(s, sv_from(real), &d))
		return;
	d.dev = st.st_dev;
	d.ino = st.st_ino;
	memcpy(d.object, real, sv_from(real).n < sizeof(d.object) ? sv_from(real).n : 0);
	/*
	 * The name of the thread is still that of the shell; report the name of the program, which
	 * people know.
	 */
	path = strrchr(e->object, '/');
	path = path ? path + 1 : e->object;
	memset(d.comm, 0, sizeof(d.comm));
	memcpy(d.comm, path,
	       sv_from(path).n < sizeof(d.comm) ? sv_from(path).n : sizeof(d.comm) - 1);
	if (d.object[0])
		(void)tell(socket, &d, 0);
}

static void look_at_arguments(struct session *s, const struct mediate_event *e, int socket)
{
	const uint64_t until = clock_cpu_ms() + LOOK_MS;
	struct sv rest = sv_from(e->extra);

	(void)sv_cut(&rest, ' ');
	for (int i = 0; rest.n && i < WORDS_MAX && clock_cpu_ms() < until; i++)
		look_at_argument(s, e, sv_cut(&rest, ' '), socket);
}

/*
 * Closes all descriptors but @socket and the jail's root, because another process could wait for
 * the end of a pipe or a lock. Also leaves the current directory.
 */
static void let_go(struct session *s, int socket)
{
	const int high = fcntl(socket, F_DUPFD, 3);
	const int inside = look_of(s)->inside < 0 ? -1 : fcntl(look_of(s)->inside, F_DUPFD, 3);

	if (high < 0 || dup2(high, 0) < 0 || (inside >= 0 && dup2(inside, 1) < 0) ||
	    close_range(inside < 0 ? 1 : 2, ~0u, 0) < 0 || chdir("/") < 0)
		_exit(1);
	look_of(s)->inside = inside < 0 ? -1 : 1;
	(void)prctl(PR_SET_DUMPABLE, 0);
}

_Noreturn static void look_main(struct session *s, int socket)
{
	const struct mediate_event done = { .op = MEDIATE_EXEC };
	struct pollfd p = { 0, POLLIN, 0 };
	struct mediate_event e;
	char bytes[sizeof(e)];

	let_go(s, socket);
	for (;;) {
		ssize_t n;

		/* The helper was idle for IDLE_MS: answer pending requests and exit. */
		if (poll(&p, 1, IDLE_MS) == 0)
			(void)shutdown(0, SHUT_RD);
		n = recv(0, bytes, sizeof(bytes), 0);
		if (n <= 0 || !event_decode(bytes, (size_t)n, &e))
			_exit(0);
		see_inside(s, e.pid);
		look_at_arguments(s, &e, 0);
		if (!tell(0, &done, 0))
			_exit(0);
	}
}

/* --- in the supervisor --- */

static void look_end(struct session *s)
{
	if (look_of(s)->look < 0)
		return;
	fd_close(&look_of(s)->look);
	helper_end(look_of(s)->look_pid, look_of(s)->looks ? 0 : SESSION_GRACE_MS);
	look_of(s)->looks = 0;
}

static bool ask(struct session *s, const struct mediate_event *e)
{
	struct writ_err err = { 0 };

	if (look_of(s)->look < 0 &&
	    helper_start(s, look_main, "a look at its arguments", &look_of(s)->look_pid,
			 &look_of(s)->look, &err) < 0)
		return true;
	if (tell(look_of(s)->look, e, MSG_DONTWAIT)) {
		if (look_of(s)->looks++ == 0)
			look_of(s)->look_ms = clock_boot_ms();
		return true;
	}
	return errno == EAGAIN;
}

static void look_event(struct session *s)
{
	for (int i = 0; i < LOOKS_MAX && look_of(s)->look >= 0; i++) {
		struct mediate_event e;
		char bytes[sizeof(e)];
		const ssize_t n = recv(look_of(s)->look, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0 || !event_decode(bytes, (size_t)n, &e)) {
			look_end(s);
			return;
		}
		look_of(s)->look_ms = clock_boot_ms();
		if (e.denied)
			hints_note(s, &e);
		else if (look_of(s)->looks)
			look_of(s)->looks--;
	}
}

void look_at(struct session *s, const struct mediate_event *e)
{
	/* Skip `sh -c`, whose script names files that the shell does not open itself. */
	if ((s->opt->quiet && !s->opt->explain) || hints_count(s) == HINTS_MAX ||
	    strstr(e->extra, " -c ") || !(strstr(e->extra, " /") || strstr(e->extra, "=/")) ||
	    session_phase(s) >= SESSION_ENDING || look_of(s)->look_lost ||
	    look_of(s)->looks == LOOKS_MAX)
		return;
	see_inside(s, e->pid);
	/* Restart a helper that has exited, once. */
	if (!ask(s, e)) {
		look_event(s);
		look_end(s);
		(void)ask(s, e);
	}
}

int look_deadline(struct session *s, int least)
{
	const uint64_t now = clock_boot_ms();
	uint64_t left;

	/* The supervisor may not have run for a while: read pending answers first. */
	if (look_of(s)->looks && now >= look_of(s)->look_ms + SESSION_GRACE_MS)
		look_event(s);
	if (!look_of(s)->looks)
		return least;
	if (now >= look_of(s)->look_ms + SESSION_GRACE_MS) {
		look_of(s)->look_lost = true;
		look_end(s);
		return least;
	}
	left = look_of(s)->look_ms + SESSION_GRACE_MS - now;
	return least >= 0 && (uint64_t)least < left ? least : (int)left;
}

void look_finish(struct session *s)
{
	look_event(s);
	while (look_of(s)->looks && !session_status(s)->stop_requested) {
		struct pollfd p = { look_of(s)->look, POLLIN, 0 };

		(void)poll(&p, 1, look_deadline(s, SESSION_GRACE_MS));
		look_event(s);
	}
	look_end(s);
}

void look_poll(struct session *s, struct session_poll *set)
{
	session_poll_add(set, look_of(s)->look, POLLIN);
}

void look_on_event(struct session *s, const struct pollfd *p, size_t n)
{
	(void)n;
	if (p[0].revents)
		look_event(s);
}

void look_clear(struct session *s)
{
	fd_scope_close(&look_of(s)->inside);
	look_end(s);
}
