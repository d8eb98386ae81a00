#include "lang/load_priv.h"

#include "crypto/crypto.h"

#include "base/banned.h"

/* Returns the text of a capability: @action on the path @name, then @tail. NULL on failure. */
static const char *path_text(struct lower *l, const char *action, struct sv name, const char *tail)
{
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	const char *text;

	buf_fmt(&b, "%s:" SV_FMT ":", action, SV_ARG(l->env->realm));
	if (cap_put_path(&b, name, l->err) < 0)
		return NULL;
	buf_str(&b, tail);
	text = b.failed ? NULL : arena_str(l->a, buf_view(&b));
	if (!text)
		(void)!writ_nomem(l->err);
	return text;
}

/* --- defaults --- */

/* Adds an entry to @set for its last rule: a denial if @deny, otherwise a grant. */
static int add_entry(struct lower *l, struct cap_set *set, const char *text, bool deny,
		     struct writ_err *err)
{
	struct cap_entry *e = deny ? vec_push(l->a, &set->nots) : vec_push(l->a, &set->caps);

	if (!e)
		return writ_nomem(err);
	e->rule = (uint32_t)(set->rules.n - 1);
	return cap_parse(l->a, deny ? CAP_DENIAL : CAP_GRANT, sv_from(text), &e->cap, err);
}

/* Adds a built-in rule with one entry. */
static int add_default_rule(struct lower *l, struct cap_set *set, const char *text,
			    const char *says, bool deny)
{
	const struct cap_rule r = { SV_INIT("default"), .text = sv_from(says), .built_in = true };
	struct writ_err err = { 0 };

	if (!vec_add(l->a, &set->rules, r))
		return writ_nomem(l->err);
	return add_entry(l, set, text, deny, &err) < 0
		       ? writ_fail(l->err, WRIT_E_BUG, 0, "%s", err.what)
		       : 0;
}

/* Without an exec line every readable file may be executed. State this default as a capability. */
int lang_default_exec(struct lower *l)
{
	const char *text;

	if (l->exec_seen)
		return 0;
	text = arena_fmt(l->a, "proc.exec:" SV_FMT ":/**", SV_ARG(l->env->realm));
	return text ? add_default_rule(l, l->set, text, "no exec line: what is readable may run",
				       false)
		    : writ_nomem(l->err);
}

/*
 * SECURITY: the directories with writ's policies, trust pins and keys are never writable inside a
 * session, whatever a policy grants. Otherwise an agent could widen its next session.
 */
static int protect_path(struct lower *l, struct sv path)
{
	const char *text = path_text(l, "fs.write", path, "/**");

	return text ? add_default_rule(l, l->set, text, "writ's own files stay out of reach", true)
		    : l->err->code;
}

/*
 * Denies writing to each directory of writ's own files by its configured name and, if that name
 * passes through links, also by its physical name.
 */
int protect_own_files(struct lower *l)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->env->own_n; i++) {
		struct policy_path found;

		if (!l->env->ops->lookup(l->env->ops->ctx, l->a, l->env->own[i], &found))
			return writ_nomem(l->err);
		r = protect_path(l, l->env->own[i]);
		if (r == 0 && !sv_eq(found.physical, l->env->own[i]))
			r = protect_path(l, found.physical);
	}
	return r;
}

/*
 * Makes the files next to the command readable: in `writ run -- ~/tools/bin/x`, the program x must
 * be able to load its own files.
 */
static int grant_program(struct lower *l, struct cap_set *set)
{
	const char *text;

	if (l->env->program.n == 0)
		return 0;
	text = path_text(l, "fs.read", l->env->program, "/**");
	return text ? add_default_rule(l, set, text, "the command's own files", false)
		    : l->err->code;
}

/* --- a git directory outside the workspace --- */

/* Adds a capability for @action on the path @git/@rest to the last rule of @set. */
static int grant_part(struct lower *l, struct cap_set *set, const char *action, bool deny,
		      struct sv git, const char *rest)
{
	const char *path = arena_fmt(l->a, SV_FMT "%s", SV_ARG(git), rest);
	struct sv name = sv_from(path);
	const bool tree = sv_ends(name, SV("/**"));
	const char *text;

