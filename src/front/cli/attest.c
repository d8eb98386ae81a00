#include "cli/attest.h"

#include <stdlib.h>
#include <string.h>

#include "attest/statement.h"
#include "audit/entry.h"
#include "codec/json.h"

#include "base/banned.h"

/* --- the --require list --- */

struct required {
	bool asked[BOUNDARIES];
	enum strength least[BOUNDARIES];
};

static bool names_boundary(struct sv name, enum boundary b)
{
	static const char *const others[BOUNDARIES] = { [BOUNDARY_FILESYSTEM] = "fs",
							[BOUNDARY_NETWORK] = "net",
							[BOUNDARY_PROCESS] = "proc",
							[BOUNDARY_RESOURCES] = "limits",
							[BOUNDARY_CREDENTIALS] = "secrets" };

	return sv_is(name, others[b]) || sv_is(name, attest_boundary_name(b)) || sv_is(name, "all");
}

/* Parses one item: "fs>=E2" means HELD with evidence E2 or better; "fs" means HELD. */
static bool parse_required(struct sv list, struct required *ret)
{
	static const char *const levels[] = { ">=E0", ">=E1", ">=E2" };
	struct required q = { 0 };

	while (list.n) {
		struct sv one = sv_cut(&list, ',');
		const size_t mark = sv_find(one, '>');
		const struct sv name = mark == SIZE_MAX ? one : sv_sub(one, 0, mark);
		const struct sv level = mark == SIZE_MAX ? SV(">=E0") : sv_skip(one, mark);
		size_t n = 0;
		bool known = false;

		while (n < ARRAY_LEN(levels) && !sv_is(level, levels[n]))
			n++;
		for (enum boundary b = 0; n < ARRAY_LEN(levels) && b < BOUNDARIES; b++)
			if (names_boundary(name, b)) {
				q.asked[b] = known = true;
				q.least[b] = (enum strength)n;
			}
		if (!known)
			return false;
	}
	*ret = q;
	return true;
}

static bool is_enough(const struct required *q, enum boundary b, const struct finding *f)
{
	return !q->asked[b] || (f->verdict == VERDICT_HELD && f->strength >= q->least[b]);
}

/*
 * Tests whether the session has ended, no boundary was violated, and every boundary that --require
 * names was held with the required evidence.
 */
static bool is_met(const struct required *q, bool whole, const struct judgement *j)
{
	bool met = whole;

	for (enum boundary b = 0; b < BOUNDARIES; b++)
		met &= j->of[b].verdict != VERDICT_VIOLATED && is_enough(q, b, &j->of[b]);
	return met;
}

/* --- text output --- */

static const char *const loud[] = { [VERDICT_UNKNOWN] = "UNKNOWN",
				    [VERDICT_HELD] = "HELD",
				    [VERDICT_VIOLATED] = "VIOLATED",
				    [VERDICT_NOT_ENFORCED] = "NOT ENFORCED" };

/* Returns the verdict to show. For a session that was cut off, all but VIOLATED become UNKNOWN. */
static enum verdict shown(const struct attest_checked *c, enum boundary i)
{
	const enum verdict v = c->judgement.of[i].verdict;

	return c->facts.whole || v == VERDICT_VIOLATED ? v : VERDICT_UNKNOWN;
}

/*
 * Prints the overall verdict: VIOLATED with the violated boundaries, if there are any; else UNKNOWN
 * if the session was cut off or no boundary held; else HELD, with the exceptions.
 */
