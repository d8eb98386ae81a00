#include "tap.h"

#include "codec/base64.h"
#include "tlog/proof.h"
#include "tlog/tile.h"
#include "tlog/witness.h"
#include "tlog_keys.h"
#include "tree_levels.h"
#include "vectors.h"

static struct tlog_pair log_key, wit[3];
static struct note_key witnesses[3];
static struct buf entries = BUF_INIT(4096);
static struct sv entry[5];
static struct digest l0[5], l1[2], l2[1];
static const struct digest *const levels[TREE_LEVELS] = { l0, l1, l2 };

static void load(void)
{
	struct tree_frontier f = { 0 };
	struct digest *const put[] = { l0, l1, l2 };
	struct writ_err err = { 0 };
	struct tree_grown g;
	struct sv rest;

	log_key = tlog_pair(NOTE_KEY_ED25519, TLOG_TEST_LOG);
	wit[0] = tlog_pair(NOTE_KEY_COSIGNATURE, TLOG_TEST_WITNESS "a");
	wit[1] = tlog_pair(NOTE_KEY_COSIGNATURE, TLOG_TEST_WITNESS "b");
	wit[2] = tlog_pair(NOTE_KEY_COSIGNATURE, TLOG_TEST_WITNESS "c");
	for (unsigned i = 0; i < 3; i++)
		witnesses[i] = wit[i].key;
	vector_read("tlog/entries", &entries);
	rest = buf_view(&entries);
	for (unsigned i = 0; i < 5; i++) {
		struct digest leaf;

		entry[i] = sv_cut(&rest, '\n');
		leaf = tree_leaf(entry[i]);
		if (tree_grow(&f, &leaf, &g, &err) < 0)
			ok(false, "append");
		for (unsigned l = 0; l < g.n; l++)
			put[l][i >> l] = g.node[l];
	}
}

/* A signed checkpoint of the first @n entries. */
static void sign(unsigned n, struct buf *b)
{
	struct tree_levels all = tree_levels_of(levels, 5);
	struct checkpoint c = { .origin = log_key.key.name, .size = n };
	struct writ_err err = { 0 };

	if (tree_root(&all.nodes, n, &c.root, &err) < 0 ||
	    checkpoint_sign(&c, &log_key.key, &log_key.sec, b, &err) < 0)
		ok(false, "sign: %s", err.what);
}

/* --- proofs --- */

static struct tlog_policy policy_of(uint32_t k)
{
	return tlog_k_of(&log_key.key, witnesses, 3, k);
}

static enum proof_verdict verify(const struct buf *b, struct sv e, const struct tlog_policy *p)
{
	struct proof_facts facts = { .index = 77 };
	struct writ_err err = { 0 };
	const enum proof_verdict v = proof_verify(buf_view(b), e, p, &facts, &err);

	if (v == PROOF_HOLDS ? err.what[0] || facts.index == 77 : !err.what[0] || facts.index != 77)
		ok(false, "%s without a reason, or facts with it", proof_verdict_name(v));
	return v;
}

static void test_proof_vectors(void)
{
	static const char *const files[] = { "tlog/entry2.tlog-proof",
					     "tlog/entry2-extra.tlog-proof" };
	struct tree_levels all = tree_levels_of(levels, 5);
	struct tlog_policy two = policy_of(2);
	struct writ_err err = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		scoped_buf want = BUF_INIT(4096), b = BUF_INIT(4096), note = BUF_INIT(4096),
			   extra = BUF_INIT(1024);
		struct proof_facts facts;
		struct proof p, made = { .extra = SV(""), .index = 2 };

		vector_read(files[i], &want);
		vector_read("tlog/checkpoint.cosigned", &note);
		if (i)
			base64_encode(BASE64_PADDED, entry[2], &extra);
		made.extra = buf_view(&extra);
		made.checkpoint = buf_view(&note);
		ok(tree_prove_inclusion(&all.nodes, 2, 5, &made.path, &err) == 0 &&
			   proof_print(&made, &b, &err) == 0,
		   "a proof is made");
		is_sv(buf_view(&b), buf_view(&want), "as in the vectors");
		buf_clear(&b);
		ok(proof_parse(buf_view(&want), &p, &err) == 0 && p.index == 2 && p.path.n == 3 &&
			   proof_print(&p, &b, &err) == 0,
		   "and read");
		is_sv(buf_view(&b), buf_view(&want), "and printed as it was");
		ok(proof_verify(buf_view(&want), entry[2], &two, &facts, &err) == PROOF_HOLDS &&
			   facts.index == 2 && facts.checkpoint.size == 5 && facts.cosigned == 3 &&
			   facts.time[0] == 1794745401 && facts.time[2] == 0,
		   "it holds");
	}
}

