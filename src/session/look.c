#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

/*
 * Files that a command line names and that are not there inside. Reads are free, so nobody
 * sees one fail. But a command that was given the name of a file of this machine, and cannot
 * have it, should be told why.
 *
 * SECURITY: the agent chooses these names, and a file system that nobody answers for holds
 * whoever looks at it. So a process of its own does, and it has nothing that others wait for.
 * One that does not answer is left behind, and no other takes its place.
 */

/* Of a processor, for one command line; until it ends itself; command lines that may wait. */
enum { LOOK_MS = 5, IDLE_MS = 1000, LOOKS_MAX = 64, WORDS_MAX = 64 };

static bool tell(int socket, const struct mediate_event *e)
{
	char bytes[sizeof(*e)];
	const size_t n = mediate_encode(e, bytes);

	return send(socket, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* All processes inside have one root; the first shows where, and may be gone when others do. */
static void see_inside(struct session *s, int pid)
{
	char at[64];

	if (s->inside >= 0)
		return;
	(void)snprintf(at, sizeof(at), "/proc/%d/root", pid);
	s->inside = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* --- in that process --- */

/* Why the policy does not let the session read @path; NULL: it does. */
static const char *why_unread(struct session *s, struct sv path)
{
	const struct cap_set *set = &s->opt->policy->set;
	scoped_arena a = ARENA_INIT(1 << 16);
	struct buf b = BUF_INIT(CAP_TEXT_MAX);
	struct writ_err err = { 0 };
	struct cap req;
	const char *why = NULL;

	buf_fmt(&b, "fs.read:" SV_FMT ":", SV_ARG(s->opt->realm));
	if (cap_put_path(&b, path, &err) == 0 && !b.failed &&
	    cap_parse(&a, CAP_REQUEST, buf_view(&b), &req, &err) == 0) {
		const struct cap_verdict v = cap_set_decide(set, &req);
		const char *hop = v.rule == RULE_NONE ? cap_set_says(set, &v) : NULL;

		if (v.answer != CAP_ALLOW)
			why = hop ? hop : "no rule allows it";
	}
	buf_clear(&b);
	return why;
}

/* Places that every session has for itself, whatever lies there outside. */
static bool is_own_place(const struct session *s, struct sv path)
{
	static const char *const own[] = { "/proc", "/dev", "/tmp", "/var/tmp", NULL };

	/* Who wants everything explained is told of a file in the other /tmp, too. */
	for (size_t i = 0; own[i] && !(s->opt->explain && i > 1); i++)
		if (sv_starts(path, sv_from(own[i])))
			return true;
	return false;
}

/* Is there something by that name inside? Whether or not we could look, files that we made are. */
static bool is_visible(const struct session *s, struct sv path)
{
	char at[PATH_MAX];
	const int n = snprintf(at, sizeof(at), "." SV_FMT, SV_ARG(path));

	if (s->view.own_mounts && host_makes(path))
		return true;
	return s->inside >= 0 && n > 0 && (size_t)n < sizeof(at) &&
	       faccessat(s->inside, at, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* By the kernel: whoever makes links can make them take long to follow. */
static bool resolve(const char *path, char real[static PATH_MAX])
{
	char link[32];
	scoped_fd fd = open(path, O_PATH | O_CLOEXEC);
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = fd < 0 ? -1 : readlink(link, real, PATH_MAX);
	if (n <= 0 || n == PATH_MAX)
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
	const struct sv home = s->view.home;
	const char *path, *why;
	char real[PATH_MAX];
	bool moved = false;

	/* --file=/x, of=/x */
	if (arg.n && arg.p[0] != '/')
		(void)sv_cut(&arg, '=');
	if (arg.n < 2 || arg.p[0] != '/')
		return;
	path = arena_str(&a, arg);
	/* ~ inside is a home of its own: what was meant is the one outside. */
	if (s->view.own_mounts && s->opt->home.n && sv_starts(arg, home) && arg.n > home.n + 1) {
		const char *kept = arena_fmt(&a, SV_FMT SV_FMT, SV_ARG(s->paths.home),
					     SV_ARG(sv_skip(arg, home.n)));

		moved = kept && access(kept, F_OK) < 0;
		path = arena_fmt(&a, SV_FMT SV_FMT, SV_ARG(s->opt->home),
				 SV_ARG(sv_skip(arg, home.n)));
	}
	if (is_visible(s, arg) || !path || !resolve(path, real) ||
	    (!moved && is_own_place(s, sv_from(real))) || (!moved && sv_starts(arg, home)))
		return;
	why = why_unread(s, sv_from(real));
	if (!why)
		return;
	(void)snprintf(d.extra, sizeof(d.extra), "%s", why);
	memcpy(d.object, real, sv_from(real).n < sizeof(d.object) ? sv_from(real).n : 0);
	/* The thread is still the shell when it asks; the program is what people know. */
	path = strrchr(e->object, '/');
	path = path ? path + 1 : e->object;
	memset(d.comm, 0, sizeof(d.comm));
	memcpy(d.comm, path,
	       sv_from(path).n < sizeof(d.comm) ? sv_from(path).n : sizeof(d.comm) - 1);
	if (d.object[0])
		(void)tell(socket, &d);
}

static void look_at_arguments(struct session *s, const struct mediate_event *e, int socket)
{
	const uint64_t until = cpu_ms() + LOOK_MS;
	struct sv rest = sv_from(e->extra);

	(void)sv_cut(&rest, ' ');
	for (int i = 0; rest.n && i < WORDS_MAX && cpu_ms() < until; i++)
		look_at_argument(s, e, sv_cut(&rest, ' '), socket);
}

/* Nothing stays open that somebody could wait for: pipes, locks, the directory it stood in. */
static void let_go(struct session *s, int socket)
{
	const int high = fcntl(socket, F_DUPFD, 3);
	const int inside = s->inside < 0 ? -1 : fcntl(s->inside, F_DUPFD, 3);

	if (high < 0 || dup2(high, 0) < 0 || (inside >= 0 && dup2(inside, 1) < 0) ||
	    close_range(inside < 0 ? 1 : 2, ~0u, 0) < 0 || chdir("/") < 0)
		_exit(1);
	s->inside = inside < 0 ? -1 : 1;
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

		/* Nobody asks any more; who just did is answered. */
		if (poll(&p, 1, IDLE_MS) == 0)
			(void)shutdown(0, SHUT_RD);
		n = recv(0, bytes, sizeof(bytes), 0);
		if (n <= 0 || !mediate_decode(bytes, (size_t)n, &e))
			_exit(0);
		see_inside(s, e.pid);
		look_at_arguments(s, &e, 0);
		if (!tell(0, &done))
			_exit(0);
	}
}

/* --- in the supervisor --- */

void look_end(struct session *s)
{
	if (s->look < 0)
		return;
	scope_close(&s->look);
	s->look = -1;
	helper_end(s->look_pid, s->looks ? 0 : GRACE_MS);
	s->looks = 0;
}

static bool ask(struct session *s, const struct mediate_event *e)
{
	char bytes[sizeof(*e)];
	const size_t n = mediate_encode(e, bytes);
	struct writ_err err = { 0 };

	if (s->look < 0 &&
	    helper_start(s, look_main, "a look at its arguments", &s->look_pid, &s->look, &err) < 0)
		return true;
	if (send(s->look, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n) {
		if (s->looks++ == 0)
			s->look_ms = clock_ms();
		return true;
	}
	return errno == EAGAIN;
}

void look_at(struct session *s, const struct mediate_event *e)
{
	/* What a shell is told with -c names files without using them itself. */
	if ((s->opt->quiet && !s->opt->explain) || s->denials.n > DENIALS_MAX / 2 ||
	    strstr(e->extra, " -c ") || !(strstr(e->extra, " /") || strstr(e->extra, "=/")) ||
	    s->state >= SESSION_ENDING || s->look_lost || s->looks == LOOKS_MAX)
		return;
	see_inside(s, e->pid);
	/* One that ended meanwhile is made anew, once. */
	if (!ask(s, e)) {
		look_event(s);
		look_end(s);
		(void)ask(s, e);
	}
}

void look_event(struct session *s)
{
	for (int i = 0; i < LOOKS_MAX && s->look >= 0; i++) {
		struct mediate_event e;
		char bytes[sizeof(e)];
		const ssize_t n = recv(s->look, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0 || !mediate_decode(bytes, (size_t)n, &e)) {
			look_end(s);
			return;
		}
		s->look_ms = clock_ms();
		if (e.denied)
			denial_note_named(s, &e);
		else if (s->looks)
			s->looks--;
	}
}

int look_timeout(struct session *s, int least)
{
	const uint64_t now = clock_ms();
	uint64_t left;

	/* We may have been kept from hearing what it said. */
	if (s->looks && now >= s->look_ms + GRACE_MS)
		look_event(s);
	if (!s->looks)
		return least;
	if (now >= s->look_ms + GRACE_MS) {
		s->look_lost = true;
		look_end(s);
		return least;
	}
	left = s->look_ms + GRACE_MS - now;
	return least >= 0 && (uint64_t)least < left ? least : (int)left;
}

void look_finish(struct session *s)
{
	look_event(s);
	while (s->looks && !s->hurried) {
		struct pollfd p = { s->look, POLLIN, 0 };

		(void)poll(&p, 1, look_timeout(s, GRACE_MS));
		look_event(s);
	}
	look_end(s);
}
