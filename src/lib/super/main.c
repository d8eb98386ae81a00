/*
 * writ-supervise: one session for a program that uses the library, or one more
 * command in a session. It speaks to nobody but whoever started it and ends when
 * they close the pipe it lives by.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/packet.h"
#include "crypto/crypto.h"
#include "lib/lib_priv.h"
#include "session/session.h"

#include "base/banned.h"

struct work {
	struct arena *a;
	struct lib_input in;
	struct host_facts facts;
	struct policy *policy;
	struct plan *plan;
	struct jail early;
	int stdio[PACKET_FDS - 1];
};

static void answer(enum super_told told, int exit, const struct writ_err *why, int fd)
{
	const struct super_answer text = { .told = told, .exit = exit, .err = *why };
	struct writ_err none;

	(void)!packet_send(SUPER_SOCKET, (struct sv){ (const char *)&text, sizeof(text) }, &fd,
			   fd >= 0, &none);
}

/* One question with its descriptors, which are -1 where there are none. False at the end. */
static bool hear(void *ret_what, int ret_fds[static PACKET_FDS])
{
	struct writ_err none;
	size_t n, fds_n;

	return packet_receive(SUPER_SOCKET, ret_what, 1, &n, ret_fds, &fds_n, &none) > 0 &&
	       n == 1 && fds_n > 0;
}

static int read_request(struct arena *a, int fd, struct sv *ret, struct writ_err *err)
{
	struct buf b = BUF_INIT(64 << 20);
	int r = lseek(fd, 0, SEEK_SET) < 0 ? writ_fail(err, WRIT_E_SYS, errno, "read a request")
					   : fd_read_all(fd, &b, err);

	if (r == 0 && !arena_sv(a, buf_view(&b), ret))
		r = writ_nomem(err);
	buf_clear(&b);
	return r;
}

static int read_input(struct work *w, int fd, struct writ_err *err)
{
	struct sv bytes;
	int r = read_request(w->a, fd, &bytes, err);

	if (r == 0)
		r = lib_input_decode(w->a, bytes, &w->in, err);
	return r < 0 ? r : find_facts(w->a, w->in.find.where.state, "facts.lib", &w->facts, err);
}

static int tell_facts(struct work *w, int fd, struct writ_err *err)
{
	struct buf b = BUF_INIT(1 << 20);
	scoped_fd file = memfd_create("writ-facts", MFD_CLOEXEC);
	int r = file < 0 ? writ_fail(err, WRIT_E_SYS, errno, "memfd_create")
			 : read_input(w, fd, err);

	if (r == 0) {
		facts_print(&w->facts, &b);
		r = fd_write_all(file, buf_view(&b), err);
	}
	buf_clear(&b);
	if (r == 0)
		answer(SUPER_READY, 0, err, file);
	return r;
}

/*
 * SECURITY: the policy is made again from the same texts, and must be the one that
 * was checked. Another one means that what its paths lead to has changed.
 */
static int load(struct work *w, struct writ_err *err)
{
	struct diags d = { .arena = w->a };
	struct find_world world;
	struct digest now;
	int r;

	find_world_init(&world, w->a, &w->in.find);
	world.replay = true;
	r = find_policy(&world, &d, &w->policy, err);
	if (r == WRIT_E_SYNTAX)
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "what the policy names has changed: load it again");
	if (r == 0)
		r = cap_set_digest(&w->policy->set, &now, err);
	if (r == 0 && !digest_eq(&now, &w->in.digest))
		r = writ_fail(err, WRIT_E_DENIED, 0,
			      "what the policy names has changed: load it again");
	if (r == 0)
		r = lib_plan(w->a, w->policy, &w->facts, w->in.tier, &w->plan, err);
	return r < 0 ? r : lib_plan_check(w->plan, w->policy, err);
}

/* What the next question wants to be run; its descriptors are in @w. */
static int read_command(struct work *w, const int *fds, struct lib_command *ret,
			struct writ_err *err)
{
	struct sv bytes;
	int r = read_request(w->a, fds[0], &bytes, err);

	if (r == 0)
		r = lib_command_decode(w->a, bytes, ret, err);
	for (int i = 1; r == 0 && i < PACKET_FDS; i++)
		if (fds[i] < 0)
			r = writ_fail(err, WRIT_E_SYNTAX, 0, "a request without its descriptors");
	memcpy(w->stdio, fds + 1, sizeof(w->stdio));
	return r;
}

