#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/crypto.h"
#include "lib/lib_priv.h"

#include "base/banned.h"

static int add_file(struct writ_policy *p, const char *path, bool optional, bool *ret_there,
		    struct writ_err *err)
{
	struct writ_err why = { 0 };
	struct source src;
	struct source *slot;
	const int r = lib_read_text(&p->arena, path, &src, &why);

	*ret_there = r == 0;
	if (r == WRIT_E_SYS && optional && (why.sys == ENOENT || why.sys == ENOTDIR))
		return 0;
	if (r < 0) {
		*err = why;
		return r;
	}
	slot = vec_push(&p->arena, &p->in.files);
	if (!slot)
		return writ_nomem(err);
	*slot = src;
	return 0;
}

static int add_text(struct writ_policy *p, const char *text, const char *name, struct writ_err *err)
{
	struct source *slot = vec_push(&p->arena, &p->in.files);

	if (!slot || !arena_sv(&p->arena, sv_from(text), &slot->text) ||
	    !arena_sv(&p->arena, sv_from(name ? name : "policy"), &slot->name))
		return writ_nomem(err);
	slot->dir = SV("");
	return 0;
}

/* --- what a run in this place would use when nobody says anything --- */

/* Was exactly this text trusted? */
static bool is_trusted(struct writ_policy *p, const struct source *src)
{
	const char *path = lib_project_file(&p->arena, &p->in.where, "trusted");
	struct writ_err none = { 0 };
	struct digest x, y;
	struct source pin;

	if (!path || lib_read_text(&p->arena, path, &pin, &none) < 0)
		return false;
	x = crypto_sha256(src->text);
	y = crypto_sha256(pin.text);
	return digest_eq(&x, &y);
}

static int add_workspace_file(struct writ_policy *p, bool *any, struct writ_err *err)
{
	const char *path =
		arena_fmt(&p->arena, SV_FMT "/agent.writ", SV_ARG(p->in.where.workspace));
	struct writ_err why = { 0 };
	struct source src;
	struct source *slot;
	int r;

	if (!path)
		return writ_nomem(err);
	r = lib_read_text(&p->arena, path, &src, &why);
	if (r == WRIT_E_SYS && why.sys == ENOENT)
		return 0;
	if (r < 0) {
		*err = why;
		return r;
	}
	src.alone = true;
	if (p->in.where.config.n == 0 || !is_trusted(p, &src)) {
		p->in.narrow = src;
		p->in.has_narrow = true;
		return 0;
	}
	slot = vec_push(&p->arena, &p->in.files);
	if (!slot)
		return writ_nomem(err);
	*slot = src;
	*any = true;
	return 0;
}

static int discover(struct writ_policy *p, struct writ_err *err)
{
	const struct lib_where *w = &p->in.where;
	bool there = false, any = false;
	int r = 0;

	if (w->config.n) {
		const char *own = arena_fmt(&p->arena, SV_FMT "/policy.writ", SV_ARG(w->config));

		r = own ? add_file(p, own, true, &there, err) : writ_nomem(err);
		any = there;
	}
	if (r == 0 && w->config.n && w->workspace.n) {
		const char *project = lib_project_file(&p->arena, w, "projects");

		r = project ? add_file(p, project, true, &there, err) : writ_nomem(err);
		any = any || there;
	}
	if (r == 0 && w->workspace.n)
		r = add_workspace_file(p, &any, err);
	p->in.default_write = !any;
	return r;
}

/* --- what the caller gave --- */

static const char *const flag_names[] = { "allow", "ask", "deny", "limit", "secret", "env", "use" };
_Static_assert((int)WRIT_RULE_USE == (int)ARG_USE, "kinds of rules differ");
_Static_assert(ARRAY_LEN(flag_names) == ARG_USE + 1, "each kind has a name");

static int add_rules(struct writ_policy *p, const struct writ_policy_options *opt, bool *ret_grants,
		     struct writ_err *err)
{
	*ret_grants = false;
	for (size_t i = 0; i < opt->rules_n; i++) {
		const struct writ_rule *rule = &opt->rules[i];
		struct policy_arg *arg;

		if (!rule->text || rule->kind < 0 || rule->kind > WRIT_RULE_USE)
			return writ_fail(err, WRIT_E_SYNTAX, 0, "rule %zu has no kind or no text",
					 i);
		arg = vec_push(&p->arena, &p->in.args);
		if (!arg || !arena_sv(&p->arena, sv_from(rule->text), &arg->src.text))
			return writ_nomem(err);
		arg->kind = (enum policy_arg_kind)rule->kind;
		arg->src.name = sv_from(flag_names[rule->kind]);
		arg->src.dir = SV("");
		*ret_grants |= rule->kind != WRIT_RULE_LIMIT && rule->kind != WRIT_RULE_ENV;
	}
	return 0;
}

static int add_vars(struct writ_policy *p, const char *const *vars, struct writ_err *err)
{
	for (; vars && *vars; vars++) {
		struct sv rest = sv_from(*vars);
		const struct sv name = sv_cut(&rest, '=');
		struct policy_var *v = vec_push(&p->arena, &p->in.vars);

		if (!v || !arena_sv(&p->arena, name, &v->name) ||
		    !arena_sv(&p->arena, rest, &v->value))
			return writ_nomem(err);
	}
	return 0;
}