	if (!path)
		return writ_nomem(l->err);
	if (tree)
		name.n -= 3;
	text = path_text(l, action, name, tree ? "/**" : "");
	return text ? add_entry(l, set, text, deny, l->err) : l->err->code;
}

static bool grants_workspace(const struct cap_set *set, const struct cap *root, bool write)
{
	struct cap want = *root;

	want.action = write ? CAP_FS_WRITE : CAP_FS_READ;
	for (size_t i = 0; i < set->caps.n; i++)
		if (cap_within(&want, &set->caps.v[i].cap))
			return true;
	return false;
}

/*
 * Grants writing to the parts of a shared repository that git writes from a linked worktree.
 * SECURITY: git settings and hooks stay read-only, because git executes hooks, and programs that
 * settings name. For the same reason, writing to the directories of other worktrees is denied;
 * reading them is allowed.
 */
static int grant_shared(struct lower *l, struct cap_set *set, const struct policy_repository *g)
{
	static const char *const parts[] = {
		"/objects/**",	     "/refs/**",	 "/logs/**", "/packed-refs",
		"/packed-refs.lock", "/packed-refs.new", NULL
	};
	const char *own = arena_fmt(l->a, "/worktrees/" SV_FMT "/**", SV_ARG(g->worktree));
	int r = own ? 0 : writ_nomem(l->err);

	for (size_t i = 0; r == 0 && parts[i]; i++)
		r = grant_part(l, set, "fs.write", false, g->git, parts[i]);
	if (r == 0)
		r = grant_part(l, set, "fs.write", false, g->git,
			       g->closed ? own : "/worktrees/**");
	for (size_t i = 0; r == 0 && !g->closed && i < g->others.n; i++) {
		const char *other =
			arena_fmt(l->a, "/worktrees/" SV_FMT "/**", SV_ARG(g->others.v[i]));

		r = other ? grant_part(l, set, "fs.write", true, g->git, other)
			  : writ_nomem(l->err);
	}
	return r;
}

/* Grants the external git directory with the access that the policy gives to the workspace. */
static int grant_repository(struct lower *l, struct cap_set *set)
{
	const bool write = grants_workspace(set, &set->root, true);
	struct policy_repository g = { 0 };
	struct cap_rule *rule;
	const char *says;
	int r;

	if (l->env->workspace.n == 0 || !l->env->ops->repository ||
	    (!write && !grants_workspace(set, &set->root, false)))
		return 0;
	if (!l->env->ops->repository(l->env->ops->ctx, l->a, l->env->workspace, &g))
		return writ_nomem(l->err);
	if (g.git.n == 0)
		return 0;
	says = arena_fmt(l->a, "%s of this %s: " SV_FMT,
			 write ? "repository" : "reading the repository",
			 g.worktree.n ? "linked worktree" : "submodule", SV_ARG(g.git));
	rule = vec_push(l->a, &set->rules);
	if (!rule || !says)
		return writ_nomem(l->err);
	*rule = (struct cap_rule){
		.file = SV("git"), .text = sv_from(says), .shipped = true, .optional = true
	};
	r = grant_part(l, set, "fs.read", false, g.git, "/**");
	if (r < 0 || !write)
		return r;
	return g.worktree.n ? grant_shared(l, set, &g)
			    : grant_part(l, set, "fs.write", false, g.git, "/**");
}

int lang_set_root(struct lower *l, struct cap_set *set)
{
	const char *text;

	if (l->env->workspace.n == 0)
		return 0;
	text = path_text(l, "fs.write", l->env->workspace, "/**");
	return text ? cap_parse(l->a, CAP_GRANT, sv_from(text), &set->root, l->err) : l->err->code;
}

/* --- the base profile --- */

