#include "cli/token.h"

#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "facts/probe.h"

#include "base/banned.h"

int cli_where_find(struct arena *a, const char *cwd, bool make_realm, struct find_where *ret,
		   struct writ_err *err)
{
	const struct launch_where where = { .environ = environ, .cwd = cwd };

	return launch_locate(a, &where, make_realm, ret, err);
}

void cli_show_diags(const struct diags *d)
{
	scoped_buf b = BUF_INIT(OUT_MAX);
	struct writ_err err = { 0 };

	diag_print_all(d, &b, cli_use_colour(STDERR_FILENO));
	(void)!fd_write_all(STDERR_FILENO, buf_view(&b), &err);
}

void cli_input_init(const struct args *a, bool missing_ok, struct find_input *ret)
{
	*ret = (struct find_input){ .path = environ_get(environ, SV("PATH")),
				    .missing_ok = missing_ok };
	ret->vars.v = a->vars.v;
	ret->vars.n = ret->vars.room = a->vars.n;
}

/* --- a request from the command line --- */

static void show_diagnosed(void *ctx, const struct diags *d)
{
	const struct args *a = ctx;

	if (!a->given[OPT_JSON] || (d->errors && a->verb->run != cmd_check))
		cli_show_diags(d);
}

static void show_note(void *ctx, const char *text)
{
	(void)ctx;
	cli_note("%s", text);
}

void cli_request(struct args *a, struct launch_request *ret)
{
	*ret = (struct launch_request){
		.where = { .environ = environ, .cwd = a->value[OPT_CWD] },
		.policy = { .files = a->policies.v,
			    .files_n = a->policies.n,
			    .args = a->rules.v,
			    .args_n = a->rules.n,
			    .vars = a->vars.v,
			    .vars_n = a->vars.n,
			    .workspace_mode = a->value[OPT_WORKSPACE],
			    .token = a->value[OPT_TOKEN] },
		.command = { .environ = environ },
		.events = { .ctx = a, .diagnosed = show_diagnosed, .note = show_note },
		.opt = { .status_fd = -1 },
	};
}

/*
 * Prints the error. Adds a hint for the commonest failure of a first start: the state directory
 * cannot be created or written.
 */
static int fail_start(const struct launch_result *result, const struct writ_err *err,
		      const char *what)
{
	const int code = cli_fail(err, what);

	if (result->no_state)
		cli_note("writ keeps records and private homes there; set XDG_STATE_HOME to a "
			 "directory that you can write");
	return code;
}

int cli_launch_failed(const struct launch_result *result, const struct writ_err *err)
{
	switch (result->end) {
	case LAUNCH_RAN:
	case LAUNCH_NOT_STARTED:
		return fail_start(result, err, NULL);
	case LAUNCH_NO_FACTS:
		return cli_fail(err, "cannot look at this machine");
	case LAUNCH_BAD_POLICY:
		return EXIT_POLICY;
	case LAUNCH_TOKEN_REFUSED:
		return cli_token_refused(&result->why, EXIT_POLICY);
	case LAUNCH_TOKEN_UNHELD:
		return EXIT_GUARANTEE;
	case LAUNCH_PLAN_REFUSED:
		return cli_end(EXIT_GUARANTEE, "nothing was started; writ explain says more");
	case LAUNCH_SESSION_FAILED:
		if (err->code != WRIT_E_UNENFORCEABLE)
			return fail_start(result, err, "cannot start");
		(void)!cli_fail(err, NULL);
		return EXIT_GUARANTEE;
	}
	return EXIT_FAILED;
}

/* --- policies of verbs that run nothing --- */

int cli_load_rules(struct args *a, struct launch_loaded *l)
{
	struct launch_result result = { 0 };
	struct writ_err err = { 0 };
	struct launch_request req;
	struct source src;
	int r = 0;

	cli_request(a, &req);
	l->in.args.v = a->rules.v;
	l->in.args.n = l->in.args.room = a->rules.n;
	for (size_t i = 0; r == 0 && i < a->policies.n; i++) {
		r = locate_text_arg(a->arena, a->policies.v[i], &src, &err);
		if (r == 0)
			r = locate_add_source(a->arena, &l->in, &src, &err);
	}
	if (r < 0 || launch_read_policy(a->arena, &req.events, l, &result, &err) < 0)
		return cli_launch_failed(&result, &err);
	return 0;
}

/* Tests whether the verb uses the name of the realm; the realm is then created if missing. */
static bool names_realm(const struct args *a)
{
	return a->verb->run == cmd_caps || a->verb->run == cmd_token || a->given[OPT_TOKEN];
}

