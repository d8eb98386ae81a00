/*
 * chain.h - verifies a chain of tokens
 *
 * Reads:  presentations, "T0~T1~...~PROOF"
 * Writes: the caller's arena
 * Next:   session/ opens sessions with a chain; each token becomes a policy of its own there
 *
 * Verification has a fixed order, and the first failure is the answer:
 *
 * 	chain_present	sizes, signatures, schema, root, links, times, revocation, proof
 * 	(caller)	did we issue the nonce, is the nonce fresh, is the proof new?
 * 	chain_action	is the proof for the action that is about to be performed?
 * 	(caller)	counters, the log
 *
 * SECURITY: chain_present() checks that each token is within its parent. Sessions do not rely on
 * that check: every token of the chain also bounds the session on its own.
 */
#ifndef WRIT_TOKEN_CHAIN_H
#define WRIT_TOKEN_CHAIN_H

#include "token/pop.h"
#include "token/rvk.h"

/* State of the verifier that a chain is checked against. */
struct token_here {
	struct sv realm; /* realm of the verifier */
	uint64_t now;	 /* current time, in seconds since 1970 */
	const struct trust *trust;
	/* Revocation lists of any issuers, in any order, from rvk_open(). */
	const struct rvk *lists;
	size_t lists_n;
	/*
	 * Accept a chain even if no list is fresh, because the lists come from local state and
	 * cannot be outdated.
	 */
	bool local;
};

struct chain {
	struct token token[TOKEN_CHAIN_MAX];
	size_t n;
	/* issuer of the root token; points into the trust bundle */
	const struct trust_issuer *issuer;
	struct sv realm;
	uint64_t deadline;    /* earliest expiry of all tokens */
	/* smallest rvk of all tokens: maximum age of a revocation list, in seconds */
	uint64_t rvk;
	struct digest digest; /* digest over all tokens of the chain */
	bool proved;
	struct pop pop; /* proof of possession; valid if .proved */
};

const struct token *chain_leaf(const struct chain *c);

/* Verifies the tokens of a chain without a proof, as a holder does before deriving. */
must_check int chain_open(struct arena *a, struct sv tokens, const struct token_here *here,
			  struct chain *ret_chain, struct token_why *why);

/*
 * Checks again whether a verified chain is valid now: issuer still trusted, times, revocations.
 * With @links also checks the root token against the issuer's current realms and ceiling, and every
 * link. Signatures cannot change and are not verified again.
 */
must_check int chain_recheck(const struct chain *c, const struct token_here *here, bool links,
			     struct token_why *why);

/* Verifies the tokens of a chain and the proof by the holder of the last token. */
must_check int chain_present(struct arena *a, struct sv presentation, const struct token_here *here,
			     struct chain *ret_chain, struct token_why *why);

/* Checks that the chain's proof is for @action, the canonical object from pop.h. */
must_check int chain_action(const struct chain *c, struct sv action, struct token_why *why);

#endif
