#include "policy/lower_priv.h"

#include <string.h>

#include "crypto/crypto.h"

#include "base/banned.h"

/* One file in the chain of `use` that led to the current one. */
struct loading {
	const struct loading *up;
	struct sv id;
	unsigned depth;
};

struct loader {
	struct lower l;
	VEC(struct sv) seen; /* ids of files already in the set */
	bool agents_ok;	     /* agent blocks are kept: not while narrowing */
};

static const char only_narrows[] =
	"agent.writ may only narrow until you read it and type: writ trust";

/* --- one statement --- */

static void init_set(struct cap_set *s)
{
	s->isolation_rule = s->workspace_rule = s->net_level_rule = RULE_NONE;
	for (size_t i = 0; i < LIMIT_COUNT; i++)
		s->limit_rule[i] = RULE_NONE;
	for (size_t i = 0; i < G_COUNT; i++)
		s->require_rule[i] = s->accept_rule[i] = RULE_NONE;
}

static bool add_rule(struct lower *l, const struct stmt *s)
{
	struct cap_rule *r;
	struct sv text;

	if (l->set->rules.n >= POLICY_RULES_MAX)
		return lower_bad(l, s, "grant a directory instead of its files",
				 "more than %d rules", POLICY_RULES_MAX);
	r = vec_push(l->a, &l->set->rules);
	if (!r || !lower_rule_text(l, s, &text))
		return lower_bad(l, s, NULL, "out of memory");
	*r = (struct cap_rule){
		.file = s->src->name, .line = s->line, .text = text, .built_in = s->src->built_in
	};
	l->rule = (uint32_t)(l->set->rules.n - 1);
	return true;
}

static int take_stmt(struct lower *l, const struct stmt *s)
{
	struct lowered_rule *done;

	if (s->kind == STMT_TEST) {
		const struct stmt **t = vec_push(l->a, &l->tests);

		if (!t)
			return writ_nomem(l->err);
		*t = s;
		return 0;
	}
	if (s->kind == STMT_VERSION || s->kind == STMT_USE || s->kind == STMT_AGENT)
		return 0;
	done = vec_push(l->a, &l->done);
	if (!done)
		return writ_nomem(l->err);
	*done = (struct lowered_rule){ .s = s,
				       .cap_from = l->set->caps.n,
				       .not_from = l->set->nots.n };
	if (!add_rule(l, s) || !lower_stmt(l, s)) {
		l->done.n--;
		return 0;
	}
	done->rule = l->rule;
	done->cap_n = l->set->caps.n - done->cap_from;
	done->not_n = l->set->nots.n - done->not_from;
	return 0;
}

/* --- files and what they use --- */

static int load_file(struct loader *o, const struct source *src, const struct loading *in);

static int use_profile(struct loader *o, const struct policy_profile *p, const struct loading *in)
{
	struct source *src = arena_new(o->l.a, struct source);

	if (!src)
		return writ_nomem(o->l.err);
	*src = (struct source){ .name = sv_from(p->name),
				.dir = SV(""),
				.text = { p->text, p->len },
				.built_in = true };
	return load_file(o, src, in);
}

/* Already loaded: nothing to do. Being loaded: a cycle. */
static bool seen_before(struct loader *o, const struct stmt *s, const struct loading *in,
			struct sv id, bool *ret_skip)
{
	for (const struct loading *up = in; up; up = up->up)
		if (sv_eq(up->id, id)) {
			diag_add(o->l.d, DIAG_ERROR, word_place(s, &s->w[1]), NULL,
				 "\"" SV_FMT "\" uses itself", SV_ARG(s->w[1].text));
			return false;
		}
	*ret_skip = false;
	for (size_t i = 0; i < o->seen.n; i++)
		*ret_skip = *ret_skip || sv_eq(o->seen.v[i], id);
	return true;
}

