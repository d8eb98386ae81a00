#include "cli/token.h"

#include <string.h>
#include <unistd.h>

#include "codec/json.h"
#include "lang/protect.h"

#include "base/banned.h"

static int show_protected(struct args *a)
{
	struct buf b = BUF_INIT(65536);
	const bool json = a->given[OPT_JSON];
	int width = 0;

	for (const struct protect_name *p = protect_names; p->name; p++)
		width = (int)strlen(p->name) > width ? (int)strlen(p->name) : width;
	if (json)
		buf_ch(&b, '[');
	for (const struct protect_name *p = protect_names; p->name; p++) {
		if (json)
			buf_fmt(&b, "%s{\"name\":\"%s\",\"anywhere\":%s,\"why\":\"%s\"}",
				p == protect_names ? "" : ",", p->name,
				p->where == PROTECT_DEPTH ? "true" : "false", p->why);
		else
			buf_fmt(&b, "%-*s  %s\n", width, p->name, p->why);
	}
	if (json)
		buf_str(&b, "]\n");
	return cli_out(&b, EXIT_DONE);
}

int cmd_explain(struct args *a)
{
	const struct explain_style style = { .colour = cli_use_colour(STDOUT_FILENO),
					     .all = a->given[OPT_ALL],
					     .verbose = a->given[OPT_VERBOSE] };
	struct buf b = BUF_INIT(OUT_MAX);
	struct plan_agent *agents;
	struct plan *plan;
	struct host_facts f;
	struct launch_loaded l;
	bool runs;
	int code;

	if (a->given[OPT_PROTECTED])
		return show_protected(a);
	if (a->operands.n > 1)
		return cli_end(EXIT_FAILED, "explain takes one FILE; see writ help explain");
	code = cli_load_policy(a, a->operands.n ? a->operands.v[0] : NULL, true, &l);
	if (code || (code = cli_load_facts(a, a->given[OPT_ADAPTER], &f)) ||
	    (code = cli_load_plan(a, &l, &l.policy->set, &f, &plan)))
		return code;
	runs = plan_runs(plan);
	agents = arena_array(a->arena, struct plan_agent, l.policy->agents.n + 1);
	for (size_t i = 0; agents && i < l.policy->agents.n; i++) {
		agents[i].name = l.policy->agents.v[i].name;
		code = cli_load_plan(a, &l, &l.policy->agents.v[i].set, &f, &agents[i].plan);
		if (code)
			return code;
		runs = runs && plan_runs(agents[i].plan);
	}
	if (!agents)
		return EXIT_FAILED;
	if (l.in.where.no_workspace && !a->given[OPT_JSON] && a->operands.n == 0)
		cli_note("no workspace: %s", l.in.where.no_workspace);
	if (a->given[OPT_JSON]) {
		plan_json_all(plan, agents, l.policy->agents.n, &b);
		buf_ch(&b, '\n');
	} else {
		plan_explain(plan, agents, l.policy->agents.n, &style, &b);
		if (l.token)
			cli_token_put_dropped(l.token, &b);
	}
	return cli_out(&b, runs ? EXIT_DONE : EXIT_GUARANTEE);
}

/* --- why --- */

static const struct cap_set *set_of(struct args *a, const struct launch_loaded *l)
{
	if (!a->given[OPT_AGENT])
		return &l->policy->set;
	for (size_t i = 0; i < l->policy->agents.n; i++)
		if (sv_is(l->policy->agents.v[i].name, a->value[OPT_AGENT]))
			return &l->policy->agents.v[i].set;
	return NULL;
}

static void put_rule(const struct cap_set *set, uint32_t rule, struct buf *b)
{
	const struct cap_rule *r = &set->rules.v[rule];

	diag_put_safe(b, r->file);
	if (r->line)
		buf_fmt(b, ":%u", r->line);
	buf_str(b, ": ");
	diag_put_safe(b, r->text);
}

/* Prints the --allow option that would turn a default denial into a grant. */
static void put_remedy(const struct policy_question *q, struct buf *b)
{
	struct sv rest = q->text;
	const struct sv verb = sv_cut(&rest, ' ');

	/* Suggest the option only if its text needs no quoting in a shell, where users paste it. */
	if (sv_find(rest, '\'') != SIZE_MAX || sv_find(rest, '"') != SIZE_MAX)
		return;
	buf_str(b, "to allow  --allow '");
	diag_put_safe(b, verb);
	buf_ch(b, ':');
	diag_put_safe(b, sv_cut(&rest, ' '));
	while (rest.n) {
		buf_ch(b, ';');
		diag_put_safe(b, sv_cut(&rest, ' '));
	}
	buf_str(b, "'\n");
}

