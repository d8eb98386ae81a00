#include "policy/load_priv.h"

#include "crypto/crypto.h"

#include "base/banned.h"

/* --- what nobody has to write --- */

/* A rule of our own and its one entry. @deny: a denial instead of a grant. */
static int add_own(struct lower *l, const char *text, const char *says, bool deny)
{
	struct cap_entry *e = deny ? vec_push(l->a, &l->set->nots) : vec_push(l->a, &l->set->caps);
	struct cap_rule *r = vec_push(l->a, &l->set->rules);
	struct writ_err err = { 0 };

	if (!text || !r || !e)
		return writ_nomem(l->err);
	*r = (struct cap_rule){ .file = SV("default"), .text = sv_from(says), .built_in = true };
	e->rule = (uint32_t)(l->set->rules.n - 1);
	return cap_parse(l->a, deny ? CAP_DENIAL : CAP_GRANT, sv_from(text), &e->cap, &err) < 0
		       ? writ_fail(l->err, WRIT_E_BUG, 0, "%s", err.what)
		       : 0;
}

/* With no exec line anything readable runs: say so as a capability. */
int default_exec(struct lower *l)
{
	if (l->exec_said)
		return 0;
	return add_own(l, arena_fmt(l->a, "proc.exec:" SV_FMT ":/**", SV_ARG(l->env->realm)),
		       "no exec line: what is readable may run", false);
}

/*
 * SECURITY: where writ keeps policies, pins and keys is never writable inside,
 * whatever a policy says: an agent must not be able to widen its next session.
 */
static int protect_path(struct lower *l, struct sv path)
{
	struct buf b = BUF_INIT(CAP_TEXT_MAX);
	int r = 0;

	buf_fmt(&b, "fs.write:" SV_FMT ":", SV_ARG(l->env->realm));
	if (cap_put_path(&b, path, l->err) < 0)
		r = l->err->code;
	buf_str(&b, "/**");
	if (r == 0 && b.failed)
		r = writ_nomem(l->err);
	if (r == 0)
		r = add_own(l, arena_str(l->a, buf_view(&b)), "writ's own files stay out of reach",
			    true);
	buf_clear(&b);
	return r;
}

/* By the name they are known by, and by where that leads. */
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

/* `writ run -- ~/tools/bin/x`: x has to be able to read itself. */
static int grant_program(struct lower *l, struct cap_set *set)
{
	struct buf b = BUF_INIT(CAP_TEXT_MAX);
	struct cap_set *const own = l->set;
	int r;

	if (l->env->program.n == 0)
		return 0;
	buf_fmt(&b, "fs.read:" SV_FMT ":", SV_ARG(l->env->realm));
	r = cap_put_path(&b, l->env->program, l->err);
	buf_str(&b, "/**");
	l->set = set;
	if (r == 0)
		r = b.failed ? writ_nomem(l->err)
			     : add_own(l, arena_str(l->a, buf_view(&b)), "the command's own files",
				       false);
	l->set = own;
	buf_clear(&b);
	return r;
}

/* --- the workspace's own git directory, where it lies elsewhere --- */

/* @action of @git/@rest, for the rule that was added last. */
static int grant_part(struct lower *l, struct cap_set *set, const char *action, bool deny,
		      struct sv git, const char *rest)
{
	struct buf b = BUF_INIT(CAP_TEXT_MAX);
	struct cap_entry *e = deny ? vec_push(l->a, &set->nots) : vec_push(l->a, &set->caps);
	const char *path = arena_fmt(l->a, SV_FMT "%s", SV_ARG(git), rest);
	struct sv name = sv_from(path);
	const bool tree = sv_ends(name, SV("/**"));
	int r;

	if (!e || !path)
		return writ_nomem(l->err);
	if (tree)
		name.n -= 3;
	buf_fmt(&b, "%s:" SV_FMT ":", action, SV_ARG(l->env->realm));
	r = cap_put_path(&b, name, l->err);
	buf_str(&b, tree ? "/**" : "");
	e->rule = (uint32_t)(set->rules.n - 1);
	if (r == 0 && b.failed)
		r = writ_nomem(l->err);
	if (r == 0)
		r = cap_parse(l->a, deny ? CAP_DENIAL : CAP_GRANT, buf_view(&b), &e->cap, l->err);
	buf_clear(&b);
	return r;
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

/* What git writes in a repository it shares with other worktrees; no setting, no hook. */
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

/* As far as the workspace itself is granted. */
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

int set_root(struct lower *l, struct cap_set *set)
{
	struct buf b = BUF_INIT(CAP_TEXT_MAX);
	int r = 0;

	if (l->env->workspace.n == 0)
		return 0;
	buf_fmt(&b, "fs.write:" SV_FMT ":", SV_ARG(l->env->realm));
	if (cap_put_path(&b, l->env->workspace, l->err) < 0)
		r = l->err->code;
	buf_str(&b, "/**");
	if (r == 0)
		r = cap_parse(l->a, CAP_GRANT, buf_view(&b), &set->root, l->err);
	buf_clear(&b);
	return r;
}

/* --- base --- */

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

/* Adds @more behind @set: rule numbers shift, and its limits are only defaults. */
int append_set(struct arena *a, struct cap_set *set, const struct cap_set *more,
	       struct writ_err *err)
{
	const uint32_t shift = (uint32_t)set->rules.n;