static void unknown_profile(struct loader *o, const struct stmt *s)
{
	const char *names[64];
	const char *near;
	size_t n = 0;

	for (const struct policy_profile *p = policy_profiles; p->name && n + 1 < ARRAY_LEN(names);
	     p++)
		names[n++] = p->name;
	names[n] = NULL;
	near = diag_nearest(s->w[1].text, names);
	diag_add(o->l.d, DIAG_ERROR, word_place(s, &s->w[1]),
		 near ? arena_fmt(o->l.a, "did you mean \"%s\"?", near)
		      : "writ profile list shows the names; a file is written ./FILE",
		 "no profile \"" SV_FMT "\"", SV_ARG(s->w[1].text));
}

static int load_use(struct loader *o, const struct stmt *s, const struct loading *in)
{
	struct sv name = s->w[1].text;
	const bool file = sv_find(name, '/') != SIZE_MAX || sv_ends(name, SV(".writ"));
	const struct policy_profile *profile = file ? NULL : profile_find(name);
	struct loading here = { .up = in, .depth = in->depth + 1, .id = name };
	struct writ_err err = { 0 };
	struct source *src;
	bool skip;

	if (sv_is(name, "none"))
		return 0;
	if (here.depth > POLICY_DEPTH_MAX || o->seen.n >= POLICY_FILES_MAX) {
		diag_add(o->l.d, DIAG_ERROR, word_place(s, &s->w[1]), NULL,
			 "policies use each other too deeply");
		return 0;
	}
	if (file && s->src->alone) {
		diag_add(o->l.d, DIAG_ERROR, word_place(s, &s->w[1]),
			 "copy its lines; profiles can be used",
			 "a workspace's policy cannot use files: trusting it pins only its own "
			 "text");
		return 0;
	}
	if (!file) {
		if (!profile) {
			unknown_profile(o, s);
			return 0;
		}
		if (!seen_before(o, s, in, name, &skip) || skip)
			return 0;
		return use_profile(o, profile, &here);
	}
	src = arena_new(o->l.a, struct source);
	if (!src || !path_bytes(o->l.a, name, &name))
		return writ_nomem(o->l.err);
	if (o->l.env->ops->read(o->l.env->ops->ctx, o->l.a, s->src->dir, name, src, &here.id,
				&err) < 0) {
		diag_add(o->l.d, DIAG_ERROR, word_place(s, &s->w[1]), NULL, "%s%s%s", err.what,
			 err.sys ? ": " : "", err.sys ? strerror(err.sys) : "");
		return 0;
	}
	if (!seen_before(o, s, in, here.id, &skip) || skip)
		return 0;
	return load_file(o, src, &here);
}

/* --- agent blocks --- */

/* A lower for another set, with everything else as in @l. */
static int fork_lower(const struct lower *l, struct lower *ret)
{
	struct cap_set *set = arena_new(l->a, struct cap_set);

	if (!set)
		return writ_nomem(l->err);
	*ret = (struct lower){
		.env = l->env, .d = l->d, .policy = l->policy, .a = l->a, .set = set, .err = l->err
	};
	init_set(set);
	return 0;
}

