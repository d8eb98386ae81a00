/*
 * action.h - one act as an object: what a proof is made for, and what is asked of a chain
 *
 * Reads:  what is about to be done
 * Writes: nothing
 * Next:   pop.h signs its digest; chain.h compares and decides
 *
 * Both sides build it: the holder from what it wants, the verifier from what it is about
 * to do. A proof for one act is none for another.
 */
#ifndef WRIT_TOKEN_ACTION_H
#define WRIT_TOKEN_ACTION_H

#include "base/id.h"
#include "cap/cap.h"
#include "token/why.h"

enum { ACTION_MAX = 4 << 20 }; /* an argv is as long as the kernel takes */

enum action_kind {
	ACTION_NONE = 0,
	ACTION_SESSION, /* session.open: a whole sandbox under this chain */
	ACTION_FS,
	ACTION_HTTP,
	ACTION_NET,
	ACTION_EXEC,
};

struct action {
	enum action_kind kind;
	struct sv realm;
	struct sv salt; /* the proof's nonce */

	/* fs, exec: canonical path, as cap_put_path() writes it */
	enum cap_action fs; /* CAP_FS_READ, CAP_FS_WRITE or CAP_FS_PUT */
	struct sv path;
	/* http: canonical url with port; query as on the wire, without "?" */
	struct sv method, url, query;
	const struct digest *body; /* NULL: none */
	/* net: a canonical name or address */
	struct sv host;
	uint16_t port;
	/* session, exec: raw bytes */
	const struct sv *argv;
	size_t argc;
	struct digest env;	/* exec: of the environment as canonical JSON */
	struct digest program;	/* exec: of the file */
	struct digest manifest; /* session */
};

/* Appends the canonical object. */
must_check int action_encode(const struct action *x, struct buf *b, struct token_why *why);

/*
 * The request that chain_decide() is asked. There is none for a session: its tokens
 * become its policy, and everything it does is asked then.
 */
must_check int action_request(struct arena *a, const struct action *x, struct cap *ret_req,
			      struct token_why *why);

#endif
