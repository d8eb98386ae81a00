#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "host/host_priv.h"
#include "lang/policy.h"
#include "limit/rlimit.h"
#include "mediate/mediate.h"

#include "base/banned.h"

/* The mediator's process: serves the listeners and grants that the session sends. */

enum { REST_MS = 1000 };

static bool send_event(int socket, const struct mediate_event *e)
{
	char bytes[sizeof(*e)];
	const size_t n = event_encode(e, bytes);

	return send(socket, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/*
 * Handles a message of the supervisor. False: the supervisor is gone, the message is malformed, or
 * it could not be carried out.
 */
static bool obey(struct mediator *m, struct arena *a, int socket)
{
	struct engine_mediate_message msg;
	struct iovec iov = { &msg, sizeof(msg) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	const ssize_t n = recvmsg(socket, &h, MSG_CMSG_CLOEXEC);
	struct writ_err err = { 0 };
	struct cap_entry *e;
	int fd = -1;

	if (n != (ssize_t)sizeof(msg))
		return n < 0 && errno == EINTR;
	if (CMSG_FIRSTHDR(&h) && CMSG_FIRSTHDR(&h)->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(fd));
	if (msg.type == ENGINE_MEDIATE_LISTENER)
		return fd >= 0 && mediate_add(m, fd, &err) == 0;
	msg.cap[sizeof(msg.cap) - 1] = 0;
	e = arena_new(a, struct cap_entry);
	if (!e || cap_parse(a, CAP_GRANT, sv_from(msg.cap), &e->cap, &err) < 0)
		return false;
	e->rule = RULE_NONE;
	/* After a failure the mediator ends, and the session with it. */
	return (msg.type == ENGINE_MEDIATE_GRANT ? mediate_grant : mediate_revoke)(m, e, &err) == 0;
}

static int serve(struct mediator *m, struct arena *a, const struct engine_mediate *how)
{
	struct writ_err err = { 0 };
	bool rested = false;

	for (;;) {
		struct mediate_event e;
		struct pollfd p = { how->socket, POLLIN, 0 };
		const int r = mediate_wait(m, how->socket, rested ? -1 : REST_MS, &e, &err);

		if (r < 0)
			return 1;
		/*
		 * Give memory back once no trapped call has come for REST_MS. mediate_wait() also
		 * returns 0 for a message of the supervisor, which does not count as a rest.
		 */
		if (r == 0 && !rested && poll(&p, 1, 0) == 0) {
			how->rest();
			rested = true;
		} else if (r > 0) {
			rested = false;
		}
		if (r > 0 && !send_event(how->socket, &e))
			return 1;
		/*
		 * No event is pending: handle messages of the supervisor. While events come,
		 * mediate_wait() returns them first.
		 */
		while (r == 0 && poll(&p, 1, 0) > 0)
			if (!obey(m, a, how->socket))
				return 0;
	}
}

/*
 * SECURITY: the directories of writ as the user's environment spells them. A link of the user may
 * lead to one of them, and the session does not see that link. So the mediator, which looks up the
 * targets of new links in the session's root only, compares them with these spellings, too.
 */
static size_t add_spelling(struct arena *a, struct sv *closed, size_t n, const char *variable,
			   const char *folder)
{
	const char *set = getenv(variable), *home = getenv("HOME");
	struct sv top = sv_from(set && set[0] == '/' ? set : home ? home : "");
	const char *below = set && set[0] == '/' ? "" : folder, *text;

	while (sv_ends(top, SV("/")))
		top = sv_sub(top, 0, top.n - 1);
	text = top.n ? arena_fmt(a, SV_FMT "%s/writ", SV_ARG(top), below) : NULL;
	if (text)
		closed[n++] = sv_from(text);
	return n;
}

/*
 * Lowers the soft limit of open files to that of commands. SECURITY: the mediator sends descriptors
 * for commands, and the kernel compares those in flight with the limit of whoever sends.
 */
static void lower_files(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return;
	if (l.rlim_cur > rlimit_files_of(l.rlim_max))
		l.rlim_cur = rlimit_files_of(l.rlim_max);
	(void)setrlimit(RLIMIT_NOFILE, &l);
}

int host_mediate(const struct engine_run *run, struct arena *a, const struct engine_mediate *how)
{
	const struct engine_view *v = &run->view;
	const struct policy *policy = how->policy;
	struct sv closed[4] = { how->state, how->config };
	size_t closed_n = how->config.n ? 2 : 1;
	struct sv *opens = arena_array(a, struct sv, policy->opens.n + 1);
	struct mediate_options opt = {
		.set = &policy->set,
		.realm = how->realm,
		.workspace = how->workspace,
		.opens = opens,
		.opens_n = opens ? policy->opens.n : 0,
		.private_dirs = v->private_dirs.v,
		.private_dirs_n = v->private_dirs.n,
		.shared_dirs = v->shared_dirs.v,
		.shared_dirs_n = v->shared_dirs.n,
		.host_roots = v->host_roots.v,
		.host_roots_n = v->host_roots.n,
		.read_roots = v->read_roots.v,
		.read_roots_n = v->read_roots.n,
		.read_all = v->read_all,
		.read_fixed = v->read_fixed.v,
		.read_fixed_n = v->read_fixed.n,
		.shm = v->shm,
		.closed_dirs = closed,
		.own_mounts = v->own_mounts,
		.order = arena_fmt(a, SV_FMT "/order", SV_ARG(how->state)),
		.route = how->route,
		.umask_trapped = true,
		.no_exec = !cap_set_has(&policy->set, CAP_PROC_EXEC),
	};
	struct writ_err err = { 0 };
	struct mediator *m;

	closed_n = add_spelling(a, closed, closed_n, "XDG_STATE_HOME", "/.local/state");
	opt.closed_dirs_n = add_spelling(a, closed, closed_n, "XDG_CONFIG_HOME", "/.config");
	lower_files();
	for (size_t i = 0; opens && i < policy->opens.n; i++)
		opens[i] = policy->opens.v[i].path;
	if (!opt.order || mediate_new(&opt, &m, &err) < 0)
		return 1;
	return serve(m, a, how);
}
