/*
 * token.h - tokens on the command line: read, make, show, use
 *
 * Reads:  the command line, token files, the wallet
 * Writes: standard output and error
 * Next:   token.c (the verb, and policies of tokens), token_make.c, token_show.c
 */
#ifndef WRIT_CLI_TOKEN_H
#define WRIT_CLI_TOKEN_H

#include "cli/cli.h"
#include "launch/token.h"

/*
 * Reads a chain of tokens from the file @path, or from standard input if @path is "-". @anywhere
 * accepts a chain for another realm. Prints errors. Returns 0 or an exit code.
 */
must_check int cli_token_open(struct args *a, const struct find_where *w, const char *path,
			      bool anywhere, struct launch_token *ret);
/* Prints a refusal such as "E_WIDEN, hop 2: ..." and returns @code. */
must_check int cli_token_refused(const struct token_why *why, int code);
void cli_token_put_dropped(const struct launch_token *t, struct buf *b);
void cli_token_put_time(struct buf *b, uint64_t when, uint64_t now);

/*
 * Is @c within a capability of @s, so that @s allows all of it? Without @whole: is a capability of
 * @s within @c, so that @s allows a part of it?
 */
bool cli_token_has(const struct cap *c, const struct cap_set *s, bool whole);

int cli_token_mint_verb(struct args *a);
int cli_token_attenuate_verb(struct args *a);
int cli_token_inspect_verb(struct args *a);
int cli_token_verify_verb(struct args *a);

#endif
