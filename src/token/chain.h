/*
 * chain.h - tokens one behind another: who gave what to whom, and what that allows
 *
 * Reads:  presentations, "T0~T1~...~PROOF"
 * Writes: the caller's arena
 * Next:   session/ opens sessions by it; egress/ and mediate/ ask chain_decide()
 *
 *	chain_present	sizes, signatures, schema, root, links, times, revocation, proof
 *	(caller)	is the nonce one of ours and fresh, is the proof new?
 *	chain_action	is the proof for what is about to be done?
 *	chain_decide	does every token allow it, who must agree, what is debited?
 *	(caller)	approvals, counters, the log
 *
 * That is the order, and the first no is the answer. SECURITY: every token is
 * asked, and the issuer's ceiling as if it stood before the first; that each is
 * within the one before is checked as well, and nothing relies on it alone.
 */
#ifndef WRIT_TOKEN_CHAIN_H
#define WRIT_TOKEN_CHAIN_H

#include "token/pop.h"
#include "token/rvk.h"
#include "token/trust.h"

/* What the verifier knows. */
struct token_here {
	struct sv realm; /* its own */
	uint64_t now;	 /* seconds since 1970 */
	const struct trust *trust;
	const struct rvk *lists; /* of any issuers, in any order; each as rvk_open() gave it */
	size_t lists_n;
	/* Lists come from the state of this machine and cannot be old, also if there is none. */
	bool local;
};

struct chain {
	struct token token[TOKEN_CHAIN_MAX];
	size_t n;
	const struct trust_issuer *issuer; /* borrowed from the trust */
	struct sv realm;
	uint64_t deadline;    /* the smallest exp */
	uint64_t rvk;	      /* the smallest rvk */
	struct digest digest; /* of all tokens: the key of a cache of verifications */
	bool proved;
	struct pop pop; /* if so */
};

const struct token *chain_leaf(const struct chain *c);

/* Tokens without a proof: what a holder keeps, and derives from. */
must_check int chain_open(struct arena *a, struct sv tokens, const struct token_here *here,
			  struct chain *ret_chain, struct token_why *why);

/*
 * Is a chain that was opened before still good, by what is known now? Who issued it, and as
 * the issuer whom @here has, when, what was revoked; @links: also whether all of it is
 * within what that issuer may give. Signatures do not change and are not looked at.
 */
must_check int chain_again(const struct chain *c, const struct token_here *here, bool links,
			   struct token_why *why);

/* Tokens and the proof of the last one's holder. */
must_check int chain_present(struct arena *a, struct sv presentation, const struct token_here *here,
			     struct chain *ret_chain, struct token_why *why);

/* @action: the canonical object of what is about to be done, as action.h writes it. */
must_check int chain_action(const struct chain *c, struct sv action, struct token_why *why);

/* What one use costs: a counter is known by its token and its capability together. */
struct chain_debit {
	struct digest token; /* of the signing input */
	struct sv cap;
	uint64_t n, rate_n, rate_s, max_in, max_out; /* 0: absent */
};

struct chain_price {
	VEC(struct sv) approve; /* all who must agree, sorted */
	VEC(struct chain_debit) debits;
};

/*
 * Asks every token for @req, a CAP_REQUEST. TOKEN_E_NOCAP with the hop that refused
 * it and why; otherwise it may happen at *@ret_price.
 */
must_check int chain_decide(struct arena *a, const struct chain *c, const struct cap *req,
			    struct chain_price *ret_price, struct token_why *why);

#endif
