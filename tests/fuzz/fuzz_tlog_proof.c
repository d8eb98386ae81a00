/* fuzz_tlog_proof - tlog-proof files; none holds for a log that has not signed it */
#include "fuzz.h"
#include "tlog/proof.h"

static void verify(struct sv bytes)
{
	static const uint8_t seed[32] = { 7 };
	static struct tlog_policy policy;
	struct proof_facts facts;
	struct sign_public pub;
	struct sign_secret sec;
	struct note_key key;
	struct writ_err err = { 0 };

	sign_keypair(seed, &pub, &sec);
	must(note_key_init(&key, NOTE_KEY_ED25519, SV("writ.example/log/l-test"), &pub, &err) == 0);
	policy = (struct tlog_policy){ .log = { { .key = key } },
				       .logs_n = 1,
				       .quorum = TLOG_QUORUM_NONE };
	must(proof_verify(bytes, SV("entry"), &policy, &facts, &err) != PROOF_HOLDS);
	must(err.what[0] != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv bytes = fuzz_bytes(data, size);
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(PROOF_MAX);
	struct proof p;

	verify(bytes);
	if (proof_parse(bytes, &p, &err) < 0)
		return 0;
	must(p.path.n <= TREE_PROOF_MAX && p.index < TREE_SIZE_MAX);
	must(proof_print(&p, &b, &err) == 0 && sv_eq(buf_view(&b), bytes));
	return 0;
}