int cli_load_policy(struct args *a, const char *operand, bool missing_ok, struct launch_loaded *l)
{
	const char **files = arena_array(a->arena, const char *, a->policies.n + 1);
	struct launch_result result = { 0 };
	struct writ_err err = { 0 };
	struct launch_request req;
	struct find_where where;

	cli_request(a, &req);
	req.policy.missing_ok = missing_ok;
	req.policy.unheld_ok = a->verb->run == cmd_why;
	if (!files)
		return EXIT_FAILED;
	/* Treat the FILE operand as one more --policy. */
	req.policy.files = files;
	if (operand)
		*files++ = operand;
	for (size_t i = 0; i < a->policies.n; i++)
		*files++ = a->policies.v[i];
	req.policy.files_n = (operand != NULL) + a->policies.n;
	if (launch_locate(a->arena, &req.where, names_realm(a), &where, &err) < 0 ||
	    launch_load(a->arena, &req, &where, NULL, l, &result, &err) < 0)
		return cli_launch_failed(&result, &err);
	return 0;
}

int cli_load_facts(struct args *a, bool tools, struct host_facts *ret)
{
	struct writ_err err = { 0 };
	struct source src;

	if (a->given[OPT_FACTS]) {
		if (locate_text_arg(a->arena, a->value[OPT_FACTS], &src, &err) < 0 ||
		    facts_parse(src.text, ret, &err) < 0)
			return cli_fail(&err, a->value[OPT_FACTS]);
		return 0;
	}
	if (facts_probe(ret, &err) < 0 || (tools && facts_probe_tools(ret, &err) < 0))
		return cli_fail(&err, "cannot look at this machine");
	return 0;
}

int cli_load_facts_kept(struct args *a, struct sv state, struct host_facts *ret)
{
	struct writ_err err = { 0 };

	if (a->given[OPT_FACTS])
		return cli_load_facts(a, false, ret);
	return locate_facts(a->arena, state, "facts", ret, &err) < 0
		       ? cli_fail(&err, "cannot look at this machine")
		       : 0;
}

int cli_plan_options(struct args *a, struct launch_host *ret)
{
	const struct sv t = sv_from(a->value[OPT_TIER]);

	if (a->given[OPT_ADAPTER])
		ret->engine = launch_engine(sv_from(a->value[OPT_ADAPTER]));
	if (a->given[OPT_ADAPTER] && !ret->engine)
		return cli_end(EXIT_FAILED, "no adapter \"%s\"; %s", a->value[OPT_ADAPTER],
			       opt_get(OPT_ADAPTER)->values);
	if (!a->given[OPT_TIER])
		return 0;
	ret->tier = sv_is(t, "A") || sv_is(t, "a")   ? TIER_A
		    : sv_is(t, "B") || sv_is(t, "b") ? TIER_B
						     : TIER_NONE;
	if (ret->tier != TIER_NONE)
		return 0;
	return cli_end(EXIT_FAILED, "there are the tiers A and B, not \"%s\"", a->value[OPT_TIER]);
}

int cli_load_plan(struct args *a, const struct launch_loaded *l, const struct cap_set *set,
		  const struct host_facts *f, struct plan **ret)
{
	struct launch_request req;
	struct writ_err err = { 0 };
	int code;

	cli_request(a, &req);
	code = cli_plan_options(a, &req.host);
	if (code)
		return code;
	return launch_plan(a->arena, &req, &l->in.where, set, f, ret, &err) < 0
		       ? cli_fail(&err, NULL)
		       : 0;
}

void cli_show_refused(const struct plan *p)
{
	for (size_t i = 0; i < p->rules.n; i++) {
		const struct plan_rule *r = &p->rules.v[i];

		if (!r->refused)
			continue;
		cli_note(SV_FMT ": %s here: %s", SV_ARG(p->set->rules.v[r->rule].text),
			 level_name(r->hold.level), r->hold.by);
		if (!r->lacking && !sv_starts(sv_from(r->hold.by), SV("not in this version")))
			cli_note("`accept %s=%s` in a policy takes it as it is",
				 guarantee_name(r->guarantee), level_name(r->hold.level));
	}
	for (unsigned i = 0; i < G_COUNT; i++)
		if (p->guarantees[i].refused)
			cli_note("%s is required and %s here: %s",
				 guarantee_name((enum guarantee)i),
				 level_name(p->guarantees[i].level), p->guarantees[i].by);
	if (p->tier == TIER_NONE)
		cli_note("nothing here can hold a process: %s",
			 p->tier_why ? p->tier_why : "unknown");
	if (p->lacks)
		cli_note("%s", p->lacks);
}
