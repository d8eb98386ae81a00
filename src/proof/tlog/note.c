#include "tlog/note.h"

#include <string.h>

#include "codec/base64.h"
#include "tlog/checkpoint.h"

#include "base/banned.h"

/* --- keys --- */

/* Decoded last part of a vkey: the key type, then the public key. */
struct key_bytes {
	uint8_t type;
	struct sign_public pub;
};
_Static_assert(sizeof(struct key_bytes) == 33, "one byte and a key");

/* Takes one code point off the front of @s, which must be valid UTF-8. */
static uint32_t next_code(struct sv *s)
{
	static const uint8_t head[] = { 0x7f, 0x1f, 0x0f, 0x07 };
	const uint8_t c = (uint8_t)s->p[0];
	const unsigned more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	uint32_t code = c & head[more];

	for (unsigned i = 1; i <= more; i++)
		code = code << 6 | ((uint8_t)s->p[i] & 0x3f);
	*s = sv_skip(*s, 1 + more);
	return code;
}

/*
 * Is @c a character that a key name must not contain: Unicode White_Space, a control character, or
 * the plus sign, which separates the parts of a vkey?
 */
static bool refused(uint32_t c)
{
	return c <= 0x20 || c == '+' || (c >= 0x7f && c <= 0xa0) || c == 0x1680 ||
	       (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
	       c == 0x205f || c == 0x3000;
}

int note_name_check(struct sv name, struct writ_err *err)
{
	if (name.n == 0 || name.n > NOTE_NAME_MAX || !sv_is_utf8(name))
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "the name of a key is empty, too long or not UTF-8");
	while (name.n)
		if (refused(next_code(&name)))
			return writ_fail(err, WRIT_E_SYNTAX, 0,
					 "a blank, plus or control character in the name of a key");
	return 0;
}

static uint32_t key_id(struct sv name, const struct key_bytes *key)
{
	const struct sv parts[] = { name, SV("\n"), { (const char *)key, sizeof(*key) } };
	const struct digest d = crypto_sha256_parts(parts, ARRAY_LEN(parts));

	return (uint32_t)d.b[0] << 24 | (uint32_t)d.b[1] << 16 | (uint32_t)d.b[2] << 8 | d.b[3];
}

int note_key_init(struct note_key *ret_key, enum note_key_type type, struct sv name,
		  const struct sign_public *pub, struct writ_err *err)
{
	struct note_key key;
	int r = note_key_init_trusted(&key, type, name, pub, err);

	if (r == 0)
		r = sign_public_check(pub, err);
	if (r == 0)
		*ret_key = key;
	return r;
}

int note_key_init_trusted(struct note_key *ret_key, enum note_key_type type, struct sv name,
			  const struct sign_public *pub, struct writ_err *err)
{
	const struct key_bytes bytes = { .type = (uint8_t)type, .pub = *pub };
	const int r = note_name_check(name, err);

	if (r < 0)
		return r;
	if (type != NOTE_KEY_ED25519 && type != NOTE_KEY_COSIGNATURE)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a key of a type that is not known here");
	*ret_key = (struct note_key){
		.type = type, .id = key_id(name, &bytes), .name = name, .pub = *pub
	};
	return 0;
}

int note_key_parse(struct sv vkey, struct note_key *ret_key, struct writ_err *err)
{
	struct sv rest = vkey;
	const struct sv name = sv_cut(&rest, '+');
	const struct sv hex = sv_cut(&rest, '+');
	struct key_bytes bytes;
	struct note_key key;
	uint64_t id;
	size_t n;
	int r;

	if (!sv_hex_to_u64(hex, 8, &id) || !base64_check(BASE64_PADDED, rest, &n) || n < 2)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "not a key: NAME+ID+BASE64");
	if (!base64_decode(BASE64_PADDED, rest, &bytes, sizeof(bytes)))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a key of a type that is not known here");
	r = note_key_init(&key, (enum note_key_type)bytes.type, name, &bytes.pub, err);
	if (r < 0)
		return r;
	if (key.id != id)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the id of a key is not that of its bytes");
	*ret_key = key;
	return 0;
}

