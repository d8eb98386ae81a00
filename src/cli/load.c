#include "cli/cli.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/probe.h"

#include "base/banned.h"

int where_find(struct arena *a, const char *cwd, bool make_realm, struct find_where *ret,
	       struct writ_err *err)
{
	const struct find_options opt = { .environ = environ, .make_realm = make_realm };
	int r;

	if (cwd && chdir(cwd) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "cd %s", cwd);
	r = find_where(a, &opt, ret, err);
	return r < 0 ? r : find_workspace(a, NULL, ret, err);
}

int read_text(struct arena *a, const char *path, struct source *ret, struct writ_err *err)
{
	return strcmp(path, "-") == 0 ? find_text_fd(a, STDIN_FILENO, path, ret, err)
				      : find_text(a, path, ret, err);
}

void show_diags(const struct diags *d)
{
	struct buf b = BUF_INIT(OUT_MAX);
	struct writ_err err = { 0 };

	diags_print(d, &b, use_colour(STDERR_FILENO));
	(void)!fd_write_all(STDERR_FILENO, buf_view(&b), &err);
	buf_clear(&b);
}

void input_init(const struct args *a, bool missing_ok, struct find_input *ret)
{
	*ret = (struct find_input){ .path = find_env(environ, "PATH"), .missing_ok = missing_ok };
	ret->vars.v = a->vars.v;
	ret->vars.n = ret->vars.room = a->vars.n;
}

static int add_file(struct args *a, struct find_input *in, const char *path, struct writ_err *err)
{
	struct source src;
	const int r = read_text(a->arena, path, &src, err);

	return r < 0 ? r : find_add_source(a->arena, in, &src, err);
}

static int add_workspace_mode(struct args *a, struct find_input *in, struct writ_err *err)
{
	struct source src = { .name = SV("--workspace"), .dir = SV("") };
	const char *mode = a->value[OPT_WORKSPACE];

	if (!a->given[OPT_WORKSPACE])
		return 0;
	if (strcmp(mode, "direct") != 0 && strcmp(mode, "cow") != 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "--workspace is direct or cow");
	src.text = sv_from(arena_fmt(a->arena, "version 1\nworkspace %s\n", mode));
	return src.text.n ? find_add_source(a->arena, in, &src, err) : writ_nomem(err);
}

/* What the command line says, or what holds here if it says nothing. */
static int gather(struct args *a, const char *operand, const char *program, struct find_input *in,
		  struct writ_err *err)
{
	int r = 0;

	in->args.v = a->rules.v;
	in->args.n = in->args.room = a->rules.n;
	if (operand)
		r = add_file(a, in, operand, err);
	for (size_t i = 0; r == 0 && i < a->policies.n; i++)
		r = add_file(a, in, a->policies.v[i], err);
	if (r == 0)
		r = find_policies(a->arena, in, err);
	if (r == 0 && program)
		r = find_agent(a->arena, program, environ, in, err);
	if (r == 0)
		r = add_workspace_mode(a, in, err);
	return r == 0 && program ? find_program(a->arena, program, in, err) : r;
}

int load_policy(struct args *a, const char *operand, bool missing_ok, struct loaded *l)
{
	return load_policy_for(a, operand, missing_ok, NULL, l);
}

static int read_policy(struct args *a, struct loaded *l)
{
	struct writ_err err = { 0 };
	int r;

	find_world_init(&l->world, a->arena, &l->in);
	r = find_policy(&l->world, &l->diags, &l->policy, &err);
	if (!a->given[OPT_JSON] || (l->diags.errors && a->verb->run != cmd_check))
		show_diags(&l->diags);
	if (r == WRIT_E_SYNTAX)
		return EXIT_POLICY;
	return r < 0 ? fail(&err, NULL) : 0;
}

int load_rules(struct args *a, struct loaded *l)
{
	struct writ_err err = { 0 };
	int r = 0;

	l->in.args.v = a->rules.v;
	l->in.args.n = l->in.args.room = a->rules.n;
	for (size_t i = 0; r == 0 && i < a->policies.n; i++)
		r = add_file(a, &l->in, a->policies.v[i], &err);
	return r < 0 ? fail(&err, NULL) : read_policy(a, l);
}

/* Those who name the realm in what they give out have to have one. */
static bool names_realm(const struct args *a)
{
	return a->verb->run == cmd_caps || a->verb->run == cmd_token || a->given[OPT_TOKEN];
}

int load_policy_for(struct args *a, const char *operand, bool missing_ok, const char *program,
		    struct loaded *l)
{
	struct writ_err err = { 0 };
	int r = 0;

	*l = (struct loaded){ .diags.arena = a->arena };
	input_init(a, missing_ok, &l->in);
	if (a->where)
		l->in.where = *a->where;
	else
		r = where_find(a->arena, a->value[OPT_CWD], names_realm(a), &l->in.where, &err);
	if (r == 0 && a->given[OPT_TOKEN])
		return load_token(a, program, l);
	if (r == 0)
		r = gather(a, operand, program, &l->in, &err);
	if (r < 0)
		return fail(&err, NULL);
	r = read_policy(a, l);
	if (r)
		return r;
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

int load_facts_kept(struct args *a, struct sv state, struct host_facts *ret)
{
	struct writ_err err = { 0 };

	if (a->given[OPT_FACTS])
		return load_facts(a, false, ret);
	return find_facts(a->arena, state, "facts", ret, &err) < 0
		       ? fail(&err, "cannot look at this machine")
		       : 0;
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

		if (load_advisories(a, &l->in.where, &db, &err) < 0)
			return fail(&err, NULL);
		opt.overlay_advisory =
			advisory_primitive_open(&db, f, SV("overlayfs"), &why) == ADVISORY_OPEN;
	}
	return plan_new(a->arena, set, f, &opt, ret, &err) < 0 ? fail(&err, NULL) : 0;
}

void show_refused(const struct plan *p)
{
	for (size_t i = 0; i < p->rules.n; i++) {
		const struct plan_rule *r = &p->rules.v[i];

		if (!r->refused)
			continue;
		note(SV_FMT ": %s here: %s", SV_ARG(p->set->rules.v[r->rule].text),
		     level_name(r->hold.level), r->hold.by);
		if (!r->lacking && !sv_starts(sv_from(r->hold.by), SV("not in this version")))
			note("`accept %s=%s` in a policy takes it as it is",
			     guarantee_name(r->guarantee), level_name(r->hold.level));
	}
	for (unsigned i = 0; i < G_COUNT; i++)
		if (p->guarantees[i].refused)
			note("%s is required and %s here: %s", guarantee_name((enum guarantee)i),
			     level_name(p->guarantees[i].level), p->guarantees[i].by);
	if (p->tier == TIER_NONE)
		note("nothing here can hold a process: %s", p->tier_why ? p->tier_why : "unknown");
	if (p->lacks)
		note("%s", p->lacks);
}
