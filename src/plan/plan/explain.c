#include "plan/plan.h"

#include "base/banned.h"

enum { RULE_WIDTH = 43, LEVEL_WIDTH = 8, BY_WIDTH = 30 };

static const char *colour_of(const struct explain_style *st, enum level l)
{
	static const char *const colours[] = { [LEVEL_NONE] = "\033[31m",
					       [LEVEL_PARTIAL] = "\033[33m",
					       [LEVEL_STRICTER] = "\033[32m",
					       [LEVEL_EXACT] = "\033[32m" };

	return st->colour ? colours[l] : "";
}

static const char *plain(const struct explain_style *st)
{
	return st->colour ? "\033[0m" : "";
}

/*
 * Appends text that came from outside of writ, with control characters replaced by '?', so that it
 * is safe for a terminal. Returns the width of the text.
 */
static size_t put_safe(struct buf *b, struct sv s)
{
	size_t w = 0;

	for (size_t i = 0; i < s.n; i++) {
		const unsigned char c = (unsigned char)s.p[i];

		if (c < 0x20 || c == 0x7f)
			buf_ch(b, '?');
		else
			buf_ch(b, s.p[i]);
		w += (c & 0xc0) != 0x80;
	}
	return w;
}

static void put_cell(struct buf *b, struct sv s, size_t width)
{
	const size_t w = put_safe(b, s);

	buf_fill(b, ' ', w < width ? width - w : 2);
}

/*
 * Is the row shown? Lines of base are shown only with --all, as are lines of a shipped profile that
 * are missing or about the environment. Refused lines are always shown.
 */
static bool is_shown(const struct plan *p, const struct plan_rule *r,
		     const struct explain_style *st)
{
	const struct cap_rule *rule = &p->set->rules.v[r->rule];

	if (st->all || r->refused)
		return true;
	return !rule->built_in && !(rule->shipped && (rule->missing || rule->kind == RULE_ENV));
}

static size_t column(const struct plan *p, const struct explain_style *st)
{
	size_t w = RULE_WIDTH;

	for (size_t i = 0; i < p->rules.n; i++) {
		const struct cap_rule *r = &p->set->rules.v[p->rules.v[i].rule];

		if (is_shown(p, &p->rules.v[i], st) && r->text.n + 2 > w)
			w = r->text.n + 2;
	}
	return w > 70 ? 70 : w;
}

static size_t by_column(const struct plan *p, const struct explain_style *st)
{
	size_t w = BY_WIDTH;

	for (size_t i = 0; i < p->rules.n; i++) {
		const size_t n = sv_from(p->rules.v[i].hold.by).n + 2;

		if (is_shown(p, &p->rules.v[i], st) && n > w)
			w = n;
	}
	return w;
}

static void put_rule(const struct plan *p, const struct plan_rule *r,
		     const struct explain_style *st, size_t rule_w, size_t by_w, struct buf *b)
{
	const struct cap_rule *rule = &p->set->rules.v[r->rule];
	const char *level =
		rule->missing ? (r->refused ? "missing" : "absent") : level_name(r->hold.level);
	const char *last =
		r->hold.fix && r->hold.level < LEVEL_STRICTER ? r->hold.fix : r->hold.cost;

	if (rule->missing)
		last = r->refused ? "it does not exist: a run is refused" : "";

	put_cell(b, rule->text, rule_w);
	buf_str(b, colour_of(st,
			     r->refused || rule->kind == RULE_DANGER ? LEVEL_NONE : r->hold.level));
	put_cell(b, sv_from(level), LEVEL_WIDTH);
	buf_str(b, plain(st));
	put_cell(b, sv_from(r->hold.by), *last ? by_w : 0);
	if (sv_starts(sv_from(last), SV("--")))
		buf_str(b, "try ");
	buf_str(b, last);
	while (sv_ends(buf_view(b), SV(" ")))
		b->n--;
	buf_ch(b, '\n');
}

/*
 * Prints @head and the guarantees that do not hold: if @unasked, those for which the policy sets no
 * limit; otherwise those that fail for another reason.
 */