static int append_entries(struct arena *a, struct cap_entry **v, size_t *n, size_t *room,
			  const struct cap_entry *more, size_t more_n, uint32_t shift)
{
	for (size_t i = 0; i < more_n; i++) {
		struct cap_entry *e = vec_push_raw(a, (void **)v, n, room, sizeof(**v));

		if (!e)
			return WRIT_E_NOMEM;
		*e = (struct cap_entry){ more[i].cap, more[i].rule + shift };
	}
	return 0;
}

/*
 * Appends the set @more to @set. The rule indices of @more shift, and limits of @more apply only
 * where @set has no limit.
 */
int lang_append_set(struct arena *a, struct cap_set *set, const struct cap_set *more,
		    struct writ_err *err)
{
	const uint32_t shift = (uint32_t)set->rules.n;

	if (!vec_reserve(a, &set->rules, more->rules.n) ||
	    !vec_reserve(a, &set->caps, more->caps.n))
		return writ_nomem(err);
	for (size_t i = 0; i < more->rules.n; i++)
		if (!vec_add(a, &set->rules, more->rules.v[i]))
			return writ_nomem(err);
	if (append_entries(a, &set->caps.v, &set->caps.n, &set->caps.room, more->caps.v,
			   more->caps.n, shift) < 0 ||
	    append_entries(a, &set->nots.v, &set->nots.n, &set->nots.room, more->nots.v,
			   more->nots.n, shift) < 0)
		return writ_nomem(err);
	for (size_t i = 0; i < LIMIT_COUNT; i++)
		if (set->limits[i] == 0 && more->limits[i]) {
			set->limits[i] = more->limits[i];
			set->limit_rule[i] = more->limit_rule[i] + shift;
		}
	return 0;
}

/*
 * Lowers the base profile into a set of its own, because limits of base are only defaults, and
 * appends that set to @set.
 */
int lang_add_base(struct lower *l, struct cap_set *set)
{
	const struct policy_profile *p = lang_profile_find(SV("base"));
	const size_t envs = l->policy->envs.n;
	const uint32_t shift = (uint32_t)set->rules.n;
	struct lower base;
	int r = lang_fork_lower(l, &base);

	if (r < 0 || (r = lang_load_base(&base)) < 0)
		return r;
	for (size_t i = envs; i < l->policy->envs.n; i++)
		l->policy->envs.v[i].rule += shift;
	if (p) {
		set->rt = crypto_sha256((struct sv){ p->text, p->len });
		set->has_rt = true;
	}
	return lang_append_set(l->a, set, base.set, l->err);
}

/* --- an untrusted policy in the workspace --- */

/*
 * Is @action an action that an untrusted file cannot narrow? Grants of such actions stay as in the
 * operator's policy.
 */
bool lang_is_operator_action(enum cap_action action)
{
	return action == CAP_ENV_PASS || action == CAP_SECRET_USE || action == CAP_STATE_USE;
}

/*
 * Warns about statements of an untrusted file that have no effect because the statements are
 * neither grants nor limits.
 */
static void check_narrow_kinds(struct lower *l)
{
	for (size_t i = 0; i < l->done.n; i++) {
		const enum stmt_kind k = l->done.v[i].s->kind;

		if (k == STMT_ENV || k == STMT_SECRET || k == STMT_OPEN || k == STMT_DANGER ||
		    k == STMT_ACCEPT || k == STMT_STATE)
			diag_add(l->d, DIAG_WARNING, lang_stmt_place(l->done.v[i].s), only_narrows,
				 "this has no effect here");
	}
}

/*
 * SECURITY: where the operator set no limit, the default limit of base applies. An untrusted file
 * must not raise that default, so drop a limit of the file that is above the default.
 */
static int cap_limits(struct lower *l, struct cap_set *set)
{
	struct lower base;
	struct policy *scratch = arena_new(l->a, struct policy);
	int r = lang_fork_lower(l, &base);

	if (r < 0 || !scratch)
		return writ_nomem(l->err);
	base.policy = scratch;
	if (l->policy->has_base && (r = lang_load_base(&base)) < 0)
		return r;
	for (size_t i = 0; i < LIMIT_COUNT; i++)
		if (l->set->limits[i] == 0 && base.set->limits[i] &&
		    set->limits[i] > base.set->limits[i])
			/* the default limit of base returns when base is appended */
			set->limits[i] = 0;
	return r;
}