void note_key_print(const struct note_key *key, struct buf *b)
{
	const struct key_bytes bytes = { .type = (uint8_t)key->type, .pub = key->pub };

	buf_sv(b, key->name);
	buf_fmt(b, "+%08x+", key->id);
	base64_encode(BASE64_PADDED, (struct sv){ (const char *)&bytes, sizeof(bytes) }, b);
}

bool note_key_eq(const struct note_key *a, const struct note_key *b)
{
	return a->type == b->type && sv_eq(a->name, b->name) &&
	       memcmp(&a->pub, &b->pub, sizeof(a->pub)) == 0;
}

/* --- notes --- */

/* Every signature line begins with an em dash and a space. */
#define DASH SV("\xe2\x80\x94 ")

int note_text_check(struct sv text, struct writ_err *err)
{
	if (text.n > NOTE_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "a note of more than 128 KiB");
	if (!sv_ends(text, SV("\n")))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a note ends without a newline");
	for (size_t i = 0; i < text.n; i++)
		if ((uint8_t)text.p[i] < 0x20 && text.p[i] != '\n')
			return writ_fail(err, WRIT_E_SYNTAX, 0, "a control character in a note");
	if (!sv_is_utf8(text))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a note is not UTF-8");
	return 0;
}

/*
 * Returns the offset of the first signature line of a note, which follows the last empty line, or
 * SIZE_MAX if the note has no empty line.
 */
static size_t find_sigs(struct sv bytes)
{
	for (size_t i = bytes.n; i >= 2; i--)
		if (bytes.p[i - 1] == '\n' && bytes.p[i - 2] == '\n')
			return i;
	return SIZE_MAX;
}

static int parse_sig(struct sv line, struct note_sig *ret_sig, struct writ_err *err)
{
	struct note_sig s = { .line = line };
	struct sv rest = sv_skip(line, DASH.n);
	uint8_t head[6];
	size_t n;
	int r;

	if (!sv_starts(line, DASH))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "not a line of signature");
	s.name = sv_cut(&rest, ' ');
	r = note_name_check(s.name, err);
	if (r < 0)
		return r;
	/* Drop the newline at which the caller cut the line. */
	s.base64 = sv_sub(rest, 0, rest.n - 1);
	/*
	 * Decode only the first eight characters of the signature: their six bytes (or fewer, if
	 * the signature is shorter) contain the key id.
	 */
	if (!base64_check(BASE64_PADDED, s.base64, &n) || n < 5 ||
	    !base64_decode(BASE64_PADDED, sv_sub(s.base64, 0, 8), head, n < 6 ? n : 6))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a signature is not well formed");
	s.id = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
	*ret_sig = s;
	return 0;
}

int note_parse(struct sv bytes, struct note *ret_note, struct writ_err *err)
{
	struct note n = { 0 };
	struct sv rest;
	size_t at;
	int r = note_text_check(bytes, err);

	if (r < 0)
		return r;
	at = find_sigs(bytes);
	if (at == SIZE_MAX || at == bytes.n)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a note without signatures");
	n.text = sv_sub(bytes, 0, at - 1);
	for (rest = sv_skip(bytes, at); rest.n;) {
		const size_t line = sv_find(rest, '\n') + 1;

		if (n.sigs_n == NOTE_SIGS_MAX)
			return writ_fail(err, WRIT_E_LIMIT, 0,
					 "a note with more than 16 signatures");
		r = parse_sig(sv_sub(rest, 0, line), &n.sig[n.sigs_n], err);
		if (r < 0)
			return r;
		n.sigs_n++;
		rest = sv_skip(rest, line);
	}
	*ret_note = n;
	return 0;
}

void note_put_sig(const struct note_key *key, struct sv bytes, struct buf *b)
{
	uint8_t all[4 + COSIGN_BYTES];

	if (bytes.n > sizeof(all) - 4) {
		b->failed = true; /* the bytes are longer than any signature that writ makes */
		return;
	}
	for (size_t i = 0; i < 4; i++)
		all[i] = (uint8_t)(key->id >> (24 - 8 * i));
	memcpy(all + 4, bytes.p, bytes.n);
	buf_sv(b, DASH);
	buf_sv(b, key->name);
	buf_ch(b, ' ');
	base64_encode(BASE64_PADDED, (struct sv){ (const char *)all, 4 + bytes.n }, b);
	buf_ch(b, '\n');
}

