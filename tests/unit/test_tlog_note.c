#include "tap.h"

#include "codec/base64.h"
#include "tlog/checkpoint.h"
#include "tlog_keys.h"
#include "vectors.h"

static struct tlog_pair log_key, wit[3];

static void put_note(const struct note *n, struct buf *b)
{
	buf_fmt(b, SV_FMT "\n", SV_ARG(n->text));
	for (size_t i = 0; i < n->sigs_n; i++)
		buf_sv(b, n->sig[i].line);
}

/* Notes that others published together with their keys. */
static const struct {
	const char *vkey, *text, *line;
} published[] = {
	{ "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
	  "This is an example message.\n",
	  "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mF"
	  "XmRKuwHjG1Yu72IneyaQM=\n" },
	{ "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
	  "If you think cryptography is the answer to your problem,\n"
	  "then you don't know what your problem is.\n",
	  "— PeterNeumann "
	  "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotp"
	  "RZb6KE6RyyBwJnAM=\n" },
};

static void test_published(void)
{
	for (size_t i = 0; i < ARRAY_LEN(published); i++) {
		scoped_buf b = BUF_INIT(NOTE_MAX), again = BUF_INIT(NOTE_MAX);
		struct note_signers who = { 0 };
		struct writ_err err = { 0 };
		struct note_key key;
		struct note n;

		buf_fmt(&b, "%s\n%s", published[i].text, published[i].line);
		ok(note_key_parse(sv_from(published[i].vkey), &key, &err) == 0, "%s",
		   published[i].vkey);
		note_key_print(&key, &again);
		is_sv(buf_view(&again), sv_from(published[i].vkey), "printed as it was");
		ok(note_parse(buf_view(&b), &n, &err) == 0 && n.sigs_n == 1, "its note is read");
		is_sv(n.text, sv_from(published[i].text), "the text");
		ok(note_verify(&n, &key, 1, &who, &err) == 0 && who.by == 1,
		   "and the signature fits");
		buf_clear(&again);
		put_note(&n, &again);
		is_sv(buf_view(&again), buf_view(&b), "printed as it was");
		key.name = SV("PeterNewman");
		ok(note_verify(&n, &key, 1, &who, &err) == WRIT_E_DENIED, "a name of nobody: %s",
		   err.what);
	}
}

static void test_vkeys(void)
{
	static const char *const bad[] = {
		"",
		"+",
		"++",
		"example.com/foo",
		"example.com/foo+530d903a",
		"example.com/foo+530d903a+",
		"+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
		"example.com/bar+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
		"example.com/foo+530d903b+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
		"example.com/foo+530D903A+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
		"example.com/foo+530d903+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
		"example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2",
		"example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k ",
		"example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2kAA==",
		"example.com/foo+530d903a+AukyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
		"example.com/foo+530d903a+AOkyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
		"example .com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
	};
	static const char *const bad_names[] = { "",
						 " ",
						 "a b",
						 "a+b",
						 "a\tb",
						 "a\nb",
						 "a\x7f",
						 "\xc2\x85",
						 "\xc2\xa0",
						 "\xe1\x9a\x80",
						 "\xe2\x80\x80",
						 "\xe2\x80\x8a",
						 "\xe2\x80\xa8",
						 "\xe2\x80\xaf",
						 "\xe2\x81\x9f",
						 "\xe3\x80\x80",
						 "\xff",
						 "a\xc3" };
	static const char *const good_names[] = {
		"a", "a/b", "caf\xc3\xa9", "\xe2\x80\x94", "\xf0\x9f\x8c\xb3", "\xe2\x80\x8b", "~"
	};
	static const struct sign_public small = { { 1 } };
	struct writ_err err = { 0 };
	char name[NOTE_NAME_MAX + 2];
	struct note_key key = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(note_key_parse(sv_from(bad[i]), &key, &err) < 0 && key.id == 0, "refused: %s",
		   bad[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad_names); i++)
		ok(note_name_check(sv_from(bad_names[i]), &err) == WRIT_E_SYNTAX, "bad name %zu",
		   i);
	for (size_t i = 0; i < ARRAY_LEN(good_names); i++)
		ok(note_name_check(sv_from(good_names[i]), &err) == 0, "good name %zu", i);
	memset(name, 'a', sizeof(name));
	ok(note_name_check((struct sv){ name, 255 }, &err) == 0 &&
		   note_name_check((struct sv){ name, 256 }, &err) < 0,
	   "255 bytes are the longest name");
	ok(note_key_init(&key, NOTE_KEY_ED25519, SV("a"), &small, &err) == WRIT_E_SYNTAX,
	   "a key of small order");
	ok(note_key_init(&key, NOTE_KEY_NONE, SV("a"), &log_key.key.pub, &err) == WRIT_E_SYNTAX,
	   "a key of no type");
}