/* Narrows the operator's set by an untrusted policy in the workspace. */
static int narrow(struct loader *o, const struct source *src, struct cap_set *ret)
{
	struct policy *scratch = arena_new(o->l.a, struct policy);
	const struct cap_set *own = o->l.set;
	struct loading in = { .id = src->name };
	struct loader ws = { 0 };
	int r = lang_fork_lower(&o->l, &ws.l);

	if (r < 0 || !scratch)
		return writ_nomem(o->l.err);
	/*
	 * Collect the secrets, variables and opened names of the untrusted file in a policy that is
	 * discarded.
	 */
	ws.l.policy = scratch;
	r = lang_load_file(&ws, src, &in);
	if (r < 0 || o->l.d->errors)
		return r;
	check_narrow_kinds(&ws.l);
	lang_check_within(&ws.l, own, DIAG_WARNING,
			  "this asks for more than your own policy allows, so it is cut down");
	if ((r = lang_default_exec(&ws.l)) < 0 ||
	    (r = cap_set_meet(o->l.a, own, ws.l.set, ret, o->l.err)) < 0 ||
	    (r = cap_limits(&o->l, ret)) < 0)
		return r;
	/* The rule index of a grant is still valid: a meet keeps the indices of its first set. */
	for (size_t i = 0; i < own->caps.n; i++)
		if (lang_is_operator_action(own->caps.v[i].cap.action) &&
		    !vec_add(o->l.a, &ret->caps, own->caps.v[i]))
			return writ_nomem(o->l.err);
	for (size_t i = 0; i < ws.l.tests.n; i++)
		if (!vec_add(o->l.a, &o->l.tests, ws.l.tests.v[i]))
			return writ_nomem(o->l.err);
	return 0;
}

/* --- agents --- */

enum copy_to { COPY_GRANT = 0, COPY_DENIAL, COPY_PRICE };

static bool has_price(const struct cap_set *set, struct sv text)
{
	for (size_t i = 0; i < set->prices.n; i++)
		if (sv_eq(set->prices.v[i].cap.text, text))
			return true;
	return false;
}

static int copy_entry(struct lower *agent, const struct cap_set *parent,
		      const struct cap_entry *from, enum copy_to to)
{
	struct cap_rule *r = vec_push(agent->a, &agent->set->rules);
	struct cap_entry *e = to == COPY_GRANT	  ? vec_push(agent->a, &agent->set->caps)
			      : to == COPY_DENIAL ? vec_push(agent->a, &agent->set->nots)
						  : vec_push(agent->a, &agent->set->prices);

	if (!e || !r)
		return writ_nomem(agent->err);
	*r = parent->rules.v[from->rule];
	r->built_in = true; /* mark the rule as built-in: the rule belongs to the parent */
	*e = (struct cap_entry){ from->cap, (uint32_t)(agent->set->rules.n - 1) };
	return 0;
}

/* Lets an agent without exec lines execute the programs that its parent may execute. */
static int inherit_exec(struct lower *agent, const struct cap_set *parent)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < parent->caps.n && !agent->exec_seen; i++)
		if (parent->caps.v[i].cap.action == CAP_PROC_EXEC)
			r = copy_entry(agent, parent, &parent->caps.v[i], COPY_GRANT);
	return r;
}

/*
 * Copies denials and prices of the parent into the agent's set: the agent must not get requests
 * that the parent is denied, or get for free requests that the parent pays for.
 */
