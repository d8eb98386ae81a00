/*
 * action.h - the action of a proof: opening one session
 *
 * Reads:  a description of the session
 * Writes: nothing
 * Next:   pop.h signs the digest of the action; chain_action() compares it
 *
 * Both sides build the object: the holder from the session it wants, the verifier from the session
 * it is about to open. If the two differ in anything, the digests differ and the proof is refused.
 */
#ifndef WRIT_TOKEN_ACTION_H
#define WRIT_TOKEN_ACTION_H

#include "base/buf.h"
#include "base/id.h"
#include "token/refusal.h"

/* limit for an encoded action in bytes: an argv can be as long as the kernel permits */
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
