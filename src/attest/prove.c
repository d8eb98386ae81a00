#include "attest/prove.h"

#include <string.h>

#include "attest/manifest.h"
#include "attest/statement.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "tlog/proof.h"

#include "base/banned.h"

void attest_made_init(struct attest_made *m)
{
	m->start = m->end = (struct buf)BUF_INIT(PROOF_MAX);
	m->manifest = m->payload = (struct buf)BUF_INIT(ATTEST_TEXT_MAX);
}

void attest_made_clear(struct attest_made *m)
{
	buf_clear(&m->start);
	buf_clear(&m->end);
	buf_clear(&m->manifest);
	buf_clear(&m->payload);
}

/* Looked for from the end: most are asked about soon. */
int attest_find(struct realm *log, struct sv id, struct attest_found *ret, struct writ_err *err)
{
	struct attest_found f = { 0 };

	for (uint64_t i = log->tree.size; i > 0 && !f.started; i--) {
		scoped_buf b = BUF_INIT(ENTRY_PUBLIC_MAX + 1);
		scoped_json *o = NULL;
		struct sv event;
		int r = realm_entry(log, i - 1, &b, err);

		if (r < 0)
			return r;
		event = entry_event(buf_view(&b));
		if (!sv_starts(event, SV("session.")) || !memmem(b.p, b.n, id.p, id.n ? id.n : 1))
			continue;
		r = cj_decode(buf_view(&b), &o, err);
		if (r < 0)
			return r;
		if (!sv_eq(sv_from(json_string_value(json_object_get(o, "session"))), id))
			continue;
		if (sv_is(event, "session.start")) {
			f.started = true;
			f.start = i - 1;
		} else if (sv_is(event, "session.end") || sv_is(event, "session.cut")) {
			f.ended = true;
			f.end = i - 1;
		}
	}
	*ret = f;
	return 0;
}

static int prove_one(struct realm *log, uint64_t index, const struct checkpoint *c, struct sv note,
		     struct buf *b, struct writ_err *err)
{
	scoped_buf entry = BUF_INIT(ENTRY_PUBLIC_MAX + 1), extra = BUF_INIT(PROOF_EXTRA_MAX);
	struct proof p = { .index = index, .checkpoint = note };
	int r = realm_entry(log, index, &entry, err);

	if (r == 0 && index >= c->size)
		r = writ_fail(err, WRIT_E_DENIED, 0,
			      "the last checkpoint of the log ends before entry %llu",
			      (unsigned long long)index);
	if (r == 0)
		r = tree_prove_inclusion(&log->nodes.nodes, index, c->size, &p.path, err);
	base64_encode(BASE64_PADDED, buf_view(&entry), &extra);
	p.extra = buf_view(&extra);
	if (r == 0)
		r = buf_check(&extra, err);
	return r == 0 ? proof_print(&p, b, err) : r;
}

int attest_prove(struct realm *log, const struct attest_found *found, struct attest_made *m,
		 struct writ_err *err)
{
	scoped_buf text = BUF_INIT(NOTE_MAX);
	struct checkpoint c;
	struct note note;
	int r = realm_checkpoint(log, &text, err);

	if (r == 0 && text.n == 0)
		r = writ_fail(err, WRIT_E_DENIED, 0, "the log was never signed");
	if (r == 0)
		r = note_parse(buf_view(&text), &note, err);
	if (r == 0)
		r = checkpoint_parse(note.text, &c, err);
	if (r == 0 && c.size > log->tree.size)
		r = writ_fail(err, WRIT_E_DENIED, 0, "the log is shorter than its checkpoint");
	if (r == 0)
		r = prove_one(log, found->start, &c, buf_view(&text), &m->start, err);
	if (r == 0)
		r = prove_one(log, found->end, &c, buf_view(&text), &m->end, err);
	return r;
}

static int parse_proof(struct arena *a, struct sv bytes, struct proof *p, struct checkpoint *c,
		       struct sv *ret_entry, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(PROOF_EXTRA_MAX);
	struct note note;
	int r = proof_parse(bytes, p, err);

	if (r == 0 && (p->extra.n == 0 || !base64_decode_to(BASE64_PADDED, p->extra, &b) ||
		       !arena_sv(a, buf_view(&b), ret_entry)))
		r = writ_fail(err, WRIT_E_SYNTAX, 0, "the proof has no entry with it");
	if (r == 0)
		r = note_parse(p->checkpoint, &note, err);
	return r == 0 ? checkpoint_parse(note.text, c, err) : r;
}

int attest_proof_entry(struct arena *a, struct sv proof, struct sv *ret, struct writ_err *err)
{
	struct checkpoint c;
	struct proof p;

	return parse_proof(a, proof, &p, &c, ret, err);
}

int attest_read_proofs(struct arena *a, struct sv start, struct sv end, struct attest_facts *f,
		       struct attest_log *log, struct writ_err *err)
{
	struct sv first = SV(""), last = SV("");
	struct checkpoint c, d;
	struct proof p, q;
	int r = parse_proof(a, start, &p, &c, &first, err);

	if (r == 0)
		r = parse_proof(a, end, &q, &d, &last, err);
	if (r == 0 && (p.index >= q.index || !sv_eq(p.checkpoint, q.checkpoint)))
		r = writ_fail(err, WRIT_E_DENIED, 0,
			      "the proofs of start and end are not of one checkpoint, in order");
	if (r < 0)
		return r;
	*f = (struct attest_facts){ .of = { .realm = attest_realm(c.origin) },
				    .executable = SV("") };
	*log = (struct attest_log){
		.origin = c.origin, .size = c.size, .root = c.root, .start = p.index, .end = q.index
	};
	if (f->of.realm.n == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the log has no name of ours");
	r = attest_read_start(a, first, f, err);
	return r == 0 ? attest_read_end(a, last, f, err) : r;
}

int attest_make(struct arena *a, struct sv entries, struct attest_made *m, struct writ_err *err)
{
	struct attest_facts f;
	struct statement s = { 0 };
	int r = attest_read_proofs(a, buf_view(&m->start), buf_view(&m->end), &f, &s.log, err);

	if (r == 0 && !f.whole)
		r = writ_fail(err, WRIT_E_DENIED, 0,
			      "the session was cut off: nobody knows how it ended");
	if (r == 0)
		r = attest_read_entries(a, entries, true, &f, NULL, NULL, err);
	if (r == 0)
		r = manifest_print(&f, &m->manifest, err);
	if (r < 0)
		return r;
	s.of = f.of;
	s.manifest = crypto_sha256(buf_view(&m->manifest));
	s.entries = crypto_sha256(entries);
	statement_words(&s);
	return statement_print(&s, &m->payload, err);
}
