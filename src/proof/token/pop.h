/*
 * pop.h - proof of possession: the holder of a token proves to have its key, to open one session
 *
 * Reads:  text from outside
 * Writes: nothing
 * Next:   chain.h accepts the proof as the last part of a presentation
 *
 * The caller checks whether the nonce was issued and whether nonce or jti were seen before, because
 * these checks need state: TOKEN_E_NONCE and TOKEN_E_REPLAY.
 */
#ifndef WRIT_TOKEN_POP_H
#define WRIT_TOKEN_POP_H

#include "token/token.h"

enum { POP_MAX = 4096, POP_NONCE_MAX = 64 };

struct pop {
	struct digest acth; /* digest of the action */
	struct digest ath;  /* digest of the text of the leaf token */
	struct sv aud;	    /* realm that the proof is for */
	uint64_t iat;
	struct token_id jti, sid;
	struct sv nonce; /* nonce, 16 to 64 characters of base64url; also the action's salt */
};

must_check int pop_encode(const struct pop *p, struct buf *b, struct token_why *why);
must_check int pop_decode(struct arena *a, struct sv payload, struct pop *ret_pop,
			  struct token_why *why);

/* Appends the proof of possession @p, signed by the holder of @leaf, with ath and sid of @leaf. */
must_check int pop_sign(struct arena *a, const struct pop *p, const struct token *leaf,
			const struct key_pair *holder, struct buf *b, struct token_why *why);

/*
 * Verifies that @text is a proof by the holder of @leaf, for @realm, made within TOKEN_SKEW seconds
 * of @now.
 */
must_check int pop_verify(struct arena *a, struct sv text, const struct token *leaf,
			  struct sv realm, uint64_t now, struct pop *ret_pop,
			  struct token_why *why);

/* --- the action: opening one session --- */

/*
 * Both sides build the action object: the holder from the session that the holder wants, the
 * verifier from the session that it is about to open. If the two objects differ in anything, the
 * digests differ and the proof is refused.
 */

/* Limit for an encoded action in bytes: an argv can be as long as the kernel permits. */
enum { ACTION_MAX = 4 << 20 };

struct action {
	struct sv realm;
	struct sv salt; /* salt of the action: the nonce of the proof */
	/* The arguments of the first program as raw bytes. */
	const struct sv *argv;
	size_t argc;
	struct digest manifest; /* digest of the manifest of the session */
};

/* Appends the action @x as canonical JSON. */
must_check int token_action_encode(const struct action *x, struct buf *b, struct token_why *why);

#endif
