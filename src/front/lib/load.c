#include <stdlib.h>

#include "crypto/crypto.h"
#include "lib/lib_priv.h"
#include "parts/session.h"

#include "base/banned.h"

static int add_text(struct writ_policy *p, const char *text, const char *name, struct writ_err *err)
{
	struct source src = { .dir = SV("") };

	if (!arena_sv(&p->arena, sv_from(text), &src.text) ||
	    !arena_sv(&p->arena, sv_from(name ? name : "policy"), &src.name))
		return writ_nomem(err);
	return locate_add_source(&p->arena, &p->in, &src, err);
}

static const char *const flag_names[] = { "allow", "ask", "deny", "limit", "secret", "env", "use" };
_Static_assert((int)WRIT_RULE_USE == (int)ARG_USE, "kinds of rules differ");
_Static_assert(ARRAY_LEN(flag_names) == ARG_USE + 1, "each kind has a name");

static int add_rules(struct writ_policy *p, const struct writ_policy_options *opt,
		     struct writ_err *err)
{
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
	struct find_input *in = &p->in;
	const bool find = opt->flags & WRIT_POLICY_DISCOVER;
	int r;

	if (opt->tier < 0 || (size_t)opt->tier >= ARRAY_LEN(tiers))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "there are the tiers A and B");
	p->tier = tiers[opt->tier];
	in->missing_ok = opt->flags & WRIT_POLICY_MISSING_OK;
	in->path = environ_get(p->w->environ, SV("PATH"));
	/* Use the socket path of the supervisor: both must compile the policy to one digest. */
	in->agent_socket = SV(SPAWN_SOCKET);
	if (opt->workspace)
		r = locate_workspace_at(&p->arena, opt->cwd, opt->workspace, &in->where, err);
	else if (find)
		r = locate_workspace(&p->arena, opt->cwd, &in->where, err);
	else
		r = locate_cwd(&p->arena, opt->cwd, &in->where, err);
	if (r == 0 && opt->text)
		r = add_text(p, opt->text, opt->text_name, err);
	for (const char *const *f = opt->files; r == 0 && f && *f; f++)
		r = locate_add_file(&p->arena, in, *f, err);
	if (r < 0 || (r = add_rules(p, opt, err)) < 0 || (r = add_vars(p, opt->vars, err)) < 0 ||
	    (find && (r = locate_policies(&p->arena, in, err)) < 0) ||
	    (find && opt->program &&
	     (r = locate_agent(&p->arena, opt->program, p->w->environ, in, err)) < 0))
		return r;
	return opt->program ? locate_program(&p->arena, opt->program, in, err) : 0;
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

	diag_sort_all(&p->diags);
	tell(p, opt);
	if (ret_text)
		*ret_text = NULL;
	if (!ret_text || p->diags.list.n == 0)
		return 0;
	diag_print_all(&p->diags, &b, false);
	return lib_text(&b, ret_text, err);
}

static int put_bytes(const char *bytes, size_t n, void *ctx)
{
	buf_add(ctx, bytes, n);
	return 0;
}

/*
 * Encodes the parameters of session.open: the texts of the policy, and the digest of the policy as
 * the library compiled it.
 */
static int encode(struct writ_policy *p, struct writ_err *err)
{
	scoped_json *params = locate_input_encode(&p->in);
	scoped_buf hex = BUF_INIT(128);
	struct digest digest;
	int r = cap_set_digest(&p->policy->set, &digest, err);

	digest_hex(&digest, &hex);
	if (r < 0)
		return r;
	if (!params || json_object_set_new(params, "digest", rpc_bytes(buf_view(&hex))) < 0 ||
	    json_object_set_new(params, "tier", json_integer(p->tier)) < 0)
		return writ_nomem(err);
	(void)json_dump_callback(params, put_bytes, &p->open, JSON_COMPACT);
	return buf_check(&p->open, err);
}

static int load(struct writ_policy *p, const struct writ_policy_options *opt, char **ret_text,
		struct writ_err *err)
{
	struct find_world world;
	struct writ_err why = { 0 };
	int r = gather(p, opt, err), told;

	if (r < 0)
		return r;
	locate_world_init(&world, &p->arena, &p->in);
	r = locate_policy(&world, &p->diags, &p->policy, err);
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
	return encode(p, err);
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
	p = lib_new(sizeof(*p), err);
	if (!p)
		return WRIT_ERROR_MEMORY;
	p->w = w;
	p->arena = (struct arena)ARENA_INIT(POLICY_ARENA_MAX);
	p->diags.arena = &p->arena;
	p->open = (struct buf)BUF_INIT(RPC_FILE_MAX);
	p->in.where = w->where;
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
	buf_clear(&p->open);
	arena_clear(&p->arena);
	free(p);
}
