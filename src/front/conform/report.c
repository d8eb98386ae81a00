#include "codec/json.h"
#include "conform/conform.h"

#include "base/banned.h"

/* The order of the report's sections: stopped attempts first, work that must succeed last. */
static const enum conform_verdict order[] = {
	ROW_HELD, ROW_BLOCKED, ROW_ESCAPED, ROW_GAP,
	ROW_NA,   ROW_NOT_RUN, ROW_WORKS,	ROW_BROKEN,
};
_Static_assert(ARRAY_LEN(order) == ROW_COUNT, "every verdict has a place");

enum { REASON_COLUMNS = 120 };

bool conform_report_passes(const struct conform_report *r)
{
	for (size_t i = 0; i < r->results.n; i++)
		if (!conform_passes(r->results.v[i].verdict))
			return false;
	return r->results.n > 0;
}

static const char *why_of(const struct conform_trial *t)
{
	return t->why[0] ? t->why : t->said;
}

static size_t count(const struct conform_report *r, struct sv bound, enum conform_verdict v)
{
	size_t n = 0;

	for (size_t i = 0; i < r->results.n; i++)
		n += (bound.n == 0 || sv_eq(r->results.v[i].row->bound, bound)) &&
		     (v == ROW_COUNT || r->results.v[i].verdict == v);
	return n;
}

/* SECURITY: bytes from inside a sandbox must not control the user's terminal. */
static void put_plain(struct buf *b, struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		buf_ch(b, s.p[i] >= ' ' && s.p[i] < 0x7f ? s.p[i] : '.');
}

static void put_counts(const struct conform_report *r, const char *name, struct sv bound,
		       struct buf *b)
{
	buf_fmt(b, "%-11s%6zu", name, count(r, bound, ROW_COUNT));
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		const size_t n = count(r, bound, order[i]);

		if (count(r, SV(""), order[i]) == 0)
			continue;
		if (n)
			buf_fmt(b, "%9zu", n);
		else
			buf_fmt(b, "%9s", ".");
	}
	buf_ch(b, '\n');
}

static bool first_of_bound(const struct conform_report *r, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (sv_eq(r->results.v[k].row->bound, r->results.v[i].row->bound))
			return false;
	return true;
}

static void put_matrix(const struct conform_report *r, struct buf *b)
{
	buf_fmt(b, "%-11s%6s", "bound", "rows");
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		if (count(r, SV(""), order[i]))
			buf_fmt(b, "%9s", conform_verdict_name(order[i]));
	buf_ch(b, '\n');
	for (size_t i = 0; i < r->results.n; i++)
		if (first_of_bound(r, i))
			put_counts(r, r->results.v[i].row->bound.p, r->results.v[i].row->bound, b);
	put_counts(r, "total", SV(""), b);
}

static void put_result(const struct conform_result *res, struct buf *b)
{
	const struct sv why = sv_from(why_of(&res->inside));

	buf_fmt(b, "  %-8s%-12s" SV_FMT, res->row->id.p, res->row->guarantee.p,
		SV_ARG(res->row->what));
	if (why.n) {
		buf_str(b, "  [");
		put_plain(b, sv_sub(why, 0, REASON_COLUMNS));
		buf_ch(b, ']');
	}
	buf_ch(b, '\n');
}

static void put_summary(const struct conform_report *r, struct buf *b)
{
	size_t outside = 0, controls = 0, work = 0;
	const size_t seen = r->results.n - count(r, SV(""), ROW_NA);

	for (size_t i = 0; i < r->results.n; i++) {
		const struct conform_result *res = &r->results.v[i];

		outside += res->verdict != ROW_NA && res->row->outside;
		controls += res->control != CONTROL_NONE;
		work += res->control == CONTROL_WORKS;
	}
	buf_str(b, "\ntested: ");
	put_plain(b, sv_from(r->tested));
	buf_fmt(b, "%s" SV_FMT ", as " SV_FMT "\n", r->tier.n ? ", tier " : "", SV_ARG(r->tier),
		SV_ARG(r->user));
	buf_fmt(b,
		"%zu of %zu attempts mean something here; %zu of them are judged from outside; %zu "
		"of %zu controls work inside\n",
		seen, r->results.n, outside, work, controls);
}

