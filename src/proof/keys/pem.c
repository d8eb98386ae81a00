#include <string.h>

#include "codec/base64.h"
#include "keys/keys.h"

#include "base/banned.h"

/* DER bytes before the 32 bytes of a key. RFC 8410 with DER leaves exactly one encoding, so a
 * comparison replaces an ASN.1 parser. */
static const uint8_t secret_head[] = { 0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
				       0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20 };
static const uint8_t public_head[] = { 0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
				       0x2b, 0x65, 0x70, 0x03, 0x21, 0x00 };

enum { DER_MAX = 64 };

struct pem {
	const char *label;
	const uint8_t *head;
	size_t head_n;
};

static const struct pem secret_pem = { "PRIVATE KEY", secret_head, sizeof(secret_head) };
static const struct pem public_pem = { "PUBLIC KEY", public_head, sizeof(public_head) };

static void print(const struct pem *p, const uint8_t bytes[static 32], struct buf *b)
{
	uint8_t der[DER_MAX];

	memcpy(der, p->head, p->head_n);
	memcpy(der + p->head_n, bytes, 32);
	buf_fmt(b, "-----BEGIN %s-----\n", p->label);
	base64_encode(BASE64_PADDED, (struct sv){ (const char *)der, p->head_n + 32 }, b);
	buf_fmt(b, "\n-----END %s-----\n", p->label);
	crypto_wipe(der, sizeof(der));
}

static bool take(struct sv *in, struct sv word)
{
	if (!sv_starts(*in, word))
		return false;
	*in = sv_skip(*in, word.n);
	return true;
}

static int parse(const struct pem *p, struct sv pem, uint8_t ret[static 32], struct writ_err *err)
{
	scoped_buf first = BUF_INIT(64), last = BUF_INIT(64);
	const size_t n = p->head_n + 32;
	uint8_t der[DER_MAX] = { 0 };
	struct sv text;
	bool good;

	buf_fmt(&first, "-----BEGIN %s-----\n", p->label);
	buf_fmt(&last, "\n-----END %s-----\n", p->label);
	good = take(&pem, buf_view(&first)) && sv_ends(pem, buf_view(&last));
	text = sv_sub(pem, 0, pem.n - (good ? last.n : pem.n));
	good = good && base64_decode(BASE64_PADDED, text, der, n) &&
	       memcmp(der, p->head, p->head_n) == 0;
	if (good)
		memcpy(ret, der + p->head_n, 32);
	crypto_wipe(der, sizeof(der));
	return good ? 0 : writ_fail(err, WRIT_E_SYNTAX, 0, "this is no Ed25519 key in PEM");
}

void keys_print_secret(const uint8_t seed[static 32], struct buf *b)
{
	print(&secret_pem, seed, b);
}

int keys_parse_secret(struct sv pem, uint8_t ret_seed[static 32], struct writ_err *err)
{
	return parse(&secret_pem, pem, ret_seed, err);
}

void keys_print_public(const struct sign_public *pub, struct buf *b)
{
	print(&public_pem, pub->b, b);
}

int keys_parse_public(struct sv pem, struct sign_public *ret, struct writ_err *err)
{
	struct sign_public pub;
	int r = parse(&public_pem, pem, pub.b, err);

	if (r == 0)
		r = sign_public_check(&pub, err);
	if (r == 0)
		*ret = pub;
	return r;
}
