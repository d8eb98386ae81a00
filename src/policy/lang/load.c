#include "lang/load_priv.h"

#include <string.h>

#include "base/banned.h"

/* --- statements --- */

void lang_init_set(struct cap_set *s)
{
	s->isolation_rule = s->workspace_rule = s->net_level_rule = RULE_NONE;
	for (size_t i = 0; i < LIMIT_COUNT; i++)
		s->limit_rule[i] = RULE_NONE;
	for (size_t i = 0; i < G_COUNT; i++)
		s->require_rule[i] = s->accept_rule[i] = RULE_NONE;
}

static enum cap_rule_kind rule_kind(const struct stmt *s)
{
	static const enum cap_rule_kind kinds[] = {
		[STMT_ENV] = RULE_ENV,	       [STMT_OPEN] = RULE_OPEN,
		[STMT_ACCEPT] = RULE_ACCEPT,   [STMT_REQUIRE] = RULE_REQUIRE,
		[STMT_DANGER] = RULE_DANGER,   [STMT_LIMIT] = RULE_LIMIT,
		[STMT_NET_LEVEL] = RULE_GRANTS,
	};

	if (!s->verb || s->verb->id != VERB_SHELL)
		return kinds[s->kind];
	if (sv_is(s->object.text, "none"))
		return RULE_SHELL_NONE;
	return sv_is(s->object.text, "full") ? RULE_SHELL_FULL : RULE_SHELL;
}

static bool add_rule(struct lower *l, const struct stmt *s)
{
	struct cap_rule *r;
	struct sv text;

	if (l->set->rules.n >= POLICY_RULES_MAX)
		return lower_error(l, s, "grant a directory instead of its files",
				   "more than %d rules", POLICY_RULES_MAX);
	r = vec_push(l->a, &l->set->rules);
	if (!r || !lower_rule_text(l, s, &text))
		return lower_error(l, s, NULL, "out of memory");
	*r = (struct cap_rule){ .file = s->src->name,
				.line = s->line,
				.text = text,
				.kind = rule_kind(s),
				.built_in = s->src->base,
				.shipped = s->src->built_in,
				.optional = s->optional };
	l->rule = (uint32_t)(l->set->rules.n - 1);
	return true;
}

static int load_stmt(struct lower *l, const struct stmt *s)
{
	const size_t errors = l->d->errors;
	struct lowered_rule *done;

	if (s->kind == STMT_TEST)
		return vec_add(l->a, &l->tests, s) ? 0 : writ_nomem(l->err);
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
		/*
		 * SECURITY: never drop a line that lang/ did not understand without reporting an
		 * error: the line might be a denial.
		 */
		if (l->d->errors == errors)
			(void)lower_error(l, s, NULL, "this line cannot be read");
		return 0;
	}
	done->rule = l->rule;
	done->cap_n = l->set->caps.n - done->cap_from;
	done->not_n = l->set->nots.n - done->not_from;
	return 0;
}

/* --- files and `use` --- */

static int use_profile(struct loader *o, const struct policy_profile *p, const struct loading *in)
{
	struct source *src = arena_new(o->l.a, struct source);

	if (!src)
		return writ_nomem(o->l.err);
	*src = (struct source){ .name = sv_from(p->name),
				.dir = SV(""),
				.text = { p->text, p->len },
				.built_in = true,
				.base = strcmp(p->name, "base") == 0 };
	return lang_load_file(o, src, in);
}

/*
 * Was the file with the id @id loaded before? The answer goes to *@ret_skip. Returns false and
 * reports a cycle if the loading of the file has not finished yet.
 */
static bool seen_before(struct loader *o, const struct stmt *s, const struct loading *in,
			struct sv id, bool *ret_skip)
{
	for (const struct loading *up = in; up; up = up->up)
		if (sv_eq(up->id, id))
			return lang_error(o->l.d, s, &s->w[1], NULL, "\"" SV_FMT "\" uses itself",
					  SV_ARG(s->w[1].text));
	*ret_skip = false;
	for (size_t i = 0; i < o->seen.n; i++)
		*ret_skip = *ret_skip || sv_eq(o->seen.v[i], id);
	return true;
}

