/*
 * trust.h - which issuers are trusted, for which realms, and how much they may grant
 *
 * Reads:  a bundle signed by the organisation, or its payload from local state
 * Writes: the caller's arena
 * Next:   chain.h finds the issuer of a root here; rvk.h the signer of a list
 */
#ifndef WRIT_TOKEN_TRUST_H
#define WRIT_TOKEN_TRUST_H

#include "token/token.h"

enum { TRUST_MAX = 256 << 10, TRUST_ISSUERS_MAX = 64, TRUST_REALMS_MAX = 256 };

struct trust_issuer {
	struct sv iss;
	struct sign_public key;
	struct jws_kid kid;
	const struct sv *realms;
	size_t realms_n;
	uint64_t nbf, exp;
	/* ceiling of the issuer: capabilities without counters; a root token must be within them */
	struct cap_set ceiling;
	/*
	 * The issuer is this machine's own key, which no bundle contains. That issuer has no
	 * ceiling: a process that can read the key runs as the user and could do the same things
	 * without a token. Decoding never sets this member.
	 */
	bool self;
};

struct trust {
	uint64_t ver, iat, exp;
	const struct trust_issuer *issuers;
	size_t n;
};

/* Decodes the bare payload of a trust bundle, for local state that file permissions protect. */
must_check int token_trust_decode(struct arena *a, struct sv payload, struct trust *ret_trust,
				  struct token_why *why);

/*
 * Opens a trust bundle signed with @org and valid @now. @seen is the highest version accepted
 * before, which the caller stores; an older version is refused.
 */
must_check int token_trust_open(struct arena *a, struct sv text, const struct sign_public *org,
				uint64_t now, uint64_t seen, struct trust *ret_trust,
				struct token_why *why);

/* Returns the issuer with the key @kid, or NULL. */
const struct trust_issuer *token_trust_find(const struct trust *t, const struct jws_kid *kid);

#endif
