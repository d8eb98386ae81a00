#include "cli/cli.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "host/probe.h"

#include "base/banned.h"

/* The rule flags of a command line and the files they bring. */
struct inputs {
	VEC(struct source) files;
	struct source narrow;
	bool has_narrow;
};

static int add_file(struct args *a, struct inputs *in, const char *path, bool optional,
		    bool *ret_there, struct writ_err *err)
{
	struct source src;
	struct source *slot;
	int r = read_text(a->arena, path, &src, err);

	*ret_there = r == 0;
	if (r == WRIT_E_SYS && optional && (err->sys == ENOENT || err->sys == ENOTDIR))
		return 0;
	if (r < 0)
		return r;
	slot = vec_push(a->arena, &in->files);
	if (!slot)
		return writ_nomem(err);
	*slot = src;
	return 0;
}

/* Was exactly this text trusted? The pin is a copy, so that a diff can be shown. */
static bool is_trusted(struct args *a, const struct place_info *w, const struct source *src)
{
	struct writ_err err = { 0 };
	struct source pin;
	const char *path;
	struct digest x, y;

	if (!project_file(a->arena, w, "trusted", ".writ", &path) ||
	    read_text(a->arena, path, &pin, &err) < 0)
		return false;
	x = crypto_sha256(src->text);
	y = crypto_sha256(pin.text);
	return digest_eq(&x, &y);
}

static int add_workspace_file(struct args *a, struct inputs *in, struct loaded *l,
			      struct writ_err *err)
{
	const char *path = arena_fmt(a->arena, SV_FMT "/agent.writ", SV_ARG(l->where.workspace));
	struct source src;
	struct source *slot;
	int r;

	if (!path)
		return writ_nomem(err);
	r = read_text(a->arena, path, &src, err);
	if (r == WRIT_E_SYS && err->sys == ENOENT)
		return 0;
	if (r < 0)
		return r;
	src.alone = true;
	l->workspace_file = sv_from(path);
	l->workspace_trusted = is_trusted(a, &l->where, &src);
	if (!l->workspace_trusted) {
		in->narrow = src;
		in->has_narrow = true;
		return 0;
	}
	slot = vec_push(a->arena, &in->files);
	if (!slot)
		return writ_nomem(err);
	*slot = src;
	return 0;
}

/* What a run here would use when nobody names a policy. */
static int discover(struct args *a, struct inputs *in, struct loaded *l, bool *ret_any,
		    struct writ_err *err)
{
	const char *own = arena_fmt(a->arena, SV_FMT "/policy.writ", SV_ARG(l->where.config));
	const char *project = NULL;
	bool there = false;
	int r = 0;

	*ret_any = false;
	if (!own)
		return writ_nomem(err);
	if (l->where.config.n) {
		r = add_file(a, in, own, true, &there, err);
		*ret_any = there;
	}
	if (r == 0 && l->where.config.n && l->where.workspace.n &&
	    project_file(a->arena, &l->where, "projects", ".writ", &project)) {
		r = add_file(a, in, project, true, &there, err);
		*ret_any = *ret_any || there;
	}
	if (r == 0 && l->where.workspace.n)
		r = add_workspace_file(a, in, l, err);
	*ret_any = *ret_any || l->workspace_trusted;
	return r;
}

void show_diags(const struct diags *d)
{
	struct buf b = BUF_INIT(OUT_MAX);
	struct writ_err err = { 0 };

	diags_print(d, &b, use_colour(STDERR_FILENO));
	(void)!fd_write_all(STDERR_FILENO, buf_view(&b), &err);
	buf_clear(&b);
}

static int gather(struct args *a, const char *operand, struct inputs *in, struct loaded *l,
		  bool *ret_default_write, struct writ_err *err)
{
	bool there, any = false;
	int r = 0;

	*ret_default_write = false;
	if (operand)
		r = add_file(a, in, operand, false, &there, err);
	for (size_t i = 0; r == 0 && i < a->policies.n; i++)
		r = add_file(a, in, a->policies.v[i], false, &there, err);
	if (r < 0 || operand || a->policies.n)
		return r;
	if (a->rules.n) {
		/* With any rule of one's own, exactly what is written. */
		for (size_t i = 0; i < a->rules.n; i++)
			any = any ||
			      (a->rules.v[i].kind != ARG_LIMIT && a->rules.v[i].kind != ARG_ENV);
		if (any)
			return 0;
	}
	r = discover(a, in, l, &any, err);
	*ret_default_write = !any;
	return r;
}

static int add_workspace_mode(struct args *a, struct inputs *in, struct writ_err *err)
{
	struct source *s;

	if (!a->given[OPT_WORKSPACE])
		return 0;
	if (!sv_is(sv_from(a->value[OPT_WORKSPACE]), "direct") &&
	    !sv_is(sv_from(a->value[OPT_WORKSPACE]), "cow"))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "--workspace is direct or cow");
	s = vec_push(a->arena, &in->files);
	if (!s)
		return writ_nomem(err);
	*s = (struct source){ .name = SV("--workspace"), .dir = SV("") };
	s->text =
		sv_from(arena_fmt(a->arena, "version 1\nworkspace %s\n", a->value[OPT_WORKSPACE]));
	return 0;
}

