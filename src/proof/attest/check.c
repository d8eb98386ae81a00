#include "attest/check.h"

#include "attest/chain.h"
#include "attest/prove.h"
#include "attest/statement.h"
#include "tlog/proof.h"

#include "base/banned.h"

/* Prefixes the error with the name of the file that caused the error. */
static enum attest_answer blame(const struct attest_file *f, struct writ_err *err)
{
	struct writ_err why = *err;

	(void)!writ_fail(err, why.code, why.sys, "%.40s: %.76s", f->name, why.what);
	return ATTEST_NO;
}

static enum attest_answer refuse(const struct attest_file *f, const char *what,
				 struct writ_err *err)
{
	(void)!writ_fail(err, WRIT_E_DENIED, 0, "%s", what);
	return blame(f, err);
}

static bool signed_by(struct sv proof, const struct note_key *key)
{
	struct writ_err none = { 0 };
	struct checkpoint c;
	struct proof p;

	return proof_parse(proof, &p, &none) == 0 &&
	       checkpoint_open(p.checkpoint, key, NULL, &c, &none) == 0;
}

/*
 * Log keys to verify a checkpoint with: the keys of the caller's policy, adjusted by the rotations
 * in the evidence and in the local log.
 */
struct log_keys {
	struct tlog_policy policy; /* keys that are valid for this one checkpoint */
	struct chain came, known;
};

/*
 * Explains a checkpoint that no valid key signed.
 * SECURITY: a checkpoint signed only by a retired key, or by a key that was not in use yet, is
 * refused rather than reported as unpinned.
 */
static enum attest_answer explain_retired_key(const struct attest_file *file,
					      const struct attest_trust *t,
					      const struct log_keys *b, struct writ_err *err)
{
	struct writ_err none = { 0 };
	struct checkpoint c;
	struct proof p;

	for (size_t i = 0; proof_parse(file->bytes, &p, &none) == 0 && i < t->policy->logs_n; i++) {
		const struct note_key *key = &t->policy->log[i].key;
		const struct chain_link *l;

		if (checkpoint_open(p.checkpoint, key, NULL, &c, &none) < 0)
			continue;
		l = attest_chain_ended(&b->came, key, c.size);
		if (!l)
			l = attest_chain_ended(&b->known, key, c.size);
		if (l)
			(void)!writ_fail(err, WRIT_E_DENIED, 0,
					 "key %08x does not count there: another took over with "
					 "entry %llu",
					 key->id, (unsigned long long)l->index);
		else
			(void)!writ_fail(err, WRIT_E_DENIED, 0, "key %08x does not count there yet",
					 key->id);
		return blame(file, err);
	}
	return ATTEST_UNPINNED;
}

/*
 * Finds a pinned key that a local log has never used.
 * SECURITY: for a local log all rotations are known, so such a key means that the log is an older
 * copy or another history.
 */
static const struct note_key *unknown_pin(const struct attest_evidence *ev,
					  const struct attest_trust *t, const struct chain *c,
					  struct sv origin)
{
	const struct note_key *first = NULL;

	if (!ev->lines || !t->policy || (t->signer && signed_by(ev->end.bytes, t->signer)))
		return NULL;
	for (size_t i = 0; i < t->policy->logs_n; i++) {
		const struct note_key *key = &t->policy->log[i].key;

		if (!sv_eq(key->name, origin) || (t->signer && note_key_eq(key, t->signer)))
			continue;
		if (c->n ? !attest_chain_has(c, key) : first && !note_key_eq(first, key))
			return key;
		first = key;
	}
	return NULL;
}

static enum attest_answer load_log_keys(struct arena *a, const struct attest_evidence *ev,
					const struct attest_trust *t, struct log_keys *b,
					struct writ_err *err)
{
	const struct note_key *strange;
	struct writ_err ignored = { 0 };
	struct checkpoint c;
	struct proof p;
	size_t at = 0;

