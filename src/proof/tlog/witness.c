#include "tlog/witness.h"

#include <inttypes.h>

#include "tlog/lines_priv.h"

#include "base/banned.h"

/* Checks the parts of a witness request that do not depend on the log's stored state. */
static int check_request(const struct witness_request *req, struct note *ret_note,
			 struct checkpoint *ret_c, struct writ_err *err)
{
	const int r = checkpoint_read(req->checkpoint, ret_note, ret_c, err);

	if (r < 0)
		return r;
	if (req->proof.n > TREE_PROOF_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "a proof of more than 63 hashes");
	if (req->old_size > ret_c->size)
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "the old size is above that of the checkpoint");
	return 0;
}

int tlog_witness_request_parse(struct sv bytes, struct witness_request *ret_req,
			       struct writ_err *err)
{
	struct witness_request req = { 0 };
	struct sv rest = bytes;
	struct checkpoint c;
	struct note n;
	int r;

	if (bytes.n > WITNESS_REQUEST_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "a request is too long");
	if (!tlog_line_take_number(&rest, SV("old"), TREE_SIZE_MAX, &req.old_size))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a request without an old size");
	r = tlog_lines_take_proof(&rest, &req.proof, err);
	req.checkpoint = rest;
	if (r < 0 || (r = check_request(&req, &n, &c, err)) < 0)
		return r;
	*ret_req = req;
	return 0;
}

int tlog_witness_request_print(const struct witness_request *req, struct buf *b,
			       struct writ_err *err)
{
	struct checkpoint c;
	struct note n;
	const int r = check_request(req, &n, &c, err);

	if (r < 0)
		return r;
	buf_fmt(b, "old %" PRIu64 "\n", req->old_size);
	tlog_lines_put_proof(&req->proof, b);
	buf_sv(b, req->checkpoint);
	return buf_check(b, err);
}

static enum witness_answer refuse(enum witness_answer why, const char *what, struct writ_err *err)
{
	return writ_fail_lit(err, WRIT_E_DENIED, 0, what) < 0 ? why : WITNESS_UNDECIDED;
}

static enum witness_answer check_log(const struct note *n, struct sv origin,
				     const struct note_key *logs, size_t logs_n,
				     struct writ_err *err)
{
	struct note_key keys[NOTE_KEYS_MAX];
	struct note_signers who;
	size_t keys_n = 0;

	for (size_t i = 0; i < logs_n && keys_n < NOTE_KEYS_MAX; i++)
		if (logs[i].type == NOTE_KEY_ED25519 && sv_eq(logs[i].name, origin))
			keys[keys_n++] = logs[i];
	if (keys_n == 0)
		return refuse(WITNESS_UNKNOWN_LOG, "no known log has this origin", err);
	return note_verify(n, keys, keys_n, &who, err) < 0 ? WITNESS_NOT_SIGNED : WITNESS_COSIGN;
}

enum witness_answer tlog_witness_decide(const struct witness_request *req,
					const struct note_key *logs, size_t logs_n,
					const struct witness_state *known,
					struct witness_state *ret_next, struct sv *ret_text,
					struct writ_err *err)
{
	const struct digest old_root = known->size ? known->root : tree_empty();
	enum witness_answer answer;
	struct checkpoint c;
	struct note n;

	if (check_request(req, &n, &c, err) < 0)
		return WITNESS_BAD_REQUEST;
	answer = check_log(&n, c.origin, logs, logs_n, err);
	if (answer != WITNESS_COSIGN)
		return answer;
	if (req->old_size != known->size ||
	    (c.size == known->size && !digest_eq(&c.root, &old_root)))
		return refuse(WITNESS_CONFLICT, "the log was last seen with another tree", err);
	if (tree_check_consistency(&req->proof, known->size, &old_root, c.size, &c.root, err) < 0)
		return WITNESS_INCONSISTENT;
	*ret_next = (struct witness_state){ .size = c.size, .root = c.root };
	*ret_text = n.text;
	return WITNESS_COSIGN;
}

int tlog_witness_size_parse(struct sv body, uint64_t *ret_size, struct writ_err *err)
{
	struct sv line;

	if (!tlog_line_take(&body, &line) || body.n || !sv_to_u64(line, TREE_SIZE_MAX, ret_size))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "not the size of a tree");
	return 0;
}

void tlog_witness_size_print(uint64_t size, struct buf *b)
{
	buf_fmt(b, "%" PRIu64 "\n", size);
}

/*
 * Finds the signature line of @key dated @time in the note @n. note_verify() has accepted all lines
 * of @key.
 */
static struct note_sig latest(const struct note *n, const struct note_key *key, uint64_t time)
{
	struct note one = { .text = n->text, .sigs_n = 1 };

	for (size_t i = 0; i < n->sigs_n; i++) {
		struct writ_err err;
		struct note_signers who;

		one.sig[0] = n->sig[i];
		if (note_verify(&one, key, 1, &who, &err) == 0 && who.time[0] == time)
			break;
	}
	return one.sig[0];
}

int tlog_witness_answer_read(struct sv body, struct sv note, const struct note_key *witness,
			     struct sv *ret_line, uint64_t *ret_time, struct writ_err *err)
{
	scoped_buf both = BUF_INIT(NOTE_MAX);
	struct note_signers who;
	struct note n, answer;
	struct sv line;
	int r = note_parse(note, &n, err);

	if (r < 0)
		return r;
	/*
	 * Verify the response's signature lines under the bare text of the checkpoint, so that a
	 * signature which the note already contains is not mistaken for a new one.
	 */
	buf_sv(&both, n.text);
	buf_ch(&both, '\n');
	buf_sv(&both, body);
	if ((r = buf_check(&both, err)) < 0 ||
	    (r = note_parse(buf_view(&both), &answer, err)) < 0)
		return r;
	if (witness->type != NOTE_KEY_COSIGNATURE || answer.text.n != n.text.n)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "not the answer of a witness");
	r = note_verify(&answer, witness, 1, &who, err);
	if (r < 0)
		return r;
	line = latest(&answer, witness, who.time[0]).line;
	*ret_line = sv_sub(body, (size_t)(line.p - both.p) - (n.text.n + 1), line.n);
	*ret_time = who.time[0];
	return 0;
}