static void test_verdicts(void)
{
	scoped_buf b = BUF_INIT(4096);
	struct tlog_policy none = policy_of(0), two = policy_of(2), three = policy_of(3), other;
	struct tlog_pair stranger = tlog_pair(NOTE_KEY_ED25519, "writ.example/log/l-other");

	vector_read("tlog/entry2.tlog-proof", &b);
	ok(verify(&b, entry[2], &none) == PROOF_HOLDS, "no witnesses asked for");
	ok(verify(&b, entry[2], &two) == PROOF_HOLDS, "two of three");
	ok(verify(&b, entry[2], &three) == PROOF_NO_QUORUM, "three of three");
	ok(verify(&b, entry[3], &two) == PROOF_NOT_INCLUDED, "another entry");
	ok(verify(&b, SV(""), &two) == PROOF_NOT_INCLUDED, "no entry");
	other = tlog_k_of(&stranger.key, witnesses, 3, 2);
	ok(verify(&b, entry[2], &other) == PROOF_UNKNOWN_LOG,
	   "another log, though witnesses are known");
	other = two;
	other.logs_n = 0;
	ok(verify(&b, entry[2], &other) == PROOF_UNKNOWN_LOG, "no log at all");
	other = tlog_k_of(&stranger.key, witnesses, 0, 0);
	ok(verify(&b, entry[2], &other) == PROOF_UNKNOWN_LOG,
	   "nobody known has signed");
	memset(&other, 0, sizeof(other));
	ok(verify(&b, entry[2], &other) == PROOF_UNKNOWN_LOG, "a policy of nothing");
	other = two;
	other.quorum = TLOG_QUORUM_UNSET;
	ok(verify(&b, entry[2], &other) == PROOF_NO_QUORUM, "a policy without a quorum");
	ok(proof_verdict_name(PROOF_MALFORMED)[0] && proof_verdict_name((enum proof_verdict)99)[0],
	   "every verdict has a name");
}

/* A checkpoint of a known log that another known log signed. */
static void test_foreign_log(void)
{
	struct tlog_pair second = tlog_pair(NOTE_KEY_ED25519, "writ.example/log/l-second");
	struct tree_levels all = tree_levels_of(levels, 5);
	struct tlog_policy p = policy_of(0);
	scoped_buf text = BUF_INIT(1024), note = BUF_INIT(2048), b = BUF_INIT(4096);
	struct checkpoint c = { .origin = log_key.key.name, .size = 5 };
	struct proof made = { .extra = SV(""), .index = 2 };
	struct writ_err err = { 0 };

	p.log[p.logs_n++].key = second.key;
	if (tree_root(&all.nodes, 5, &c.root, &err) < 0 || checkpoint_print(&c, &text, &err) < 0)
		ok(false, "%s", err.what);
	buf_fmt(&note, SV_FMT "\n", SV_ARG(buf_view(&text)));
	ok(note_sign(&second.key, &second.sec, buf_view(&text), &note, &err) == 0,
	   "signed as a note");
	made.checkpoint = buf_view(&note);
	ok(tree_prove_inclusion(&all.nodes, 2, 5, &made.path, &err) == 0 &&
		   proof_print(&made, &b, &err) == 0,
	   "a proof with it");
	ok(verify(&b, entry[2], &p) == PROOF_UNKNOWN_LOG, "one log cannot speak for another");
}

