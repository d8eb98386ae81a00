#include "attest/manifest.h"

#include "codec/json.h"
#include "crypto/crypto.h"

#include "base/banned.h"

static void put_text(json_t *o, const char *key, struct sv s)
{
	(void)json_object_set_new(o, key, json_stringn(s.p, s.n));
}

static void put_number(json_t *o, const char *key, uint64_t n)
{
	(void)json_object_set_new(o, key, json_integer((json_int_t)n));
}

int manifest_print(const struct attest_facts *f, struct buf *b, struct writ_err *err)
{
	scoped_json *o = json_object();

	if (!o)
		return writ_nomem(err);
	put_number(o, "v", 1);
	put_text(o, "session", f->of.id);
	put_text(o, "realm", f->of.realm);
	put_text(o, "custody", sv_from(attest_custody_name(f->of.custody)));
	put_number(o, "started", f->of.started);
	put_number(o, "finished", f->of.finished);
	put_number(o, "exit", f->of.exit);
	put_number(o, "entries", f->of.entries);
	attest_put_digest(o, "root", &f->of.root);
	attest_put_digest(o, "policy", &f->policy);
	attest_put_digest(o, "guarantees", &f->guarantees);
	put_text(o, "tier", f->tier);
	put_text(o, "adapter", f->adapter);
	put_text(o, "writ", f->version);
	put_text(o, "executable", f->executable);
	if (f->executable.n == 0)
		(void)json_object_del(o, "executable");
	if (json_object_size(o) != (f->executable.n ? 15u : 14u))
		return writ_nomem(err);
	return cj_encode(o, b, err);
}

int manifest_parse(struct arena *a, struct sv bytes, struct attest_facts *ret, struct writ_err *err)
{
	scoped_json *o = NULL;
	struct attest_facts f = { .whole = true, .executable = SV("") };
	struct fields in;
	int r = bytes.n > ATTEST_TEXT_MAX ? writ_fail(err, WRIT_E_LIMIT, 0, "it is too long")
					  : cj_decode(bytes, &o, err);

	if (r < 0)
		return r;
	in = attest_fields_of(o, a, err);
	if (attest_member_number(&in, "v") != 1 && in.failed == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "it is of another version");
	f.of.id = attest_member_word(&in, "session");
	f.of.realm = attest_member_word(&in, "realm");
	f.of.custody = attest_member_custody(&in, "custody");
	f.of.started = attest_member_number(&in, "started");
	f.of.finished = attest_member_number(&in, "finished");
	f.of.exit = attest_member_number(&in, "exit");
	f.of.entries = attest_member_number(&in, "entries");
	f.of.root = attest_member_digest(&in, "root");
	f.policy = attest_member_digest(&in, "policy");
	f.guarantees = attest_member_digest(&in, "guarantees");
	f.tier = attest_member_word(&in, "tier");
	f.adapter = attest_member_word(&in, "adapter");
	f.version = attest_member_word(&in, "writ");
	if (json_object_get(o, "executable"))
		f.executable = attest_member_text(&in, "executable");
	if (json_object_get(o, "executable") && f.executable.n == 0 && in.failed == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "member executable is empty");
	r = attest_fields_end(&in);
	if (r == 0)
		*ret = f;
	return r;
}

const char *manifest_differs(const struct attest_facts *a, const struct attest_facts *b)
{
	const struct {
		const char *name;
		bool same;
	} members[] = {
		{ "session", sv_eq(a->of.id, b->of.id) },
		{ "realm", sv_eq(a->of.realm, b->of.realm) },
		{ "custody", a->of.custody == b->of.custody },
		{ "started", a->of.started == b->of.started },
		{ "finished", a->of.finished == b->of.finished },
		{ "exit", a->of.exit == b->of.exit },
		{ "entries", a->of.entries == b->of.entries },
		{ "root", digest_eq(&a->of.root, &b->of.root) },
		{ "policy", digest_eq(&a->policy, &b->policy) },
		{ "guarantees", digest_eq(&a->guarantees, &b->guarantees) },
		{ "tier", sv_eq(a->tier, b->tier) },
		{ "adapter", sv_eq(a->adapter, b->adapter) },
		{ "writ", sv_eq(a->version, b->version) },
		{ "executable", sv_eq(a->executable, b->executable) },
	};

	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (!members[i].same)
			return members[i].name;
	return NULL;
}