/* Lowers the block; it is compared with the parent once that is whole. */
static int load_agent(struct loader *o, const struct stmt *head, const struct stmt *end)
{
	const struct word *name = &head->w[1];
	struct policy_agent *agent = vec_push(o->l.a, &o->l.policy->agents);
	struct lower **slot = vec_push(o->l.a, &o->l.policy->agent_work);
	struct lower *l = arena_new(o->l.a, struct lower);
	int r;

	if (!agent || !slot || !l)
		return writ_nomem(o->l.err);
	if (o->l.policy->agents.n > POLICY_AGENTS_MAX) {
		o->l.policy->agents.n--;
		o->l.policy->agent_work.n--;
		if (o->l.d->errors == 0)
			diag_add(o->l.d, DIAG_ERROR, word_place(head, name), NULL,
				 "more than %d agents", POLICY_AGENTS_MAX);
		return 0;
	}
	for (const struct policy_agent *a = o->l.policy->agents.v; a < agent; a++)
		if (sv_eq(a->name, name->text))
			diag_add(o->l.d, DIAG_ERROR, word_place(head, name), NULL,
				 "agent " SV_FMT " is described twice", SV_ARG(name->text));
	*slot = l;
	agent->name = name->text;
	r = fork_lower(&o->l, l);
	if (r == 0) {
		/* Its variables and secrets are its own, not the parent's. */
		l->policy = arena_new(o->l.a, struct policy);
		if (!l->policy)
			return writ_nomem(o->l.err);
	}
	for (const struct stmt *s = head + 1; r == 0 && s < end; s++)
		r = take_stmt(l, s);
	if (r < 0)
		return r;
	if (l->done.n + l->tests.n == 0)
		diag_add(o->l.d, DIAG_ERROR, word_place(head, name),
			 "indent the lines that belong to it", "agent " SV_FMT " has no rules",
			 SV_ARG(name->text));
	check_file(l, 0);
	return 0;
}

static int load_ast(struct loader *o, const struct ast *ast, const struct loading *in)
{
	const size_t from = o->l.done.n;
	const struct stmt *end;
	int r = 0;

	if (ast->stmts.n == 0)
		return 0;
	end = ast->stmts.v + ast->stmts.n;

	for (const struct stmt *s = ast->stmts.v; r == 0 && s < end; s++)
		if (!s->inner && s->kind != STMT_AGENT)
			r = take_stmt(&o->l, s);
	if (r < 0)
		return r;
	check_file(&o->l, from);
	for (const struct stmt *s = ast->stmts.v; r == 0 && s < end; s++) {
		for (const struct stmt *t = ast->stmts.v; s->kind == STMT_USE && t < s; t++)
			if (t->kind == STMT_USE && sv_eq(t->w[1].text, s->w[1].text))
				diag_add(o->l.d, DIAG_ERROR, stmt_place(s), "keep one of them",
					 "this says the same as line %u", t->line);
		if (s->kind == STMT_USE)
			r = load_use(o, s, in);
		if (s->kind == STMT_AGENT && !o->agents_ok)
			diag_add(o->l.d, DIAG_WARNING, stmt_place(s), only_narrows,
				 "this agent has no effect here");
		if (s->kind == STMT_AGENT && o->agents_ok) {
			const struct stmt *stop = s + 1;

			while (stop < end && stop->inner)
				stop++;
			r = load_agent(o, s, stop);
		}
	}
	return r;
}

static int load_file(struct loader *o, const struct source *src, const struct loading *in)
{
	struct sv *id = vec_push(o->l.a, &o->seen);
	struct ast ast = { 0 };
	int r;

	if (!id)
		return writ_nomem(o->l.err);
	*id = in->id;
	r = ast_parse(o->l.d, src, &ast, o->l.err);
	if (r < 0)
		return r;
	if (ast.drops_base && in->depth > 0)
		diag_add(o->l.d, DIAG_ERROR, (struct place){ src, 0, 0, 0 }, NULL,
			 "only the policy itself can say use none, not a file it uses");
	else if (ast.drops_base)
		o->l.policy->has_base = false;
	return load_ast(o, &ast, in);
}

/* Lowers the base profile into @l's set. */
static int load_base(struct lower *l)
{
	const struct policy_profile *p = profile_find(SV("base"));
	struct loader o = { .l = *l };
	struct loading in = { .id = SV("base") };
	int r = p ? use_profile(&o, p, &in) : writ_fail(l->err, WRIT_E_BUG, 0, "no base profile");

	*l = o.l;
	return r;
}

/* --- command-line rules --- */