static void why_text(const struct cap_set *set, const struct plan *plan,
		     const struct policy_question *q, struct cap_verdict v, struct buf *b)
{
	static const char *const words[] = { "denied", "ask", "allowed" };
	const struct plan_guarantee *g = plan_guarantee_for(plan, q->request.action);
	const enum guarantee ge = plan_guarantee_of(q->request.action);
	const struct plan_rule *row = v.rule == RULE_NONE ? NULL : plan_rule_get(plan, v.rule);

	buf_fmt(b, "%s: ", words[v.answer]);
	diag_put_safe(b, q->text);
	buf_str(b, "\nrule      ");
	if (v.rule != RULE_NONE)
		put_rule(set, v.rule, b);
	else if (cap_set_hop_message(set, &v))
		buf_str(b, cap_set_hop_message(set, &v));
	else if (v.answer == CAP_ALLOW)
		buf_str(b, "base: every session has this directory fresh and for itself");
	else
		buf_str(b, "the default: nothing allows it, so it is denied");
	if (row)
		buf_fmt(b, "\nheld by   %s, %s", row->hold.by, level_name(row->hold.level));
	else
		buf_fmt(b, "\nheld by   %s, %s (%s)", g->by, level_name(g->level),
			guarantee_name(ge));
	buf_fmt(b, ", tier %s\n", plan_tier_name(plan->tier));
	if (v.answer == CAP_DENY && v.rule == RULE_NONE && !set->hops_n)
		put_remedy(q, b);
}

/* Prints the JSON members at the end of each answer: guarantee, level, mechanism and tier. */
static void held_json(const struct plan *plan, const struct policy_question *q, bool private_area,
		      const char *level, const char *by, struct buf *b)
{
	const enum guarantee g = plan_guarantee_of(q->request.action);

	json_put_flag(b, "private", private_area);
	json_put_member(b, "guarantee", sv_from(guarantee_name(g)));
	json_put_member(b, "level", sv_from(level));
	json_put_member(b, "by", sv_from(by));
	json_put_member(b, "tier", sv_from(plan_tier_name(plan->tier)));
	buf_str(b, "}\n");
}

static void why_json(const struct cap_set *set, const struct plan *plan,
		     const struct policy_question *q, struct cap_verdict v, struct buf *b)
{
	static const char *const words[] = { "deny", "ask", "allow" };
	const struct plan_guarantee *g = plan_guarantee_for(plan, q->request.action);
	const struct plan_rule *row = v.rule == RULE_NONE ? NULL : plan_rule_get(plan, v.rule);

	buf_ch(b, '{');
	json_put_member(b, "answer", sv_from(words[v.answer]));
	json_put_member(b, "request", q->request.text);
	json_put_key(b, "rule");
	if (v.rule == RULE_NONE) {
		buf_str(b, "null");
	} else {
		buf_ch(b, '{');
		json_put_member(b, "file", set->rules.v[v.rule].file);
		json_put_number(b, "line", set->rules.v[v.rule].line);
		json_put_member(b, "text", set->rules.v[v.rule].text);
		buf_ch(b, '}');
	}
	if (cap_set_hop_message(set, &v)) {
		json_put_number(b, "hop", v.hop);
		json_put_member(b, "why", sv_from(cap_set_hop_message(set, &v)));
	}
	held_json(plan, q, q->private_area && v.rule == RULE_NONE,
		  level_name(row ? row->hold.level : g->level), row ? row->hold.by : g->by, b);
}

/* Explains that a protected name denies access to a path that a rule would allow. */
static void why_protected(const struct plan *plan, const struct policy_question *q,
			  const struct protect_name *row, bool json, struct buf *b)
{
	const struct plan_guarantee *g = plan_guarantee_for(plan, q->request.action);
	const char *by = "mediation";

	if (json) {
		buf_str(b, "{\"answer\":\"deny\"");
		json_put_member(b, "request", q->request.text);
		buf_str(b, ",\"rule\":null");
		json_put_member(b, "protected", sv_from(row->name));
		json_put_member(b, "why", sv_from(row->why));
		held_json(plan, q, false, level_name(g->level), by, b);
		return;
	}
	buf_str(b, "denied: ");
	diag_put_safe(b, q->text);
	buf_fmt(b, "\nrule      %s is protected: %s\nheld by   %s, %s, tier %s\n", row->name,
		row->why, by, level_name(g->level), plan_tier_name(plan->tier));
	buf_fmt(b,
		"to allow  `open %s` in a policy, for an agent you would let run what obeys it\n",
		row->name);
}

