#include "cli/cli.h"

#include <fcntl.h>
#include <time.h>

#include "base/fd.h"
#include "codec/json.h"
#include "facts/advisory.h"

#include "base/banned.h"

static uint32_t today(void)
{
	return (uint32_t)(time(NULL) / 86400);
}

static const char *advisory_file(struct args *a, const struct find_where *w)
{
	return w->state.n ? arena_fmt(a->arena, SV_FMT "/advisories.txt", SV_ARG(w->state)) : NULL;
}

static int update(struct args *a, const struct find_where *w)
{
	const char *path = advisory_file(a, w);
	struct writ_err err = { 0 };
	struct writ_err ignored = { 0 };
	struct source src;
	struct source old = { .text = SV("") };

	if (!path)
		return cli_end(EXIT_FAILED, "no place for it: there is no home directory");
	if (locate_text_arg(a->arena, a->value[OPT_UPDATE], &src, &err) < 0)
		return cli_fail(&err, NULL);
	if (locate_text_arg(a->arena, path, &old, &ignored) < 0)
		old.text = SV("");
	if (advisory_check(src.text, old.text, today(), &err) < 0)
		return cli_fail(&err, a->value[OPT_UPDATE]);
	if (fd_replace_deep(AT_FDCWD, path, src.text, 0600, &err) < 0)
		return cli_fail(&err, NULL);
	return cli_end(EXIT_DONE, "advisory table replaced");
}

/* Plans a policy with memory, cpu and pids limits, to learn which of them this machine enforces. */
static int plan_for_doctor(struct args *a, struct launch_loaded *l, const struct host_facts *f,
			   struct plan **ret)
{
#define LIMIT(value) { ARG_LIMIT, { SV_INIT("limit"), SV_INIT(""), SV_INIT(value) } }
	static const struct policy_arg limits[] = { LIMIT("memory=1G"), LIMIT("cpu=1"),
						    LIMIT("pids=64") };
#undef LIMIT
	const struct policy_input in = { .args = limits, .args_n = ARRAY_LEN(limits) };
	struct writ_err err = { 0 };

	l->diags.arena = a->arena;
	l->in.where.realm = SV("l-unset");
	l->in.missing_ok = true;
	locate_world_init(&l->world, a->arena, &l->in);
	if (policy_new(&l->world.env, &in, &l->diags, &l->policy, &err) < 0)
		return cli_fail(&err, NULL);
	return cli_load_plan(a, l, &l->policy->set, f, ret);
}

static void put_row(struct buf *b, const char *mark, const char *what, const char *why,
		    const char *fix)
{
	buf_fmt(b, "%-6s%-16s%s", mark, what, why);
	if (fix)
		buf_fmt(b, "\n%22sfix: %s", "", fix);
	buf_ch(b, '\n');
}

static void put_limits(const struct plan *p, struct buf *b)
{
	for (size_t i = 0; i < p->rules.n; i++) {
		const struct plan_rule *r = &p->rules.v[i];
		const struct cap_rule *rule = &p->set->rules.v[r->rule];

		if (rule->built_in || r->hold.level >= LEVEL_STRICTER)
			continue;
		put_row(b, "gap",
			r->guarantee == G_RES_MEMORY ? "memory limit"
			: r->guarantee == G_RES_CPU  ? "cpu limit"
						     : "process limit",
			r->hold.by, r->hold.fix);
	}
}

static void put_advisories(const struct advisory_db *db, const struct host_facts *f, bool all,
			   struct buf *b)
{
	enum advisory_verdict v;
	size_t maybe = 0;

