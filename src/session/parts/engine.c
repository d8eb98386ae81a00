#include "parts/engine_priv.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "parts/agents.h"
#include "parts/commands.h"
#include "parts/directories.h"
#include "parts/grants.h"
#include "parts/inspection.h"
#include "parts/network.h"
#include "parts/probe.h"
#include "parts/record.h"
#include "parts/session.h"

#include "base/banned.h"

static const struct engine *ops(const struct session *s)
{
	return s->opt->plan->engine;
}

const struct session_initial engine_initial = SESSION_INITIAL(struct engine_state, .mounts = -1);

int engine_init(struct session *s, struct writ_err *err)
{
	struct engine_state *e = engine_of(s);

	if (ops(s)->absent)
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0, "%s", ops(s)->absent);
	e->run = s->opt->run;
	return e->run ? 0 : ops(s)->open(s->a, &e->run, err);
}

int engine_limit(struct session *s, struct writ_err *err)
{
	return ops(s)->limit(engine_of(s)->run, s->opt->plan, s->opt->policy->set.limits, s->id,
			     err);
}

/* --- functions for other parts --- */

struct engine_run *engine_run(const struct session *s)
{
	return engine_of(s)->run;
}

const struct repo_identity *engine_identity(const struct session *s)
{
	return &engine_of(s)->identity;
}

const struct engine_view *engine_view(const struct session *s)
{
	return &engine_of(s)->run->view;
}

pid_t engine_init_pid(const struct session *s)
{
	return engine_of(s)->run->init;
}

bool engine_attaches(const struct session *s)
{
	return engine_of(s)->run->helper_fd >= 0;
}

void engine_signal(struct session *s, uint32_t id, int number)
{
	struct writ_err err = { 0 };

	(void)!ops(s)->signal(engine_of(s)->run, id, number, &err);
}

int engine_kill(struct session *s)
{
	struct writ_err err = { 0 };

	return ops(s)->end(engine_of(s)->run, &err);
}

/* --- starting early --- */

/* Returns the login name to show in the jail. */
static struct sv user_of(char *const *envp)
{
	const struct sv user = environ_get(envp, SV("USER"));

	if (user.n && sv_is_graph(user) && sv_find(user, ':') == SIZE_MAX)
		return user;
	return geteuid() ? SV("agent") : SV("root");
}

int session_early(struct arena *a, const struct engine *e, const struct host_facts *facts,
		  char *const *envp, struct engine_run *run, char ret_id[static SESSION_ID + 1],
		  struct writ_err *err)
{
	const int r = run->waits ? session_make_id(ret_id, err) : 0;

	return r < 0 ? r : e->furnish(run, a, facts, user_of(envp), ret_id, err);
}

/*
 * Returns the physical path of the person's JAVA_HOME, which may be a symbolic link. Empty: no
 * JAVA_HOME, or writ-l7 does not run and the path is not needed.
 */
static struct sv real_java(struct session *s)
{
	const struct sv home = environ_get(s->opt->environ, SV("JAVA_HOME"));
	const char *name =
		inspection_reads(s) && home.n && home.p[0] == '/' ? arena_str(s->a, home) : NULL;
	char real[PATH_MAX];

	return name && realpath(name, real) ? sv_from(arena_str(s->a, sv_from(real))) : SV("");
}

/* --- starting --- */

int engine_compile(struct session *s, struct writ_err *err)
{
	const struct session_options *opt = s->opt;
	const struct directories *d = directories_get(s);
	struct engine_state *e = engine_of(s);
	struct engine_place place;

	vcs_repo_identity(opt->home, environ_get(opt->environ, SV("XDG_CONFIG_HOME")),
			  opt->plan->tier == TIER_A ? SV("") : opt->workspace, &e->identity);
	place = (struct engine_place){ .home = d->home,
				       .tmp = d->tmp,
				       .shm = d->shm,
				       .info = d->info,
				       .rules = d->rules,
				       .spawn = spawn_path(s),
				       .state = d->state,
				       .user = user_of(opt->environ),
				       .workspace = opt->workspace,
				       .realm = opt->realm,
				       .trust = inspection_trust_dir(s),
				       .java = real_java(s),
				       .git_name = sv_from(e->identity.name),
				       .git_email = sv_from(e->identity.email),
				       .own = { opt->state, opt->config },
				       .bait = probes_bait(s) };
	return ops(s)->compile(e->run, s->a, opt->plan, opt->policy, &place, opt->fail_at, err);
}