static bool question_source(struct args *a, struct source *ret)
{
	scoped_buf b = BUF_INIT(65536);

	/* The shell passes the question as words: restore the quotes that the shell removed. */
	for (size_t i = 0; i < a->operands.n; i++) {
		const struct sv w = sv_from(a->operands.v[i]);
		const bool quote =
			a->operands.n > 1 && (sv_find(w, ' ') != SIZE_MAX || sv_find(w, '#') == 0);

		buf_fmt(&b, "%s%s" SV_FMT "%s", i ? " " : "", quote ? "\"" : "", SV_ARG(w),
			quote ? "\"" : "");
	}
	*ret = (struct source){ .name = SV("question"), .dir = SV("") };
	return !b.failed && arena_sv(a->arena, buf_view(&b), &ret->text);
}

/* Parses the question and prints its diagnostics. */
static int ask(struct args *a, const struct launch_loaded *l, const struct source *src,
	       struct policy_question *ret)
{
	struct diags d = { .arena = a->arena };
	struct writ_err err = { 0 };

	if (policy_ask(&l->world.env, src, &d, ret, &err) == 0)
		return 0;
	if (d.errors == 0)
		return cli_fail(&err, NULL);
	cli_show_diags(&d);
	return EXIT_FAILED;
}

static const int answer_codes[] = {
	[CAP_DENY] = EXIT_NO, [CAP_ASK] = EXIT_ASKS, [CAP_ALLOW] = EXIT_DONE
};

static int why_denied(struct args *a, struct sv id, struct sv number)
{
	scoped_buf b = BUF_INIT(OUT_MAX);
	struct cli_denials t = { .b = &b,
				 .hint = sv_starts(number, SV("h")),
				 .json = a->given[OPT_JSON] };
	struct writ_err err = { 0 };
	struct find_where w;

	if (!sv_to_u64(sv_skip(number, t.hint), UINT32_MAX, &t.number) || t.number == 0)
		return cli_end(EXIT_FAILED, "SESSION#N, as in: writ why 7f3a#1");
	if (cli_where_find(a->arena, a->value[OPT_CWD], false, &w, &err) < 0 ||
	    session_denials(w.state, id, cli_denial_put, &t, &err) < 0)
		return cli_fail(&err, NULL);
	if (t.n == 0)
		return cli_end(EXIT_FAILED, "there is no such denial");
	if (t.json)
		buf_ch(&b, '\n');
	return cli_out(&b, EXIT_NO);
}

int cmd_why(struct args *a)
{
	struct sv id = a->operands.n == 1 ? sv_from(a->operands.v[0]) : SV("");
	const struct sv session = sv_cut(&id, '#');
	struct buf b = BUF_INIT(OUT_MAX);
	struct policy_question q;
	const struct protect_name *row;
	const struct cap_set *set;
	struct host_facts f;
	struct cap_verdict v;
	struct source src;
	struct plan *plan;
	struct launch_loaded l;
	int code;

	if (a->operands.n == 0)
		return cli_end(EXIT_FAILED,
			       "why needs a question, as in: writ why write /etc/passwd");
	if (id.n && sv_is_graph(session) && sv_find(session, ':') == SIZE_MAX)
		return why_denied(a, session, id);
	if ((code = cli_load_policy(a, NULL, true, &l)) || (code = cli_load_facts(a, false, &f)))
		return code;
	set = set_of(a, &l);
	if (!set || !question_source(a, &src))
		return cli_end(EXIT_FAILED, "no agent \"%s\" in this policy",
			       a->given[OPT_AGENT] ? a->value[OPT_AGENT] : "");
	if ((code = ask(a, &l, &src, &q)) || (code = cli_load_plan(a, &l, set, &f, &plan)))
		return code;
	v = policy_answer(set, &q);
	row = policy_protects(l.policy, l.in.where.workspace, set, &q, &v);
	if (row)
		why_protected(plan, &q, row, a->given[OPT_JSON], &b);
	else if (a->given[OPT_JSON])
		why_json(set, plan, &q, v, &b);
	else
		why_text(set, plan, &q, v, &b);
	return cli_out(&b, row ? EXIT_NO : answer_codes[v.answer]);
}