	for (size_t i = 0; (i = advisory_next(db, f, i, &v)) < db->n; i++) {
		const struct advisory *adv = &db->v[i];

		if (v == ADVISORY_MAYBE && !all) {
			maybe++;
			continue;
		}
		buf_fmt(b, "%-6s%-16.*s" SV_FMT " (" SV_FMT "): " SV_FMT "\n%22sfix: " SV_FMT "\n",
			v == ADVISORY_OPEN ? "warn" : "check",
			SV_ARG(adv->primitive_n ? adv->primitive[0] : adv->component),
			SV_ARG(adv->id), SV_ARG(adv->component), SV_ARG(adv->text), "",
			SV_ARG(adv->closes));
	}
	if (maybe)
		buf_fmt(b,
			"check %zu advisories that your vendor may have fixed already (-v lists "
			"them)\n",
			maybe);
	buf_fmt(b, "advisory table of " SV_FMT ", %u days old, %zu entries\n", SV_ARG(db->date),
		advisory_age(db, today()), db->n);
}

static void put_text(struct args *a, const struct plan *p, const struct host_facts *f,
		     const struct advisory_db *db, struct buf *b)
{
	if (p->tier == TIER_NONE)
		buf_fmt(b, "not ready: %s (kernel %s)\n", p->tier_why, f->kernel);
	else
		buf_fmt(b, "ready: tier %s as uid %llu (kernel %s, Landlock ABI %llu)\n",
			plan_tier_name(p->tier), (unsigned long long)f->uid, f->kernel,
			(unsigned long long)f->landlock_abi);
	if (p->tier == TIER_B && !(p->gaps.n && p->gaps.v[0].tier))
		put_row(b, "gap", "tier A", p->tier_why, NULL);
	for (size_t i = 0; i < p->gaps.n; i++)
		put_row(b, "gap", p->gaps.v[i].what, p->gaps.v[i].why, p->gaps.v[i].fix);
	put_limits(p, b);
	put_advisories(db, f, a->given[OPT_VERBOSE], b);
	if (a->given[OPT_VERBOSE]) {
		buf_ch(b, '\n');
		facts_print(f, b);
	}
}

static void put_json(const struct plan *p, const struct host_facts *f, const struct advisory_db *db,
		     struct buf *b)
{
	enum advisory_verdict v;

	buf_fmt(b, "{\"tier\":\"%s\",\"facts\":", plan_tier_name(p->tier));
	facts_json(f, b);
	while (b->n && b->p[b->n - 1] == '\n')
		b->n--;
	buf_str(b, ",\"advisories\":{\"date\":");
	json_put_str(b, db->date);
	buf_str(b, ",\"open\":[");
	for (size_t i = 0; (i = advisory_next(db, f, i, &v)) < db->n; i++) {
		json_put_sep(b);
		buf_ch(b, '{');
		json_put_flag(b, "sure", v == ADVISORY_OPEN);
		json_put_member(b, "id", db->v[i].id);
		json_put_member(b, "text", db->v[i].text);
		json_put_member(b, "closes", db->v[i].closes);
		buf_ch(b, '}');
	}
	buf_str(b, "]},\"plan\":");
	plan_json(p, b);
	buf_str(b, "}\n");
}

int cmd_doctor(struct args *a)
{
	struct buf b = BUF_INIT(OUT_MAX);
	struct writ_err err = { 0 };
	struct launch_loaded l = { 0 };
	const char *damaged = NULL;
	struct advisory_db db;
	struct find_where w;
	struct host_facts f;
	struct plan *plan;
	int code;

	if (cli_where_find(a->arena, NULL, false, &w, &err) < 0)
		return cli_fail(&err, NULL);
	if (a->given[OPT_UPDATE])
		return update(a, &w);
	code = cli_load_facts(a, true, &f);
	if (code)
		return code;
	if (a->given[OPT_RECORD]) {
		facts_print(&f, &b);
		return cli_out(&b, EXIT_DONE);
	}
	code = plan_for_doctor(a, &l, &f, &plan);
	if (code)
		return code;
	if (locate_advisories(a->arena, w.state, &db, &damaged, &err) < 0)
		return cli_fail(&err, NULL);
	if (damaged)
		cli_note("%s", damaged);
	if (a->given[OPT_JSON])
		put_json(plan, &f, &db, &b);
	else
		put_text(a, plan, &f, &db, &b);
	return cli_out(&b, plan->tier == TIER_NONE ? EXIT_GUARANTEE : EXIT_DONE);
}
