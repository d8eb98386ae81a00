#include "attest/chain.h"

#include "attest/prove.h"
#include "codec/json.h"
#include "tlog/proof.h"

#include "base/banned.h"

static int read_entry(struct arena *a, struct sv entry, struct chain_link *ret,
		      struct writ_err *err)
{
	scoped_json *o = NULL;
	struct sv old, next;
	struct fields in = attest_open_entry(a, entry, &o, err);
	int r;

	attest_member_is(&in, "event", SV("key.rotate"));
	(void)attest_member_number(&in, "time");
	attest_member_is(&in, "role", SV("log"));
	old = attest_member_text(&in, "old");
	next = attest_member_text(&in, "new");
	if (in.failed || (r = note_key_parse(old, &ret->old, err)) < 0)
		return in.failed ? in.failed : r;
	return note_key_parse(next, &ret->next, err);
}

/*
 * Reads the proof of one rotation. The key.rotate entry must be the last entry of a checkpoint that
 * both keys signed.
 */
static int read_one(struct arena *a, struct sv bytes, struct sv origin, struct chain_link *ret,
		    struct writ_err *err)
{
	struct checkpoint c, d;
	struct sv entry = SV("");
	struct digest leaf;
	struct proof p;
	int r;

	if ((r = attest_proof_entry(a, bytes, &entry, err)) < 0 ||
	    (r = read_entry(a, entry, ret, err)) < 0 || (r = proof_parse(bytes, &p, err)) < 0 ||
	    (r = checkpoint_open(p.checkpoint, &ret->old, NULL, &c, err)) < 0 ||
	    (r = checkpoint_open(p.checkpoint, &ret->next, NULL, &d, err)) < 0)
		return r;
	if (!sv_eq(c.origin, origin))
		return writ_fail(err, WRIT_E_DENIED, 0, "it is of another log");
	if (p.index + 1 != c.size)
		return writ_fail(err, WRIT_E_DENIED, 0, "its entry is not the last one");
	leaf = tree_leaf(entry);
	ret->index = p.index;
	return tree_check_inclusion(&p.path, &leaf, p.index, c.size, &c.root, err);
}

int attest_chain_read(struct arena *a, const struct attest_rotated *files, struct sv origin,
		      struct chain *ret, size_t *ret_at, struct writ_err *err)
{
	int r = 0;

	ret->n = 0;
	for (size_t i = 0; r == 0 && i < files->n; i++) {
		struct chain_link *l = &ret->link[i];

		*ret_at = i;
		r = read_one(a, files->v[i].bytes, origin, l, err);
		if (r == 0 && i &&
		    (l[-1].index >= l->index || !note_key_eq(&l[-1].next, &l->old)))
			r = writ_fail(err, WRIT_E_DENIED, 0,
				      "it does not go on from the change before");
		ret->n += r == 0;
	}
	return r;
}

const struct chain_link *attest_chain_ended(const struct chain *c, const struct note_key *key,
					    uint64_t size)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->link[i].index < size && note_key_eq(&c->link[i].old, key))
			return &c->link[i];
	return NULL;
}

static const struct note_key *key_at(const struct chain *c, uint64_t size)
{
	const struct note_key *key = &c->link[0].old;

	for (size_t i = 0; i < c->n; i++)
		if (c->link[i].index < size)
			key = &c->link[i].next;
	return key;
}

/* Returns the position of @key in the chain of rotations, from 1 on; 0 if @key is not in it. */
static size_t position_of(const struct chain *c, const struct note_key *key)
{
	if (note_key_eq(&c->link[0].old, key))
		return 1;
	for (size_t i = 0; i < c->n; i++)
		if (note_key_eq(&c->link[i].next, key))
			return i + 2;
	return 0;
}

bool attest_chain_has(const struct chain *c, const struct note_key *key)
{
	return position_of(c, key) > 0;
}

void attest_chain_apply(const struct chain *c, uint64_t size, bool follow, struct tlog_policy *p)
{
	const struct note_key *now;
	size_t kept = 0, before = 0, strange = 0;
	bool pinned = false;

	if (c->n == 0)
		return;
	now = key_at(c, size);
	for (size_t i = 0; i < p->logs_n; i++) {
		const struct note_key *key = &p->log[i].key;
		const bool mine = attest_chain_has(c, key), counts = note_key_eq(key, now);

		before += mine && position_of(c, key) < position_of(c, now);
		strange += !mine && sv_eq(key->name, now->name);
		pinned |= counts;
		if (!mine || counts)
			p->log[kept++] = p->log[i];
	}
	p->logs_n = kept;
	/*
	 * SECURITY: follow rotations only forward, and only within one history. If a pinned key is
	 * not in the chain, the chain may belong to another history of the log. Never go back from
	 * a newer pinned key to an older key: a thief of the old key could claim that the old key
	 * signed before it was retired.
	 */
	if (follow && before && !strange && !pinned && kept < TLOG_LOGS_MAX)
		p->log[p->logs_n++] = (struct tlog_log){ .key = *now, .url = SV("") };
}