int note_sign(const struct note_key *key, const struct sign_secret *sec, struct sv text,
	      struct buf *b, struct writ_err *err)
{
	struct signature sig;
	int r = note_text_check(text, err);

	if (r < 0)
		return r;
	if (key->type != NOTE_KEY_ED25519)
		return writ_fail(err, WRIT_E_BUG, 0, "this key does not sign plain notes");
	/*
	 * SECURITY: cosignature keys sign messages that begin with "cosignature/". Refuse to sign
	 * such a text as a plain note, so that a note signature can never be presented as a
	 * cosignature.
	 */
	if (sv_starts(text, SV("cosignature/")))
		return writ_fail(err, WRIT_E_DENIED, 0, "a note must not look like a cosignature");
	sig = sign_bytes(sec, text);
	/* note_key_init() validated the public key, so skip that check here. */
	r = sign_verify_known(&key->pub, text, &sig, err);
	if (r < 0)
		return writ_fail(err, WRIT_E_BUG, 0,
				 "the secret key is not that of the public one");
	note_put_sig(key, (struct sv){ (const char *)sig.b, sizeof(sig.b) }, b);
	return buf_check(b, err);
}

static int verify_one(const struct note_key *key, struct sv text, const struct note_sig *s,
		      uint64_t *ret_time, struct writ_err *err)
{
	uint8_t bytes[4 + COSIGN_BYTES];
	struct signature sig;

	switch (key->type) {
	case NOTE_KEY_ED25519:
		if (!base64_decode(BASE64_PADDED, s->base64, bytes, 4 + sizeof(sig.b)))
			break;
		memcpy(sig.b, bytes + 4, sizeof(sig.b));
		*ret_time = 0;
		return sign_verify(&key->pub, text, &sig, err);
	case NOTE_KEY_COSIGNATURE:
		if (!base64_decode(BASE64_PADDED, s->base64, bytes, sizeof(bytes)))
			break;
		return cosign_verify(key, text, bytes + 4, ret_time, err);
	case NOTE_KEY_NONE:
		return writ_fail(err, WRIT_E_BUG, 0, "a key without a type");
	}
	return writ_fail(err, WRIT_E_DENIED, 0, "a signature of the wrong length");
}

/*
 * Finds the key that a signature line names. *@ret_at is SIZE_MAX if none of @keys matches. The
 * function does not verify the signature.
 */
static int find_key(const struct note_sig *s, const struct note_key *keys, size_t keys_n,
		    size_t *ret_at, struct writ_err *err)
{
	size_t at = SIZE_MAX;

	for (size_t i = 0; i < keys_n; i++) {
		if (keys[i].id != s->id || !sv_eq(keys[i].name, s->name))
			continue;
		if (at != SIZE_MAX)
			return writ_fail(err, WRIT_E_BUG, 0, "two known keys of one name and id");
		at = i;
	}
	*ret_at = at;
	return 0;
}

int note_verify(const struct note *n, const struct note_key *keys, size_t keys_n,
		struct note_signers *ret_signers, struct writ_err *err)
{
	struct note_signers who = { 0 };

	if (keys_n > NOTE_KEYS_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "more than 64 known keys");
	for (size_t i = 0; i < n->sigs_n; i++) {
		uint64_t time = 0;
		size_t at = SIZE_MAX;
		int r = find_key(&n->sig[i], keys, keys_n, &at, err);

		if (r < 0)
			return r;
		if (at == SIZE_MAX)
			continue;
		r = verify_one(&keys[at], n->text, &n->sig[i], &time, err);
		if (r < 0)
			return writ_fail(err, WRIT_E_DENIED, 0, "bad signature of " SV_FMT,
					 SV_ARG(sv_sub(keys[at].name, 0, 80)));
		who.by |= (uint64_t)1 << at;
		if (time > who.time[at])
			who.time[at] = time;
	}
	if (!who.by)
		return writ_fail(err, WRIT_E_DENIED, 0, "no signature of a known key");
	*ret_signers = who;
	return 0;
}