/* Starts writ-init, unless it was started early. */
int engine_start(struct session *s, struct writ_err *err)
{
	struct engine_state *e = engine_of(s);
	const struct engine_prepare how = { .own_namespaces = e->run->view.own_mounts,
					    .fail_at = s->opt->fail_at };

	return e->run->started ? 0 : ops(s)->prepare(e->run, &how, err);
}

/* Sends the jail program to writ-init, which then builds the jail. */
int engine_build(struct session *s, struct writ_err *err)
{
	return ops(s)->start(engine_of(s)->run, err);
}

/* Waits until writ-init has reported its pid, and so is in the cgroup with its limits. */
int engine_hello(struct session *s, struct writ_err *err)
{
	const struct session_status *t = session_status(s);

	(void)err;
	while (engine_of(s)->run->limited && engine_init_pid(s) == 0 &&
	       t->phase == SESSION_STARTING && !t->failed)
		init_messages_recv(s);
	return 0;
}

int engine_await(struct session *s, struct writ_err *err)
{
	if (!s->opt->await)
		return 0;
	/* Finish all work that does not need the command before waiting for the command. */
	if (engine_hello(s, err) == 0 && !session_status(s)->failed)
		session_await(s, err);
	return 0;
}

/* Reads the last messages of writ-init, which have the reason why writ-init cannot be reached. */
bool engine_recover(struct session *s, struct writ_err *err)
{
	const struct session_status *t = session_status(s);

	if (engine_of(s)->run->fd < 0)
		return false;
	record_start_failed(s);
	for (int i = 0; i < 16 && !t->failed && t->phase != SESSION_ENDED; i++) {
		struct pollfd p = { engine_of(s)->run->fd, POLLIN, 0 };

		if (poll(&p, 1, 100) <= 0)
			return true;
		init_messages_recv(s);
	}
	if (t->failed && t->failed_at != ENGINE_STAGE_NONE)
		*err = t->err;
	return true;
}

/* --- the keeper and the mounts --- */

static void recv_helper(struct session *s)
{
	struct engine_event e = { .fds_n = 0 };
	struct writ_err err = { 0 };

	if (ops(s)->receive_helper(engine_of(s)->run, &e, &err) <= 0) {
		if (session_phase(s) == SESSION_RUNNING)
			session_end(s, "the keeper is gone", SESSION_FAILED);
		return;
	}
	if (e.type == ENGINE_BOUND)
		network_bound(s, e.id, e.fds_n ? e.fds[0] : -1);
	else if (e.type == ENGINE_DONE)
		grants_done(s, e.id, &e.err);
	for (size_t i = 0; i < e.fds_n; i++)
		close(e.fds[i]);
}

void engine_poll(struct session *s, struct session_poll *set)
{
	session_poll_add(set, engine_of(s)->mounts, POLLPRI);
	session_poll_add(set, engine_of(s)->run->helper_fd, POLLIN);
}

/* Reads changes of mounts before messages of the keeper, which changes mounts and then reports. */
void engine_on_event(struct session *s, const struct pollfd *p, size_t n)
{
	(void)n;
	if (p[0].revents & (POLLPRI | POLLERR))
		engine_mounts_changed(s);
	if (p[1].revents)
		recv_helper(s);
}

void engine_check_mounts(struct session *s)
{
	struct pollfd p = { .fd = engine_of(s)->mounts, .events = POLLPRI };

	if (poll(&p, 1, 0) > 0)
		engine_mounts_changed(s);
}

/* --- the end --- */

bool engine_may_leave(const struct session *s)
{
	/*
	 * pid 1 has reported that all other processes of the jail are dead, and is about to exit.
	 */
	return s->opt->leaves && session_status(s)->emptied && !engine_of(s)->run->scoped;
}

void engine_close_inside(struct session *s)
{
	struct engine_state *e = engine_of(s);

	fd_close(&e->mounts);
	if (!engine_may_leave(s))
		ops(s)->close(e->run);
}

/*
 * The kernel kills a writ-init that is left when the supervisor exits; but a cgroup can be removed
 * only when it is empty, so reap writ-init first.
 */
void engine_clear(struct session *s)
{
	if (engine_of(s)->run->limited)
		ops(s)->leave(engine_of(s)->run);
}

void engine_release(struct session *s)
{
	ops(s)->release(engine_of(s)->run);
}
