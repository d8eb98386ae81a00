#include "cli/cli.h"

#include "codec/json.h"
#include "crypto/crypto.h"

#include "base/banned.h"

static const char *one_operand(struct args *a)
{
	return a->operands.n ? a->operands.v[0] : NULL;
}

static int too_many(const struct args *a)
{
	return cli_end(EXIT_FAILED, "%s takes %s; see writ help %s", a->verb->name,
		       a->verb->operands, a->verb->name);
}

static void diags_json(const struct diags *d, struct buf *b)
{
	static const char *const levels[] = { "error", "warning", "note" };

	buf_str(b, "[");
	for (size_t i = 0; i < d->list.n; i++) {
		const struct diag *g = &d->list.v[i];

		buf_fmt(b, "%s{\"level\":\"%s\",\"file\":", i ? "," : "", levels[g->level]);
		json_put_str(b, g->at.src ? g->at.src->name : SV(""));
		buf_fmt(b, ",\"line\":%u,\"column\":%u,\"text\":", g->at.line, g->at.col);
		json_put_str(b, g->text);
		json_put_member(b, "hint", g->hint);
		buf_str(b, "}");
	}
	buf_str(b, "]");
}

/* Implements --print: prints the policy in canonical spacing. */
static int print_policy(struct args *a, const char *file)
{
	struct diags d = { .arena = a->arena };
	scoped_buf b = BUF_INIT(OUT_MAX);
	struct writ_err err = { 0 };
	struct source src;
	int r;

	if (!file)
		return cli_end(EXIT_FAILED, "check --print needs a FILE");
	if (locate_text_arg(a->arena, file, &src, &err) < 0)
		return cli_fail(&err, NULL);
	r = policy_print(&src, &d, &b, &err);
	if (r == 0)
		return cli_out(&b, EXIT_DONE);
	if (r != WRIT_E_SYNTAX)
		return cli_fail(&err, NULL);
	cli_show_diags(&d);
	return EXIT_POLICY;
}

int cmd_check(struct args *a)
{
	struct buf b = BUF_INIT(OUT_MAX);
	struct launch_loaded l;
	size_t rules = 0;
	int code;

	if (a->operands.n > 1)
		return too_many(a);
	if (a->given[OPT_PRINT])
		return print_policy(a, one_operand(a));
	code = cli_load_policy(a, one_operand(a), false, &l);
	if (a->given[OPT_JSON]) {
		if (code != 0 && code != EXIT_POLICY)
			return code;
		buf_fmt(&b, "{\"ok\":%s,\"diagnostics\":", code ? "false" : "true");
		diags_json(&l.diags, &b);
		buf_fmt(&b, ",\"tests\":%zu}\n", l.policy ? l.policy->tests : 0);
		return cli_out(&b, code);
	}
	if (code)
		return code;
	if (a->given[OPT_QUIET])
		return EXIT_DONE;
	for (size_t i = 0; i < l.policy->set.rules.n; i++)
		rules += !l.policy->set.rules.v[i].built_in && !l.policy->set.rules.v[i].shipped;
	buf_fmt(&b, "ok: %zu line%s", rules, rules == 1 ? "" : "s");
	if (l.policy->tests)
		buf_fmt(&b, ", %zu test%s passed", l.policy->tests,
			l.policy->tests == 1 ? "" : "s");
	if (l.diags.warnings)
		buf_fmt(&b, ", %zu warning%s", l.diags.warnings, l.diags.warnings == 1 ? "" : "s");
	buf_ch(&b, '\n');
	return cli_out(&b, EXIT_DONE);
}

/* --- caps --- */

static bool shown(const struct args *a, const struct cap_set *set, const struct cap_entry *e)
{
	const struct cap_rule *r = &set->rules.v[e->rule];

	/* Show the implicit grant that any readable program may run, although no line states it. */
	return a->given[OPT_ALL] || !r->built_in ||
	       (sv_is(r->file, "default") && e->cap.kind == CAP_GRANT);
}

int cli_caps_own(struct args *a, const struct cap_set *from, struct cap_set *ret,
		 struct writ_err *err)
{
	struct cap_set s = *from;

	s.caps.v = NULL;
	s.nots.v = NULL;
	s.caps.n = s.caps.room = s.nots.n = s.nots.room = 0;
	for (size_t i = 0; i < from->caps.n + from->nots.n; i++) {
		const bool deny = i >= from->caps.n;
		const struct cap_entry *e =
			deny ? &from->nots.v[i - from->caps.n] : &from->caps.v[i];

		if (shown(a, from, e) &&
		    !(deny ? vec_add(a->arena, &s.nots, *e) : vec_add(a->arena, &s.caps, *e)))
			return writ_nomem(err);
	}
	for (size_t i = 0; i < LIMIT_COUNT; i++)
		if (!a->given[OPT_ALL] && s.limits[i] && from->rules.v[s.limit_rule[i]].built_in)
			s.limits[i] = 0;
	*ret = s;
	return 0;
}

static void caps_text(const struct cap_set *s, const struct digest *d, struct buf *b)
{
	for (size_t i = 0; i < s->caps.n; i++)
		buf_fmt(b, SV_FMT "\n", SV_ARG(s->caps.v[i].cap.text));
	for (size_t i = 0; i < s->nots.n; i++)
		buf_fmt(b, "not " SV_FMT "\n", SV_ARG(s->nots.v[i].cap.text));
	for (unsigned i = 0; i < LIMIT_COUNT; i++)
		if (s->limits[i])
			buf_fmt(b, "limit %s %llu\n", cap_limit_name((enum cap_limit)i),
				(unsigned long long)s->limits[i]);
	for (unsigned i = 0; i < G_COUNT; i++)
		if (s->require[i])
			buf_fmt(b, "require %s %s\n", guarantee_name((enum guarantee)i),
				level_name(s->require[i]));
	if (s->has_rt) {
		buf_str(b, "rt sha256:");
		digest_hex(&s->rt, b);
		buf_ch(b, '\n');
	}
	buf_str(b, "digest sha256:");
	digest_hex(d, b);
	buf_ch(b, '\n');
}

int cmd_caps(struct args *a)
{
	scoped_buf b = BUF_INIT(OUT_MAX);
	struct writ_err err = { 0 };
	struct cap_set own;
	struct launch_loaded l;
	struct digest d;
	int code;

	if (a->operands.n > 1)
		return too_many(a);
	code = cli_load_policy(a, one_operand(a), true, &l);
	if (code)
		return code;
	if (cli_caps_own(a, &l.policy->set, &own, &err) < 0 || cap_set_digest(&own, &d, &err) < 0)
		return cli_fail(&err, NULL);
	if (!a->given[OPT_JSON]) {
		caps_text(&own, &d, &b);
		return cli_out(&b, EXIT_DONE);
	}
	if (cap_set_encode(&own, &b, &err) < 0)
		return cli_fail(&err, NULL);
	buf_ch(&b, '\n');
	return cli_out(&b, EXIT_DONE);
}
