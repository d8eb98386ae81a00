#include "attest/bundle.h"

#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "crypto/crypto.h"

#include "base/banned.h"

#define PAYLOAD_TYPE "application/vnd.in-toto+json"
#define MEDIA_TYPE "application/vnd.dev.sigstore.bundle.v0.3+json"
#define PEM_BEGIN "-----BEGIN PUBLIC KEY-----\n"
#define PEM_END "-----END PUBLIC KEY-----\n"

/* DER prefix of a P-256 public key: id-ecPublicKey, prime256v1, uncompressed point */
static const uint8_t p256[] = { 0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48,
				0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
				0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04 };

int attest_key_init(struct attest_key *ret, struct sv der, struct writ_err *err)
{
	if (der.n != ATTEST_SPKI || memcmp(der.p, p256, sizeof(p256)) != 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "it is no P-256 key");
	memcpy(ret->der, der.p, ATTEST_SPKI);
	ret->id = crypto_sha256(der);
	return 0;
}

void attest_key_print(const struct attest_key *k, struct buf *b)
{
	scoped_buf text = BUF_INIT(256);

	base64_encode(BASE64_PADDED, (struct sv){ (const char *)k->der, ATTEST_SPKI }, &text);
	buf_str(b, PEM_BEGIN);
	for (struct sv rest = buf_view(&text); rest.n; rest = sv_skip(rest, 64))
		buf_fmt(b, SV_FMT "\n", SV_ARG(sv_sub(rest, 0, 64)));
	buf_str(b, PEM_END);
}

/* Parses the base64 between the BEGIN and END lines of a key. */
static int parse_pem(struct sv body, struct attest_key *ret, struct writ_err *err)
{
	scoped_buf text = BUF_INIT(1024), der = BUF_INIT(1024);

	while (body.n)
		buf_sv(&text, sv_cut(&body, '\n'));
	if (text.failed || !base64_decode_to(BASE64_PADDED, buf_view(&text), &der))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "a public key is not readable");
	return attest_key_init(ret, buf_view(&der), err);
}

int attest_keys_parse(struct sv pem, struct attest_key ret[static ATTEST_KEYS_MAX], size_t *ret_n,
		      struct writ_err *err)
{
	const struct sv begin = SV(PEM_BEGIN), end = SV("-----END PUBLIC KEY-----");
	size_t n = 0;

	while (pem.n) {
		const char *from = memmem(pem.p, pem.n, begin.p, begin.n), *to;
		struct sv body;
		int r;

		if (!from)
			break;
		pem = sv_skip(pem, (size_t)(from - pem.p) + begin.n);
		to = pem.n ? memmem(pem.p, pem.n, end.p, end.n) : NULL;
		if (!to)
			return writ_fail(err, WRIT_E_SYNTAX, 0, "a public key has no end");
		if (n == ATTEST_KEYS_MAX)
			return writ_fail(err, WRIT_E_LIMIT, 0, "there are more than %d keys",
					 ATTEST_KEYS_MAX);
		body = sv_sub(pem, 0, (size_t)(to - pem.p));
		r = parse_pem(body, &ret[n++], err);
		if (r < 0)
			return r;
		pem = sv_skip(pem, body.n + end.n);
	}
	*ret_n = n;
	return 0;
}

