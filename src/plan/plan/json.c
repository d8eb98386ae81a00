#include "plan/plan.h"

#include "codec/json.h"

#include "base/banned.h"

static void member(struct buf *b, const char *key, struct sv value, bool first)
{
	if (!first)
		buf_ch(b, ',');
	buf_fmt(b, "\"%s\":", key);
	json_put_str(b, value);
}

/* Appends @head and, as JSON strings, the texts of the capabilities that come from @rule. */
static void put_texts(struct buf *b, const char *head, const struct cap_entry *v, size_t n,
		      uint32_t rule)
{
	const char *comma = head;

	for (size_t i = 0; i < n; i++) {
		if (v[i].rule != rule)
			continue;
		buf_str(b, comma);
		json_put_str(b, v[i].cap.text);
		comma = ",";
	}
	if (comma == head)
		buf_str(b, head);
}

static void put_rule(const struct plan *p, const struct plan_rule *r, struct buf *b)
{
	const struct cap_rule *rule = &p->set->rules.v[r->rule];

	buf_ch(b, '{');
	member(b, "rule", rule->text, true);
	member(b, "file", rule->file, false);
	buf_fmt(b, ",\"line\":%u", rule->line);
	buf_fmt(b, ",\"built_in\":%s,\"missing\":%s,\"refused\":%s",
		rule->built_in ? "true" : "false", rule->missing ? "true" : "false",
		r->refused ? "true" : "false");
	member(b, "guarantee", sv_from(guarantee_name(r->guarantee)), false);
	member(b, "level", sv_from(level_name(r->hold.level)), false);
	member(b, "by", sv_from(r->hold.by), false);
	member(b, "cost", sv_from(r->hold.cost), false);
	if (r->hold.fix)
		member(b, "fix", sv_from(r->hold.fix), false);
	put_texts(b, ",\"capabilities\":[", p->set->caps.v, p->set->caps.n, r->rule);
	put_texts(b, "],\"not\":[", p->set->nots.v, p->set->nots.n, r->rule);
	buf_str(b, "]}");
}

static void put_guarantees(const struct plan *p, struct buf *b)
{
	buf_str(b, "\"guarantees\":{");
	for (unsigned i = 0; i < G_COUNT; i++) {
		const struct plan_guarantee *g = &p->guarantees[i];

		buf_fmt(b, "%s\"%s\":{", i ? "," : "", guarantee_name((enum guarantee)i));
		member(b, "level", sv_from(level_name(g->level)), true);
		member(b, "by", sv_from(g->by), false);
		buf_fmt(b, ",\"required\":%s,\"refused\":%s}", g->required ? "true" : "false",
			g->refused ? "true" : "false");
	}
	buf_ch(b, '}');
}

static void put_members(const struct plan *p, struct buf *b)
{
	buf_str(b, "\"version\":1,");
	member(b, "adapter", sv_from(p->engine->name), true);
	member(b, "tier", sv_from(plan_tier_name(p->tier)), false);
	if (p->tier_why)
		member(b, "tier_why", sv_from(p->tier_why), false);
	if (p->lacks)
		member(b, "lacks", sv_from(p->lacks), false);
	member(b, "kernel", sv_from(p->facts->kernel), false);
	buf_fmt(b, ",\"uid\":%llu,\"refused\":%zu,\"rules\":[", (unsigned long long)p->facts->uid,
		p->refused);
	for (size_t i = 0; i < p->rules.n; i++) {
		if (i)
			buf_ch(b, ',');
		put_rule(p, &p->rules.v[i], b);
	}
	buf_str(b, "],");
	put_guarantees(p, b);
	buf_str(b, ",\"gaps\":[");
	for (size_t i = 0; i < p->gaps.n; i++) {
		buf_fmt(b, "%s{", i ? "," : "");
		member(b, "what", sv_from(p->gaps.v[i].what), true);
		member(b, "why", sv_from(p->gaps.v[i].why), false);
		if (p->gaps.v[i].fix)
			member(b, "fix", sv_from(p->gaps.v[i].fix), false);
		buf_ch(b, '}');
	}
	buf_str(b, "],\"steps\":[");
	for (size_t i = 0; i < p->steps.n; i++) {
		buf_fmt(b, "%s{", i ? "," : "");
		member(b, "name", sv_from(p->steps.v[i].name), true);
		member(b, "what", sv_from(p->steps.v[i].what), false);
		member(b, "why", sv_from(p->steps.v[i].why), false);
		buf_ch(b, '}');
	}
	buf_ch(b, ']');
}

void plan_json(const struct plan *p, struct buf *b)
{
	buf_ch(b, '{');
	put_members(p, b);
	buf_ch(b, '}');
}

void plan_json_all(const struct plan *p, const struct plan_agent *agents, size_t agents_n,
		   struct buf *b)
{
	buf_ch(b, '{');
	put_members(p, b);
	buf_str(b, ",\"agents\":[");
	for (size_t i = 0; i < agents_n; i++) {
		buf_str(b, i ? ",{" : "{");
		member(b, "name", agents[i].name, true);
		buf_str(b, ",\"plan\":");
		plan_json(agents[i].plan, b);
		buf_ch(b, '}');
	}
	buf_str(b, "]}");
}