static int load_arg(struct loader *o, const struct policy_arg *arg)
{
	static const char *const keywords[] = {
		[ARG_LIMIT] = "limit", [ARG_SECRET] = "secret", [ARG_ENV] = "env", [ARG_USE] = "use"
	};
	struct loading in = { .id = SV("command line") };
	struct ast ast = { 0 };
	int r;

	switch (arg->kind) {
	case ARG_ALLOW:
		r = ast_parse_rule(o->l.d, &arg->src, EFFECT_ALLOW, STMT_RULE, &ast, o->l.err);
		break;
	case ARG_ASK:
		r = ast_parse_rule(o->l.d, &arg->src, EFFECT_ASK, STMT_RULE, &ast, o->l.err);
		break;
	case ARG_DENY:
		r = ast_parse_rule(o->l.d, &arg->src, EFFECT_DENY, STMT_RULE, &ast, o->l.err);
		break;
	case ARG_LIMIT:
	case ARG_SECRET:
	case ARG_ENV:
	case ARG_USE:
		r = ast_parse_statement(o->l.d, &arg->src, keywords[arg->kind], &ast, o->l.err);
		break;
	default:
		r = writ_fail(o->l.err, WRIT_E_BUG, 0, "unknown argument kind");
		break;
	}
	if (ast.drops_base)
		o->l.policy->has_base = false;
	return r < 0 ? r : load_ast(o, &ast, &in);
}

/* --- the whole --- */

/* With no exec line anything readable runs: say so as a capability. */
static int default_exec(struct lower *l)
{
	struct cap_entry *e;
	struct cap_rule *r;
	struct writ_err err = { 0 };
	const char *text;

	if (l->exec_said)
		return 0;
	text = arena_fmt(l->a, "proc.exec:" SV_FMT ":/**", SV_ARG(l->env->realm));
	r = vec_push(l->a, &l->set->rules);
	e = vec_push(l->a, &l->set->caps);
	if (!text || !r || !e)
		return writ_nomem(l->err);
	*r = (struct cap_rule){ .file = SV("default"),
				.text = SV("no exec line: what is readable may run"),
				.built_in = true };
	e->rule = (uint32_t)(l->set->rules.n - 1);
	return cap_parse(l->a, CAP_GRANT, sv_from(text), &e->cap, &err) < 0
		       ? writ_fail(l->err, WRIT_E_BUG, 0, "%s", err.what)
		       : 0;
}

/* Adds @more behind @set: rule numbers shift, and its limits are only defaults. */
static int append_set(struct arena *a, struct cap_set *set, const struct cap_set *more,
		      struct writ_err *err)
{
	const uint32_t shift = (uint32_t)set->rules.n;

	for (size_t i = 0; i < more->rules.n; i++) {
		struct cap_rule *r = vec_push(a, &set->rules);

		if (!r)
			return writ_nomem(err);
		*r = more->rules.v[i];
	}
	for (size_t i = 0; i < more->caps.n; i++) {
		struct cap_entry *e = vec_push(a, &set->caps);

		if (!e)
			return writ_nomem(err);
		*e = (struct cap_entry){ more->caps.v[i].cap, more->caps.v[i].rule + shift };
	}
	for (size_t i = 0; i < more->nots.n; i++) {
		struct cap_entry *e = vec_push(a, &set->nots);

		if (!e)
			return writ_nomem(err);
		*e = (struct cap_entry){ more->nots.v[i].cap, more->nots.v[i].rule + shift };
	}
	for (size_t i = 0; i < LIMIT_COUNT; i++)
		if (set->limits[i] == 0 && more->limits[i]) {
			set->limits[i] = more->limits[i];
			set->limit_rule[i] = more->limit_rule[i] + shift;
		}
	return 0;
}

/* Lowers base apart, since its limits are only defaults, and adds it to @set. */
static int add_base(struct lower *l, struct cap_set *set)
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

