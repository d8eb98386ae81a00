/* fuzz_tlog_witness - requests to a witness, and its answers */
#include "fuzz.h"
#include "tlog/witness.h"

static struct note_key witness(void)
{
	static const uint8_t seed[32] = { 7 };
	struct writ_err err = { 0 };
	struct sign_public pub;
	struct sign_secret sec;
	struct note_key key;

	sign_keypair(seed, &pub, &sec);
	must(note_key_init(&key, NOTE_KEY_COSIGNATURE, SV("writ.example/w"), &pub, &err) == 0);
	return key;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv bytes = fuzz_bytes(data, size);
	struct writ_err err = { 0 };
	const struct witness_state nothing = { 0 };
	struct note_key key = witness();
	scoped_buf b = BUF_INIT(WITNESS_REQUEST_MAX), number = BUF_INIT(32);
	struct witness_request req;
	struct witness_state next;
	struct sv text;
	uint64_t n;

	if (tlog_witness_size_parse(bytes, &n, &err) == 0) {
		tlog_witness_size_print(n, &number);
		must(sv_eq(buf_view(&number), bytes));
	}
	must(tlog_witness_answer_read(bytes, SV("a/b\n\n\xe2\x80\x94 a AAAAAAA=\n"), &key, &text,
				      &n, &err) < 0);
	if (tlog_witness_request_parse(bytes, &req, &err) < 0) {
		must(err.what[0] != 0);
		return 0;
	}
	must(req.proof.n <= TREE_PROOF_MAX);
	must(tlog_witness_request_print(&req, &b, &err) == 0 && sv_eq(buf_view(&b), bytes));
	key.type = NOTE_KEY_ED25519;
	must(tlog_witness_decide(&req, &key, 1, &nothing, &next, &text, &err) != WITNESS_COSIGN);
	return 0;
}