static int gather(struct writ_policy *p, const struct writ_policy_options *opt,
		  struct writ_err *err)
{
	static const enum plan_tier tiers[] = { TIER_NONE, TIER_A, TIER_B };
	const bool find = opt->flags & WRIT_POLICY_DISCOVER;
	bool there, grants = false;
	int r;

	if (opt->tier < 0 || (size_t)opt->tier >= ARRAY_LEN(tiers))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "there are the tiers A and B");
	p->in.tier = tiers[opt->tier];
	p->in.missing_ok = opt->flags & WRIT_POLICY_MISSING_OK;
	p->in.path = lib_env_get(p->w->environ, "PATH");
	r = lib_workspace_find(&p->arena, &p->in.where, opt->cwd, opt->workspace, find, err);
	if (r == 0 && opt->text)
		r = add_text(p, opt->text, opt->text_name, err);
	for (const char *const *f = opt->files; r == 0 && f && *f; f++)
		r = add_file(p, *f, false, &there, err);
	if (r == 0)
		r = add_rules(p, opt, &grants, err);
	if (r == 0)
		r = add_vars(p, opt->vars, err);
	if (r == 0 && find && p->in.files.n == 0 && !grants)
		r = discover(p, err);
	if (r == 0 && opt->program)
		r = lib_program_find(&p->arena, opt->program, &p->in, err);
	return r;
}

/* --- diagnostics --- */

static void tell(struct writ_policy *p, const struct writ_policy_options *opt)
{
	for (size_t i = 0; opt->diagnostic && i < p->diags.list.n; i++) {
		const struct diag *d = &p->diags.list.v[i];
		const struct sv source = d->at.src ? d->at.src->name : SV("");
		const struct writ_diagnostic out = {
			.size = sizeof(out),
			.level = (int32_t)d->level,
			.source = arena_str(&p->arena, source),
			.line = d->at.line,
			.column = d->at.col,
			.length = d->at.len,
			.text = arena_str(&p->arena, d->text),
			.hint = arena_str(&p->arena, d->hint),
		};

		if (out.source && out.text && out.hint)
			opt->diagnostic(opt->diagnostic_ctx, &out);
	}
}

static int diagnostics(struct writ_policy *p, const struct writ_policy_options *opt,
		       char **ret_text, struct writ_err *err)
{
	struct buf b = BUF_INIT(16 << 20);

	diags_sort(&p->diags);
	tell(p, opt);
	if (!ret_text)
		return 0;
	*ret_text = NULL;
	if (p->diags.list.n == 0)
		return 0;
	diags_print(&p->diags, &b, false);
	return lib_text(&b, ret_text, err);
}

static int load(struct writ_policy *p, const struct writ_policy_options *opt, char **ret_text,
		struct writ_err *err)
{
	struct lib_world world = { .in = &p->in, .a = &p->arena };
	struct writ_err why = { 0 };
	int r = gather(p, opt, err), told;

	if (r < 0)
		return r;
	r = lib_policy_new(&world, &p->diags, &p->policy, err);
	if (r < 0 && r != WRIT_E_SYNTAX)
		return r;
	told = diagnostics(p, opt, ret_text, &why);
	if (r == 0 && told < 0) {
		*err = why;
		return told;
	}
	if (r == WRIT_E_SYNTAX)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the policy has %zu error%s",
				 p->diags.errors, p->diags.errors == 1 ? "" : "s");
	r = cap_set_digest(&p->policy->set, &p->in.digest, err);
	return r < 0 ? r : lib_input_encode(&p->in, &p->bytes, err);
}

int writ_policy_load(struct writ *w, const struct writ_policy_options *options,
		     struct writ_policy **ret, char **ret_diagnostics, struct writ_error *err)
{
	struct writ_policy_options opt;
	struct writ_err why = { 0 };
	char *text = NULL;
	struct writ_policy *p;
	int r;

	if (!w || !ret || !lib_options(&opt, sizeof(opt), sizeof(size_t), options))
		return lib_argument(err, "writ_policy_load: options of an unknown size");
	p = calloc(1, sizeof(*p));
	if (!p) {
		(void)!writ_nomem(&why);
		return lib_error(err, &why);
	}
	p->w = w;
	p->arena = (struct arena)ARENA_INIT(POLICY_ARENA_MAX);
	p->diags.arena = &p->arena;
	p->bytes = (struct buf)BUF_INIT(64 << 20);
	p->in.where = w->where;
	p->in.program = p->in.tree = SV("");
	r = load(p, &opt, ret_diagnostics ? &text : NULL, &why);
	if (ret_diagnostics && (r == 0 || why.code == WRIT_E_SYNTAX))
		*ret_diagnostics = text;
	else
		free(text);
	if (r < 0) {
		writ_policy_free(p);
		return lib_error(err, &why);
	}
	*ret = p;
	return 0;
}

void writ_policy_free(struct writ_policy *p)
{
	if (!p)
		return;
	buf_clear(&p->bytes);
	arena_clear(&p->arena);
	free(p);
}
