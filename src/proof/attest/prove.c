#include "attest/prove.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attest/statement.h"
#include "base/fd.h"
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

/*
 * Finds the start and end entries of session @id. Searches from the end of the log, because most
 * requests concern recent sessions.
 */
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

	if (r < 0)
		return r;
	if (index >= c->size)
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "the last checkpoint of the log ends before entry %llu",
				 (unsigned long long)index);
	base64_encode(BASE64_PADDED, buf_view(&entry), &extra);
	p.extra = buf_view(&extra);
	if ((r = tree_prove_inclusion(&log->nodes.nodes, index, c->size, &p.path, err)) < 0 ||
	    (r = buf_check(&extra, err)) < 0)
		return r;
	return proof_print(&p, b, err);
}

int attest_prove(struct realm *log, const struct attest_found *found, struct attest_made *m,
		 struct writ_err *err)
{
	scoped_buf text = BUF_INIT(NOTE_MAX);
	struct checkpoint c = { 0 };
	int r = realm_read(log, "cosigned", &text, err);

	if (r < 0 || (text.n && (r = checkpoint_read(buf_view(&text), NULL, &c, err)) < 0))
		return r;
	if (c.size <= found->end) {
		text.n = 0;
		if ((r = realm_checkpoint(log, &text, err)) < 0)
			return r;
		if (text.n == 0)
			return writ_fail(err, WRIT_E_DENIED, 0, "the log was never signed");
		if ((r = checkpoint_read(buf_view(&text), NULL, &c, err)) < 0)
			return r;
	}
	if (c.size > log->tree.size)
		return writ_fail(err, WRIT_E_DENIED, 0, "the log is shorter than its checkpoint");
	r = prove_one(log, found->start, &c, buf_view(&text), &m->start, err);
	return r < 0 ? r : prove_one(log, found->end, &c, buf_view(&text), &m->end, err);
}

/* Lists the names in rotated/, sorted by log size: each name is the size in 16 hex digits. */
static int list_rotated(const struct realm *log, struct arena *a, struct attest_rotated *ret,
			struct writ_err *err)
{
	scoped_list *d = fd_open_list(log->dir, "rotated");
	const struct dirent *e;
	uint64_t size;

	if (!d)
		return errno == ENOENT ? 0 : writ_fail(err, WRIT_E_SYS, errno, "rotated");
	while ((e = readdir(d))) {
		size_t at = ret->n;
		char *name;

		if (!sv_hex_to_u64(sv_from(e->d_name), 16, &size))
			continue;
		name = ret->n < ATTEST_ROTATED_MAX ? arena_str(a, sv_from(e->d_name)) : NULL;
		if (!name)
			return writ_fail(err, WRIT_E_LIMIT, 0,
					 "the log's key has changed too often");
		for (; at > 0 && strcmp(ret->v[at - 1].name, name) > 0; at--)
			ret->v[at] = ret->v[at - 1];
		ret->v[at] = (struct attest_file){ .name = name, .bytes = SV("") };
		ret->n++;
	}
	return 0;
}

/*
 * Proves one rotation. Returns false if the key.rotate entry of the rotation never reached the log.
 */
static bool prove_rotated(struct realm *log, const char *size, struct buf *b)
{
	scoped_buf text = BUF_INIT(NOTE_MAX), entry = BUF_INIT(ENTRY_PUBLIC_MAX + 1);
	struct writ_err no = { 0 };
	struct checkpoint c;
	char name[32];

	(void)snprintf(name, sizeof(name), "rotated/%s", size);
	return realm_read(log, name, &text, &no) == 0 && text.n &&
	       checkpoint_read(buf_view(&text), NULL, &c, &no) == 0 && c.size > 0 &&
	       c.size <= log->tree.size &&
	       realm_entry(log, c.size - 1, &entry, &no) == 0 &&
	       sv_is(entry_event(buf_view(&entry)), "key.rotate") &&
	       prove_one(log, c.size - 1, &c, buf_view(&text), b, &no) == 0;
}

int attest_prove_rotated(struct realm *log, struct arena *a, struct attest_rotated *ret,
			 struct writ_err *err)
{
	struct attest_rotated found = { .n = 0 };
	int r = list_rotated(log, a, &found, err);

	ret->n = 0;
	for (size_t i = 0; r == 0 && i < found.n; i++) {
		scoped_buf b = BUF_INIT(PROOF_MAX);
		struct attest_file f = { .bytes = SV("") };

		if (!prove_rotated(log, found.v[i].name, &b))
			continue;
		f.name = arena_fmt(a, "rotated-%zu.tlog-proof", ret->n + 1);
		if (!f.name || !arena_sv(a, buf_view(&b), &f.bytes))
			r = writ_nomem(err);
		else
			ret->v[ret->n++] = f;
	}
	return r;
}

static int parse_proof(struct arena *a, struct sv bytes, struct proof *p, struct checkpoint *c,
		       struct sv *ret_entry, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(PROOF_EXTRA_MAX);
	const int r = proof_parse(bytes, p, err);

	if (r < 0)
		return r;
	if (p->extra.n == 0 || !base64_decode_to(BASE64_PADDED, p->extra, &b) ||
	    !arena_sv(a, buf_view(&b), ret_entry))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the proof has no entry with it");
	return checkpoint_read(p->checkpoint, NULL, c, err);
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
	int r;

	if ((r = parse_proof(a, start, &p, &c, &first, err)) < 0 ||
	    (r = parse_proof(a, end, &q, &d, &last, err)) < 0)
		return r;
	if (p.index >= q.index || !sv_eq(p.checkpoint, q.checkpoint))
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "the proofs of start and end are not of one checkpoint, in order");
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

	if (r < 0)
		return r;
	if (!f.whole)
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "the session was cut off: nobody knows how it ended");
	if ((r = attest_read_entries(a, entries, true, &f, NULL, err)) < 0 ||
	    (r = manifest_print(&f, &m->manifest, err)) < 0)
		return r;
	s.of = f.of;
	s.manifest = crypto_sha256(buf_view(&m->manifest));
	s.entries = crypto_sha256(entries);
	statement_words(&s);
	return statement_print(&s, &m->payload, err);
}