#define SIG "— a AAAAAAA=\n"
#define SIGS4 SIG SIG SIG SIG

static void test_form(void)
{
	static const struct {
		const char *text;
		bool good;
	} notes[] = {
		{ "text\n\n" SIG, true },
		{ "text\n\n" SIG SIG, true },
		{ "\n\n" SIG, true },
		{ "a\n\nb\n\n" SIG, true },
		{ "caf\xc3\xa9\n\n" SIG, true },
		{ "text\n\n" SIGS4 SIGS4 SIGS4 SIGS4, true },
		{ "text\n\n" SIGS4 SIGS4 SIGS4 SIGS4 SIG, false },
		{ "", false },
		{ "\n", false },
		{ "text\n", false },
		{ "text\n\n", false },
		{ "text\n\n\n", false },
		{ "\n" SIG, false },
		{ SIG, false },
		{ "text\n" SIG, false },
		{ "text\n\n" SIG "\n", false },
		{ "text\n\n" SIG "more\n", false },
		{ "text\n\n— a AAAAAAA=", false },
		{ "text\n\n— a AAAAAAA= \n", false },
		{ "text\n\n— a  AAAAAAA=\n", false },
		{ "text\n\n— a AAAAAAA= x\n", false },
		{ "text\n\n—  AAAAAAA=\n", false },
		{ "text\n\n—a AAAAAAA=\n", false },
		{ "text\n\n- a AAAAAAA=\n", false },
		{ "text\n\n— a\n", false },
		{ "text\n\n— a \n", false },
		{ "text\n\n— a AAAAAA==\n", false }, /* four bytes: no signature behind the id */
		{ "text\n\n— a AAAAAAA\n", false },
		{ "text\n\n— a AAAAAAB=\n", false },
		{ "text\n\n— a AAAA-AA=\n", false },
		{ "text\n\n— a+b AAAAAAA=\n", false },
		{ "text\n\n— a\xc2\xa0 AAAAAAA=\n", false },
		{ "te\txt\n\n" SIG, false },
		{ "te\rxt\n\n" SIG, false },
		{ "text\r\n\r\n" SIG, false },
		{ "te\x1bxt\n\n" SIG, false },
		{ "te\xc0\xafxt\n\n" SIG, false },
		{ "te\xed\xa0\x80xt\n\n" SIG, false },
	};
	struct writ_err err = { 0 };
	struct note n = { 0 };
	char *large;

	for (size_t i = 0; i < ARRAY_LEN(notes); i++) {
		scoped_buf b = BUF_INIT(NOTE_MAX);
		const bool good = note_parse(sv_from(notes[i].text), &n, &err) == 0;

		ok(good == notes[i].good, "note %zu %s", i, notes[i].good ? "read" : "refused");
		if (!good)
			continue;
		put_note(&n, &b);
		is_sv(buf_view(&b), sv_from(notes[i].text), "and printed as it was");
	}
	ok(note_parse((struct sv){ "te\0xt\n\n" SIG, sizeof("te\0xt\n\n" SIG) - 1 }, &n, &err) < 0,
	   "a zero byte refused");
	large = malloc(NOTE_MAX + 1);
	memset(large, 'a', NOTE_MAX + 1);
	memcpy(large + NOTE_MAX + 1 - sizeof("\n\n" SIG) + 1, "\n\n" SIG, sizeof("\n\n" SIG) - 1);
	ok(note_parse((struct sv){ large + 1, NOTE_MAX }, &n, &err) == 0 &&
		   note_parse((struct sv){ large, NOTE_MAX + 1 }, &n, &err) == WRIT_E_LIMIT,
	   "128 KiB and no more");
	free(large);
}

