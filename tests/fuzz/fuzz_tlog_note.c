/* fuzz_tlog_note - signed notes, and the keys that verify them */
#include "fuzz.h"
#include "tlog/note.h"

static void key(struct sv text)
{
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(NOTE_VKEY_MAX);
	struct note_key k;

	if (note_key_parse(text, &k, &err) < 0) {
		must(err.what[0] != 0);
		return;
	}
	note_key_print(&k, &b);
	must(sv_eq(buf_view(&b), text));
}

/* A key that nobody has signed with: whatever the bytes are, the answer is no. */
static void verify(const struct note *n)
{
	static const uint8_t seed[32] = { 7 };
	struct note_signers who;
	struct note_key k = { .type = NOTE_KEY_COSIGNATURE,
			      .id = n->sig[0].id,
			      .name = n->sig[0].name };
	struct sign_secret sec;
	struct writ_err err = { 0 };

	sign_keypair(seed, &k.pub, &sec);
	must(note_verify(n, &k, 1, &who, &err) == WRIT_E_DENIED);
	k.type = NOTE_KEY_ED25519;
	must(note_verify(n, &k, 1, &who, &err) == WRIT_E_DENIED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv bytes = fuzz_bytes(data, size);
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(NOTE_MAX);
	struct note n;

	key(bytes);
	if (note_parse(bytes, &n, &err) < 0) {
		must(err.what[0] != 0);
		return 0;
	}
	must(n.sigs_n > 0 && n.sigs_n <= NOTE_SIGS_MAX && note_text_check(n.text, &err) == 0);
	buf_fmt(&b, SV_FMT "\n", SV_ARG(n.text));
	for (size_t i = 0; i < n.sigs_n; i++)
		buf_sv(&b, n.sig[i].line);
	must(sv_eq(buf_view(&b), bytes));
	verify(&n);
	return 0;
}
