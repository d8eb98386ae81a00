/*
 * token.h - the chain of tokens that a session is opened with
 *
 * Reads:  a file or standard input, the wallet of this realm
 * Writes: nothing
 * Next:   launch_load() makes a policy of the chain; `writ token` shows it and derives from it
 */
#ifndef WRIT_LAUNCH_TOKEN_H
#define WRIT_LAUNCH_TOKEN_H

#include "launch/launch.h"
#include "token/wallet.h"

/* A verified chain of tokens, and the wallet that verified the chain. */
struct launch_token {
	struct wallet wallet;
	struct chain chain;
	char *text; /* the encoded tokens, secret; the session wipes them after their last use */
	size_t text_n;
};

/*
 * Reads and verifies the chain of tokens in the file @path ("-" is standard input, which /dev/null
 * then replaces). @anywhere: accept tokens for other realms. If the chain is refused, @ret->end and
 * @ret->why hold the reason.
 */
must_check int launch_token_open(struct arena *a, const struct find_where *where, const char *path,
				 bool anywhere, struct launch_token *t, struct launch_result *ret,
				 struct writ_err *err);

#endif