	b->policy = t->policy ? *t->policy : (struct tlog_policy){ 0 };
	if (proof_parse(ev->end.bytes, &p, err) < 0 ||
	    checkpoint_read(p.checkpoint, NULL, &c, err) < 0)
		return blame(&ev->end, err);
	if (attest_chain_read(a, &ev->rotated, c.origin, &b->came, &at, err) < 0)
		return blame(&ev->rotated.v[at], err);
	/*
	 * Use the rotations of the local log as far as they can be read. A log other than the local
	 * log has none.
	 */
	if (t->ended)
		(void)!attest_chain_read(a, t->ended, c.origin, &b->known, &at, &ignored);
	strange = unknown_pin(ev, t, &b->came, c.origin);
	if (strange) {
		(void)!writ_fail(err, WRIT_E_DENIED, 0,
				 "it knows nothing of key %08x, which is pinned: an older copy",
				 strange->id);
		return blame(&ev->end, err);
	}
	attest_chain_apply(&b->came, c.size, true, &b->policy);
	attest_chain_apply(&b->known, c.size, false, &b->policy);
	return ATTEST_YES;
}

/*
 * Verifies one proof: a log that the caller trusts contains the entry, and the quorum of witnesses
 * cosigned the checkpoint.
 */
static enum attest_answer check_proof(struct arena *a, const struct attest_file *file,
				      const struct attest_trust *t, const struct log_keys *b,
				      struct proof_facts *ret, struct writ_err *err)
{
	enum proof_verdict v;
	struct sv entry;

	if (attest_proof_entry(a, file->bytes, &entry, err) < 0)
		return blame(file, err);
	if (!t->policy || t->policy->logs_n == 0) {
		(void)!writ_fail(err, WRIT_E_DENIED, 0, "signer not pinned: no key of a log");
		return ATTEST_UNPINNED;
	}
	v = proof_verify(file->bytes, entry, &b->policy, ret, err);
	if (v == PROOF_HOLDS)
		return ATTEST_YES;
	if (v == PROOF_UNKNOWN_LOG && explain_retired_key(file, t, b, err) == ATTEST_NO)
		return ATTEST_NO;
	(void)blame(file, err);
	return v == PROOF_UNKNOWN_LOG ? ATTEST_UNPINNED : ATTEST_NO;
}

static enum attest_answer check_log(struct arena *a, const struct attest_evidence *ev,
				    const struct attest_trust *t, struct attest_checked *c,
				    struct writ_err *err)
{
	struct log_keys *b = arena_new(a, struct log_keys);
	struct proof_facts start, end;
	enum attest_answer r = ATTEST_NO;

	if (!b) {
		(void)!writ_nomem(err);
		return r;
	}
	r = load_log_keys(a, ev, t, b, err);
	if (r == ATTEST_YES)
		r = check_proof(a, &ev->start, t, b, &start, err);
	if (r == ATTEST_YES)
		r = check_proof(a, &ev->end, t, b, &end, err);
	if (r != ATTEST_YES)
		return r;
	if (attest_read_proofs(a, ev->start.bytes, ev->end.bytes, &c->facts, &c->log, err) < 0)
		return blame(&ev->end, err);
	/*
	 * SECURITY: the holder of a log key can write into the log that another user holds the key.
	 * Believe that claim only if the installed signer itself reported this key.
	 */
	c->custody_known = c->facts.of.custody == CUSTODY_SAME_UID ||
			   (t->signer && signed_by(ev->end.bytes, t->signer));
	if (!c->custody_known && ev->lines)
		return refuse(&ev->end,
			      "it says another user holds the key, and no signer here does", err);
	c->cosigned = (unsigned)__builtin_popcount(end.cosigned);
	return ATTEST_YES;
}

static enum attest_answer check_signature(struct arena *a, const struct attest_evidence *ev,
					  const struct attest_trust *t, struct bundle *ret,
					  struct writ_err *err)
{
	scoped_buf b = BUF_INIT(ATTEST_TEXT_MAX + 256);
	const struct attest_key *key = NULL;
	int r;