	if (!vec_reserve(a, &set->rules, more->rules.n) ||
	    !vec_reserve(a, &set->caps, more->caps.n))
		return writ_nomem(err);
	for (size_t i = 0; i < more->rules.n; i++) {
		struct cap_rule *r = vec_push(a, &set->rules);

		if (!r)
			return writ_nomem(err);
		*r = more->rules.v[i];
	}
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

/* Lowers base apart, since its limits are only defaults, and adds it to @set. */
int add_base(struct lower *l, struct cap_set *set)
{
	const struct policy_profile *p = profile_find(SV("base"));
	const size_t envs = l->policy->envs.n;
	const uint32_t shift = (uint32_t)set->rules.n;
	struct lower base;
	int r = fork_lower(l, &base);

	if (r == 0)
		r = load_base(&base);
	if (r < 0)
		return r;
	for (size_t i = envs; i < l->policy->envs.n; i++)
		l->policy->envs.v[i].rule += shift;
	if (p) {
		set->rt = crypto_sha256((struct sv){ p->text, p->len });
		set->has_rt = true;
	}
	return append_set(l->a, set, base.set, l->err);
}

/* --- a workspace policy that nobody trusts --- */

/* What such a file cannot speak about stays as the operator has it. */
bool is_operators(enum cap_action action)
{
	return action == CAP_ENV_PASS || action == CAP_SECRET_USE || action == CAP_STATE_USE;
}

/* What an untrusted file says beyond grants and limits has no effect; say so. */
static void check_narrow_kinds(struct lower *l)
{
	for (size_t i = 0; i < l->done.n; i++) {
		const enum stmt_kind k = l->done.v[i].s->kind;

		if (k == STMT_ENV || k == STMT_SECRET || k == STMT_OPEN || k == STMT_DANGER ||
		    k == STMT_ACCEPT || k == STMT_STATE)
			diag_add(l->d, DIAG_WARNING, stmt_place(l->done.v[i].s), only_narrows,
				 "this has no effect here");
	}
}

/*
 * SECURITY: base's limits hold where the operator set none, so a file that may
 * only narrow cannot go above them either.
 */
static int cap_limits(struct lower *l, struct cap_set *set)
{
	struct lower base;
	struct policy *scratch = arena_new(l->a, struct policy);
	int r = fork_lower(l, &base);

	if (r == 0 && !scratch)
		r = writ_nomem(l->err);
	base.policy = scratch;
	if (r == 0 && l->policy->has_base)
		r = load_base(&base);
	for (size_t i = 0; r == 0 && i < LIMIT_COUNT; i++)
		if (l->set->limits[i] == 0 && base.set->limits[i] &&
		    set->limits[i] > base.set->limits[i])
			set->limits[i] = 0; /* base's default comes back when base is added */
	return r;
}

/* Meets the operator's set with an untrusted workspace policy. */
static int narrow(struct loader *o, const struct source *src, struct cap_set *ret)
{
	struct policy *scratch = arena_new(o->l.a, struct policy);
	const struct cap_set *own = o->l.set;
	struct loading in = { .id = src->name };
	struct loader ws = { 0 };
	int r = fork_lower(&o->l, &ws.l);

	if (r < 0 || !scratch)
		return writ_nomem(o->l.err);
	ws.l.policy = scratch; /* its secrets, variables and openings go nowhere */
	r = load_file(&ws, src, &in);
	if (r < 0 || o->l.d->errors)
		return r;
	check_narrow_kinds(&ws.l);
	check_within(&ws.l, own, DIAG_WARNING,
		     "this asks for more than your own policy allows, so it is cut down");
	r = default_exec(&ws.l);
	if (r == 0)
		r = cap_set_meet(o->l.a, own, ws.l.set, ret, o->l.err);
	if (r == 0)
		r = cap_limits(&o->l, ret);
	for (size_t i = 0; r == 0 && i < own->caps.n; i++)
		if (is_operators(own->caps.v[i].cap.action)) {
			struct cap_entry *e = vec_push(o->l.a, &ret->caps);

			if (!e)
				return writ_nomem(o->l.err);
			*e = own->caps.v[i]; /* a meet keeps the numbers of its first side */
		}
	for (size_t i = 0; r == 0 && i < ws.l.tests.n; i++) {
		const struct stmt **t = vec_push(o->l.a, &o->l.tests);

		if (!t)
			return writ_nomem(o->l.err);
		*t = ws.l.tests.v[i];
	}
	return r;
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
	r->built_in = true; /* its parent's line, not its own */
	*e = (struct cap_entry){ from->cap, (uint32_t)(agent->set->rules.n - 1) };
	return 0;
}

/* An agent without exec lines may run what its parent may. */
static int inherit_exec(struct lower *agent, const struct cap_set *parent)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < parent->caps.n && !agent->exec_said; i++)
		if (parent->caps.v[i].cap.action == CAP_PROC_EXEC)
			r = copy_entry(agent, parent, &parent->caps.v[i], COPY_GRANT);
	return r;
}