static int inherit_refusals(struct lower *agent, const struct cap_set *parent)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < parent->nots.n; i++)
		r = copy_entry(agent, parent, &parent->nots.v[i], COPY_DENIAL);
	for (size_t i = 0; r == 0 && i < parent->caps.n; i++) {
		const struct cap *c = &parent->caps.v[i].cap;

		if ((c->approve_n || c->n || c->rate_n || c->max_in || c->max_out) &&
		    !has_price(agent->set, c->text))
			r = copy_entry(agent, parent, &parent->caps.v[i], COPY_PRICE);
	}
	for (size_t i = 0; r == 0 && i < parent->prices.n; i++)
		if (!has_price(agent->set, parent->prices.v[i].cap.text))
			r = copy_entry(agent, parent, &parent->prices.v[i], COPY_PRICE);
	return r;
}

/*
 * Takes over the stronger settings and limits of the parent, and the weaker guarantees that the
 * parent accepts, because the agent runs inside the parent's session.
 */
static void inherit_settings(struct cap_set *agent, const struct cap_set *parent)
{
	if (parent->isolation > agent->isolation)
		agent->isolation = parent->isolation;
	if (parent->workspace > agent->workspace)
		agent->workspace = parent->workspace;
	if (parent->net_level > agent->net_level)
		agent->net_level = parent->net_level;
	for (size_t i = 0; i < G_COUNT; i++) {
		if (parent->require[i] > agent->require[i])
			agent->require[i] = parent->require[i];
		agent->accepts[i] = parent->accepts[i];
		agent->accept[i] = parent->accept[i];
	}
	for (size_t i = 0; i < LIMIT_COUNT; i++)
		if (parent->limits[i] &&
		    (agent->limits[i] == 0 || agent->limits[i] > parent->limits[i])) {
			agent->limits[i] = parent->limits[i];
			agent->limit_rule[i] = RULE_NONE;
		}
	agent->root = parent->root;
}

/*
 * Finishes the set of one agent. With @narrowed, an untrusted file or a token narrowed the parent,
 * so narrow the agent to the parent too.
 */
static int finish_agent(struct policy *p, struct lower *l, bool narrowed)
{
	struct cap_set met = { 0 };
	int r = 0;

	if (narrowed) {
		r = cap_set_meet(l->a, l->set, &p->set, &met, l->err);
		if (r < 0)
			return r;
		*l->set = met;
	} else {
		lang_check_within(
			l, &p->set, DIAG_ERROR,
			"an agent cannot have more than its parent, and no rule of the parent "
			"covers this");
	}
	if ((r = inherit_exec(l, &p->set)) < 0 || (r = inherit_refusals(l, &p->set)) < 0)
		return r;
	inherit_settings(l->set, &p->set);
	return p->has_base ? lang_add_base(l, l->set) : 0;
}

int lang_finish_agents(struct policy *p, bool narrowed)
{
	for (size_t i = 0; i < p->agents.n; i++) {
		struct lower *l = p->agent_work.v[i];
		const int r = finish_agent(p, l, narrowed);

		if (r < 0)
			return r;
		lang_check_secrets(l);
		lang_check_tests(l, l->set);
		p->tests += l->policy->tests;
		p->agents.v[i].set = *l->set;
		p->agents.v[i].lists = l->policy;
	}
	return 0;
}

/*
 * Grants connecting to the agent socket. The session itself mounts the socket, so the grant needs
 * no file on the host.
 */
static int grant_socket(struct arena *a, struct cap_set *set, struct sv text, struct writ_err *err)
{
	struct cap_rule *rule = vec_push(a, &set->rules);
	struct cap_entry *e = vec_push(a, &set->caps);

	if (!rule || !e)
		return writ_nomem(err);
	*rule = (struct cap_rule){ .file = SV("agents"),
				   .text = SV("writ spawn"),
				   .built_in = true,
				   .shipped = true,
				   .missing = true };
	e->rule = (uint32_t)set->rules.n - 1;
	if (cap_parse(a, CAP_GRANT, text, &e->cap, err) < 0)
		return err->code;
	return cap_set_index(a, set) ? 0 : writ_nomem(err);
}

int lang_grant_agents(const struct policy_env *env, struct arena *a, struct policy *p,
		      struct cap_set *hops, struct writ_err *err)
{
	const size_t hops_n = p->set.hops_n;
	const char *text;
	int r;