static void put_overall(const struct judgement *j, bool whole, struct buf *b)
{
	size_t n[VERDICT_NOT_ENFORCED + 1] = { 0 };
	const char *separator = " ";

	for (enum boundary i = 0; i < BOUNDARIES; i++)
		n[j->of[i].verdict]++;
	if (n[VERDICT_VIOLATED]) {
		buf_str(b, "VIOLATED");
		for (enum boundary i = 0; i < BOUNDARIES; i++)
			if (j->of[i].verdict == VERDICT_VIOLATED) {
				buf_fmt(b, "%s%s", separator, attest_boundary_name(i));
				separator = ", ";
			}
		return;
	}
	if (!whole || n[VERDICT_HELD] == 0) {
		buf_str(b, "UNKNOWN");
		return;
	}
	buf_str(b, "HELD");
	for (enum boundary i = 0; i < BOUNDARIES; i++)
		if (j->of[i].verdict != VERDICT_HELD) {
			buf_fmt(b, "%s%s", *separator == ' ' ? " except " : separator,
				attest_boundary_name(i));
			separator = ", ";
		}
}

static void put_duration(uint64_t us, struct buf *b)
{
	if (us < 1000000)
		buf_fmt(b, "%llu ms", (unsigned long long)(us / 1000));
	else if (us < 120000000)
		buf_fmt(b, "%llu s", (unsigned long long)(us / 1000000));
	else if (us < UINT64_C(7200000000))
		buf_fmt(b, "%llu min", (unsigned long long)(us / 60000000));
	else
		buf_fmt(b, "%llu h", (unsigned long long)(us / UINT64_C(3600000000)));
}

/* Prints the name of the session's program, unless redaction removed the name from the record. */
static void put_program(struct sv entries, struct buf *b)
{
	struct writ_err ignored = { 0 };
	scoped_json *o = NULL;
	const char *name;

	if (json_decode(sv_cut(&entries, '\n'), ENTRY_LINE_MAX, &o, &ignored) < 0)
		return;
	name = json_string_value(json_array_get(json_object_get(o, "command"), 0));
	if (!name)
		return;
	buf_str(b, "  ");
	if (strrchr(name, '/'))
		name = strrchr(name, '/') + 1;
	diag_put_safe(b, sv_sub(sv_from(name), 0, 40));
}

static void put_not_covered(const struct attest_checked *c, struct buf *b)
{
	struct statement s = { .of = c->facts.of };

	statement_words(&s);
	buf_str(b, "  not covered:");
	for (size_t i = 0; i < s.not_covered.n; i++) {
		buf_str(b, i ? "; " : " ");
		for (size_t k = 0; k < s.not_covered.v[i].n; k++) {
			const char ch = s.not_covered.v[i].p[k];

			buf_ch(b, (char)(ch == '-' ? ' ' : ch));
		}
	}
	buf_ch(b, '\n');
}

static void put_picture(const struct attest_loaded *l, const struct attest_checked *c,
			struct buf *b)
{
	const struct attest_session *of = &c->facts.of;

	buf_sv(b, of->id);
	if (l->ev.lines)
		put_program(buf_view(&l->entries), b);
	buf_str(b, "  ");
	put_duration(of->finished > of->started ? of->finished - of->started : 0, b);
	buf_str(b, "   ");
	put_overall(&c->judgement, c->facts.whole, b);
	buf_fmt(b, "   %s",
		c->custody_known ? attest_custody_words(of->custody)
				 : "by its own word another user holds the key: not known here");
	if (c->cosigned)
		buf_fmt(b, ", %u witness%s", c->cosigned, c->cosigned == 1 ? "" : "es");
	buf_ch(b, '\n');
	for (enum boundary i = 0; i < BOUNDARIES; i++) {
		const struct finding *f = &c->judgement.of[i];
		const enum verdict v = shown(c, i);

		buf_fmt(b, "  %-11s  %-12s  ", attest_boundary_name(i), loud[v]);
		if (v == VERDICT_HELD)
			buf_fmt(b, "E%d  ", (int)f->strength);
		diag_put_safe(b, c->facts.whole ? sv_from(f->why)
						: SV("the session was cut off before its end"));
		buf_ch(b, '\n');
	}
	if (c->judgement.left_out)
		buf_fmt(b, "  %llu events are not in the record: it was full\n",
			(unsigned long long)c->judgement.left_out);
	put_not_covered(c, b);
}

/* --- JSON output --- */