/* With every key known and asked for, no byte may be another. */
static void test_proof_damage(void)
{
	scoped_buf b = BUF_INIT(4096);
	struct tlog_policy p;
	struct writ_err err = { 0 };
	struct proof_facts facts;
	unsigned held = 0, tried = 0, seen[PROOF_HOLDS + 1] = { 0 };

	vector_read("tlog/entry2.tlog-proof", &b);
	p = tlog_k_of(&log_key.key, witnesses, 2, 2);
	ok(verify(&b, entry[2], &p) == PROOF_HOLDS, "holds");
	for (size_t i = 0; i < b.n; i++) {
		const char was = b.p[i];

		for (unsigned bit = 0; bit < 3; bit++, tried++) {
			enum proof_verdict v;

			b.p[i] = (char)(was ^ 1 << (i + 3 * bit) % 8);
			v = proof_verify(buf_view(&b), entry[2], &p, &facts, &err);
			seen[v]++;
			held += v == PROOF_HOLDS;
		}
		b.p[i] = was;
	}
	for (size_t i = 0; i < b.n; i++, tried++)
		held += proof_verify(sv_sub(buf_view(&b), 0, i), entry[2], &p, &facts, &err) ==
			PROOF_HOLDS;
	ok(tried > 2400 && held == 0, "%u of %u damaged proofs hold", held, tried);
	ok(seen[PROOF_MALFORMED] && seen[PROOF_BAD_SIGNATURE] && seen[PROOF_NOT_INCLUDED] &&
		   seen[PROOF_NO_QUORUM] && seen[PROOF_UNKNOWN_LOG],
	   "and every reason was given");
}

#define HEAD "c2sp.org/tlog-proof@v1\n"
#define HASH "ksPx9uWs2pPyAZO7xHdpUk9gGVOa23iHJFqjgfGbV6c=\n"
#define TAIL "a/b\n1\n" HASH "\n— a/b AAAAAAA=\n"

static void test_proof_form(void)
{
	static const struct {
		const char *text;
		bool good;
	} all[] = {
		{ HEAD "index 0\n\n" TAIL, true },
		{ HEAD "index 0\n" HASH "\n" TAIL, true },
		{ HEAD "index 4611686018427387903\n\n" TAIL, true },
		{ HEAD "extra AA==\nindex 0\n\n" TAIL, true },
		{ HEAD "index 4611686018427387904\n\n" TAIL, false },
		{ HEAD "extra \nindex 0\n\n" TAIL, false },
		{ HEAD "extra\nindex 0\n\n" TAIL, false },
		{ HEAD "extra AA=\nindex 0\n\n" TAIL, false },
		{ HEAD "extra AB==\nindex 0\n\n" TAIL, false },
		{ HEAD "extra AA==\nextra AA==\nindex 0\n\n" TAIL, false },
		{ HEAD "index 0\nextra AA==\n\n" TAIL, false },
		{ HEAD "index 00\n\n" TAIL, false },
		{ HEAD "index  0\n\n" TAIL, false },
		{ HEAD "index\n\n" TAIL, false },
		{ HEAD "\n" TAIL, false },
		{ HEAD "index 0\n" TAIL, false },
		{ HEAD "index 0\n" HASH TAIL, false },
		{ HEAD "index 0\nAAAA\n\n" TAIL, false },
		{ HEAD "index 0\n\n\n" TAIL, false },
		{ HEAD "index 0\n\n", false },
		{ HEAD "index 0\n\nhello\n\n— a/b AAAAAAA=\n", false },
		{ HEAD "index 0\n\n" TAIL "\n", false },
		{ "c2sp.org/tlog-proof@v2\nindex 0\n\n" TAIL, false },
		{ "\n" HEAD "index 0\n\n" TAIL, false },
		{ "", false },
	};
	struct writ_err err = { 0 };
	scoped_buf many = BUF_INIT(8192);
	struct proof p = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		scoped_buf b = BUF_INIT(PROOF_MAX);
		const bool good = proof_parse(sv_from(all[i].text), &p, &err) == 0;

		ok(good == all[i].good, "proof %zu %s", i, all[i].good ? "read" : "refused");
		if (!good)
			continue;
		ok(proof_print(&p, &b, &err) == 0, "prints");
		is_sv(buf_view(&b), sv_from(all[i].text), "as it was");
	}
	for (unsigned n = 63; n <= 64; n++) {
		buf_clear(&many);
		buf_str(&many, HEAD "index 0\n");
		for (unsigned i = 0; i < n; i++)
			buf_str(&many, HASH);
		buf_str(&many, "\n" TAIL);
		ok((proof_parse(buf_view(&many), &p, &err) == 0) == (n == 63), "%u hashes", n);
	}
	p.extra = SV("=");
	buf_clear(&many);
	ok(proof_print(&p, &many, &err) < 0 && many.n == 0, "what cannot be read is not printed");
}

