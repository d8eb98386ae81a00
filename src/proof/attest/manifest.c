#include "attest/statement.h"

#include "codec/json.h"

#include "base/banned.h"

#define AT(member) offsetof(struct attest_facts, member)

/* Members of a manifest besides its version and the executable, which is optional. */
static const struct attest_member members[] = {
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
enum { ALWAYS = ARRAY_LEN(members) - 1 };

int manifest_print(const struct attest_facts *f, struct buf *b, struct writ_err *err)
{
	scoped_json *o = attest_object(members, ALWAYS + (f->executable.n != 0), f);

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
	attest_get(&in, members, ALWAYS + program, &f);
	if (program && f.executable.n == 0 && in.failed == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "member executable is empty");
	if (attest_fields_end(&in) == 0)
		*ret = f;
	return in.failed;
}

const char *manifest_differs(const struct attest_facts *a, const struct attest_facts *b)
{
	return attest_differ(members, ARRAY_LEN(members), a, b);
}