static const char *const answers[] = { [ATTEST_NO] = "does-not-verify",
				       [ATTEST_UNPINNED] = "signer-not-pinned",
				       [ATTEST_CUT] = "cut-off",
				       [ATTEST_YES] = "verified" };

static void put_facts(const struct attest_checked *c, json_t *o)
{
	const struct attest_session *of = &c->facts.of;
	json_t *boundaries = json_object();

	(void)json_object_update_new(
		o, json_pack("{s:s,s:b,s:s%,s:I,s:I,s:I,s:I,s:I}", "custody",
			     attest_custody_name(of->custody), "custody_known", c->custody_known,
			     "realm", of->realm.p, of->realm.n, "started", (json_int_t)of->started,
			     "finished", (json_int_t)of->finished, "exit", (json_int_t)of->exit,
			     "entries", (json_int_t)of->entries, "not_recorded",
			     (json_int_t)c->judgement.left_out));
	(void)json_object_set_new(
		o, "log",
		json_pack("{s:s%,s:I,s:I,s:I,s:I}", "origin", c->log.origin.p, c->log.origin.n,
			  "size", (json_int_t)c->log.size, "start", (json_int_t)c->log.start, "end",
			  (json_int_t)c->log.end, "witnesses", (json_int_t)c->cosigned));
	for (enum boundary i = 0; i < BOUNDARIES; i++) {
		const struct finding *f = &c->judgement.of[i];

		(void)json_object_set_new(boundaries, attest_boundary_name(i),
					  json_pack("{s:s,s:I,s:I,s:s}", "verdict",
					    verdict_name(shown(c, i)),
						    "strength", (json_int_t)f->strength, "denials",
						    (json_int_t)f->denials, "why", f->why));
	}
	(void)json_object_set_new(o, "boundaries", boundaries);
}

static int put_json(const struct attest_loaded *l, enum attest_answer answer,
		    const struct attest_checked *c, bool met, const struct writ_err *why, int code)
{
	const struct sv id = c ? c->facts.of.id : l->id;
	struct buf b = BUF_INIT(1 << 20);
	scoped_json *o = json_object();
	char *text;

	(void)json_object_set_new(o, "session", json_stringn(id.p, id.n));
	(void)json_object_set_new(o, "answer",
				  json_string(c		     ? answers[answer]
					      : l->open	     ? "not-ended"
					      : l->unsigned_ ? "not-signed-yet"
							     : answers[answer]));
	(void)json_object_set_new(o, "met", json_boolean(met));
	if (why->what[0])
		(void)json_object_set_new(o, "error", json_string(why->what));
	if (c)
		put_facts(c, o);
	text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII);
	buf_fmt(&b, "%s\n", text ? text : "{}");
	free(text);
	return cli_out(&b, code);
}

/* --- verify --- */

/*
 * Tests whether the operands name evidence files: several operands, or an operand with a slash or a
 * dot, are files; any other operand is a session id. SECURITY: a session id is looked up only in
 * the state directory, never in the current directory, where an agent could place a file with the
 * name of the id.
 */
static bool is_foreign(const struct args *a)
{
	return a->operands.n > 2 || (a->operands.n == 2 && (strchr(a->operands.v[1], '/') ||
							    strchr(a->operands.v[1], '.')));
}

static int load(struct args *a, struct attest_loaded *l, struct writ_err *err)
{
	int r;

	if (is_foreign(a)) {
		char **names = arena_array(a->arena, char *, a->operands.n);

		for (size_t i = 1; names && i < a->operands.n; i++)
			names[i - 1] = arena_str(a->arena, sv_from(a->operands.v[i]));
		return names ? cli_attest_load_files(l, names, a->operands.n - 1, err)
			     : writ_nomem(err);
	}
	r = cli_attest_load_record(l, a->operands.n == 2 ? sv_from(a->operands.v[1]) : SV(""), err);
	return r == 0 ? cli_attest_load_log(l, err) : r;
}

/*
 * Reports a session whose log has no signed end: the session still runs, its supervisor was killed,
 * the end of the log was cut off, or the log could not be signed.
 */
