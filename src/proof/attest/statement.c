#include "attest/statement.h"

#include "codec/json.h"
#include "crypto/crypto.h"

#include "base/banned.h"

#define SESSION(member) offsetof(struct attest_session, member)
#define LOG(member) offsetof(struct attest_log, member)

static const struct attest_member session_members[] = {
	{ "id", ATTEST_WORD, SESSION(id) },
	{ "realm", ATTEST_WORD, SESSION(realm) },
	{ "started", ATTEST_NUMBER, SESSION(started) },
	{ "finished", ATTEST_NUMBER, SESSION(finished) },
	{ "exit", ATTEST_NUMBER, SESSION(exit) },
};
static const struct attest_member evidence_members[] = {
	{ "entries", ATTEST_NUMBER, SESSION(entries) },
	{ "root", ATTEST_DIGEST, SESSION(root) },
};
static const struct attest_member log_members[] = {
	{ "origin", ATTEST_TEXT, LOG(origin) }, { "size", ATTEST_NUMBER, LOG(size) },
	{ "root", ATTEST_DIGEST, LOG(root) },	{ "start", ATTEST_NUMBER, LOG(start) },
	{ "end", ATTEST_NUMBER, LOG(end) },
};
static const struct attest_member custody = { "custody", ATTEST_CUSTODY, SESSION(custody) };

#define IN_TOTO "https://in-toto.io/Statement/v1"

void statement_words(struct statement *s)
{
	/*
	 * Assumptions of a statement. writ itself is among them, no matter who holds the key,
	 * because the supervisor writes the log. The last one is made only if the user holds the
	 * key.
	 */
	static const struct statement_words assumes = {
		.v = { SV_INIT("kernel-not-compromised"), SV_INIT("root-of-this-host-honest"),
			 SV_INIT("writ-as-shipped"), SV_INIT("user-honest") },
		.n = 4
	};
	/*
	 * Threats that a statement does not cover if another user holds the key. A user who may
	 * start sessions can start a session that contains only made-up work.
	 */
	static const struct statement_words misses = {
		.v = { SV_INIT("covert-channels"), SV_INIT("root-on-this-host"),
			 SV_INIT("sessions-this-user-made-up") },
		.n = 3
	};
	static const struct statement_words self_misses = {
		.v = { SV_INIT("covert-channels"), SV_INIT("root-on-this-host"),
			 SV_INIT("an-agent-that-got-out"), SV_INIT("this-user") },
		.n = 4
	};
	const bool self = s->of.custody == CUSTODY_SAME_UID;

	s->assumptions = assumes;
	s->assumptions.n -= !self;
	s->not_covered = self ? self_misses : misses;
}

static json_t *subject(const char *name, const struct digest *d)
{
	scoped_buf hex = BUF_INIT(80);

	digest_hex(d, &hex);
	return json_pack("{s:{s:s%},s:s}", "digest", "sha256", hex.p ? hex.p : "", hex.n, "name",
			 name);
}

static json_t *words(const struct statement_words *w)
{
	json_t *v = json_array();

	for (size_t i = 0; i < w->n; i++)
		(void)json_array_append_new(v, json_stringn(w->v[i].p, w->v[i].n));
	return v;
}

static json_t *predicate(const struct statement *s)
{
	return json_pack(
		"{s:i,s:s,s:o,s:o,s:o,s:o,s:o}", "schema", 1, "custody",
		attest_custody_name(s->of.custody), "session",
		attest_object(session_members, ARRAY_LEN(session_members), &s->of), "evidence",
		attest_object(evidence_members, ARRAY_LEN(evidence_members), &s->of), "log",
		attest_object(log_members, ARRAY_LEN(log_members), &s->log), "assumptions",
		words(&s->assumptions), "notCovered", words(&s->not_covered));
}

int statement_print(const struct statement *s, struct buf *b, struct writ_err *err)
{
	scoped_json *o =
		json_pack("{s:s,s:s,s:[o,o],s:o}", "_type", IN_TOTO, "predicateType",
			  STATEMENT_PREDICATE, "subject", subject("session.json", &s->manifest),
			  subject("entries.jsonl", &s->entries), "predicate", predicate(s));

	return o ? cj_encode(o, b, err) : writ_nomem(err);
}

static int parse_subject(const json_t *list, size_t i, struct sv name, struct arena *a,
			 struct digest *ret, struct writ_err *err)
{
	struct fields in = attest_fields_of(json_array_get(list, i), a, err), digest;
	struct sv hex;

	if (in.failed)
		return in.failed;
	attest_member_is(&in, "name", name);
	digest = attest_member_object(&in, "digest");
	if (attest_fields_end(&in) < 0)
		return in.failed;
	hex = attest_member_text(&digest, "sha256");
	if (attest_fields_end(&digest) < 0)
		return digest.failed;
	return digest_parse(hex, ret) ? 0
				      : writ_fail(err, WRIT_E_SYNTAX, 0, "a subject has no digest");
}

static int parse_words(const json_t *o, const char *key, struct arena *a,
		       struct statement_words *ret, struct writ_err *err)
{
	const json_t *list = json_object_get(o, key);
	const size_t n = json_array_size(list);

	if (!json_is_array(list) || n > STATEMENT_WORDS)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "member %s is no short list", key);
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(list, i);
		const struct sv s = { json_is_string(v) ? json_string_value(v) : "",
				      json_string_length(v) };

		if (!attest_is_word(s) || !arena_sv(a, s, &ret->v[i]))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "member %s has what is no word",
					 key);
	}
	ret->n = n;
	return 0;
}