/* --- policies --- */

static char vkey[4][NOTE_VKEY_MAX + 1];

static void name_vkeys(void)
{
	const struct note_key *const keys[] = { &log_key.key, &wit[0].key, &wit[1].key,
						&wit[2].key };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		scoped_buf b = BUF_INIT(NOTE_VKEY_MAX);

		note_key_print(keys[i], &b);
		memcpy(vkey[i], b.p, b.n + 1);
	}
}

/* $0 is the log's key, $1 to $3 those of witnesses. */
static void put_policy(const char *text, struct buf *b)
{
	for (; *text; text++) {
		if (*text == '$')
			buf_str(b, vkey[*++text - '0']);
		else
			buf_ch(b, *text);
	}
}

#define ABC "witness a $1\nwitness b $2\nwitness c $3\n"

static void test_policy_form(void)
{
	static const struct {
		const char *text;
		bool good;
	} all[] = {
		{ "quorum none\n", true },
		{ "# words\n\n  \t\nlog\t $0  https://example.com/log \n \tquorum  none\t\n",
		  true },
		{ "log $0\n" ABC "group g 2 a b c\nquorum g\n", true },
		{ ABC "group g all a b\ngroup h any g c\nquorum h\n", true },
		{ "witness a $1 https://example.com/w\nquorum a\n", true },
		{ "witness \xe2\x84\xaa $1\nwitness K $2\ngroup \xff any K \xe2\x84\xaa\nquorum "
		  "\xff\n",
		  true },
		{ "witness any $1\nwitness all $2\ngroup 3 2 any all\nquorum 3\n", true },
		{ "", false },
		{ "log $0\n", false },
		{ "quorum none", false },
		{ "quorum none\nquorum none\n", false },
		{ "quorum\n", false },
		{ "quorum none none\n", false },
		{ "quorum a\n", false },
		{ "quorum a\nwitness a $1\n", false },
		{ "log\nquorum none\n", false },
		{ "log $0 u more\nquorum none\n", false },
		{ "log $0\nlog $0\nquorum none\n", false },
		{ "log $1\nquorum none\n", false },
		{ "witness a $0\nquorum none\n", false },
		{ "witness a\nquorum none\n", false },
		{ "witness a $1 u more\nquorum none\n", false },
		{ "witness a $1\nwitness b $1\nquorum none\n", false },
		{ "witness a $1\nwitness a $2\nquorum none\n", false },
		{ "witness none $1\nquorum none\n", false },
		{ ABC "group none any a\nquorum none\n", false },
		{ ABC "group a any b\nquorum none\n", false },
		{ ABC "group g\nquorum none\n", false },
		{ ABC "group g any\nquorum none\n", false },
		{ ABC "group g 0 a\nquorum none\n", false },
		{ ABC "group g 2 a\nquorum none\n", false },
		{ ABC "group g 01 a\nquorum none\n", false },
		{ ABC "group g most a\nquorum none\n", false },
		{ ABC "group g any none\nquorum none\n", false },
		{ ABC "group g any x\nquorum none\n", false },
		{ ABC "group g any g\nquorum none\n", false },
		{ ABC "group g any a a\nquorum none\n", false },
		{ ABC "group g any a\ngroup h any a b\nquorum none\n", false },
		{ ABC "group g any a\ngroup h any g\ngroup i any g b\nquorum none\n", false },
		{ ABC "group h any g\ngroup g any a\nquorum none\n", false },
		{ "words\nquorum none\n", false },
		{ "Log $0\nquorum none\n", false },
		{ "quorum none\r\n", false },
		{ "quorum none\n#\x7f\n", false },
		{ "quorum none # words\n", false },
	};
	static struct tlog_policy p;
	struct writ_err err = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		scoped_buf text = BUF_INIT(8192);
		bool good;

		put_policy(all[i].text, &text);
		good = tlog_policy_parse(buf_view(&text), &p, &err) == 0;
		ok(good == all[i].good, "policy %zu %s", i, all[i].good ? "read" : "refused");
	}
	{
		scoped_buf want = BUF_INIT(4096);

		vector_read("tlog/policy", &want);
		ok(tlog_policy_parse(buf_view(&want), &p, &err) == 0, "the policy of the vectors");
	}
}

