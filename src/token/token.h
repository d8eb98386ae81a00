/*
 * token.h - one capability token: its claims, how it is written, read and made
 *
 * Reads:  payloads whose signature was verified
 * Writes: the caller's arena
 * Next:   chain.h puts tokens one behind another and decides
 *
 * docs/protocol/tokens.md is the normative text. A token is const once decoded.
 */
#ifndef WRIT_TOKEN_TOKEN_H
#define WRIT_TOKEN_TOKEN_H

#include "base/arena.h"
#include "cap/set.h"
#include "token/jws.h"

enum {
	TOKEN_MAX = 8192,
	TOKEN_CHAIN_MAX = 8,
	TOKEN_PRESENTATION_MAX = 32768,
	TOKEN_CAPS_MAX = 64, /* also of denials */
	TOKEN_AUD_MAX = 16,
	TOKEN_TEXT_MAX = 255,	/* iss and sub */
	TOKEN_LIFE_MAX = 28800, /* of a root, in seconds */
	TOKEN_SKEW = 30,
	TOKEN_ID = 36,
};

#define TOKEN_RAR_TYPE "urn:writ:cap:1"
#define TOKEN_ISS_PREFIX "urn:ietf:params:oauth:jwk-thumbprint:sha-256:"

/* A version 7 UUID in lower case. */
struct token_id {
	char s[TOKEN_ID + 1];
};

must_check bool token_id_parse(struct sv s, struct token_id *ret_id);
struct sv token_id_sv(const struct token_id *id); /* tied to @id */
bool token_id_eq(const struct token_id *a, const struct token_id *b);

struct token {
	struct sv iss, sub;
	struct token_id jti, sid, wf;
	uint64_t iat, nbf, exp; /* seconds since 1970 */
	uint64_t rvk;		/* how old a list of what was revoked may be, in seconds */
	const struct sv *aud;	/* realms */
	size_t aud_n;
	struct sign_public cnf; /* the holder's key */
	uint64_t depth, max_depth;
	bool has_parent;
	struct digest par_hash;
	struct cap_set set; /* caps, nots, limits, require, rt */

	/* Not claims: where it came from. Zero until it was signed or verified. */
	struct jws_kid kid, cnf_kid;
	struct digest hash; /* of the signing input: counters are kept under it */
	struct digest ath;  /* of the whole text */
};

/* The payload of @t as canonical JSON. Capabilities may be in any order. */
must_check int token_encode(const struct token *t, struct buf *b, struct token_why *why);
must_check int token_decode(struct arena *a, struct sv payload, struct token *ret_t,
			    struct token_why *why);

/*
 * Appends a root token with the claims of @t, signed by its issuer. Depth and parent
 * of @t are not looked at. Whatever a verifier would refuse on its own is refused.
 */
must_check int token_mint(struct arena *a, const struct token *t, const struct jws_pair *issuer,
			  struct buf *b, struct token_why *why);

/*
 * Appends a token derived from @parent, which was verified, signed by its @holder. @t says
 * jti, iat, nbf, exp, aud, sid, rvk, cnf, max_depth and the set; the rest follows from the
 * parent. SECURITY: refuses what token_link_check() refuses, but a verifier relies on
 * its own check only.
 */
must_check int token_derive(struct arena *a, const struct token *parent, const struct token *t,
			    const struct jws_pair *holder, struct buf *b, struct token_why *why);

/* Is @t on its own what a root or a derived token can be? */
must_check int token_root_check(const struct token *t, struct token_why *why);
/* Every rule between a token and the one before it. */
must_check int token_link_check(const struct token *parent, const struct token *child,
				struct token_why *why);
/* The part of it that is about authority; a ceiling has no limits, require or rt. */
must_check int token_set_check(const struct cap_set *parent, const struct cap_set *child,
			       enum token_code code, struct token_why *why);

#endif
