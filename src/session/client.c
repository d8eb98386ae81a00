#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

enum { ANSWER_MAX = 8192, ANSWER_SECONDS = 10, STATUS_SECONDS = 2 };

static int run_dir(struct sv state, struct arena *a, struct writ_err *err)
{
	const char *path = arena_fmt(a, SV_FMT "/run", SV_ARG(state));
	const int fd = path ? open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC) : -1;

	if (!path)
		return writ_nomem(err);
	return fd < 0 ? writ_fail(err, WRIT_E_SYS, errno, "no session is running") : fd;
}

/* Of both ways; 0: for as long as it takes. */
static int set_patience(int fd, time_t seconds)
{
	const struct timeval t = { .tv_sec = seconds };

	return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)) |
	       setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

static pid_t supervisor_of(int fd)
{
	struct ucred who = { 0 };
	socklen_t n = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 ? who.pid : 0;
}

/* Who is stopped answers nobody. */
static int is_silent(int fd, const char *id, struct writ_err *err)
{
	const int pid = (int)supervisor_of(fd);

	/* Too many wait to be heard: then nobody says who it is. */
	if (pid <= 0)
		return writ_fail(err, WRIT_E_SYS, ETIMEDOUT,
				 "session %s does not answer; its supervisor may be stopped", id);
	return writ_fail(err, WRIT_E_SYS, ETIMEDOUT,
			 "session %s does not answer: if it is stopped, `kill -CONT %d` lets it "
			 "go on, -KILL ends it",
			 id, pid);
}

/* A connected socket to the session @id, whose name is whole. */
static int connect_to(int run, const char *id, time_t patience, struct writ_err *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	scoped_fd dir = openat(run, id, O_DIRECTORY | O_PATH | O_CLOEXEC);
	scoped_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (dir < 0 || fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "session %s", id);
	snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/control", dir);
	if (set_patience(fd, patience) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "session %s", id);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return errno == EAGAIN ? is_silent(fd, id, err)
				       : writ_fail(err, WRIT_E_SYS, errno,
						   "session %s does not answer", id);
	return take_fd(&fd);
}

static int ask(int run, const char *id, struct sv request, struct buf *ret, struct writ_err *err)
{
	const time_t patience = sv_is(request, "status") ? STATUS_SECONDS : ANSWER_SECONDS;
	char text[ANSWER_MAX];
	scoped_fd fd = connect_to(run, id, patience, err);
	ssize_t n;

	if (fd < 0)
		return fd;
	if (send(fd, request.p, request.n, MSG_NOSIGNAL) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "session %s", id);
	do {
		n = recv(fd, text, sizeof(text), 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return is_silent(fd, id, err);
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

int client_open(struct sv state, struct sv id, char ret_id[static SESSION_ID + 1],
		struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_fd run = run_dir(state, &a, err);
	const int r = run < 0 ? run : find(run, id, ret_id, err);
	scoped_fd fd = r < 0 ? r : connect_to(run, ret_id, ANSWER_SECONDS, err);

	if (fd >= 0 && set_patience(fd, 0) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "session %s", ret_id);
	return fd < 0 ? fd : take_fd(&fd);
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

static bool tell_silent(struct session_info *info)
{
	static const char word[] = "silent";

	memcpy(info->state, word, sizeof(word));
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
		if (ask(run, info.id, SV("status"), &b, &gone) == 0
			    ? parse_status(buf_view(&b), &info)
			    : gone.sys == ETIMEDOUT && tell_silent(&info))
			more = each(ctx, &info);
		buf_clear(&b);
	}
	closedir(d);
	return 0;
}