/* Two levels of groups: a or b, and c. */
static void test_policy_met(void)
{
	scoped_buf text = BUF_INIT(4096);
	static struct tlog_policy p;
	struct writ_err err = { 0 };
	unsigned wrong = 0;

	put_policy(ABC "group g any a b\ngroup h all g c\nquorum h\n", &text);
	ok(tlog_policy_parse(buf_view(&text), &p, &err) == 0, "a policy with groups in groups");
	for (unsigned by = 0; by < 8; by++)
		wrong += tlog_policy_met(&p, by) != ((by & 3) && by & 4);
	ok(wrong == 0, "is met by who it says");
	p.quorum = TLOG_QUORUM_WITNESS;
	p.quorum_at = 1;
	ok(tlog_policy_met(&p, 2) && !tlog_policy_met(&p, 5), "one witness");
	for (uint32_t k = 0; k <= 3; k++) {
		const struct tlog_policy q = policy_of(k);

		for (unsigned by = 0; by < 8; by++)
			wrong += tlog_policy_met(&q, by) != ((uint32_t)__builtin_popcount(by) >= k);
	}
	ok(wrong == 0, "k of three, for all k");
}

/* --- witnesses --- */

static void make_request(unsigned old_size, unsigned n, struct buf *note, struct buf *b)
{
	struct tree_levels all = tree_levels_of(levels, 5);
	struct witness_request req = { .old_size = old_size };
	struct writ_err err = { 0 };

	sign(n, note);
	req.checkpoint = buf_view(note);
	if (tree_prove_consistency(&all.nodes, old_size, n, &req.proof, &err) < 0 ||
	    tlog_witness_request_print(&req, b, &err) < 0)
		ok(false, "request: %s", err.what);
}

static enum witness_answer ask(const struct buf *b, unsigned known, struct witness_state *next)
{
	struct tree_levels all = tree_levels_of(levels, 5);
	struct witness_state state = { .size = known };
	struct witness_request req;
	struct writ_err err = { 0 };
	struct sv text;

	if (known && tree_root(&all.nodes, known, &state.root, &err) < 0)
		ok(false, "%s", err.what);
	if (tlog_witness_request_parse(buf_view(b), &req, &err) < 0)
		return WITNESS_BAD_REQUEST;
	return tlog_witness_decide(&req, &log_key.key, 1, &state, next, &text, &err);
}