static void put_line(const struct note_key *key, const char *bytes, size_t n, struct buf *b)
{
	note_put_sig(key, (struct sv){ bytes, n }, b);
}

static void test_verify(void)
{
	static const char zeros[72];
	const struct sv text = SV("hello\n");
	scoped_buf good = BUF_INIT(1024), b = BUF_INIT(4096);
	struct note_key keys[NOTE_KEYS_MAX + 1];
	struct note_key twin = log_key.key;
	struct note_signers who = { .by = 77 };
	struct writ_err err = { 0 };
	struct note n;

	ok(note_sign(&log_key.key, &log_key.sec, text, &good, &err) == 0, "signed");
	buf_fmt(&b, "hello\n\n" SV_FMT SV_FMT, SV_ARG(buf_view(&good)), SV_ARG(buf_view(&good)));
	ok(note_parse(buf_view(&b), &n, &err) == 0 &&
		   note_verify(&n, &log_key.key, 1, &who, &err) == 0 && who.by == 1,
	   "twice counts once");
	who.by = 77;
	ok(note_verify(&n, &wit[0].key, 1, &who, &err) == WRIT_E_DENIED && who.by == 77,
	   "no known key: %s", err.what);
	ok(note_verify(&n, &wit[0].key, 0, &who, &err) == WRIT_E_DENIED, "no key at all");
	put_line(&log_key.key, zeros, 64, &b);
	ok(note_parse(buf_view(&b), &n, &err) == 0 &&
		   note_verify(&n, &log_key.key, 1, &who, &err) == WRIT_E_DENIED,
	   "two good and a bad one: %s", err.what);
	/* The same with a line that only shares the name, or only the id. */
	buf_clear(&b);
	twin.id ^= 1;
	buf_fmt(&b, "hello\n\n" SV_FMT, SV_ARG(buf_view(&good)));
	put_line(&twin, zeros, 64, &b);
	twin.id ^= 1;
	twin.name = SV("writ.example/log/l-other");
	put_line(&twin, zeros, 64, &b);
	ok(note_parse(buf_view(&b), &n, &err) == 0 &&
		   note_verify(&n, &log_key.key, 1, &who, &err) == 0 && who.by == 1,
	   "half a known key is an unknown one");
	buf_clear(&b);
	buf_fmt(&b, "hello\n\n");
	put_line(&log_key.key, zeros, 63, &b);
	ok(note_parse(buf_view(&b), &n, &err) == 0 &&
		   note_verify(&n, &log_key.key, 1, &who, &err) == WRIT_E_DENIED,
	   "a signature of another length");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		keys[i] = log_key.key;
	ok(note_verify(&n, keys, 2, &who, &err) == WRIT_E_BUG,
	   "two keys that cannot be told apart");
	ok(note_verify(&n, keys, NOTE_KEYS_MAX + 1, &who, &err) == WRIT_E_LIMIT, "too many keys");
	buf_clear(&b);
	put_line(&log_key.key, zeros, 73, &b);
	ok(b.failed, "a signature that is too long for any of ours is not printed");
}