static void put_weak(const struct plan *p, const char *head, bool unasked, struct buf *b)
{
	for (unsigned i = 0, n = 0; i < G_COUNT; i++) {
		const struct plan_guarantee *g = &p->guarantees[i];

		if (g->level >= LEVEL_STRICTER || g->unasked != unasked)
			continue;
		buf_fmt(b, "%s%s%s", n++ ? ", " : head, guarantee_name((enum guarantee)i),
			g->level == LEVEL_PARTIAL ? " (partial)" : "");
	}
}

static void put_summary(const struct plan *p, const struct explain_style *st, struct buf *b)
{
	size_t weak = 0;

	if (p->lacks)
		buf_fmt(b, "adapter %s", p->engine->name);
	else
		buf_fmt(b, "tier %s as uid %llu, kernel %s", plan_tier_name(p->tier),
			(unsigned long long)p->facts->uid, p->facts->kernel);
	if (p->tier_why)
		buf_fmt(b, " (%s)", p->tier_why);
	for (unsigned i = 0; i < G_COUNT; i++)
		weak += p->guarantees[i].level < LEVEL_STRICTER;
	buf_fmt(b, "; %zu of %d guarantees hold", (size_t)G_COUNT - weak, G_COUNT);
	put_weak(p, "; not ", false, b);
	put_weak(p, "; nothing asked of ", true, b);
	buf_ch(b, '\n');
	if (p->lacks)
		buf_fmt(b, "%s%s%s\n", st->colour ? "\033[1;31m" : "", p->lacks, plain(st));
	if (p->refused)
		buf_fmt(b,
			"%s%zu line%s cannot be enforced here: a run ends with 122 before it "
			"starts%s\n",
			st->colour ? "\033[1;31m" : "", p->refused, p->refused == 1 ? "" : "s",
			plain(st));
}

static void put_guarantees(const struct plan *p, const struct explain_style *st, struct buf *b)
{
	buf_str(b, "\nGUARANTEE      HERE      BY\n");
	for (unsigned i = 0; i < G_COUNT; i++) {
		const struct plan_guarantee *g = &p->guarantees[i];

		put_cell(b, sv_from(guarantee_name((enum guarantee)i)), 15);
		buf_str(b, colour_of(st, g->level));
		put_cell(b, sv_from(level_name(g->level)), 10);
		buf_str(b, plain(st));
		buf_fmt(b, "%s%s\n", g->by, g->refused ? "   REQUIRED, NOT MET" : "");
	}
	if (p->steps.n)
		buf_str(b, "\nSTEPS, in this order\n");
	for (size_t i = 0; i < p->steps.n; i++) {
		buf_fmt(b, "%2zu  ", i + 1);
		put_cell(b, sv_from(p->steps.v[i].name), 14);
		buf_fmt(b, "%s\n", p->steps.v[i].what);
	}
}

static void explain_one(const struct plan *p, const struct explain_style *st, struct buf *b)
{
	const size_t rule_w = column(p, st);
	const size_t by_w = by_column(p, st);
	size_t hidden = 0;

	put_cell(b, SV("RULE"), rule_w);
	put_cell(b, SV("HERE"), LEVEL_WIDTH);
	put_cell(b, SV("BY"), by_w);
	buf_str(b, "COST\n");
	for (size_t i = 0; i < p->rules.n; i++) {
		if (!is_shown(p, &p->rules.v[i], st)) {
			hidden++;
			continue;
		}
		put_rule(p, &p->rules.v[i], st, rule_w, by_w, b);
	}
	if (hidden)
		buf_fmt(b, "and %zu built-in lines (--all shows them)\n", hidden);
	buf_ch(b, '\n');
	put_summary(p, st, b);
	for (size_t i = 0; i < p->gaps.n; i++) {
		buf_fmt(b, "gap: %s: %s", p->gaps.v[i].what, p->gaps.v[i].why);
		if (p->gaps.v[i].fix)
			buf_fmt(b, "; fix: %s", p->gaps.v[i].fix);
		buf_ch(b, '\n');
	}
	if (st->verbose)
		put_guarantees(p, st, b);
}

void plan_explain(const struct plan *p, const struct plan_agent *agents, size_t agents_n,
		  const struct explain_style *st, struct buf *b)
{
	explain_one(p, st, b);
	for (size_t i = 0; i < agents_n; i++) {
		buf_str(b, "\nagent ");
		(void)put_safe(b, agents[i].name);
		buf_ch(b, '\n');
		explain_one(agents[i].plan, st, b);
	}
}