static void test_witness(void)
{
	scoped_buf want = BUF_INIT(4096), note = BUF_INIT(1024), b = BUF_INIT(4096);
	struct witness_state next = { 0 };
	struct witness_request req;
	struct writ_err err = { 0 };
	unsigned wrong = 0;

	vector_read("tlog/add-checkpoint", &want);
	make_request(3, 5, &note, &b);
	is_sv(buf_view(&b), buf_view(&want), "a request as in the vectors");
	ok(tlog_witness_request_parse(buf_view(&b), &req, &err) == 0 && req.old_size == 3 &&
		   req.proof.n == 4 && sv_eq(req.checkpoint, buf_view(&note)),
	   "is read");
	for (unsigned n = 0; n <= 5; n++) {
		for (unsigned old = 0; old <= n; old++) {
			for (unsigned known = 0; known <= 5; known++) {
				buf_clear(&note);
				buf_clear(&b);
				make_request(old, n, &note, &b);
				next.size = 77;
				wrong += ask(&b, known, &next) != (known == old
									   ? WITNESS_COSIGN
									   : WITNESS_CONFLICT) ||
					 next.size != (known == old ? n : 77);
			}
		}
	}
	ok(wrong == 0, "every growth from what the witness knows is cosigned, no other is");
}

static void test_witness_refuses(void)
{
	scoped_buf b = BUF_INIT(4096);
	struct tlog_pair other = tlog_pair(NOTE_KEY_ED25519, "writ.example/log/l-other");
	struct witness_state known = { .size = 3 }, next = { .size = 77 };
	struct tree_levels all = tree_levels_of(levels, 5);
	struct note_key forged = other.key;
	struct witness_request req;
	struct writ_err err = { 0 };
	struct sv text;

	vector_read("tlog/add-checkpoint", &b);
	if (tree_root(&all.nodes, 3, &known.root, &err) < 0 ||
	    tlog_witness_request_parse(buf_view(&b), &req, &err) < 0)
		ok(false, "%s", err.what);
	ok(tlog_witness_decide(&req, &log_key.key, 1, &known, &next, &text, &err) ==
			   WITNESS_COSIGN &&
		   next.size == 5 && sv_starts(text, SV("writ.example/log/l-test\n5\n")),
	   "cosigned");
	ok(tlog_witness_decide(&req, &other.key, 1, &known, &next, &text, &err) ==
		   WITNESS_UNKNOWN_LOG,
	   "an unknown log: %s", err.what);
	ok(tlog_witness_decide(&req, &log_key.key, 0, &known, &next, &text, &err) ==
		   WITNESS_UNKNOWN_LOG,
	   "no log known");
	forged.name = log_key.key.name;
	ok(tlog_witness_decide(&req, &forged, 1, &known, &next, &text, &err) == WITNESS_NOT_SIGNED,
	   "a log with another key: %s", err.what);
	known.root.b[0] ^= 1;
	ok(tlog_witness_decide(&req, &log_key.key, 1, &known, &next, &text, &err) ==
		   WITNESS_INCONSISTENT,
	   "another tree before: %s", err.what);
	req.proof.n--;
	known.root.b[0] ^= 1;
	ok(tlog_witness_decide(&req, &log_key.key, 1, &known, &next, &text, &err) ==
		   WITNESS_INCONSISTENT,
	   "a proof that is too short");
	req.proof.n = 0;
	known = (struct witness_state){ .size = 5 };
	req.old_size = 5;
	ok(tlog_witness_decide(&req, &log_key.key, 1, &known, &next, &text, &err) ==
		   WITNESS_CONFLICT,
	   "another root of the same size");
	req.old_size = 6;
	ok(tlog_witness_decide(&req, &log_key.key, 1, &known, &next, &text, &err) ==
		   WITNESS_BAD_REQUEST,
	   "an old size above the new one");
}