static void unknown_profile(struct loader *o, const struct stmt *s)
{
	const char *names[64];
	size_t n = 0;

	for (const struct policy_profile *p = policy_profiles; p->name && n + 1 < ARRAY_LEN(names);
	     p++)
		names[n++] = p->name;
	names[n] = NULL;
	diag_add(o->l.d, DIAG_ERROR, lang_word_place(s, &s->w[1]),
		 diag_suggest(o->l.a, s->w[1].text, names,
			      "writ profile list shows the names; a file is written ./FILE"),
		 "no profile \"" SV_FMT "\"", SV_ARG(s->w[1].text));
}

static int load_use(struct loader *o, const struct stmt *s, const struct loading *in)
{
	struct sv name = s->w[1].text;
	const bool file = sv_find(name, '/') != SIZE_MAX || sv_ends(name, SV(".writ"));
	const struct policy_profile *profile = file ? NULL : lang_profile_find(name);
	struct loading here = { .up = in, .depth = in->depth + 1, .id = name };
	struct writ_err err = { 0 };
	struct source *src;
	bool skip;

	if (sv_is(name, "none"))
		return 0;
	if (here.depth > POLICY_DEPTH_MAX || o->seen.n >= POLICY_FILES_MAX) {
		lang_error(o->l.d, s, &s->w[1], NULL, "policies use each other too deeply");
		return 0;
	}
	/*
	 * SECURITY: `writ trust` pins the digest of agent.writ only. A file that agent.writ uses
	 * could change after the user has read it, so refuse `use` of other files.
	 */
	if (file && s->src->alone) {
		diag_add(o->l.d, DIAG_ERROR, lang_word_place(s, &s->w[1]),
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
	if (!src || !lang_path_bytes(o->l.a, name, &name))
		return writ_nomem(o->l.err);
	if (o->l.env->ops->read(o->l.env->ops->ctx, o->l.a, s->src->dir, name, src, &here.id,
				&err) < 0) {
		lang_error(o->l.d, s, &s->w[1], NULL, "%s%s%s", err.what, err.sys ? ": " : "",
			   err.sys ? strerror(err.sys) : "");
		return 0;
	}
	if (!seen_before(o, s, in, here.id, &skip) || skip)
		return 0;
	return lang_load_file(o, src, &here);
}

/* --- agent blocks --- */

int lang_fork_lower(const struct lower *l, struct lower *ret)
{
	struct cap_set *set = arena_new(l->a, struct cap_set);

	if (!set)
		return writ_nomem(l->err);
	*ret = (struct lower){
		.env = l->env, .d = l->d, .policy = l->policy, .a = l->a, .set = set, .err = l->err
	};
	lang_init_set(set);
	return 0;
}

/*
 * Lowers an agent block. lang_finish_agents() compares the agent with its parent when the parent's
 * set is complete.
 */
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
			lang_error(o->l.d, head, name, NULL, "more than %d agents",
				   POLICY_AGENTS_MAX);
		return 0;
	}
	for (const struct policy_agent *a = o->l.policy->agents.v; a < agent; a++)
		if (sv_eq(a->name, name->text))
			lang_error(o->l.d, head, name, NULL, "agent " SV_FMT " is described twice",
				   SV_ARG(name->text));
	*slot = l;
	agent->name = name->text;
	r = lang_fork_lower(&o->l, l);
	if (r == 0) {
		/* Keep the agent's variables and secrets separate from the parent's. */
		l->policy = arena_new(o->l.a, struct policy);
		if (!l->policy)
			return writ_nomem(o->l.err);
	}
	for (const struct stmt *s = head + 1; r == 0 && s < end; s++)
		r = load_stmt(l, s);
	if (r < 0)
		return r;
	if (l->done.n + l->tests.n == 0)
		lang_error(o->l.d, head, name, "indent the lines that belong to it",
			   "agent " SV_FMT " has no rules", SV_ARG(name->text));
	lang_check_file(l, 0);
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
	/*
	 * Reserve memory: most lines produce one or two capabilities, and copying capabilities
	 * while the array grows is expensive.
	 */
	if (!vec_reserve(o->l.a, &o->l.set->caps, ast->stmts.n + ast->stmts.n / 2) ||
	    !vec_reserve(o->l.a, &o->l.set->rules, ast->stmts.n) ||
	    !vec_reserve(o->l.a, &o->l.done, ast->stmts.n))
		return writ_nomem(o->l.err);

	for (const struct stmt *s = ast->stmts.v; r == 0 && s < end; s++)
		if (!s->inner && s->kind != STMT_AGENT)
			r = load_stmt(&o->l, s);
	if (r < 0)
		return r;
	/*
	 * Do not check shipped profiles for duplicates and dead rules: two paths of a profile may
	 * be the same directory on this machine.
	 */
	if (!ast->stmts.v[0].src->built_in)
		lang_check_file(&o->l, from);
	for (const struct stmt *s = ast->stmts.v; r == 0 && s < end; s++) {
		for (const struct stmt *t = ast->stmts.v; s->kind == STMT_USE && t < s; t++)
			if (t->kind == STMT_USE && sv_eq(t->w[1].text, s->w[1].text))
				diag_add(o->l.d, DIAG_ERROR, lang_stmt_place(s), "keep one of them",
					 "this says the same as line %u", t->line);
		if (s->kind == STMT_USE)
			r = load_use(o, s, in);
		if (s->kind == STMT_AGENT && !o->agents_ok)
			diag_add(o->l.d, DIAG_WARNING, lang_stmt_place(s), only_narrows,
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

int lang_load_file(struct loader *o, const struct source *src, const struct loading *in)
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
	else if (ast.drops_base && !o->agents_ok)
		diag_add(o->l.d, DIAG_WARNING, (struct place){ src, 0, 0, 0 }, only_narrows,
			 "use none has no effect here");
	else if (ast.drops_base)
		o->l.policy->has_base = false;
	return load_ast(o, &ast, in);
}

int lang_load_base(struct lower *l)
{
	const struct policy_profile *p = lang_profile_find(SV("base"));
	struct loader o = { .l = *l };
	struct loading in = { .id = SV("base") };
	int r = p ? use_profile(&o, p, &in) : writ_fail(l->err, WRIT_E_BUG, 0, "no base profile");

	*l = o.l;
	return r;
}

/* --- command-line rules --- */

int lang_load_arg(struct loader *o, const struct policy_arg *arg)
{
	/* An argument without a keyword is a rule with the effect of its row. */
	static const struct {
		const char *keyword;
		enum policy_effect effect;
	} kinds[] = {
		[ARG_ALLOW] = { NULL, EFFECT_ALLOW }, [ARG_ASK] = { NULL, EFFECT_ASK },
		[ARG_DENY] = { NULL, EFFECT_DENY },   [ARG_LIMIT] = { "limit", EFFECT_DENY },
		[ARG_SECRET] = { "secret", EFFECT_DENY }, [ARG_ENV] = { "env", EFFECT_DENY },
		[ARG_USE] = { "use", EFFECT_DENY },
	};
	struct loading in = { .id = SV("command line") };
	struct ast ast = { 0 };
	int r;

	if ((size_t)arg->kind >= ARRAY_LEN(kinds))
		return writ_fail(o->l.err, WRIT_E_BUG, 0, "unknown argument kind");
	r = kinds[arg->kind].keyword
		    ? ast_parse_statement(o->l.d, &arg->src, kinds[arg->kind].keyword, &ast,
					  o->l.err)
		    : ast_parse_rule(o->l.d, &arg->src, kinds[arg->kind].effect, STMT_RULE, &ast,
				     o->l.err);
	if (ast.drops_base)
		o->l.policy->has_base = false;
	return r < 0 ? r : load_ast(o, &ast, &in);
}