static int report_open(const struct args *a, const struct attest_loaded *l)
{
	struct writ_err why = { 0 };
	struct buf b = BUF_INIT(4096);

	(void)!writ_fail(
		&why, WRIT_E_DENIED, 0, "%s",
		l->unsigned_ ? "it has ended, and that is not signed yet: writ attest show signs it"
			     : "no log says that it has ended: it runs, or was killed, or the log "
			       "is cut");
	if (a->given[OPT_JSON])
		return put_json(l, ATTEST_NO, NULL, false, &why, EXIT_NO);
	buf_fmt(&b, SV_FMT "   UNKNOWN   %s\n", SV_ARG(l->id), why.what);
	return cli_out(&b, EXIT_NO);
}

static int report_failure(const struct args *a, const struct attest_loaded *l,
			  enum attest_answer answer, const struct writ_err *why)
{
	const int code = answer == ATTEST_UNPINNED ? EXIT_UNPINNED : EXIT_FORGED;

	if (a->given[OPT_JSON])
		return put_json(l, answer, NULL, false, why, code);
	cli_note("%s%s%s", answer == ATTEST_UNPINNED ? "" : "this does not verify: ", why->what,
		 answer == ATTEST_UNPINNED ? "; --key and --policy name the keys that count" : "");
	return code;
}

static int report(const struct args *a, const struct attest_loaded *l, enum attest_answer answer,
		  const struct attest_checked *c, const struct required *q)
{
	const bool met = is_met(q, c->facts.whole, &c->judgement);
	const struct writ_err none = { 0 };
	const int code = met ? EXIT_DONE : EXIT_NO;
	struct buf b = BUF_INIT(1 << 16);

	if (a->given[OPT_JSON])
		return put_json(l, answer, c, met, &none, code);
	put_picture(l, c, &b);
	for (enum boundary i = 0; i < BOUNDARIES; i++)
		if (!is_enough(q, i, &c->judgement.of[i]))
			cli_note("required is that %s held, by E%d at least",
				 attest_boundary_name(i), (int)q->least[i]);
	return cli_out(&b, code);
}

static int verify(struct args *a)
{
	const char *policy = a->policies.n ? a->policies.v[a->policies.n - 1] : NULL;
	struct required q = { 0 };
	struct writ_err err = { 0 };
	struct attest_checked c;
	struct attest_loaded l;
	enum attest_answer answer;
	int r;

	if (a->given[OPT_REQUIRE] && !parse_required(sv_from(a->value[OPT_REQUIRE]), &q))
		return cli_end(EXIT_FAILED, "--require wants a list of fs, net, proc, limits, "
			       "secrets or all, each with a level if you like, as in fs>=E2,net");
	if ((r = cli_attest_load_init(a, &l, &err)) == 0 && (r = load(a, &l, &err)) == 0 &&
	    !l.open && !l.unsigned_)
		r = cli_attest_load_pins(&l, policy, a->value[OPT_KEY], &err);
	if (r == 0 && (l.open || l.unsigned_)) {
		r = report_open(a, &l);
	} else if (r == 0) {
		answer = attest_check(a->arena, &l.ev, &l.trust, &c, &err);
		r = answer >= ATTEST_CUT ? report(a, &l, answer, &c, &q)
					 : report_failure(a, &l, answer, &err);
	} else if (r == WRIT_E_DENIED) {
		r = report_failure(a, &l, ATTEST_NO, &err);
	} else {
		r = cli_fail(&err, NULL);
	}
	cli_attest_load_clear(&l);
	return r;
}

int cmd_attest(struct args *a)
{
	const struct sv what = a->operands.n ? sv_from(a->operands.v[0]) : SV("");

	if (sv_is(what, "verify"))
		return verify(a);
	if (sv_is(what, "show") && a->operands.n <= 2)
		return cli_attest_show(a);
	return cli_end(EXIT_FAILED, "attest verify or show; see writ help attest");
}
