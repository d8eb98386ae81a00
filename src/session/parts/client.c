#include "parts/client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "rpc/rpc.h"

#include "base/banned.h"

enum { ANSWER_SECONDS = 10, STATUS_SECONDS = 2 };

static int run_dir(struct sv state, struct arena *a, struct writ_err *err)
{
	const char *path = arena_fmt(a, SV_FMT "/run", SV_ARG(state));
	const int fd = path ? open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC) : -1;

	if (!path)
		return writ_nomem(err);
	return fd < 0 ? writ_fail(err, WRIT_E_SYS, errno, "no session is running") : fd;
}

static pid_t supervisor_of(int fd)
{
	struct ucred who = { 0 };
	socklen_t n = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 ? who.pid : 0;
}

/*
 * Reports that a session does not answer, with the process id of its supervisor, so that a person
 * can continue or kill a supervisor that is stopped.
 */
static int is_silent(int fd, const char *id, struct writ_err *err)
{
	const int pid = (int)supervisor_of(fd);

	/* The queue of the control socket is full: the pid of the supervisor is not known. */
	if (pid <= 0)
		return writ_fail(err, WRIT_E_SYS, ETIMEDOUT,
				 "session %s does not answer; its supervisor may be stopped", id);
	return writ_fail(err, WRIT_E_SYS, ETIMEDOUT,
			 "session %s does not answer: if it is stopped, `kill -CONT %d` lets it "
			 "go on, -KILL ends it",
			 id, pid);
}

/* Connects to the session whose complete id is @id. */
static int connect_to(int run, const char *id, time_t patience, struct rpc_conn **ret,
		      struct writ_err *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	scoped_fd dir = openat(run, id, O_DIRECTORY | O_PATH | O_CLOEXEC);
	scoped_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct timeval t = { .tv_sec = patience };

	if (dir < 0 || fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "session %s", id);
	snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/control", dir);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return errno == EAGAIN ? is_silent(fd, id, err)
				       : writ_fail(err, WRIT_E_SYS, errno,
						   "session %s does not answer", id);
	*ret = rpc_new(fd_take(&fd));
	return *ret ? 0 : writ_nomem(err);
}

/* Sends one request and reads its answer. Takes ownership of @params. */
static int ask(int run, const char *id, const char *method, json_t *params, time_t patience,
	       json_t **ret, struct writ_err *err)
{
	struct rpc_conn *c = NULL;
	int r = connect_to(run, id, patience, &c, err);

	if (r < 0 || !c) {
		json_decref(params);
		return r < 0 ? r : writ_nomem(err);
	}
	r = rpc_call(c, method, params, (int)patience * 1000, ret, err);
	if (r < 0 && rpc_is_lost(c))
		r = writ_fail(err, WRIT_E_SYS, err->sys, "session %s ended", id);
	else if (r < 0 && err->sys == ETIMEDOUT)
		r = is_silent(c->fd, id, err);
	rpc_free(c);
	return r;
}

/*
 * Finds the complete id of the only session whose id begins with @id. SECURITY: an empty @id is an
 * error, because it begins every id: with an unset variable, a person would mean no session.
 */
static int find(int run, struct sv id, char ret[SESSION_ID + 1], struct writ_err *err)
{
	scoped_list *d = fd_open_list(run, ".");
	struct dirent *e;
	size_t found = 0;

	if (id.n == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "which session? an empty name is none; see writ ps");
	if (!d)
		return writ_fail(err, WRIT_E_SYS, errno, "list the sessions");
	while ((e = readdir(d))) {
		const struct sv name = sv_from(e->d_name);

		if (name.n != SESSION_ID || !sv_starts(name, id))
			continue;
		memcpy(ret, name.p, SESSION_ID + 1);
		found++;
	}
	if (found == 1)
		return 0;
	return writ_fail(err, WRIT_E_SYNTAX, 0,
			 found ? "more than one session begins with \"" SV_FMT "\"; see writ ps"
			       : "no session \"" SV_FMT "\" is running; see writ ps",
			 SV_ARG(id));
}

int session_client_open(struct sv state, struct sv id, char ret_id[static SESSION_ID + 1],
			struct rpc_conn **ret, struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_fd run = run_dir(state, &a, err);
	const int r = run < 0 ? run : find(run, id, ret_id, err);

	return r < 0 ? r : connect_to(run, ret_id, ANSWER_SECONDS, ret, err);
}

int session_call(struct sv state, struct sv id, const char *method, json_t *params, json_t **ret,
		 struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_fd run = run_dir(state, &a, err);
	char name[SESSION_ID + 1];
	const int r = run < 0 ? run : find(run, id, name, err);

	if (r < 0) {
		json_decref(params);
		return r;
	}
	return ask(run, name, method, params, ANSWER_SECONDS, ret, err);
}

/* --- all sessions --- */

static void put_text(struct arena *a, const json_t *v, struct buf *b, const char *before)
{
	struct sv text;

	if (rpc_get_bytes(a, v, &text))
		buf_fmt(b, "%s" SV_FMT, before, SV_ARG(text));
}

/* Copies as much of @from as fits into @room bytes. */
static void put_fixed(char *to, size_t room, struct sv from)
{
	memcpy(to, from.p, from.n < room ? from.n : room - 1);
}

/* Reads the answer to session.get. */
static bool read_info(const json_t *v, struct session_info *ret)
{
	enum { COMMAND_SHOWN = 200 };
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_buf command = BUF_INIT(1 << 20);
	const char *state = json_string_value(json_object_get(v, "state"));
	uint64_t pid, age, denials;
	struct sv workspace;
	const json_t *arg;
	size_t i;

	if (!rpc_get_number(v, "pid", INT32_MAX, &pid) ||
	    !rpc_get_number(v, "seconds", UINT32_MAX, &age) ||
	    !rpc_get_number(v, "denials", UINT32_MAX, &denials) || !state ||
	    !rpc_get_bytes(&a, json_object_get(v, "workspace"), &workspace) ||
	    workspace.n >= sizeof(ret->workspace))
		return false;
	json_array_foreach(json_object_get(v, "command"), i, arg)
		put_text(&a, arg, &command, i ? " " : "");
	ret->pid = (int64_t)pid;
	ret->started = age;
	ret->denials = (uint32_t)denials;
	put_fixed(ret->state, sizeof(ret->state), sv_from(state));
	put_fixed(ret->workspace, sizeof(ret->workspace), workspace);
	put_fixed(ret->command, sizeof(ret->command), sv_sub(buf_view(&command), 0, COMMAND_SHOWN));
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
	scoped_list *d = run < 0 ? NULL : fd_open_list(run, ".");
	struct dirent *e;
	bool more = true;

	if (!path)
		return writ_nomem(err);
	if (!d)
		return errno == ENOENT ? 0 : writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	while (more && (e = readdir(d))) {
		struct session_info info = { 0 };
		struct writ_err gone = { 0 };
		scoped_json *answer = NULL;

		if (strlen(e->d_name) != SESSION_ID)
			continue;
		memcpy(info.id, e->d_name, SESSION_ID);
		/* Skip a directory without an answer: its supervisor was killed. */
		if (ask(run, info.id, "session.get", json_object(), STATUS_SECONDS, &answer,
			&gone) == 0
			    ? read_info(answer, &info)
			    : gone.sys == ETIMEDOUT && tell_silent(&info))
			more = each(ctx, &info);
	}
	return 0;
}
