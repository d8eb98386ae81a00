#include "tlog/lines_priv.h"

#include "codec/base64.h"

#include "base/banned.h"

bool tlog_line_take(struct sv *in, struct sv *ret_line)
{
	const size_t n = sv_find(*in, '\n');

	if (n == SIZE_MAX)
		return false;
	*ret_line = sv_sub(*in, 0, n);
	*in = sv_skip(*in, n + 1);
	return true;
}

bool tlog_line_take_number(struct sv *in, struct sv word, uint64_t max, uint64_t *ret_v)
{
	struct sv rest = *in, line;

	if (!tlog_line_take(&rest, &line) || !sv_starts(line, word) ||
	    !sv_starts(sv_skip(line, word.n), SV(" ")) ||
	    !sv_to_u64(sv_skip(line, word.n + 1), max, ret_v))
		return false;
	*in = rest;
	return true;
}

bool tlog_line_hash(struct sv line, struct digest *ret_hash)
{
	return base64_decode(BASE64_PADDED, line, ret_hash->b, sizeof(ret_hash->b));
}

void tlog_line_put_hash(const struct digest *hash, struct buf *b)
{
	base64_encode(BASE64_PADDED, (struct sv){ (const char *)hash->b, sizeof(hash->b) }, b);
	buf_ch(b, '\n');
}

int tlog_lines_take_proof(struct sv *in, struct tree_proof *ret_proof, struct writ_err *err)
{
	struct tree_proof p = { 0 };
	struct sv rest = *in, line;

	for (;;) {
		if (!tlog_line_take(&rest, &line))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "no empty line behind the hashes");
		if (line.n == 0)
			break;
		if (p.n == TREE_PROOF_MAX)
			return writ_fail(err, WRIT_E_LIMIT, 0, "a proof of more than 63 hashes");
		if (!tlog_line_hash(line, &p.hash[p.n]))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "a line of the proof is no hash");
		p.n++;
	}
	*ret_proof = p;
	*in = rest;
	return 0;
}

void tlog_lines_put_proof(const struct tree_proof *proof, struct buf *b)
{
	for (size_t i = 0; i < proof->n && i < TREE_PROOF_MAX; i++)
		tlog_line_put_hash(&proof->hash[i], b);
	buf_ch(b, '\n');
}
