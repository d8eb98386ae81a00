#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/launch_priv.h"
#include "launch/token.h"

#include "base/banned.h"

/* The state of a start that is under way. */
struct launching {
	struct arena *a;
	const struct launch_request *req;
	struct launch_result *ret;
	const struct engine *engine;
	/* writ-init, prepared while the policy is read; NULL: not prepared. */
	struct engine_run *early;
	struct find_where where;
	struct host_facts facts;
	struct launch_loaded loaded;
	struct plan *plan;
};

/* Steps 1 to 4 of launch.h: everything that does not depend on the policy. */
static int prepare(struct launching *g, struct writ_err *err)
{
	const struct launch_request *req = g->req;
	const struct launch_host *host = &req->host;
	int r = 0;

	/*
	 * Creating namespaces takes as long as reading the policy: do both at once. Under a token
	 * the session's id comes from the token, so the session's cgroup cannot exist yet. The
	 * policy of an agent need not be read.
	 */
	if (host->tier != TIER_B && !req->policy.token && !req->agent && !g->engine->absent) {
		const struct engine_prepare how = { .own_namespaces = true };

		r = g->engine->open(g->a, &g->early, err);
		if (r == 0)
			r = g->engine->prepare(g->early, &how, err);
	}
	if (r == 0)
		r = crypto_start(err);
	if (r == 0 && req->policy.checked)
		g->where = req->policy.checked->where;
	else if (r == 0)
		r = launch_locate(g->a, &req->where, true, &g->where, err);
	if (r < 0)
		return r;
	if (host->facts)
		g->facts = *host->facts;
	else
		r = locate_facts(g->a, g->where.state,
				 host->facts_file ? host->facts_file : "facts", &g->facts, err);
	if (r < 0) {
		g->ret->end = LAUNCH_NO_FACTS;
		return r;
	}
	return g->early ? session_early(g->a, g->engine, &g->facts, req->where.environ, g->early,
					g->ret->id, err)
			: 0;
}

static void discard(struct launching *g)
{
	if (!g->early)
		return;
	g->engine->close(g->early);
	g->engine->release(g->early);
	g->early = NULL;
}

/* Steps 5 and 6 of launch.h: read the policy and plan it. */
static int decide(struct launching *g, struct writ_err *err)
{
	const struct launch_request *req = g->req;
	char *const *argv = req->command.argv;
	struct plan *plan = NULL;
	int r = 0;

	if (req->agent)
		g->loaded = (struct launch_loaded){ .in = *req->policy.checked,
						    .policy = req->agent->policy };
	else
		r = launch_load_with(g->a, req, &g->where, argv ? argv[0] : NULL,
				     SV(SPAWN_SOCKET), &g->loaded, g->ret, err);
	if (r != 0)
		return r;
	r = launch_plan(g->a, req, &g->where, &g->loaded.policy->set, &g->facts, &plan, err);
	if (r != 0)
		return r;
	g->plan = plan;
	if (req->events.planned)
		req->events.planned(req->events.ctx, &g->loaded, g->plan);
	r = plan_check(g->plan, err);
	if (r < 0)
		g->ret->end = LAUNCH_PLAN_REFUSED;
	/* Tier B has no namespaces: the session itself starts writ-init. */
	else if (plan->tier != TIER_A)
		discard(g);
	return r;
}

static void set_command(const struct launching *g, const struct launch_command *c,
			struct session_options *opt)
{
	static char *const none[] = { NULL };

	opt->argv = c->argv ? c->argv : none;
	opt->environ = c->environ;
	opt->cwd = c->cwd.n ? c->cwd : g->loaded.in.where.cwd;
	opt->stdio = c->stdio;
	opt->detach = c->detach;
	opt->named = c->named;
	opt->neutral = c->neutral;
}

/* Called by the session when the session is ready and waits for its command. */
static int await(void *ctx, struct session_options *opt, struct writ_err *err)
{
	const struct launching *g = ctx;
	struct launch_command command = g->req->command;
	const int r = g->req->events.await(g->req->events.ctx, &command, err);

	if (r == 0)
		set_command(g, &command, opt);
	return r;
}