/* Meets the operator's set with an untrusted workspace policy. */
static int narrow(struct loader *o, const struct source *src, struct cap_set *ret)
{
	struct policy *scratch = arena_new(o->l.a, struct policy);
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
	check_within(&ws.l, o->l.set, DIAG_WARNING,
		     "this asks for more than your own policy allows, so it is cut down");
	r = default_exec(&ws.l);
	if (r == 0)
		r = cap_set_meet(o->l.a, o->l.set, ws.l.set, ret, o->l.err);
	for (size_t i = 0; r == 0 && i < ws.l.tests.n; i++) {
		const struct stmt **t = vec_push(o->l.a, &o->l.tests);

		if (!t)
			return writ_nomem(o->l.err);
		*t = ws.l.tests.v[i];
	}
	return r;
}

enum copy_to { COPY_GRANT = 0, COPY_DENIAL, COPY_PRICE };

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

/* What the parent may not do, or only after asking, its agent may not do freely. */
static int inherit_refusals(struct lower *agent, const struct cap_set *parent)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < parent->nots.n; i++)
		r = copy_entry(agent, parent, &parent->nots.v[i], COPY_DENIAL);
	for (size_t i = 0; r == 0 && i < parent->caps.n; i++)
		if (parent->caps.v[i].cap.approve_n)
			r = copy_entry(agent, parent, &parent->caps.v[i], COPY_PRICE);
	for (size_t i = 0; r == 0 && i < parent->prices.n; i++)
		r = copy_entry(agent, parent, &parent->prices.v[i], COPY_PRICE);
	return r;
}

static int finish_agents(struct policy *p)
{
	for (size_t i = 0; i < p->agents.n; i++) {
		struct lower *l = p->agent_work.v[i];
		int r;

		check_within(l, &p->set, DIAG_ERROR,
			     "an agent cannot have more than its parent, and no rule of the parent "
			     "covers this");
		r = inherit_exec(l, &p->set);
		if (r == 0)
			r = inherit_refusals(l, &p->set);
		if (r == 0 && p->has_base)
			r = add_base(l, l->set);
		if (r < 0)
			return r;
		check_tests(l, l->set);
		p->tests += l->policy->tests;
		p->tests_failed += l->policy->tests_failed;
		p->agents.v[i].set = *l->set;
		p->agents.v[i].lists = l->policy;
	}
	return 0;
}

static int load_inputs(struct loader *o, const struct policy_input *in)
{
	struct policy_arg write_here = {
		.kind = ARG_ALLOW,
		.src = { .name = SV("default"), .text = SV("write:."), .dir = SV("") }
	};
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
		*arg = write_here;
		r = load_arg(o, arg);
	}
	return r;
}

int policy_new(const struct policy_env *env, const struct policy_input *in, struct diags *d,
	       struct policy **ret_policy, struct writ_err *err)
{
	struct policy *p = arena_new(d->arena, struct policy);
	struct loader o = { .agents_ok = true };
	struct cap_set own = { 0 };
	struct cap_set met = { 0 };
	int r;

	if (!p)
		return writ_nomem(err);
	init_set(&own);
	o.l = (struct lower){
		.env = env, .d = d, .policy = p, .a = d->arena, .set = &own, .err = err
	};
	p->has_base = true;
	r = load_inputs(&o, in);
	if (r == 0)
		r = default_exec(&o.l);
	if (r == 0 && in->narrow && d->errors == 0)
		r = narrow(&o, in->narrow, &met);
	if (r < 0)
		return r;
	p->set = in->narrow && d->errors == 0 ? met : own;
	if (p->has_base)
		r = add_base(&o.l, &p->set);
	if (r == 0 && d->errors == 0)
		r = finish_agents(p);
	if (r < 0)
		return r;
	if (d->errors == 0)
		check_secrets(&o.l);
	if (d->errors == 0)
		check_tests(&o.l, &p->set);
	diags_sort(d);
	if (d->errors || d->lost)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the policy has errors");
	*ret_policy = p;
	return 0;
}
