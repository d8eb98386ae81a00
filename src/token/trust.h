/*
 * trust.h - whose tokens count here, for which realms, and how much they may give
 *
 * Reads:  a bundle signed by the organisation, or its payload from local state
 * Writes: the caller's arena
 * Next:   chain.h finds the issuer of a root in it; rvk.h the signer of a list
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
	struct cap_set ceiling; /* capabilities without counters; evaluated like a token */
	/*
	 * This machine itself, which no bundle speaks of: it has no ceiling, because who can
	 * read its key could do without a token whatever it would allow. Never decoded.
	 */
	bool self;
};

struct trust {
	uint64_t ver, iat, exp;
	const struct trust_issuer *issuers;
	size_t n;
};

/* The payload alone: for local state, which file permissions protect. */
must_check int trust_decode(struct arena *a, struct sv payload, struct trust *ret_trust,
			    struct token_why *why);

/*
 * A bundle signed with @org, valid @now. @seen is the highest version that was
 * accepted before, which the caller keeps: an older one is refused.
 */
must_check int trust_open(struct arena *a, struct sv text, const struct sign_public *org,
			  uint64_t now, uint64_t seen, struct trust *ret_trust,
			  struct token_why *why);

/* The issuer whose key @kid names, or NULL. */
const struct trust_issuer *trust_find(const struct trust *t, const struct jws_kid *kid);

#endif