static int parse_log(struct fields *in, struct attest_log *ret)
{
	struct fields log = attest_member_object(in, "log");

	attest_get(&log, log_members, ARRAY_LEN(log_members), ret);
	if (log.failed == 0 && (ret->start >= ret->end || ret->end >= ret->size))
		return writ_fail(log.err, WRIT_E_SYNTAX, 0, "the indices of the log do not fit");
	return attest_fields_end(&log);
}

static int parse_session(struct fields *in, struct attest_session *ret)
{
	struct fields session = attest_member_object(in, "session");
	struct fields evidence = attest_member_object(in, "evidence");

	attest_get(&session, session_members, ARRAY_LEN(session_members), ret);
	if (attest_fields_end(&session) < 0)
		return session.failed;
	attest_get(&evidence, evidence_members, ARRAY_LEN(evidence_members), ret);
	return attest_fields_end(&evidence);
}

static int parse_predicate(struct fields *in, struct statement *s)
{
	int r;

	if (attest_member_number(in, "schema") != 1 && in->failed == 0)
		return writ_fail(in->err, WRIT_E_SYNTAX, 0, "it is of another version");
	attest_get(in, &custody, 1, &s->of);
	if (in->failed)
		return in->failed;
	in->asked += 2;
	if ((r = parse_session(in, &s->of)) < 0 || (r = parse_log(in, &s->log)) < 0 ||
	    (r = parse_words(in->o, "assumptions", in->a, &s->assumptions, in->err)) < 0 ||
	    (r = parse_words(in->o, "notCovered", in->a, &s->not_covered, in->err)) < 0)
		return r;
	return attest_fields_end(in);
}

int statement_parse(struct arena *a, struct sv bytes, struct statement *ret, struct writ_err *err)
{
	scoped_json *o = NULL;
	struct statement s = { 0 };
	struct fields in = attest_fields_decode(bytes, ATTEST_TEXT_MAX, &o, a, err), inner;
	const json_t *list;
	int r;

	attest_member_is(&in, "_type", SV(IN_TOTO));
	attest_member_is(&in, "predicateType", SV(STATEMENT_PREDICATE));
	inner = attest_member_object(&in, "predicate");
	list = json_object_get(o, "subject");
	in.asked++;
	if ((r = attest_fields_end(&in)) < 0)
		return r;
	if (json_array_size(list) != 2)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "it does not have two subjects");
	if ((r = parse_subject(list, 0, SV("session.json"), a, &s.manifest, err)) < 0 ||
	    (r = parse_subject(list, 1, SV("entries.jsonl"), a, &s.entries, err)) < 0 ||
	    (r = parse_predicate(&inner, &s)) < 0)
		return r;
	*ret = s;
	return 0;
}

/* --- the manifest --- */

#define AT(member) offsetof(struct attest_facts, member)

/* Members of a manifest besides its version. The last one, the executable, is optional. */
static const struct attest_member manifest_members[] = {
	{ "session", ATTEST_WORD, AT(of.id) },
	{ "realm", ATTEST_WORD, AT(of.realm) },
	{ "custody", ATTEST_CUSTODY, AT(of.custody) },
	{ "started", ATTEST_NUMBER, AT(of.started) },
	{ "finished", ATTEST_NUMBER, AT(of.finished) },
	{ "exit", ATTEST_NUMBER, AT(of.exit) },
	{ "entries", ATTEST_NUMBER, AT(of.entries) },
	{ "root", ATTEST_DIGEST, AT(of.root) },
	{ "policy", ATTEST_DIGEST, AT(policy) },
	{ "guarantees", ATTEST_DIGEST, AT(guarantees) },
	{ "tier", ATTEST_WORD, AT(tier) },
	{ "adapter", ATTEST_WORD, AT(adapter) },
	{ "writ", ATTEST_WORD, AT(version) },
	{ "executable", ATTEST_TEXT, AT(executable) },
};
enum { ALWAYS = ARRAY_LEN(manifest_members) - 1 };

int manifest_print(const struct attest_facts *f, struct buf *b, struct writ_err *err)
{
	scoped_json *o = attest_object(manifest_members, ALWAYS + (f->executable.n != 0), f);

	if (json_object_set_new(o, "v", json_integer(1)) < 0)
		return writ_nomem(err);
	return cj_encode(o, b, err);
}

int manifest_parse(struct arena *a, struct sv bytes, struct attest_facts *ret, struct writ_err *err)
{
	scoped_json *o = NULL;
	struct attest_facts f = { .whole = true, .executable = SV("") };
	struct fields in = attest_fields_decode(bytes, ATTEST_TEXT_MAX, &o, a, err);
	const bool program = json_object_get(o, "executable");

	if (attest_member_number(&in, "v") != 1 && in.failed == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "it is of another version");
	attest_get(&in, manifest_members, ALWAYS + program, &f);
	if (program && f.executable.n == 0 && in.failed == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "member executable is empty");
	if (attest_fields_end(&in) == 0)
		*ret = f;
	return in.failed;
}

const char *manifest_differs(const struct attest_facts *a, const struct attest_facts *b)
{
	return attest_differ(manifest_members, ARRAY_LEN(manifest_members), a, b);
}
