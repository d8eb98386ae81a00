/*
 * rvk.h - lists of what was revoked
 *
 * Reads:  lists signed by an issuer
 * Writes: the caller's arena
 * Next:   chain.h looks up every token, holder and session of a chain
 */
#ifndef WRIT_TOKEN_RVK_H
#define WRIT_TOKEN_RVK_H

#include "token/trust.h"

enum { RVK_MAX = 64 << 10 };

struct rvk {
	struct sv iss;
	struct jws_kid kid; /* of who signed; empty if only decoded */
	uint64_t seq, iat, exp;
	const struct sv *jti, *kids, *sid; /* sorted */
	size_t jti_n, kids_n, sid_n;
};

must_check int rvk_encode(const struct rvk *l, struct buf *b, struct token_why *why);
must_check int rvk_decode(struct arena *a, struct sv payload, struct rvk *ret_list,
			  struct token_why *why);

must_check int rvk_sign(struct arena *a, const struct rvk *l, const struct jws_pair *issuer,
			struct buf *b, struct token_why *why);

/*
 * A list signed by an issuer of @trust. @seen is the highest seq of that issuer that was
 * accepted before, which the caller keeps: a lower one is refused. How old it is now is
 * not asked here but each time it is used: see rvk_check().
 */
must_check int rvk_open(struct arena *a, struct sv text, const struct trust *trust, uint64_t seen,
			struct rvk *ret_list, struct token_why *why);

/* TOKEN_E_REVOKED if the list names the token, its holder or its session. */
must_check int rvk_check(const struct rvk *l, const struct token *t, struct token_why *why);

/* TOKEN_E_RVK_STALE unless the list is at most @age seconds old and valid. */
must_check int rvk_fresh(const struct rvk *l, uint64_t now, uint64_t age, struct token_why *why);

#endif
