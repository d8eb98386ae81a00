
#include "attest/attest.h"
#include "attest/judge.h"
#include "audit/entry.h"
#include "codec/json.h"
#include "crypto/crypto.h"
#include "tlog/note.h"

#include "base/banned.h"

static const struct {
	const char *name, *words;
} custodies[] = {
	[CUSTODY_NONE] = { "none", "nobody knows who holds the key" },
	[CUSTODY_SAME_UID] = { "same-uid", "self-attested (same user holds the key)" },
	[CUSTODY_OTHER_UID] = { "other-uid",
				"signed by writ-signer (this user cannot read the key)" },
};

const char *attest_custody_name(enum custody c)
{
	return custodies[c].name;
}

const char *attest_custody_words(enum custody c)
{
	return custodies[c].words;
}

bool attest_custody_parse(struct sv s, enum custody *ret)
{
	for (enum custody c = CUSTODY_SAME_UID; c <= CUSTODY_OTHER_UID; c++)
		if (sv_is(s, custodies[c].name)) {
			*ret = c;
			return true;
		}
	return false;
}

bool attest_is_word(struct sv s)
{
	return s.n > 0 && s.n <= ATTEST_ID_MAX && s.p[0] != '.' && s.p[0] != '-' &&
	       sv_is_alnum(s, ".-");
}

struct sv attest_realm(struct sv origin)
{
	const struct sv realm = sv_skip(origin, sizeof("writ/log/") - 1);

	return sv_starts(origin, SV("writ/log/")) && attest_is_word(realm) ? realm : SV("");
}

/*
 * Decodes an entry of the realm's log. Unknown members are allowed: later versions may add members.
 */
struct fields attest_open_entry(struct arena *a, struct sv entry, json_t **ret_o,
				struct writ_err *err)
{
	struct fields in = { .a = a, .err = err };

	if (entry.n > ENTRY_PUBLIC_MAX) {
		in.failed = writ_fail(err, WRIT_E_LIMIT, 0, "the entry is too long");
		return in;
	}
	in = attest_fields_decode(entry, ENTRY_PUBLIC_MAX, ret_o, a, err);
	if (json_object_get(*ret_o, "_salt") || json_object_get(*ret_o, "_sd"))
		in.failed = writ_fail(err, WRIT_E_SYNTAX, 0, "nothing is private in a realm's log");
	return in;
}

#define AT(member) offsetof(struct attest_facts, member)

static const struct attest_member start_members[] = {
	{ "time", ATTEST_NUMBER, AT(of.started) },   { "session", ATTEST_WORD, AT(of.id) },
	{ "custody", ATTEST_CUSTODY, AT(of.custody) }, { "policy", ATTEST_DIGEST, AT(policy) },
	{ "plan", ATTEST_DIGEST, AT(guarantees) },   { "tier", ATTEST_WORD, AT(tier) },
	{ "adapter", ATTEST_WORD, AT(adapter) },     { "version", ATTEST_WORD, AT(version) },
};
/* The exit code is the last member, which the entry of an interrupted session does not have. */
static const struct attest_member end_members[] = {
	{ "time", ATTEST_NUMBER, AT(of.finished) },
	{ "entries", ATTEST_NUMBER, AT(of.entries) },
	{ "root", ATTEST_DIGEST, AT(of.root) },
	{ "exit", ATTEST_NUMBER, AT(of.exit) },
};

static bool is_end(struct sv line, const json_t *o, uint64_t exit_code)
{
	const json_t *code = json_object_get(o, "exit");

	return sv_is(entry_event(line), "end") && json_is_integer(code) &&
	       json_integer_value(code) == (json_int_t)exit_code;
}

int attest_read_start(struct arena *a, struct sv entry, struct attest_facts *f,
		      struct writ_err *err)
{
	scoped_json *o = NULL;
	struct fields in = attest_open_entry(a, entry, &o, err);

	attest_member_is(&in, "event", SV("session.start"));
	attest_get(&in, start_members, ARRAY_LEN(start_members), f);
	return in.failed;
}

