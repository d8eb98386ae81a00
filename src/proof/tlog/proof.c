#include "tlog/proof.h"

#include <inttypes.h>

#include "codec/base64.h"
#include "tlog/lines_priv.h"

#include "base/banned.h"

#define FIRST_LINE SV("c2sp.org/tlog-proof@v1")
#define EXTRA SV("extra ")

static int check_extra(struct sv extra, struct writ_err *err)
{
	size_t n;

	if (extra.n > PROOF_EXTRA_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "extra data of more than 65535 bytes");
	if (!base64_check(BASE64_PADDED, extra, &n))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "extra data is not base64");
	return 0;
}

int proof_parse(struct sv bytes, struct proof *ret_p, struct writ_err *err)
{
	struct proof p = { .extra = SV("") };
	struct sv rest = bytes, line;
	struct checkpoint c;
	int r;

	if (bytes.n > PROOF_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "a proof is too long");
	if (!tlog_line_take(&rest, &line) || !sv_eq(line, FIRST_LINE))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "not a tlog-proof@v1");
	if (sv_starts(rest, EXTRA)) {
		if (!tlog_line_take(&rest, &line) || line.n == EXTRA.n)
			return writ_fail(err, WRIT_E_SYNTAX, 0, "a line of extra data without any");
		p.extra = sv_skip(line, EXTRA.n);
		r = check_extra(p.extra, err);
		if (r < 0)
			return r;
	}
	if (!tlog_line_take_number(&rest, SV("index"), TREE_SIZE_MAX - 1, &p.index))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a proof without an index");
	if ((r = tlog_lines_take_proof(&rest, &p.path, err)) < 0 ||
	    (r = checkpoint_read(rest, NULL, &c, err)) < 0)
		return r;
	p.checkpoint = rest;
	*ret_p = p;
	return 0;
}

int proof_print(const struct proof *p, struct buf *b, struct writ_err *err)
{
	struct checkpoint c;
	int r;

	if ((r = check_extra(p->extra, err)) < 0 ||
	    (r = checkpoint_read(p->checkpoint, NULL, &c, err)) < 0)
		return r;
	if (p->index >= TREE_SIZE_MAX || p->path.n > TREE_PROOF_MAX)
		return writ_fail(err, WRIT_E_BUG, 0, "no tree has such a proof");
	buf_sv(b, FIRST_LINE);
	buf_ch(b, '\n');
	if (p->extra.n) {
		buf_sv(b, EXTRA);
		buf_sv(b, p->extra);
		buf_ch(b, '\n');
	}
	buf_fmt(b, "index %" PRIu64 "\n", p->index);
	tlog_lines_put_proof(&p->path, b);
	buf_sv(b, p->checkpoint);
	return buf_check(b, err);
}

/*
 * Checks that the log of the policy whose name is @origin signed. Bit i of @by stands for log[i].
 */
static bool log_signed(const struct tlog_policy *p, struct sv origin, uint64_t by)
{
	for (size_t i = 0; i < p->logs_n; i++)
		if (by >> i & 1 && sv_eq(p->log[i].key.name, origin))
			return true;
	return false;
}

static bool any_known(const struct note *n, const struct note_key *keys, size_t keys_n)
{
	for (size_t i = 0; i < n->sigs_n * keys_n; i++) {
		const struct note_sig *sig = &n->sig[i / keys_n];
		const struct note_key *key = &keys[i % keys_n];

		if (sig->id == key->id && sv_eq(sig->name, key->name))
			return true;
	}
	return false;
}

static enum proof_verdict refuse(enum proof_verdict why, const char *what, struct writ_err *err)
{
	return writ_fail_lit(err, WRIT_E_DENIED, 0, what) < 0 ? why : PROOF_MALFORMED;
}

static enum proof_verdict check_signers(const struct tlog_policy *p, const struct note *n,
					struct proof_facts *f, struct writ_err *err)
{
	struct note_key keys[TLOG_LOGS_MAX + TLOG_WITNESSES_MAX];
	struct note_signers who;
	size_t keys_n = 0;

	_Static_assert(ARRAY_LEN(keys) <= NOTE_KEYS_MAX, "a note is checked with all at once");
	for (size_t i = 0; i < p->logs_n; i++)
		keys[keys_n++] = p->log[i].key;
	for (size_t i = 0; i < p->witnesses_n; i++)
		keys[keys_n++] = p->witness[i].key;
	if (!any_known(n, keys, keys_n))
		return refuse(PROOF_UNKNOWN_LOG, "no signature of a known key", err);
	if (note_verify(n, keys, keys_n, &who, err) < 0)
		return PROOF_BAD_SIGNATURE;
	if (!log_signed(p, f->checkpoint.origin, who.by))
		return refuse(PROOF_UNKNOWN_LOG, "no log of the policy signed this as its own",
			      err);
	f->cosigned = (uint32_t)(who.by >> p->logs_n);
	for (size_t i = 0; i < p->witnesses_n; i++)
		f->time[i] = who.time[p->logs_n + i];
	if (!tlog_policy_met(p, f->cosigned))
		return refuse(PROOF_NO_QUORUM, "too few witnesses have cosigned", err);
	return PROOF_HOLDS;
}

enum proof_verdict proof_verify(struct sv bytes, struct sv entry, const struct tlog_policy *policy,
				struct proof_facts *ret_facts, struct writ_err *err)
{
	const struct digest leaf = tree_leaf(entry);
	struct proof_facts f = { 0 };
	enum proof_verdict verdict;
	struct proof p;
	struct note n;

	if (proof_parse(bytes, &p, err) < 0 ||
	    checkpoint_read(p.checkpoint, &n, &f.checkpoint, err) < 0)
		return PROOF_MALFORMED;
	f.index = p.index;
	verdict = check_signers(policy, &n, &f, err);
	if (verdict != PROOF_HOLDS)
		return verdict;
	if (tree_check_inclusion(&p.path, &leaf, p.index, f.checkpoint.size, &f.checkpoint.root,
				 err) < 0)
		return PROOF_NOT_INCLUDED;
	*ret_facts = f;
	return PROOF_HOLDS;
}

const char *proof_verdict_name(enum proof_verdict verdict)
{
	static const char *const names[] = { [PROOF_MALFORMED] = "malformed",
					     [PROOF_BAD_SIGNATURE] = "bad signature",
					     [PROOF_UNKNOWN_LOG] = "unknown log",
					     [PROOF_NO_QUORUM] = "no quorum",
					     [PROOF_NOT_INCLUDED] = "not included",
					     [PROOF_HOLDS] = "holds" };

	return verdict < ARRAY_LEN(names) ? names[verdict] : names[PROOF_MALFORMED];
}