static void test_sign(void)
{
	scoped_buf b = BUF_INIT(4096);
	struct writ_err err = { 0 };

	ok(note_sign(&log_key.key, &wit[0].sec, SV("a\n"), &b, &err) == WRIT_E_BUG && b.n == 0,
	   "a secret of another key signs nothing");
	ok(note_sign(&wit[0].key, &wit[0].sec, SV("a\n"), &b, &err) == WRIT_E_BUG,
	   "a witness signs no plain notes");
	ok(note_sign(&log_key.key, &log_key.sec, SV("a"), &b, &err) == WRIT_E_SYNTAX,
	   "no text without a newline");
	ok(note_sign(&log_key.key, &log_key.sec, SV("\x01\n"), &b, &err) == WRIT_E_SYNTAX,
	   "no control characters");
	ok(note_sign(&log_key.key, &log_key.sec, SV("cosignature/v1\ntime 1\n"), &b, &err) ==
		   WRIT_E_DENIED,
	   "nothing that reads as a cosignature");
	ok(b.n == 0, "and nothing was written");
}

#define ROOT "ksPx9uWs2pPyAZO7xHdpUk9gGVOa23iHJFqjgfGbV6c=\n"
#define EMPTY "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"

static void test_checkpoints(void)
{
	static const struct {
		const char *text;
		bool good;
	} all[] = {
		{ "a/b\n5\n" ROOT, true },
		{ "a/b\n0\n" EMPTY, true },
		{ "a/b\n4611686018427387904\n" ROOT, true },
		{ "caf\xc3\xa9/1\n1\n" ROOT, true },
		{ "a/b\n4611686018427387905\n" ROOT, false },
		{ "a/b\n18446744073709551616\n" ROOT, false },
		{ "a/b\n0\n" ROOT, false },
		{ "a/b\n05\n" ROOT, false },
		{ "a/b\n-5\n" ROOT, false },
		{ "a/b\n+5\n" ROOT, false },
		{ "a/b\n 5\n" ROOT, false },
		{ "a/b\n5 \n" ROOT, false },
		{ "a/b\n\n" ROOT, false },
		{ "a/b\n5\n", false },
		{ "a/b\n5\n\n", false },
		{ "a/b\n5\n" ROOT "\n", false },
		{ "a/b\n5\n" ROOT "extension\n", false },
		{ "a/b\n5\n" ROOT " ", false },
		{ "a/b\n5\nksPx9uWs2pPyAZO7xHdpUk9gGVOa23iHJFqjgfGbV6c=", false },
		{ "a/b\n5\nksPx9uWs2pPyAZO7xHdpUk9gGVOa23iHJFqjgfGbV6c\n", false },
		{ "a/b\n5\nksPx9uWs2pPyAZO7xHdpUk9gGVOa23iHJFqjgfGbV6d=\n", false },
		{ "a/b\n5\nksPx9uWs2pPyAZO7xHdpUk9gGVOa23iHJFqjgfGbVw==\n", false },
		{ "a/b\n5\n" ROOT ROOT, false },
		{ "a/b\r\n5\r\n" ROOT, false },
		{ "\n5\n" ROOT, false },
		{ "ab\n5\n" ROOT, false },
		{ "a b/c\n5\n" ROOT, false },
		{ "a/b+c\n5\n" ROOT, false },
		{ "a/b\xc2\xa0\n5\n" ROOT, false },
		{ "eyJ/a\n5\n" ROOT, false },
		{ "DSSEv1/a\n5\n" ROOT, false },
		{ "cosignature/v1\n5\n" ROOT, false },
		{ "cosignatures.example/a\n5\n" ROOT, false },
		{ "eyj/a\n5\n" ROOT, true },
	};
	struct writ_err err = { 0 };
	struct checkpoint c = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		scoped_buf b = BUF_INIT(1024);
		const bool good = checkpoint_parse(sv_from(all[i].text), &c, &err) == 0;

		ok(good == all[i].good, "checkpoint %zu %s", i, all[i].good ? "read" : "refused");
		if (!good)
			continue;
		ok(checkpoint_print(&c, &b, &err) == 0, "prints");
		is_sv(buf_view(&b), sv_from(all[i].text), "as it was");
	}
	{
		scoped_buf b = BUF_INIT(1024);

		c.origin = SV("a/b\n9");
		ok(checkpoint_print(&c, &b, &err) < 0 && b.n == 0, "no origin with a line in it");
		c.origin = SV("a/b");
		ok(checkpoint_sign(&c, &log_key.key, &log_key.sec, &b, &err) == WRIT_E_BUG &&
			   b.n == 0,
		   "no signature for another log");
	}
}

