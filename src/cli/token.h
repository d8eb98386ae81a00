/*
 * token.h - what the verbs share that make, show and use tokens
 *
 * Reads:  cli/cli.h, the wallet
 * Writes: standard output and error
 * Next:   token.c (the verb, and policies of tokens), token_make.c, token_show.c
 */
#ifndef WRIT_CLI_TOKEN_H
#define WRIT_CLI_TOKEN_H

#include "cli/cli.h"
#include "session/session.h"
#include "wallet/wallet.h"

/* A chain that was verified, and what it was verified with. */
struct cli_token {
	struct wallet wallet;
	struct chain chain;
	char *text; /* until it was used: then nothing of it is left */
	size_t text_n;
};

static inline struct sv token_sv(const struct cli_token *t)
{
	return (struct sv){ t->text, t->text_n };
}

/* A chain from the file @path, or standard input. What is wrong is said. An exit code. */
must_check int token_read(struct args *a, const char *path, char **ret, size_t *ret_n);
must_check int token_open(struct args *a, const struct find_where *w, const char *path,
			  bool anywhere, struct cli_token *ret);
/* "E_WIDEN, hop 2: ..."; a refusal ends with @code. */
must_check int token_refused(const struct token_why *why, int code);
void token_put_dropped(const struct cli_token *t, struct buf *b);
void token_put_time(struct buf *b, uint64_t when, uint64_t now);

int token_mint_verb(struct args *a);
int token_attenuate_verb(struct args *a);
int token_inspect_verb(struct args *a);
int token_verify_verb(struct args *a);

#endif