int load_policy(struct args *a, const char *operand, bool missing_ok, struct loaded *l)
{
	return load_policy_for(a, operand, missing_ok, NULL, l);
}

int load_policy_for(struct args *a, const char *operand, bool missing_ok, const char *program,
		    struct loaded *l)
{
	struct writ_err err = { 0 };
	struct inputs in = { 0 };
	struct policy_input input = { 0 };
	int r;

	memset(l, 0, sizeof(*l));
	l->diags.arena = a->arena;
	r = where_find(a->arena, a->value[OPT_CWD], a->verb->run == cmd_caps, &l->where, &err);
	if (r == 0)
		r = gather(a, operand, &in, l, &input.default_write, &err);
	if (r == 0)
		r = add_workspace_mode(a, &in, &err);
	if (r < 0)
		return fail(&err, NULL);
	input.files = in.files.v;
	input.files_n = in.files.n;
	input.narrow = in.has_narrow ? &in.narrow : NULL;
	input.args = a->rules.v;
	input.args_n = a->rules.n;
	if (l->where.config.n)
		l->own[l->own_n++] = l->where.config;
	if (l->where.state.n)
		l->own[l->own_n++] = l->where.state;
	l->env = (struct policy_env){ .ops = &world_ops,
				      .own = l->own,
				      .own_n = l->own_n,
				      .workspace = l->where.workspace,
				      .home = l->where.home,
				      .realm = l->where.realm,
				      .vars = a->vars.v,
				      .vars_n = a->vars.n,
				      .missing_ok = missing_ok };
	if (program && program_find(a->arena, &l->where, program, &l->program, &l->env.program) < 0)
		return fail(&(struct writ_err){ .what = "out of memory" }, NULL);
	r = policy_new(&l->env, &input, &l->diags, &l->policy, &err);
	if (!a->given[OPT_JSON] || (l->diags.errors && a->verb->run != cmd_check))
		show_diags(&l->diags);
	if (r == WRIT_E_SYNTAX)
		return EXIT_POLICY;
	if (r < 0)
		return fail(&err, NULL);
	if (a->given[OPT_WORKSPACE] && sv_is(sv_from(a->value[OPT_WORKSPACE]), "direct") &&
	    l->policy->set.workspace != WORKSPACE_DIRECT)
		note("the policy says workspace cow, and that stands");
	return 0;
}

int load_facts(struct args *a, bool tools, struct host_facts *ret)
{
	struct writ_err err = { 0 };
	struct source src;
	int r;

	if (a->given[OPT_FACTS]) {
		r = read_text(a->arena, a->value[OPT_FACTS], &src, &err);
		if (r == 0)
			r = facts_parse(src.text, ret, &err);
		return r < 0 ? fail(&err, a->value[OPT_FACTS]) : 0;
	}
	r = host_probe(ret, &err);
	if (r == 0 && tools)
		r = host_probe_tools(ret, &err);
	return r < 0 ? fail(&err, "cannot look at this machine") : 0;
}

int load_plan(struct args *a, const struct loaded *l, const struct cap_set *set,
	      const struct host_facts *f, struct plan **ret)
{
	struct plan_options opt = { 0 };
	struct writ_err err = { 0 };

	if (a->given[OPT_ADAPTER] &&
	    !plan_adapter_parse(sv_from(a->value[OPT_ADAPTER]), &opt.adapter)) {
		note("no adapter \"%s\"; %s", a->value[OPT_ADAPTER], opt_get(OPT_ADAPTER)->values);
		return EXIT_FAILED;
	}
	if (a->given[OPT_TIER]) {
		const struct sv t = sv_from(a->value[OPT_TIER]);

		opt.tier = sv_is(t, "A") || sv_is(t, "a")   ? TIER_A
			   : sv_is(t, "B") || sv_is(t, "b") ? TIER_B
							    : TIER_NONE;
		if (opt.tier == TIER_NONE) {
			note("there are the tiers A and B, not \"%s\"", a->value[OPT_TIER]);
			return EXIT_FAILED;
		}
	}
	if (set->workspace == WORKSPACE_COW) {
		const struct advisory *why;
		struct advisory_db db;

		if (load_advisories(a, &l->where, &db, &err) < 0)
			return fail(&err, NULL);
		opt.overlay_advisory =
			advisory_primitive_open(&db, f, SV("overlayfs"), &why) == ADVISORY_OPEN;
	}
	return plan_new(a->arena, set, f, &opt, ret, &err) < 0 ? fail(&err, NULL) : 0;
}