static struct checkpoint five(struct buf *text)
{
	struct tree_frontier f = { 0 };
	struct writ_err err = { 0 };
	struct sv rest;

	vector_read("tlog/entries", text);
	for (rest = buf_view(text); rest.n;) {
		const struct digest leaf = tree_leaf(sv_cut(&rest, '\n'));

		if (tree_append(&f, &leaf, &err) < 0)
			ok(false, "append");
	}
	return (struct checkpoint){ sv_from(TLOG_TEST_LOG), f.size, tree_frontier_root(&f) };
}

/* What the script made and what this code makes are the same bytes. */
static void test_vectors(void)
{
	scoped_buf entries = BUF_INIT(4096), want = BUF_INIT(4096), b = BUF_INIT(4096),
		   cosigned = BUF_INIT(4096);
	const struct checkpoint c = five(&entries);
	struct checkpoint back;
	struct writ_err err = { 0 };
	struct note n;

	vector_read("tlog/checkpoint", &want);
	vector_read("tlog/checkpoint.cosigned", &cosigned);
	ok(checkpoint_sign(&c, &log_key.key, &log_key.sec, &b, &err) == 0, "checkpoint signed");
	is_sv(buf_view(&b), buf_view(&want), "as in the vectors");
	ok(checkpoint_open(buf_view(&want), &log_key.key, &n, &back, &err) == 0 && back.size == 5 &&
		   sv_eq(back.origin, c.origin) && digest_eq(&back.root, &c.root),
	   "opens");
	for (unsigned i = 0; i < 2; i++)
		ok(cosign_sign(&wit[i].key, &wit[i].sec, 1794745401 + i, n.text, &b, &err) == 0,
		   "cosigned");
	is_sv(buf_view(&b), buf_view(&cosigned), "as in the vectors");
	ok(checkpoint_open(buf_view(&cosigned), &wit[0].key, &n, &back, &err) == WRIT_E_DENIED,
	   "a witness is not the log: %s", err.what);
	buf_clear(&want);
	vector_read("tlog/vkeys", &want);
	buf_clear(&b);
	note_key_print(&log_key.key, &b);
	for (unsigned i = 0; i < 3; i++) {
		buf_ch(&b, '\n');
		note_key_print(&wit[i].key, &b);
	}
	buf_ch(&b, '\n');
	is_sv(buf_view(&b), buf_view(&want), "keys as in the vectors");
}

/* Whichever byte of a note changes: not all that have signed it are still signers. */
static void test_damage(void)
{
	const struct note_key keys[] = { log_key.key, wit[0].key, wit[1].key };
	scoped_buf b = BUF_INIT(4096);
	struct note_signers who = { 0 };
	struct writ_err err = { 0 };
	struct note n;
	unsigned passed = 0, tried = 0;

	vector_read("tlog/checkpoint.cosigned", &b);
	ok(note_parse(buf_view(&b), &n, &err) == 0 && note_verify(&n, keys, 3, &who, &err) == 0 &&
		   who.by == 7 && who.time[0] == 0 && who.time[1] == 1794745401 &&
		   who.time[2] == 1794745402,
	   "a log and two witnesses, with their times");
	for (size_t i = 0; i < b.n; i++) {
		const char was = b.p[i];

		for (unsigned bit = 0; bit < 4; bit++, tried++) {
			b.p[i] = (char)(was ^ 1 << (i + 3 * bit) % 8);
			passed += note_parse(buf_view(&b), &n, &err) == 0 &&
				  note_verify(&n, keys, 3, &who, &err) == 0 && who.by == 7;
		}
		b.p[i] = was;
	}
	for (size_t i = 0; i < b.n; i++, tried++)
		passed += note_parse(sv_sub(buf_view(&b), 0, i), &n, &err) == 0 &&
			  note_verify(&n, keys, 3, &who, &err) == 0 && who.by == 7;
	ok(tried > 2200 && passed == 0, "%u of %u damaged notes pass", passed, tried);
}

