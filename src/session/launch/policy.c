#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "crypto/crypto.h"
#include "engines/engines.h"
#include "launch/launch_priv.h"

#include "base/banned.h"

void launch_note(const struct launch_events *e, const char *text)
{
	if (e->note && text)
		e->note(e->ctx, text);
}

int launch_locate(struct arena *a, const struct launch_where *w, bool make_realm,
		  struct find_where *ret, struct writ_err *err)
{
	const struct find_options opt = { .home = w->home,
					  .config = w->config,
					  .state = w->state,
					  .environ = w->environ,
					  .make_realm = make_realm };
	int r;

	if (w->cwd && chdir(w->cwd) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "cd %s", w->cwd);
	r = locate_where(a, &opt, ret, err);
	if (r < 0)
		return r;
	return w->workspace ? locate_workspace_at(a, NULL, w->workspace, ret, err)
			    : locate_workspace(a, NULL, ret, err);
}

static int add_workspace_mode(struct arena *a, const char *mode, struct find_input *in,
			      struct writ_err *err)
{
	struct source src = { .name = SV("--workspace"), .dir = SV("") };

	if (!mode)
		return 0;
	if (strcmp(mode, "direct") != 0 && strcmp(mode, "cow") != 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "--workspace is direct or cow");
	src.text = sv_from(arena_fmt(a, "version 1\nworkspace %s\n", mode));
	return src.text.n ? locate_add_source(a, in, &src, err) : writ_nomem(err);
}

/*
 * Collects the texts of the policies that the request names, or of the policies in force in this
 * directory if the request names none.
 */
static int gather(struct arena *a, const struct launch_request *req, const char *program,
		  struct find_input *in, struct writ_err *err)
{
	struct source src;
	int r = 0;

	for (size_t i = 0; r == 0 && i < req->policy.files_n; i++) {
		r = locate_text_arg(a, req->policy.files[i], &src, err);
		if (r == 0)
			r = locate_add_source(a, in, &src, err);
	}
	if (r == 0)
		r = locate_policies(a, in, err);
	if (r == 0 && program)
		r = locate_agent(a, program, req->where.environ, in, err);
	if (r == 0)
		r = add_workspace_mode(a, req->policy.workspace_mode, in, err);
	return r == 0 && program ? locate_program(a, program, in, err) : r;
}

int launch_read_policy(struct arena *a, const struct launch_events *events, struct launch_loaded *l,
		       struct launch_result *ret, struct writ_err *err)
{
	int r;

	locate_world_init(&l->world, a, &l->in);
	r = locate_policy(&l->world, &l->diags, &l->policy, err);
	if (events->diagnosed)
		events->diagnosed(events->ctx, &l->diags);
	if (r == WRIT_E_SYNTAX)
		ret->end = LAUNCH_BAD_POLICY;
	return r;
}

/*
 * SECURITY: compiles the policy again from the texts that the caller checked. Its digest must be
 * the one that the caller checked: with another digest, paths of the policy lead to other files
 * now.
 */
static int load_checked(struct arena *a, const struct launch_policy *p, struct launch_loaded *l,
			struct writ_err *err)
{
	static const char changed[] = "what the policy names has changed: load it again";
	struct digest now;
	int r;

	l->in = *p->checked;
	l->in.agent_socket = SV(SPAWN_SOCKET);
	locate_world_init(&l->world, a, &l->in);
	l->world.replay = true;
	r = locate_policy(&l->world, &l->diags, &l->policy, err);
	if (r == WRIT_E_SYNTAX)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "%s", changed);
	if (r == 0)
		r = cap_set_digest(&l->policy->set, &now, err);
	if (r < 0)
		return r;
	return digest_eq(&now, p->checked_digest) ? 0
						  : writ_fail(err, WRIT_E_DENIED, 0, "%s", changed);
}

int launch_load_with(struct arena *a, const struct launch_request *req,
		     const struct find_where *where, const char *program, struct sv agent_socket,
		     struct launch_loaded *l, struct launch_result *ret, struct writ_err *err)
{
	const struct launch_policy *p = &req->policy;
	int r;

	*l = (struct launch_loaded){ .diags.arena = a };
	if (p->checked)
		return load_checked(a, p, l, err);
	l->in = (struct find_input){ .where = *where,
				     .agent_socket = agent_socket,
				     .path = environ_get(req->where.environ, SV("PATH")),
				     .missing_ok = p->missing_ok };
	for (size_t i = 0; i < p->vars_n; i++) {
		struct policy_var *v = vec_push(a, &l->in.vars);

		if (!v)
			return writ_nomem(err);
		*v = p->vars[i];
	}
	for (size_t i = 0; i < p->args_n; i++) {
		struct policy_arg *arg = vec_push(a, &l->in.args);

		if (!arg)
			return writ_nomem(err);
		*arg = p->args[i];
	}
	if (p->token)
		return launch_load_token(a, req, program, l, ret, err);
	r = gather(a, req, program, &l->in, err);
	if (r == 0)
		r = launch_read_policy(a, &req->events, l, ret, err);
	if (r < 0)
		return r;
	if (p->workspace_mode && strcmp(p->workspace_mode, "direct") == 0 &&
	    l->policy->set.workspace != WORKSPACE_DIRECT)
		launch_note(&req->events, "the policy says workspace cow, and that stands");
	return 0;
}

int launch_load(struct arena *a, const struct launch_request *req, const struct find_where *where,
		const char *program, struct launch_loaded *l, struct launch_result *ret,
		struct writ_err *err)
{
	return launch_load_with(a, req, where, program, SV(""), l, ret, err);
}

const struct engine *launch_engine(struct sv name)
{
	return plan_engine_find(engines_all, name);
}

const struct engine *launch_engine_of(const struct launch_request *req)
{
	return req->host.engine ? req->host.engine : engines_all[0];
}

int launch_plan(struct arena *a, const struct launch_request *req, const struct find_where *where,
		const struct cap_set *set, const struct host_facts *facts, struct plan **ret,
		struct writ_err *err)
{
	struct plan_options opt = { .engines = engines_all,
				    .engine = req->host.engine,
				    .tier = req->host.tier };
	const char *damaged = NULL;
	const struct advisory *why;
	struct advisory_db db;

	if (set->workspace == WORKSPACE_COW) {
		const int r = locate_advisories(a, where->state, &db, &damaged, err);

		if (r < 0)
			return r;
		launch_note(&req->events, damaged);
		opt.overlay_advisory =
			advisory_primitive_open(&db, facts, SV("overlayfs"), &why) == ADVISORY_OPEN;
	}
	return plan_new(a, set, facts, &opt, ret, err);
}
