/*
 * pop.h - proof of possession: the holder of a token wants this, here and now
 *
 * Reads:  text from outside
 * Writes: nothing
 * Next:   chain.h takes it as the last part of a presentation
 *
 * Whether the nonce was given out and neither it nor jti was seen before is state,
 * and the caller's to decide: TOKEN_E_NONCE and TOKEN_E_REPLAY.
 */
#ifndef WRIT_TOKEN_POP_H
#define WRIT_TOKEN_POP_H

#include "token/token.h"

enum { POP_MAX = 4096, POP_NONCE_MAX = 64 };

struct pop {
	struct digest acth; /* of the action */
	struct digest ath;  /* of the leaf's text */
	struct sv aud;	    /* one realm */
	uint64_t iat;
	struct token_id jti, sid;
	struct sv nonce; /* 16 to 64 of the base64url alphabet; also the action's salt */
};

must_check int pop_encode(const struct pop *p, struct buf *b, struct token_why *why);
must_check int pop_decode(struct arena *a, struct sv payload, struct pop *ret_pop,
			  struct token_why *why);

/* Appends the proof, signed by the holder of @leaf; ath and sid follow from the leaf. */
must_check int pop_sign(struct arena *a, const struct pop *p, const struct token *leaf,
			const struct jws_pair *holder, struct buf *b, struct token_why *why);

/* Is @text a proof of the holder of @leaf, for @realm and made about @now? */
must_check int pop_verify(struct arena *a, struct sv text, const struct token *leaf,
			  struct sv realm, uint64_t now, struct pop *ret_pop,
			  struct token_why *why);

#endif