/* What the parent may not do, or only at a price, its agent may not do freely. */
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

/* It runs inside its parent's walls, so they are at least as strong. */
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

/* @narrowed: an untrusted file cut the parent down, and its agents with it. */
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
		check_within(l, &p->set, DIAG_ERROR,
			     "an agent cannot have more than its parent, and no rule of the parent "
			     "covers this");
	}
	r = inherit_exec(l, &p->set);
	if (r == 0)
		r = inherit_refusals(l, &p->set);
	inherit_settings(l->set, &p->set);
	if (r == 0 && p->has_base)
		r = add_base(l, l->set);
	return r;
}

int finish_agents(struct policy *p, bool narrowed)
{
	for (size_t i = 0; i < p->agents.n; i++) {
		struct lower *l = p->agent_work.v[i];
		const int r = finish_agent(p, l, narrowed);

		if (r < 0)
			return r;
		check_secrets(l);
		check_tests(l, l->set);
		p->tests += l->policy->tests;
		p->agents.v[i].set = *l->set;
		p->agents.v[i].lists = l->policy;
	}
	return 0;
}

/* --- the whole --- */

int load_inputs(struct loader *o, const struct policy_input *in)
{
	struct policy_arg *arg = arena_new(o->l.a, struct policy_arg);
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->files_n; i++) {
		struct loading here = { .id = in->files[i].name };

		r = load_file(o, &in->files[i], &here);
	}
	for (size_t i = 0; r == 0 && i < in->args_n; i++)
		r = load_arg(o, &in->args[i]);
	if (r == 0 && in->default_write && o->l.env->workspace.n) {
		if (!arg)
			return writ_nomem(o->l.err);
		*arg = (struct policy_arg){
			.kind = ARG_ALLOW,
			.src = { .name = SV("default"), .text = SV("write:."), .dir = SV("") }
		};
		r = load_arg(o, arg);
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
	init_set(own);
	o.l = (struct lower){
		.env = env, .d = d, .policy = p, .a = d->arena, .set = own, .err = err
	};
	p->has_base = true;
	r = load_inputs(&o, in);
	if (r == 0)
		r = default_exec(&o.l);
	if (r == 0)
		r = protect_own_files(&o.l);
	if (r == 0 && in->narrow && d->errors == 0)
		r = narrow(&o, in->narrow, &met);
	if (r < 0)
		return r;
	p->set = in->narrow && d->errors == 0 ? met : *own;
	r = set_root(&o.l, &p->set);
	if (r == 0 && p->has_base)
		r = add_base(&o.l, &p->set);
	if (r == 0 && p->has_base)
		r = grant_program(&o.l, &p->set);
	if (r == 0 && d->errors == 0)
		r = grant_repository(&o.l, &p->set);
	if (r == 0 && d->errors == 0)
		r = finish_agents(p, in->narrow != NULL);
	if (r < 0)
		return r;
	if (d->errors == 0)
		check_secrets(&o.l);
	if (!cap_set_index(d->arena, &p->set))
		return writ_nomem(err);
	if (d->errors == 0)
		check_tests(&o.l, &p->set);
	diags_sort(d);
	if (d->errors || d->lost)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the policy has errors");
	*ret_policy = p;
	return 0;
}
