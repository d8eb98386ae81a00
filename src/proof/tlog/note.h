/*
 * note.h - signed text: C2SP signed-note
 *
 * Reads:  notes and verifier keys from outside
 * Writes: nothing
 * Next:   checkpoint.h (the note that states a log's contents)
 *
 * Parsed structs are views of the bytes that were parsed and must not outlive these bytes. A key is
 * identified by its name and its id together. The id only narrows the search: it is 32 bits of a
 * hash, and anyone can make a key with a given id.
 */
#ifndef WRIT_TLOG_NOTE_H
#define WRIT_TLOG_NOTE_H

#include "crypto/crypto.h"

enum {
	/* limit for a note in bytes: enough for 16 signatures of the longest kinds */
	NOTE_MAX = 128 << 10,
	NOTE_SIGS_MAX = 16,
	NOTE_NAME_MAX = 255,
	NOTE_KEYS_MAX = 64,
	NOTE_VKEY_MAX = NOTE_NAME_MAX + 1 + 8 + 1 + 44,
};

enum note_key_type {
	NOTE_KEY_NONE = 0,
	NOTE_KEY_ED25519 = 1,	  /* the key signs the text of the note */
	NOTE_KEY_COSIGNATURE = 4, /* the key signs a time and the text of the note: checkpoint.h */
};

struct note_key {
	enum note_key_type type;
	uint32_t id;
	struct sv name;
	struct sign_public pub;
};

/*
 * Checks a key name: 1 to 255 bytes of UTF-8 without Unicode spaces, control characters or plus
 * signs.
 */
must_check int note_name_check(struct sv name, struct writ_err *err);

/* Makes a key from its parts and checks that @pub is a valid point. @name must outlive the key. */
must_check int note_key_init(struct note_key *ret_key, enum note_key_type type, struct sv name,
			     const struct sign_public *pub, struct writ_err *err);
/* Makes a key whose @pub comes from sign_keypair() and therefore needs no check. */
must_check int note_key_init_trusted(struct note_key *ret_key, enum note_key_type type,
				     struct sv name, const struct sign_public *pub,
				     struct writ_err *err);
/* Parses and prints the verifier key format "NAME+ID+BASE64" (vkey). */
must_check int note_key_parse(struct sv vkey, struct note_key *ret_key, struct writ_err *err);
void note_key_print(const struct note_key *key, struct buf *b);
bool note_key_eq(const struct note_key *a, const struct note_key *b);

struct note_sig {
	struct sv line; /* the whole signature line, including its newline */
	struct sv name;
	uint32_t id;
	struct sv base64; /* base64 of key id and signature bytes */
};

struct note {
	struct sv text; /* the signed text of the note, including its last newline */
	struct note_sig sig[NOTE_SIGS_MAX];
	size_t sigs_n;
};

/* Takes a line off the front of *@in, without its newline. Returns false if *@in has no newline. */
must_check bool tlog_line_take(struct sv *in, struct sv *ret_line);

/* Checks that @text may be signed: UTF-8, no control characters, ends with a newline. */
must_check int note_text_check(struct sv text, struct writ_err *err);
must_check int note_parse(struct sv bytes, struct note *ret_note, struct writ_err *err);

/* Appends one signature line to @b. The base64 of the line contains the key id, then @bytes. */
void note_put_sig(const struct note_key *key, struct sv bytes, struct buf *b);

/*
 * Appends the signature line of @key for @text. @key has type Ed25519 and belongs to @sec; @text
 * must not be stored in @b. A complete note is the text, an empty line, and one or more signature
 * lines.
 */
must_check int note_sign(const struct note_key *key, const struct sign_secret *sec,
			 struct sv text, struct buf *b, struct writ_err *err);

/*
 * Keys that signed a note: bit i of .by stands for keys[i]; .time[i] is the time of the latest
 * cosignature of keys[i].
 */
struct note_signers {
	uint64_t by;
	uint64_t time[NOTE_KEYS_MAX];
};

/*
 * Verifies a note against the keys that the caller trusts.
 * SECURITY: signatures of unknown keys are ignored. An invalid signature under the name and id of a
 * known key refuses the whole note, as does a note without any signature of a known key. If a key
 * signed twice, both signatures must verify, and the key counts once. WRIT_E_DENIED means that
 * verification failed.
 */
must_check int note_verify(const struct note *n, const struct note_key *keys, size_t keys_n,
			   struct note_signers *ret_signers, struct writ_err *err);

#endif
