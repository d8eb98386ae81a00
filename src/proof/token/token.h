/*
 * token.h - one capability token: its claims, how it is encoded, decoded and made
 *
 * Theory of operation
 *
 * A token lets its holder do what its capabilities say, for a limited time, in certain realms. An
 * issuer signs the first (root) token. Its holder can derive a narrower token for somebody else,
 * whose holder can derive again. A verifier sees the whole chain, root first, and checks every step
 * itself: it trusts no holder to have narrowed correctly.
 *
 * A holder proves possession of the last token's key by signing the session it wants to open,
 * together with a nonce of the verifier. A stolen token without the key is therefore useless, and a
 * proof for one session does not work for another.
 *
 * Files:
 *   refusal   codes and texts for refusals
 *   jws       signed text with a fixed header; names of keys
 *   fields    strict decoding of JSON members
 *   token     claims of one token (this file), mint and link: making and deriving
 *   trust     which issuers are trusted, for which realms, up to which ceiling
 *   rvk       revocation lists
 *   action    the action a proof is made for: opening a session
 *   pop       proof of possession
 *   chain     verifies a presentation
 *   wallet    the state of this realm: keys, trusted issuers, revocations, spent sessions, counters
 *
 * Everything but wallet depends on its arguments only, with no files and no clock. wallet_*.c reads
 * and writes STATE/tokens and calls the rest.
 *
 * States of a session token: minted or derived, claimed (a session is being opened), spent (its
 * first program runs), and revoked or expired. Claiming is exclusive; see wallet_claim().
 *
 * Invariants
 *   - No byte of a payload is parsed before its signature was verified.
 *   - Each key has one role: issuer, organisation or one holder. A key that appears in two roles
 *     is refused, so that a signature made in one role never counts in another.
 *   - A derived token never allows more than its parent; denials of all tokens apply.
 *   - Every encoding is canonical; a second spelling of a value is refused.
 *   - A failure of this machine (memory, disk) refuses the token.
 *
 * Common mistakes
 *   - Asking only the last token. Every token of a chain bounds a session.
 *   - Treating TOKEN_E_NONE with an error as acceptance. It means that the check itself failed.
 *   - Counting uses per session. Counters belong to a token and a capability, and all sessions
 *     with that token share them.
 *
 * docs/protocol/tokens.md is the normative text; steps and rules (I1 to I5) in comments refer to
 * it. A token is const once decoded.
 *
 * Reads:  payloads whose signature was verified
 * Writes: the caller's arena
 * Next:   chain.h verifies several tokens in sequence
 */
#ifndef WRIT_TOKEN_TOKEN_H
#define WRIT_TOKEN_TOKEN_H

#include "cap/set.h"
#include "token/jws.h"

enum {
	TOKEN_MAX = 8192,
	TOKEN_CHAIN_MAX = 8,
	TOKEN_PRESENTATION_MAX = 32768,
	TOKEN_CAPS_MAX = 64, /* limit for the number of capabilities, and of denials */
	TOKEN_AUD_MAX = 16,
	TOKEN_TEXT_MAX = 255,	/* limit for iss and sub, in bytes */
	TOKEN_LIFE_MAX = 28800, /* longest lifetime of a root token, in seconds */
	TOKEN_SKEW = 30,
	TOKEN_ID = 36,
};

#define TOKEN_RAR_TYPE "urn:writ:cap:1"
#define TOKEN_ISS_PREFIX "urn:ietf:params:oauth:jwk-thumbprint:sha-256:"

/* Id of a token or session: a version 7 UUID in lower case. */
struct token_id {
	char s[TOKEN_ID + 1];
};

must_check bool token_id_parse(struct sv s, struct token_id *ret_id);
struct sv token_id_sv(const struct token_id *id); /* view of @id, valid as long as @id */
bool token_id_eq(const struct token_id *a, const struct token_id *b);

struct token {
	struct sv iss, sub;
	struct token_id jti, sid, wf;
	uint64_t iat, nbf, exp; /* times of issue, start and expiry, in seconds since 1970 */
	uint64_t rvk;		/* maximum age of a revocation list, in seconds */
	const struct sv *aud;	/* realms in which the token is valid */
	size_t aud_n;
	struct sign_public cnf; /* public key of the holder */
	uint64_t depth, max_depth;
	bool has_parent;
	struct digest par_hash;
	struct cap_set set; /* capabilities of the token: caps, nots, limits, require, rt */

	/*
	 * The following members are not claims. They are zero until the token is signed or
	 * verified.
	 */
	struct jws_kid kid, cnf_kid;
	/* SHA-256 of the signing input; counters of the token are stored under this hash */
	struct digest hash;
	struct digest ath;  /* SHA-256 of the token's whole text */
};

/* Appends the payload of token @t as canonical JSON. The capabilities of @t may be in any order. */
must_check int token_encode(const struct token *t, struct buf *b, struct token_why *why);
must_check int token_decode(struct arena *a, struct sv payload, struct token *ret_t,
			    struct token_why *why);

/*
 * Appends a root token with the claims of @t, signed by the issuer. Depth and parent of @t are
 * ignored. Refuses every token that a verifier would refuse without seeing its chain.
 */
must_check int token_mint(struct arena *a, const struct token *t, const struct key_pair *issuer,
			  struct buf *b, struct token_why *why);

/*
 * Appends a token derived from @parent, which was verified, signed by the @holder of @parent. @t
 * supplies jti, iat, nbf, exp, aud, sid, rvk, cnf, max_depth and the set; the other claims follow
 * from the parent.
 * SECURITY: token_derive() refuses whatever token_link_check() refuses, as a service to the holder.
 * A verifier relies only on its own check.
 */
must_check int token_derive(struct arena *a, const struct token *parent, const struct token *t,
			    const struct key_pair *holder, struct buf *b, struct token_why *why);

/* Checks a root token without its chain: no parent, depth 0, lifetime. */
must_check int token_root_check(const struct token *t, struct token_why *why);
bool token_has_realm(const struct sv *realms, size_t n, struct sv realm);
/* Checks every rule between a token and its parent. */
must_check int token_link_check(const struct token *parent, const struct token *child,
				struct token_why *why);
/*
 * Checks that the authority of @child is within the authority of @parent, and refuses with @code.
 * @parent can also be an issuer's ceiling, which has no limits, require or rt.
 */
must_check int token_set_check(const struct cap_set *parent, const struct cap_set *child,
			       enum token_code code, struct token_why *why);

#endif
