/*
 * rvk.h - revocation lists
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
	struct jws_kid kid; /* key that signed the list; empty if the list was only decoded */
	uint64_t seq, iat, exp;
	const struct sv *jti, *kids, *sid; /* revoked tokens, holders and sessions, sorted */
	size_t jti_n, kids_n, sid_n;
};

must_check int rvk_encode(const struct rvk *l, struct buf *b, struct token_why *why);
must_check int rvk_decode(struct arena *a, struct sv payload, struct rvk *ret_list,
			  struct token_why *why);

must_check int rvk_sign(struct arena *a, const struct rvk *l, const struct key_pair *issuer,
			struct buf *b, struct token_why *why);

/*
 * Opens a revocation list signed by an issuer of @trust. @seen is the highest seq accepted from
 * that issuer before, which the caller stores; a list with a lower seq is refused. rvk_fresh()
 * checks the age of the list at each use.
 */
must_check int rvk_open(struct arena *a, struct sv text, const struct trust *trust, uint64_t seen,
			struct rvk *ret_list, struct token_why *why);

/* Refuses with TOKEN_E_REVOKED if the list @l contains the token @t, its holder or its session. */
must_check int rvk_check(const struct rvk *l, const struct token *t, struct token_why *why);

/* Refuses with TOKEN_E_RVK_STALE unless the list @l is valid and at most @age seconds old. */
must_check int rvk_fresh(const struct rvk *l, uint64_t now, uint64_t age, struct token_why *why);

#endif