int attest_read_end(struct arena *a, struct sv entry, struct attest_facts *f, struct writ_err *err)
{
	scoped_json *o = NULL;
	struct fields in = attest_open_entry(a, entry, &o, err);

	f->whole = sv_is(entry_event(entry), "session.end");
	attest_member_is(&in, "event", f->whole ? SV("session.end") : SV("session.cut"));
	if (!sv_eq(attest_member_text(&in, "session"), f->of.id) && in.failed == 0)
		return writ_fail(err, WRIT_E_DENIED, 0, "it is of another session than the start");
	f->of.exit = 0;
	attest_get(&in, end_members, ARRAY_LEN(end_members) - !f->whole, f);
	return in.failed;
}

/* --- the session's own log --- */

static int in_line(uint64_t n, struct writ_err *err)
{
	struct writ_err why = *err;

	return writ_fail(err, why.code, why.sys, "line %llu: %.90s", (unsigned long long)n + 1,
			 why.what);
}

/* Computes the leaf hash of a log line. With @open the line must equal its own public form. */
static int leaf_of(struct sv line, bool open, struct digest *ret, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(ENTRY_LINE_MAX);
	const int r = entry_public(line, &b, err);

	if (r == 0 && open && !sv_eq(line, buf_view(&b)))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "it is not a public form");
	if (r == 0)
		*ret = tree_leaf(buf_view(&b));
	return r;
}

static int inspect_entry(struct arena *a, struct sv line, uint64_t n, struct attest_facts *f,
			 struct judgement *j, struct writ_err *err)
{
	scoped_json *o = NULL;
	const char *program;
	int r = cj_decode(line, &o, err);

	if (r < 0)
		return r;
	if (n == 0 &&
	    (!sv_is(entry_event(line), "start") || !sv_eq(entry_text(o, "session", a), f->of.id)))
		return writ_fail(err, WRIT_E_DENIED, 0, "it is not the start of this session");
	program = json_string_value(json_object_get(o, "executable"));
	if (program && f->executable.n == 0 && !arena_sv(a, sv_from(program), &f->executable))
		return writ_nomem(err);
	if (j)
		judge_entry(j, o);
	if (f->whole && n + 1 == f->of.entries && !is_end(line, o, f->of.exit))
		return writ_fail(err, WRIT_E_DENIED, 0, "it is not the end of this session");
	return 0;
}

int attest_read_entries(struct arena *a, struct sv bytes, bool open, struct attest_facts *f,
			struct judgement *j, struct writ_err *err)
{
	struct tree_frontier tree = { 0 };
	struct digest leaf, root, sealed = { 0 };
	struct sv line = SV("");
	int r = 0;

	while (bytes.n && (f->whole || tree.size < f->of.entries)) {
		if (!tlog_line_take(&bytes, &line))
			r = writ_fail(err, WRIT_E_SYNTAX, 0, "it has no end");
		if (r == 0)
			r = leaf_of(line, open, &leaf, err);
		if (r == 0 && tree.size == f->of.entries)
			sealed = tree_frontier_root(&tree);
		if (r == 0 && tree.size < f->of.entries)
			r = inspect_entry(a, line, tree.size, f, j, err);
		if (r < 0)
			return in_line(tree.size, err);
		r = tree_append(&tree, &leaf, err);
		if (r < 0)
			return r;
	}
	if (tree.size > f->of.entries && digest_eq(&sealed, &f->of.root))
		return writ_fail(err, WRIT_E_DENIED, 0, "line %llu and what follows were added",
				 (unsigned long long)f->of.entries + 1);
	if (tree.size != f->of.entries)
		return writ_fail(err, WRIT_E_DENIED, 0, "it has %llu lines, and had %llu",
				 (unsigned long long)tree.size, (unsigned long long)f->of.entries);
	if (f->whole && tree.size == 0)
		return writ_fail(err, WRIT_E_DENIED, 0, "it has no start and no end");
	root = tree_frontier_root(&tree);
	if (!digest_eq(&root, &f->of.root))
		return writ_fail(
			err, WRIT_E_DENIED, 0,
			"its lines are not those that were signed: known by their root only");
	return 0;
}

int attest_public_entries(struct sv bytes, struct buf *b, struct writ_err *err)
{
	struct sv line;
	uint64_t n = 0;

	for (; bytes.n; n++) {
		if (!tlog_line_take(&bytes, &line))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "line %llu has no end",
					 (unsigned long long)n + 1);
		if (entry_public(line, b, err) < 0)
			return in_line(n, err);
		buf_ch(b, '\n');
	}
	return buf_check(b, err);
}
