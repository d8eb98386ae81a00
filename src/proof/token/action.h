/*
 * action.h - one action as an object: the subject of a proof, and of a request to a chain
 *
 * Reads:  a description of the intended action
 * Writes: nothing
 * Next:   pop.h signs the digest of the action; chain.h compares and decides
 *
 * Both sides build the object: the holder from the action it wants, the verifier from the action it
 * is about to perform. If the two differ in anything, the digests differ and the proof is refused.
 */
#ifndef WRIT_TOKEN_ACTION_H
#define WRIT_TOKEN_ACTION_H

#include "base/id.h"
#include "cap/cap.h"
#include "token/refusal.h"

/* limit for an encoded action in bytes: an argv can be as long as the kernel permits */
enum { ACTION_MAX = 4 << 20 };

enum action_kind {
	ACTION_NONE = 0,
	ACTION_SESSION, /* session.open: opens a whole sandbox under the token chain */
	ACTION_FS,
	ACTION_HTTP,
	ACTION_NET,
	ACTION_EXEC,
};

struct action {
	enum action_kind kind;
	struct sv realm;
	struct sv salt; /* salt of the action: the nonce of the proof */

	/* For fs and exec actions: a canonical path, as cap_put_path() prints it. */
	enum cap_action fs; /* CAP_FS_READ, CAP_FS_WRITE or CAP_FS_PUT */
	struct sv path;
	/* For http actions: a canonical url with its port; the query as sent, without "?". */
	struct sv method, url, query;
	const struct digest *body; /* digest of the request body; NULL: no body */
	/* For net actions: a canonical name or address. */
	struct sv host;
	uint16_t port;
	/* For session and exec actions: the arguments as raw bytes. */
	const struct sv *argv;
	size_t argc;
	struct digest env;	/* exec action: digest of the environment as canonical JSON */
	struct digest program;	/* exec action: digest of the program file */
	struct digest manifest; /* session action: digest of the manifest */
};

/* Appends the action @x as canonical JSON. */
must_check int token_action_encode(const struct action *x, struct buf *b, struct token_why *why);

/*
 * Makes the capability request for action @x, which chain_decide() answers. A session action has no
 * request: its tokens become its policy, and each action inside the session is checked later.
 */
must_check int token_action_request(struct arena *a, const struct action *x, struct cap *ret_req,
				    struct token_why *why);

#endif
