#include "token/jws.h"

#include <string.h>

#include "codec/base64.h"

#include "base/banned.h"

static const char *const type_names[JWS_TYPE_COUNT] = {
	[JWS_NONE] = "none",	      [JWS_CAP] = "writ-cap+jwt",
	[JWS_POP] = "writ-pop+jwt",   [JWS_APPROVAL] = "writ-approval+jwt",
	[JWS_RVK] = "writ-rvk+jwt",   [JWS_TRUST] = "writ-trust+jwt",
	[JWS_CARD] = "writ-card+jwt",
};

const char *jws_type_name(enum jws_type type)
{
	return type < JWS_TYPE_COUNT ? type_names[type] : type_names[JWS_NONE];
}

struct jws_kid jws_thumbprint(const struct sign_public *key)
{
	const struct jws_kid x = jws_text(key->b);
	const struct sv parts[3] = { SV("{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\""),
				     jws_kid_sv(&x),
				     SV("\"}") };

	return jws_text(crypto_sha256_parts(parts, ARRAY_LEN(parts)).b);
}

struct jws_kid jws_text(const uint8_t b[static 32])
{
	struct jws_kid text = { "" };

	base64_put(BASE64_URL, (struct sv){ (const char *)b, 32 }, text.s);
	return text;
}

struct sv jws_kid_sv(const struct jws_kid *kid)
{
	return (struct sv){ kid->s, JWS_KID };
}

bool jws_kid_eq(const struct jws_kid *a, const struct jws_kid *b)
{
	return memcmp(a->s, b->s, JWS_KID) == 0;
}

/*
 * Reads the next member of the fixed header from *@h: the text @open, then a value up to a quote.
 */
static bool header_value(struct sv *h, const char *open, struct sv *ret_v)
{
	const struct sv o = sv_from(open);
	size_t end;

	if (!sv_starts(*h, o))
		return false;
	*h = sv_skip(*h, o.n);
	end = sv_find(*h, '"');
	if (end == SIZE_MAX)
		return false;
	*ret_v = sv_sub(*h, 0, end);
	*h = sv_skip(*h, end);
	return true;
}

static int check_header(struct sv h, enum jws_type type, struct jws *j, struct token_why *why)
{
	struct digest is_digest;
	struct sv alg, kid, typ;

	if (!header_value(&h, "{\"alg\":\"", &alg) || !header_value(&h, "\",\"kid\":\"", &kid) ||
	    !header_value(&h, "\",\"typ\":\"", &typ) || !sv_is(h, "\"}"))
		return token_refuse(why, TOKEN_E_FORMAT, "header is not alg, kid and typ");
	if (type == JWS_NONE || !sv_is(typ, jws_type_name(type)))
		return token_refuse(why, TOKEN_E_TYP, "typ is not %s", jws_type_name(type));
	if (!sv_is(alg, "EdDSA") && !sv_is(alg, "Ed25519"))
		return token_refuse(why, TOKEN_E_ALG, "alg is neither EdDSA nor Ed25519");
	if (!base64_decode(BASE64_URL, kid, is_digest.b, sizeof(is_digest.b)))
		return token_refuse(why, TOKEN_E_FORMAT, "kid is not a thumbprint");
	memcpy(j->kid.s, kid.p, JWS_KID);
	j->kid.s[JWS_KID] = 0;
	return 0;
}

int jws_split(struct sv text, size_t max, enum jws_type type, struct jws *ret_jws,
	      struct token_why *why)
{
	struct jws j = { .text = text };
	char header[JWS_HEADER_MAX];
	struct sv rest = text, head;
	size_t n;
	int r;

	if (text.n > max)
		return token_refuse(why, TOKEN_E_SIZE, "%zu bytes, at most %zu", text.n, max);
	head = sv_cut(&rest, '.');
	j.payload = sv_cut(&rest, '.');
	j.input = sv_sub(text, 0, head.n + 1 + j.payload.n);
	if (!base64_check(BASE64_URL, head, &n) || n > sizeof(header) ||
	    !base64_decode(BASE64_URL, head, header, n))
		return token_refuse(why, TOKEN_E_FORMAT, "header is not base64url");
	r = check_header((struct sv){ header, n }, type, &j, why);
	if (r < 0)
		return r;
	if (!base64_check(BASE64_URL, j.payload, &n) || n == 0)
		return token_refuse(why, TOKEN_E_FORMAT, "payload is not base64url");
	/* Decoding also refuses a third dot, which is not in the base64 alphabet. */
	if (!base64_decode(BASE64_URL, rest, j.sig.b, sizeof(j.sig.b)))
		return token_refuse(why, TOKEN_E_FORMAT, "signature is not 64 bytes in base64url");
	*ret_jws = j;
	return 0;
}

int jws_open(const struct jws *j, const struct sign_public *key, struct buf *b,
	     struct token_why *why)
{
	struct writ_err err = { 0 };

	/* SECURITY: verify the signature before parsing any byte of the payload. */
	if (sign_verify(key, j->input, &j->sig, &err) < 0)
		return token_refuse(why, TOKEN_E_SIG, "%s", err.what);
	if (!base64_decode_to(BASE64_URL, j->payload, b) || buf_check(b, &err) < 0)
		return token_nomem(why);
	return 0;
}

int jws_sign(enum jws_type type, size_t max, struct sv payload, const struct key_pair *key,
	     struct buf *b, struct token_why *why)
{
	const struct jws_kid kid = jws_thumbprint(&key->pub);
	scoped_buf header = BUF_INIT(JWS_HEADER_MAX), text = BUF_INIT(max);
	struct writ_err err = { 0 };
	struct signature sig;

	if (type == JWS_NONE || type >= JWS_TYPE_COUNT)
		return token_refuse(why, TOKEN_E_TYP, "no type to sign for");
	buf_fmt(&header, "{\"alg\":\"EdDSA\",\"kid\":\"%s\",\"typ\":\"%s\"}", kid.s,
		jws_type_name(type));
	base64_encode(BASE64_URL, buf_view(&header), &text);
	buf_ch(&text, '.');
	base64_encode(BASE64_URL, payload, &text);
	if (!header.failed && !text.failed) {
		sig = sign_bytes(&key->sec, buf_view(&text));
		buf_ch(&text, '.');
		base64_encode(BASE64_URL, (struct sv){ (const char *)sig.b, sizeof(sig.b) }, &text);
	}
	if (header.failed || text.failed)
		return token_refuse(why, TOKEN_E_SIZE, "more than %zu bytes", max);
	buf_sv(b, buf_view(&text));
	return buf_check(b, &err) < 0 ? token_refuse(why, TOKEN_E_SIZE, "%s", err.what) : 0;
}