int attest_pin_key(const char *path, const struct attest_key *key, struct writ_err *err)
{
	scoped_buf text = BUF_INIT(64 << 10);
	struct attest_key have[ATTEST_KEYS_MAX];
	size_t n = 0;
	int r;

	if ((r = fd_read_optional(path, &text, err)) < 0 ||
	    (r = attest_keys_parse(buf_view(&text), have, &n, err)) < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (digest_eq(&have[i].id, &key->id))
			return 0;
	if (text.n && text.p[text.n - 1] != '\n')
		buf_ch(&text, '\n');
	attest_key_print(key, &text);
	r = buf_check(&text, err);
	return r < 0 ? r : fd_replace_deep(AT_FDCWD, path, buf_view(&text), 0644, err);
}

void bundle_signed(struct sv payload, struct buf *b)
{
	buf_fmt(b, "DSSEv1 %zu %s %zu ", sizeof(PAYLOAD_TYPE) - 1, PAYLOAD_TYPE, payload.n);
	buf_sv(b, payload);
}

int bundle_print(const struct bundle *u, struct buf *b, struct writ_err *err)
{
	scoped_buf id = BUF_INIT(80), sig = BUF_INIT(256), payload = BUF_INIT(2 * ATTEST_TEXT_MAX);
	scoped_json *o = NULL;

	digest_hex(&u->key, &id);
	base64_encode(BASE64_PADDED, u->sig, &sig);
	base64_encode(BASE64_PADDED, u->payload, &payload);
	if (!id.p || !sig.p || !payload.p || id.failed || sig.failed || payload.failed)
		return writ_nomem(err);
	o = json_pack("{s:s,s:{s:{s:s}},s:{s:s,s:s,s:[{s:s,s:s}]}}", "mediaType", MEDIA_TYPE,
		      "verificationMaterial", "publicKey", "hint", id.p, "dsseEnvelope", "payload",
		      payload.p, "payloadType", PAYLOAD_TYPE, "signatures", "keyid", "", "sig",
		      sig.p);
	return o ? cj_encode(o, b, err) : writ_nomem(err);
}

/* Decodes a base64 member into the arena. */
static struct sv decoded(struct fields *in, const char *key, size_t max)
{
	const struct sv text = attest_member_text(in, key);
	scoped_buf b = BUF_INIT(max);
	struct sv bytes = SV("");

	if (in->failed == 0 && (!base64_decode_to(BASE64_PADDED, text, &b) || b.failed ||
				b.n == 0 || !arena_sv(in->a, buf_view(&b), &bytes)))
		in->failed = writ_fail(in->err, WRIT_E_SYNTAX, 0, "member %s is not right", key);
	return bytes;
}

static int parse_signature(struct fields *envelope, struct bundle *u)
{
	const json_t *list = json_object_get(envelope->o, "signatures");
	struct fields one;

	envelope->asked++;
	if (!json_is_array(list) || json_array_size(list) != 1)
		return writ_fail(envelope->err, WRIT_E_SYNTAX, 0,
				 "there is not exactly one signature");
	one = attest_fields_of(json_array_get(list, 0), envelope->a, envelope->err);
	if (one.failed)
		return one.failed;
	attest_member_is(&one, "keyid", SV(""));
	u->sig = decoded(&one, "sig", ATTEST_SIG_MAX);
	return attest_fields_end(&one);
}

int bundle_parse(struct arena *a, struct sv bytes, struct bundle *ret, struct writ_err *err)
{
	scoped_json *o = NULL;
	struct bundle u = { 0 };
	struct fields in = attest_fields_decode(bytes, 2 * ATTEST_TEXT_MAX, &o, a, err);
	struct fields material, key, envelope;
	struct sv hint;
	int r;

	attest_member_is(&in, "mediaType", SV(MEDIA_TYPE));
	material = attest_member_object(&in, "verificationMaterial");
	envelope = attest_member_object(&in, "dsseEnvelope");
	if (attest_fields_end(&in) < 0)
		return in.failed;
	key = attest_member_object(&material, "publicKey");
	if (attest_fields_end(&material) < 0)
		return material.failed;
	hint = attest_member_text(&key, "hint");
	if (attest_fields_end(&key) < 0)
		return key.failed;
	if (!digest_parse(hint, &u.key))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "member hint is no key id");
	attest_member_is(&envelope, "payloadType", SV(PAYLOAD_TYPE));
	u.payload = decoded(&envelope, "payload", ATTEST_TEXT_MAX);
	r = parse_signature(&envelope, &u);
	if (r == 0)
		r = attest_fields_end(&envelope);
	if (r == 0)
		*ret = u;
	return r;
}