static void test_witness_answer(void)
{
	scoped_buf note = BUF_INIT(4096), body = BUF_INIT(4096), twice = BUF_INIT(4096);
	struct writ_err err = { 0 };
	struct sv line = SV("");
	uint64_t time = 0, size = 0;
	struct note n;

	sign(5, &note);
	if (note_parse(buf_view(&note), &n, &err) < 0 ||
	    cosign_sign(&wit[1].key, &wit[1].sec, 9, n.text, &body, &err) < 0 ||
	    cosign_sign(&wit[0].key, &wit[0].sec, 7, n.text, &body, &err) < 0 ||
	    cosign_sign(&wit[0].key, &wit[0].sec, 8, n.text, &body, &err) < 0 ||
	    cosign_sign(&wit[0].key, &wit[0].sec, 6, n.text, &body, &err) < 0)
		ok(false, "%s", err.what);
	ok(tlog_witness_answer_read(buf_view(&body), buf_view(&note), &wit[0].key, &line, &time,
				    &err) == 0 &&
		   time == 8 && line.p > body.p && line.p < body.p + body.n,
	   "the latest line of the witness is found");
	buf_sv(&twice, buf_view(&note));
	buf_sv(&twice, line);
	ok(note_parse(buf_view(&twice), &n, &err) == 0 && n.sigs_n == 2, "and can be appended");
	ok(tlog_witness_answer_read(SV("— a AAAAAAA=\n"), buf_view(&twice), &wit[0].key, &line,
				    &time, &err) == WRIT_E_DENIED,
	   "a line that was there before is no answer");
	ok(tlog_witness_answer_read(buf_view(&body), buf_view(&note), &wit[2].key, &line, &time,
				    &err) < 0,
	   "another witness has not answered");
	ok(tlog_witness_answer_read(buf_view(&body), buf_view(&note), &log_key.key, &line, &time,
				    &err) < 0,
	   "nor has the log");
	ok(tlog_witness_answer_read(SV(""), buf_view(&note), &wit[0].key, &line, &time, &err) < 0 &&
		   tlog_witness_answer_read(SV("a\n\n— a AAAAAAA=\n"), buf_view(&note), &wit[0].key,
					    &line, &time, &err) < 0,
	   "an answer is lines of signature");
	ok(tlog_witness_size_parse(SV("12\n"), &size, &err) == 0 && size == 12 &&
		   tlog_witness_size_parse(SV("12"), &size, &err) < 0 &&
		   tlog_witness_size_parse(SV("12\n\n"), &size, &err) < 0 &&
		   tlog_witness_size_parse(SV("012\n"), &size, &err) < 0,
	   "the size in a conflict");
	buf_clear(&body);
	tlog_witness_size_print(12, &body);
	is_sv(buf_view(&body), SV("12\n"), "printed");
}

static void test_request_form(void)
{
	static const struct {
		const char *text;
		bool good;
	} all[] = {
		{ "old 0\n\n" TAIL, true },
		{ "old 1\n" HASH "\n" TAIL, true },
		{ "old 2\n\n" TAIL, false },
		{ "old 00\n\n" TAIL, false },
		{ "old \n\n" TAIL, false },
		{ "new 0\n\n" TAIL, false },
		{ "old 0\n" TAIL, false },
		{ "old 0\n\n", false },
		{ "old 0\n\nhello\n\n— a/b AAAAAAA=\n", false },
		{ "\nold 0\n\n" TAIL, false },
		{ "", false },
	};
	struct writ_err err = { 0 };
	struct witness_request req;

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		scoped_buf b = BUF_INIT(4096);
		const bool good = tlog_witness_request_parse(sv_from(all[i].text), &req, &err) == 0;

		ok(good == all[i].good, "request %zu %s", i, all[i].good ? "read" : "refused");
		if (!good)
			continue;
		ok(tlog_witness_request_print(&req, &b, &err) == 0, "prints");
		is_sv(buf_view(&b), sv_from(all[i].text), "as it was");
	}
}

int main(void)
{
	struct writ_err err = { 0 };

	ok(crypto_start(&err) == 0, "starts");
	load();
	name_vkeys();
	test_proof_vectors();
	test_verdicts();
	test_foreign_log();
	test_proof_damage();
	test_proof_form();
	test_policy_form();
	test_policy_met();
	test_witness();
	test_witness_refuses();
	test_witness_answer();
	test_request_form();
	buf_clear(&entries);
	return tap_done();
}