	if (env->agent_socket.n == 0 || !cap_set_has(&p->set, CAP_AGENT_SPAWN))
		return 0;
	text = arena_fmt(a, "unix.connect:" SV_FMT ":" SV_FMT, SV_ARG(env->realm),
			 SV_ARG(env->agent_socket));
	if (!text)
		return writ_nomem(err);
	if (hops_n && !hops)
		return writ_fail(err, WRIT_E_BUG, 0, "a policy with hops that cannot be changed");
	r = grant_socket(a, &p->set, sv_from(text), err);
	for (size_t i = 0; r == 0 && hops && i < hops_n; i++)
		r = grant_socket(a, &hops[i], sv_from(text), err);
	/* Requests of agents use up the counted grants of the session that started the agents. */
	return r < 0 ? r : cap_set_price_uses(a, &p->set, err);
}

/* --- putting it together --- */

int lang_finish(struct diags *d, struct policy *p, struct policy **ret, struct writ_err *err)
{
	diag_sort_all(d);
	if (d->errors || d->lost)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the policy has errors");
	*ret = p;
	return 0;
}

int lang_load_inputs(struct loader *o, const struct policy_input *in)
{
	struct policy_arg *arg = arena_new(o->l.a, struct policy_arg);
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->files_n; i++) {
		struct loading here = { .id = in->files[i].name };

		r = lang_load_file(o, &in->files[i], &here);
	}
	for (size_t i = 0; r == 0 && i < in->args_n; i++)
		r = lang_load_arg(o, &in->args[i]);
	if (r == 0 && in->default_write && o->l.env->workspace.n) {
		if (!arg)
			return writ_nomem(o->l.err);
		*arg = (struct policy_arg){
			.kind = ARG_ALLOW,
			.src = { .name = SV("default"), .text = SV("write:."), .dir = SV("") }
		};
		r = lang_load_arg(o, arg);
	}
	return r;
}

int policy_new(const struct policy_env *env, const struct policy_input *in, struct diags *d,
	       struct policy **ret_policy, struct writ_err *err)
{
	struct policy *p = arena_new(d->arena, struct policy);
	struct cap_set *own = arena_new(d->arena, struct cap_set);
	struct loader o = { .agents_ok = true };
	struct cap_set met = { 0 };
	int r;

	if (!p || !own)
		return writ_nomem(err);
	lang_init_set(own);
	o.l = (struct lower){
		.env = env, .d = d, .policy = p, .a = d->arena, .set = own, .err = err
	};
	p->has_base = true;
	if ((r = lang_load_inputs(&o, in)) < 0 || (r = lang_default_exec(&o.l)) < 0 ||
	    (r = protect_own_files(&o.l)) < 0 ||
	    (in->narrow && d->errors == 0 && (r = narrow(&o, in->narrow, &met)) < 0))
		return r;
	/*
	 * Base and the grants derived from the machine are appended after narrowing: an untrusted
	 * file that could remove these grants would break every program without protecting
	 * anything.
	 */
	p->set = in->narrow && d->errors == 0 ? met : *own;
	if ((r = lang_set_root(&o.l, &p->set)) < 0 ||
	    (p->has_base && (r = lang_add_base(&o.l, &p->set)) < 0) ||
	    (p->has_base && (r = grant_program(&o.l, &p->set)) < 0) ||
	    (d->errors == 0 && (r = grant_repository(&o.l, &p->set)) < 0) ||
	    (d->errors == 0 && (r = lang_finish_agents(p, in->narrow != NULL)) < 0))
		return r;
	if (d->errors == 0)
		lang_check_secrets(&o.l);
	if (!cap_set_index(d->arena, &p->set))
		return writ_nomem(err);
	if (d->errors == 0)
		lang_check_tests(&o.l, &p->set);
	if (d->errors == 0)
		r = lang_grant_agents(env, d->arena, p, NULL, err);
	return r < 0 ? r : lang_finish(d, p, ret_policy, err);
}
