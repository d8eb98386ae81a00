/*
 * note.h - signed text: C2SP signed-note
 *
 * Reads:  notes and verifier keys from outside
 * Writes: nothing
 * Next:   checkpoint.h (a note that says what a log holds), cosign.h
 *
 * Everything parsed is a view of the bytes it came from and ends with them. A key
 * is known by its name and its id together; the id is short and proves nothing.
 */
#ifndef WRIT_TLOG_NOTE_H
#define WRIT_TLOG_NOTE_H

#include "base/buf.h"
#include "crypto/crypto.h"

enum {
	NOTE_MAX = 128 << 10, /* room for 16 signatures of the largest kinds */
	NOTE_SIGS_MAX = 16,
	NOTE_NAME_MAX = 255,
	NOTE_KEYS_MAX = 64,
	NOTE_VKEY_MAX = NOTE_NAME_MAX + 1 + 8 + 1 + 44,
};

enum note_key_type {
	NOTE_KEY_NONE = 0,
	NOTE_KEY_ED25519 = 1,	  /* signs the text of the note */
	NOTE_KEY_COSIGNATURE = 4, /* signs a time and the text: cosign.h */
};

struct note_key {
	enum note_key_type type;
	uint32_t id;
	struct sv name;
	struct sign_public pub;
};

/* Not empty, at most 255 bytes of UTF-8, no Unicode spaces, control characters or plus. */
must_check int note_name_check(struct sv name, struct writ_err *err);

/* A key by its parts; @name must outlive it. */
must_check int note_key_init(struct note_key *ret_key, enum note_key_type type, struct sv name,
			     const struct sign_public *pub, struct writ_err *err);
/* The same of a key that sign_keypair() made: it need not be checked. */
must_check int note_key_own(struct note_key *ret_key, enum note_key_type type, struct sv name,
			    const struct sign_public *pub, struct writ_err *err);
/* "NAME+ID+BASE64", also called vkey. */
must_check int note_key_parse(struct sv vkey, struct note_key *ret_key, struct writ_err *err);
void note_key_print(const struct note_key *key, struct buf *b);

struct note_sig {
	struct sv line; /* the whole of it, with its newline */
	struct sv name;
	uint32_t id;
	struct sv base64; /* id and signature */
};

struct note {
	struct sv text; /* what is signed, with its last newline */
	struct note_sig sig[NOTE_SIGS_MAX];
	size_t sigs_n;
};

/* Can this be the text of a note? UTF-8, no control characters, ends with a newline. */
must_check int note_text_check(struct sv text, struct writ_err *err);
must_check int note_parse(struct sv bytes, struct note *ret_note, struct writ_err *err);
void note_print(const struct note *n, struct buf *b);

/* Appends one line of signature: @bytes are what follows the id. */
void note_put_sig(const struct note_key *key, struct sv bytes, struct buf *b);

/*
 * Appends the line of @key, which is of type Ed25519 and belongs to @sec, under
 * @text, which does not lie in @b. A whole note is the text, an empty line, and
 * such lines.
 */
must_check int note_sign(const struct note_key *key, const struct sign_secret *sec,
			 struct sv text, struct buf *b, struct writ_err *err);

/* Who has signed: bit i of by stands for keys[i], time[i] is the latest of its cosignatures. */
struct note_signers {
	uint64_t by;
	uint64_t time[NOTE_KEYS_MAX];
};

/*
 * SECURITY: signatures of unknown keys are ignored; one of a known key that does
 * not fit refuses the note, and so does a note that no known key has signed. A key
 * that signs twice must fit twice and counts once. WRIT_E_DENIED is the answer no.
 */
must_check int note_verify(const struct note *n, const struct note_key *keys, size_t keys_n,
			   struct note_signers *ret_signers, struct writ_err *err);

#endif
