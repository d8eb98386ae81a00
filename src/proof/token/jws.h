/*
 * jws.h - signed text: compact JWS with one fixed header, and the names of keys
 *
 * Reads:  text from outside
 * Writes: nothing
 * Next:   token.h, pop.h, rvk.h, trust.h define the payloads
 *
 * The header is exactly {"alg":"EdDSA","kid":KID,"typ":TYP}. SECURITY: the header selects nothing.
 * The key is an Ed25519 key no matter what alg says, and the caller knows which type it expects.
 * "Ed25519", the newer name of the same algorithm, is accepted as well. jws_open() is the only way
 * to a payload, and it verifies the signature first.
 */
#ifndef WRIT_TOKEN_JWS_H
#define WRIT_TOKEN_JWS_H

#include "keys/keys.h"
#include "token/refusal.h"

enum jws_type {
	JWS_NONE = 0,
	JWS_CAP,      /* capability token: writ-cap+jwt */
	JWS_POP,      /* proof of possession: writ-pop+jwt */
	JWS_APPROVAL, /* approval of an action: writ-approval+jwt */
	JWS_RVK,      /* revocation list: writ-rvk+jwt */
	JWS_TRUST,    /* bundle of trusted issuers: writ-trust+jwt */
	JWS_CARD,     /* agent card: writ-card+jwt */
	/* number of values; keep last */
	JWS_TYPE_COUNT
};

enum { JWS_KID = 43, JWS_HEADER_MAX = 256 };

struct jws_kid {
	char s[JWS_KID + 1]; /* thumbprint of the key (SHA-256, RFC 7638), with a NUL */
};

/* A JWS split into its parts, which are views of the text. */
struct jws {
	/*
	 * .text is the whole JWS. .input is its signing input: the claim par_hash and counters
	 * refer to the digest of .input.
	 */
	struct sv text, input, payload; /* the payload is still base64 */
	struct jws_kid kid;
	struct signature sig;
};

const char *jws_type_name(enum jws_type type);

struct jws_kid jws_thumbprint(const struct sign_public *key);
struct jws_kid jws_text(const uint8_t b[static 32]); /* encodes any 32 bytes as base64url */
struct sv jws_kid_sv(const struct jws_kid *kid);     /* view of @kid, valid as long as @kid */
bool jws_kid_eq(const struct jws_kid *a, const struct jws_kid *b);

/* Splits a JWS of at most @max bytes into its three parts and checks the header and its @type. */
must_check int jws_split(struct sv text, size_t max, enum jws_type type, struct jws *ret_jws,
			 struct token_why *why);

/* Verifies the JWS @j with @key, and only then appends the payload to @b. */
must_check int jws_open(const struct jws *j, const struct sign_public *key, struct buf *b,
			struct token_why *why);

/* Appends @payload as a JWS of at most @max bytes, signed with the key. */
must_check int jws_sign(enum jws_type type, size_t max, struct sv payload,
			const struct key_pair *key, struct buf *b, struct token_why *why);

#endif