static void test_cosign(void)
{
	scoped_buf b = BUF_INIT(4096);
	const struct sv text = SV("a/b\n5\n" ROOT);
	struct writ_err err = { 0 };
	struct note_signers who;
	uint8_t bytes[COSIGN_BYTES];
	uint64_t time = 0;
	struct note n;

	buf_fmt(&b, SV_FMT "\n", SV_ARG(text));
	ok(cosign_sign(&wit[0].key, &wit[0].sec, 7, text, &b, &err) == 0 &&
		   cosign_sign(&wit[0].key, &wit[0].sec, COSIGN_TIME_MAX, text, &b, &err) == 0 &&
		   cosign_sign(&wit[0].key, &wit[0].sec, 0, text, &b, &err) == 0,
	   "one witness at three times");
	ok(note_parse(buf_view(&b), &n, &err) == 0 &&
		   note_verify(&n, &wit[0].key, 1, &who, &err) == 0 && who.by == 1 &&
		   who.time[0] == COSIGN_TIME_MAX,
	   "the latest time counts");
	ok(base64_decode(BASE64_PADDED, sv_skip(n.sig[0].base64, 0), bytes, 4) == false,
	   "76 bytes");
	{
		uint8_t all[4 + COSIGN_BYTES];

		ok(base64_decode(BASE64_PADDED, n.sig[0].base64, all, sizeof(all)), "decoded");
		memcpy(bytes, all + 4, sizeof(bytes));
	}
	ok(cosign_verify(&wit[0].key, text, bytes, &time, &err) == 0 && time == 7, "verifies");
	ok(cosign_verify(&wit[1].key, text, bytes, &time, &err) == WRIT_E_DENIED,
	   "not for another");
	ok(cosign_verify(&log_key.key, text, bytes, &time, &err) == WRIT_E_BUG, "nor a plain key");
	bytes[7] ^= 1;
	ok(cosign_verify(&wit[0].key, text, bytes, &time, &err) == WRIT_E_DENIED,
	   "the time is signed");
	bytes[0] = 0x80;
	ok(cosign_verify(&wit[0].key, text, bytes, &time, &err) == WRIT_E_SYNTAX,
	   "and has a limit");
	buf_clear(&b);
	ok(cosign_sign(&wit[0].key, &wit[0].sec, COSIGN_TIME_MAX + 1, text, &b, &err) < 0 &&
		   cosign_sign(&wit[0].key, &wit[1].sec, 7, text, &b, &err) == WRIT_E_BUG &&
		   cosign_sign(&log_key.key, &log_key.sec, 7, text, &b, &err) == WRIT_E_BUG &&
		   cosign_sign(&wit[0].key, &wit[0].sec, 7, SV("hello\n"), &b, &err) < 0 &&
		   b.n == 0,
	   "not too late, not with another key, nothing but checkpoints");
}

int main(void)
{
	struct writ_err err = { 0 };

	ok(crypto_start(&err) == 0, "starts");
	log_key = tlog_pair(NOTE_KEY_ED25519, TLOG_TEST_LOG);
	wit[0] = tlog_pair(NOTE_KEY_COSIGNATURE, TLOG_TEST_WITNESS "a");
	wit[1] = tlog_pair(NOTE_KEY_COSIGNATURE, TLOG_TEST_WITNESS "b");
	wit[2] = tlog_pair(NOTE_KEY_COSIGNATURE, TLOG_TEST_WITNESS "c");
	test_published();
	test_vkeys();
	test_form();
	test_verify();
	test_sign();
	test_checkpoints();
	test_vectors();
	test_damage();
	test_cosign();
	return tap_done();
}