void conform_show(const struct conform_report *r, bool all, struct buf *b)
{
	put_matrix(r, b);
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		const enum conform_verdict v = order[i];

		if (count(r, SV(""), v) == 0 || (!all && conform_passes(v) && v != ROW_GAP))
			continue;
		buf_fmt(b, "\n%s: %s\n", conform_verdict_name(v), conform_verdict_means(v));
		for (size_t k = 0; k < r->results.n; k++)
			if (r->results.v[k].verdict == v)
				put_result(&r->results.v[k], b);
	}
	put_summary(r, b);
}

/* --- JSON --- */

static void put_row(const struct conform_row *row, struct buf *b)
{
	buf_ch(b, '{');
	json_put_member(b, "id", row->id);
	json_put_member(b, "bound", row->bound);
	json_put_member(b, "guarantee", row->guarantee);
	json_put_member(b, "what", row->what);
	json_put_member(b, "judged", sv_from(row->outside ? "outside" : "inside"));
	json_put_flag(b, "control", row->control);
	json_put_member(b, "policy", row->policy);
	json_put_member(b, "gap", row->gap);
	buf_str(b, ",\"flags\":[");
	for (unsigned i = 0; conform_flag_name(i); i++)
		if (row->flags & 1u << i)
			json_put_item(b, sv_from(conform_flag_name(i)));
	buf_ch(b, ']');
}

static void put_json_result(const struct conform_result *res, struct buf *b)
{
	static const char *const works[CONTROL_COUNT] = { "null", "false", "true" };

	put_row(res->row, b);
	json_put_member(b, "verdict", sv_from(conform_verdict_name(res->verdict)));
	json_put_member(b, "why", sv_from(why_of(&res->inside)));
	json_put_member(b, "said", sv_from(res->inside.said));
	json_put_member(b, "bare", sv_from(conform_seen_name(res->bare.seen)));
	json_put_member(b, "bare_said", sv_from(why_of(&res->bare)));
	buf_fmt(b, ",\"control_works\":%s}", works[res->control]);
}

void conform_json(const struct conform_report *r, struct buf *b)
{
	buf_str(b, "{\"version\":1");
	json_put_member(b, "tested", sv_from(r->tested));
	json_put_member(b, "tier", r->tier);
	json_put_member(b, "user", r->user);
	json_put_flag(b, "passed", conform_report_passes(r));
	buf_str(b, ",\"counts\":{");
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		json_put_number(b, conform_verdict_name(order[i]), count(r, SV(""), order[i]));
	buf_str(b, "},\"rows\":[");
	for (size_t i = 0; i < r->results.n; i++) {
		buf_str(b, i ? ",\n" : "\n");
		put_json_result(&r->results.v[i], b);
	}
	buf_str(b, "\n]}\n");
}

void conform_show_rows(const struct conform_rows *rows, struct buf *b)
{
	for (size_t i = 0; i < rows->rows.n; i++)
		buf_fmt(b, "%-9s %-9s %-12s %s\n", rows->rows.v[i].id.p, rows->rows.v[i].bound.p,
			rows->rows.v[i].guarantee.p, rows->rows.v[i].what.p);
}

void conform_json_rows(const struct conform_rows *rows, struct buf *b)
{
	buf_ch(b, '[');
	for (size_t i = 0; i < rows->rows.n; i++) {
		buf_str(b, i ? ",\n" : "\n");
		put_row(&rows->rows.v[i], b);
		buf_ch(b, '}');
	}
	buf_str(b, "\n]\n");
}