/* Called by the session in a new process: runs the session of an agent. */
static int start_agent(void *ctx, const struct session_agent *who, int *ret_exit,
		       struct writ_err *err)
{
	const struct launching *g = ctx;
	struct find_input in = g->loaded.in;
	struct launch_request req = { .where = g->req->where,
				      .policy = { .checked = &in },
				      .host = g->req->host,
				      .command = { .argv = who->argv,
						   .environ = who->environ,
						   .cwd = who->cwd,
						   .stdio = who->stdio,
						   .neutral = who->neutral },
				      .opt = { .status_fd = -1,
					       .quiet = true,
					       .verbose = g->req->opt.verbose,
					       .durable = g->req->opt.durable },
				      .agent = who };
	struct launch_result ret;
	int r;

	in.program = in.agent = SV("");
	req.host.facts = &g->facts;
	r = launch_run(g->a, &req, &ret, err);
	*ret_exit = ret.exit;
	if (ret.end != LAUNCH_PLAN_REFUSED)
		return r;
	/* An agent whose plan is refused ends with a code of its own and without a message. */
	*err = (struct writ_err){ 0 };
	*ret_exit = SESSION_REFUSED;
	return 0;
}

/* Step 7 of launch.h: run the session. */
static int run(struct launching *g, struct writ_err *err)
{
	const struct launch_options *o = &g->req->opt;
	const struct find_where *w = &g->loaded.in.where;
	const struct sv resolver = environ_get(g->req->where.environ, SV("WRIT_RESOLVER"));
	struct launch_token *t = g->loaded.token;
	struct session_token token;
	struct session_options opt = { .policy = g->loaded.policy,
				       .plan = g->plan,
				       .realm = w->realm,
				       .state = w->state,
				       .config = w->config,
				       .workspace = w->workspace,
				       .home = w->home,
				       .resolver = resolver,
				       .program = g->loaded.in.program,
				       .profile = g->loaded.in.agent,
				       .run = g->early,
				       .id = g->ret->id,
				       .status_fd = o->status_fd,
				       .ready_fd = o->ready_fd,
				       .owner = o->owner,
				       .report = o->report,
				       .job = o->job,
				       .quiet = o->quiet,
				       .verbose = o->verbose,
				       .durable = o->durable,
				       .explain = o->explain,
				       .leaves = true,
				       .await = g->req->events.await ? await : NULL,
				       .token = g->req->agent ? g->req->agent->token : NULL,
				       .agent = g->req->agent,
				       .start_agent = start_agent,
				       .ctx = g };
	int r;

	set_command(g, &g->req->command, &opt);
	if (t) {
		token = (struct session_token){ .wallet = &t->wallet,
						.chain = &t->chain,
						.text = t->text,
						.text_n = t->text_n,
						.why = &g->ret->why };
		opt.token = &token;
	}
	g->ret->end = LAUNCH_SESSION_FAILED;
	r = session_run(g->a, &opt, &g->ret->exit, err);
	if (r == 0)
		g->ret->end = LAUNCH_RAN;
	else if (g->ret->why.code != TOKEN_E_NONE)
		g->ret->end = LAUNCH_TOKEN_REFUSED;
	return r;
}

static bool is_state_writable(struct arena *a, struct sv state)
{
	const char *path = arena_str(a, state);
	struct writ_err ignored = { 0 };

	return path && fd_make_dirs(path, &ignored) == 0 &&
	       faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0;
}

int launch_run(struct arena *a, const struct launch_request *req, struct launch_result *ret,
	       struct writ_err *err)
{
	struct launching g = { .a = a, .req = req, .ret = ret, .engine = launch_engine_of(req) };
	int r;

	*ret = (struct launch_result){ .exit = SESSION_FAILED, .why = { .hop = TOKEN_HOP_NONE } };
	if (req->agent)
		memcpy(ret->id, req->agent->id, sizeof(ret->id));
	r = prepare(&g, err);
	if (r == 0)
		r = decide(&g, err);
	if (r < 0)
		ret->id[0] = 0;
	if (r == 0)
		r = run(&g, err);
	if (r < 0) {
		discard(&g);
		ret->no_state = g.where.state.n && !is_state_writable(a, g.where.state);
	}
	return r;
}
