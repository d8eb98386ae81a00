#include "tlog/note.h"

#include <string.h>

#include "codec/base64.h"

#include "base/banned.h"

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
