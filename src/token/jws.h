/*
 * jws.h - signed text: compact JWS with one fixed header, and the names of keys
 *
 * Reads:  text from outside
 * Writes: nothing
 * Next:   token.h, pop.h, rvk.h, trust.h say what is signed
 *
 * The header is exactly {"alg":"EdDSA","kid":KID,"typ":TYP}. It chooses nothing:
 * the key is an Ed25519 key whatever it says, and the caller knows which type it
 * expects. "Ed25519", the newer name of the same algorithm, is read as well.
 * A payload can only be had after its signature was verified.
 */
#ifndef WRIT_TOKEN_JWS_H
#define WRIT_TOKEN_JWS_H

#include "base/buf.h"
#include "crypto/crypto.h"
#include "token/why.h"

enum jws_type {
	JWS_NONE = 0,
	JWS_CAP,      /* writ-cap+jwt */
	JWS_POP,      /* writ-pop+jwt */
	JWS_APPROVAL, /* writ-approval+jwt */
	JWS_RVK,      /* writ-rvk+jwt */
	JWS_TRUST,    /* writ-trust+jwt */
	JWS_CARD,     /* writ-card+jwt */
	/* keep last */
	JWS_TYPE_COUNT
};

enum { JWS_KID = 43, JWS_HEADER_MAX = 256 };

struct jws_kid {
	char s[JWS_KID + 1]; /* SHA-256 thumbprint of RFC 7638, with its NUL */
};

struct jws_pair {
	struct sign_public pub;
	struct sign_secret sec; /* crypto_wipe() when done */
};

/* Views of the text it was split from. */
struct jws {
	struct sv text, input, payload; /* payload: still base64 */
	struct jws_kid kid;
	struct signature sig;
};

const char *jws_type_name(enum jws_type type);

struct jws_kid jws_thumbprint(const struct sign_public *key);
struct jws_kid jws_text(const uint8_t b[static 32]); /* any 32 bytes in base64url */
struct sv jws_kid_sv(const struct jws_kid *kid);     /* tied to @kid */
bool jws_kid_eq(const struct jws_kid *a, const struct jws_kid *b);

/* At most @max bytes, three parts, the header as it must be and of @type. */
must_check int jws_split(struct sv text, size_t max, enum jws_type type, struct jws *ret_jws,
			 struct token_why *why);

/* Verifies @j with @key, and only then appends its payload to @b. */
must_check int jws_open(const struct jws *j, const struct sign_public *key, struct buf *b,
			struct token_why *why);

/* Appends the signed text of @payload. */
must_check int jws_sign(enum jws_type type, struct sv payload, const struct jws_pair *key,
			struct buf *b, struct token_why *why);

/* Digest of the signing input: what par_hash and counters refer to. */
struct digest jws_input_hash(const struct jws *j);

#endif