/* All is ready but the command. Without a next question there will be none. */
static int await(void *ctx, struct session_options *opt, struct writ_err *err)
{
	struct work *w = ctx;
	struct lib_command c;
	int fds[PACKET_FDS];
	char what;
	int r;

	answer(SUPER_READY, 0, err, -1);
	if (!hear(&what, fds))
		return writ_fail(err, WRIT_E_SYS, 0, "nobody asks any more");
	r = what == SUPER_RUN ? read_command(w, fds, &c, err)
			      : writ_fail(err, WRIT_E_SYNTAX, 0, "a request out of turn");
	if (r < 0)
		return r;
	if (c.cwd.n)
		opt->cwd = c.cwd;
	opt->argv = c.argv.v;
	opt->environ = c.environ.v;
	opt->stdio = w->stdio;
	opt->detach = c.argv.n == 0;
	opt->neutral = c.flags & WRIT_RUN_NEUTRAL;
	opt->named = c.flags & LIB_RUN_NAMED;
	return 0;
}

static int run(struct work *w, int *ret_exit, struct writ_err *err)
{
	static char *const nothing[] = { NULL };
	const struct session_options opt = {
		.policy = w->policy,
		.plan = w->plan,
		.realm = w->in.find.where.realm,
		.state = w->in.find.where.state,
		.workspace = w->in.find.where.workspace,
		.cwd = w->in.find.where.cwd,
		.home = w->in.find.where.home,
		.program = w->in.find.program,
		.argv = nothing,
		.environ = environ,
		.early = &w->early,
		.status_fd = SUPER_SOCKET,
		.ready_fd = SUPER_SOCKET,
		.quiet = true,
		.leaves = true,
		.await = await,
		.await_ctx = w,
	};

	return session_run(w->a, &opt, ret_exit, err);
}

/* Gets ready, waits for the command, and runs it. */
static int serve_policy(struct work *w, int fd, int *ret_exit, struct writ_err *err)
{
	int r = read_input(w, fd, err);

	/* Namespaces take as long as reading the policy: both at once. */
	if (r == 0 && w->facts.ns_user && w->in.tier != TIER_B)
		r = jail_start(true, 0, &w->early, err);
	if (r == 0)
		r = load(w, err);
	if (r == 0 && w->plan->tier != TIER_A)
		jail_close(&w->early);
	return r < 0 ? r : run(w, ret_exit, err);
}

/* session_exec() takes our own standard descriptors. */
static int run_more(struct work *w, const int *fds, int *ret_exit, struct writ_err *err)
{
	struct lib_command c;
	int r = read_command(w, fds, &c, err);

	for (int i = 0; r == 0 && i < 3; i++)
		if (dup2(w->stdio[i], i) < 0)
			r = writ_fail(err, WRIT_E_SYS, errno, "standard descriptors");
	if (r < 0)
		return r;
	return session_exec(c.state, c.id, c.argv.v, c.environ.v, c.cwd, NULL, ret_exit, err);
}

/* True: there may be another question. */
static bool serve(struct work *w, char what, const int *fds)
{
	struct writ_err err = { 0 };
	int exit = SESSION_FAILED;
	int r;

	if (what == SUPER_FACTS) {
		r = tell_facts(w, fds[0], &err);
		if (r < 0)
			answer(SUPER_ENDED, exit, &err, -1);
		return r == 0;
	}
	if (what == SUPER_POLICY)
		r = serve_policy(w, fds[0], &exit, &err);
	else if (what == SUPER_EXEC)
		r = run_more(w, fds, &exit, &err);
	else
		r = writ_fail(&err, WRIT_E_SYNTAX, 0, "a request out of turn");
	if (r < 0 && err.code == 0)
		err.code = r;
	/* What kept a command from running is no error of the session. */
	if (r == 0)
		err.code = 0;
	answer(SUPER_ENDED, exit, &err, -1);
	return false;
}

/*
 * The pipe we live by says SIGTERM when its other end is gone: the session hears it
 * like any other, lets the command tidy up, and ends.
 */
static bool watch_life(void)
{
	struct pollfd p = { .fd = SUPER_LIFE, .events = POLLIN };

	(void)signal(SIGPIPE, SIG_IGN);
	if (setsid() < 0 || fcntl(SUPER_SOCKET, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(SUPER_LIFE, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(SUPER_LIFE, F_SETOWN, getpid()) < 0 || fcntl(SUPER_LIFE, F_SETSIG, SIGTERM) < 0 ||
	    fcntl(SUPER_LIFE, F_SETFL, O_ASYNC | O_NONBLOCK) < 0)
		return false;
	return poll(&p, 1, 0) == 0;
}

int main(void)
{
	scoped_arena a = ARENA_INIT((size_t)512 << 20);
	struct work w = { .a = &a, .early = JAIL_INIT };
	struct writ_err err = { 0 };
	int fds[PACKET_FDS];
	char what;

	if (!watch_life() || crypto_start(&err) < 0)
		return SESSION_FAILED;
	while (hear(&what, fds))
		if (!serve(&w, what, fds))
			break;
	jail_close(&w.early);
	return 0;
}