	if (bundle_parse(a, ev->bundle.bytes, ret, err) < 0)
		return blame(&ev->bundle, err);
	for (size_t i = 0; i < t->keys_n; i++)
		if (digest_eq(&t->keys[i].id, &ret->key))
			key = &t->keys[i];
	if (!key) {
		scoped_buf id = BUF_INIT(80);

		digest_hex(&ret->key, &id);
		(void)!writ_fail(err, WRIT_E_DENIED, 0, "%.30s: signer not pinned: key %s",
				 ev->bundle.name, id.p ? id.p : "?");
		return ATTEST_UNPINNED;
	}
	bundle_signed(ret->payload, &b);
	r = buf_check(&b, err);
	if (r == 0)
		r = t->verify(t->ctx, key, buf_view(&b), ret->sig, err);
	return r == 0 ? ATTEST_YES : blame(&ev->bundle, err);
}

static const char *statement_differs(const struct statement *s, const struct attest_checked *c)
{
	const struct attest_session *a = &s->of, *b = &c->facts.of;
	const struct {
		const char *what;
		bool same;
	} members[] = {
		{ "the statement is of another session", sv_eq(a->id, b->id) },
		{ "the statement is of another realm", sv_eq(a->realm, b->realm) },
		{ "the statement has another custody than the log", a->custody == b->custody },
		{ "the statement has other times than the log",
		  a->started == b->started && a->finished == b->finished },
		{ "the statement has another exit than the log", a->exit == b->exit },
		{ "the statement has other entries than the log",
		  a->entries == b->entries && digest_eq(&a->root, &b->root) },
		{ "the statement is of another log", sv_eq(s->log.origin, c->log.origin) },
		{ "the statement is of another checkpoint",
		  s->log.size == c->log.size && digest_eq(&s->log.root, &c->log.root) },
		{ "the statement has other indices than the proofs",
		  s->log.start == c->log.start && s->log.end == c->log.end },
	};

	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (!members[i].same)
			return members[i].what;
	return NULL;
}

static enum attest_answer check_statement(struct arena *a, const struct attest_evidence *ev,
					  struct sv payload, const struct attest_checked *c,
					  struct writ_err *err)
{
	const struct digest manifest = crypto_sha256(ev->manifest.bytes);
	const struct digest entries = crypto_sha256(ev->entries.bytes);
	struct attest_facts said;
	struct statement s;
	const char *what;

	if (statement_parse(a, payload, &s, err) < 0)
		return blame(&ev->bundle, err);
	if (!digest_eq(&s.manifest, &manifest))
		return refuse(&ev->manifest, "it is not the file that was signed", err);
	if (!digest_eq(&s.entries, &entries))
		return refuse(&ev->entries, "it is not the file that was signed", err);
	what = statement_differs(&s, c);
	if (what)
		return refuse(&ev->bundle, what, err);
	if (manifest_parse(a, ev->manifest.bytes, &said, err) < 0)
		return blame(&ev->manifest, err);
	what = manifest_differs(&said, &c->facts);
	if (what) {
		(void)!writ_fail(err, WRIT_E_DENIED, 0, "member %s is not what the log says", what);
		return blame(&ev->manifest, err);
	}
	return ATTEST_YES;
}

enum attest_answer attest_check(struct arena *a, const struct attest_evidence *ev,
				const struct attest_trust *trust, struct attest_checked *ret,
				struct writ_err *err)
{
	struct attest_checked c = { 0 };
	struct bundle bundle = { 0 };
	const bool has_bundle = ev->bundle.name || ev->manifest.name;
	enum attest_answer r = ATTEST_YES;

	if (has_bundle)
		r = check_signature(a, ev, trust, &bundle, err);
	if (r == ATTEST_YES)
		r = check_log(a, ev, trust, &c, err);
	if (r != ATTEST_YES)
		return r;
	if (attest_read_entries(a, ev->entries.bytes, !ev->lines, &c.facts, &c.judgement, err) < 0)
		return blame(&ev->entries, err);
	if (has_bundle) {
		r = check_statement(a, ev, bundle.payload, &c, err);
		if (r == ATTEST_YES && !c.facts.whole)
			return refuse(&ev->bundle, "a session that was cut off has no statement",
				      err);
		c.key = bundle.key;
	}
	if (r != ATTEST_YES)
		return r;
	judge_end(&c.judgement);
	*ret = c;
	return c.facts.whole ? ATTEST_YES : ATTEST_CUT;
}
