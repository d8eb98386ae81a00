/*
 * why.h - why a token was refused: a code for programs, a sentence for people
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   every file of this room; whoever records or prints a refusal
 *
 * Functions of this room return 0 or a negative enum writ_code and take a
 * struct token_why last, never NULL; on success it says nothing. A refusal is
 * WRIT_E_DENIED with a code; with TOKEN_E_NONE something of ours failed (memory)
 * and nothing may be concluded about the token, except that it is not accepted.
 */
#ifndef WRIT_TOKEN_WHY_H
#define WRIT_TOKEN_WHY_H

#include "base/err.h"

/* In the order of verification, as far as there is one; docs/protocol/tokens.md. */
enum token_code {
	TOKEN_E_NONE = 0,
	TOKEN_E_SIZE,
	TOKEN_E_FORMAT,
	TOKEN_E_NONCANON,
	TOKEN_E_TYP,
	TOKEN_E_ALG,
	TOKEN_E_SIG,
	TOKEN_E_SCHEMA,
	TOKEN_E_CAP_SYNTAX,
	TOKEN_E_ROOT,
	TOKEN_E_CEILING,
	TOKEN_E_LINK_ISS,
	TOKEN_E_LINK_HASH,
	TOKEN_E_DEPTH,
	TOKEN_E_TIME,
	TOKEN_E_AUD,
	TOKEN_E_SUB,
	TOKEN_E_WIDEN,
	TOKEN_E_REVOKED,
	TOKEN_E_RVK_STALE,
	TOKEN_E_POP,
	/* From here on the caller knows what it takes: nonces, approvals, counters, the log. */
	TOKEN_E_NONCE,
	TOKEN_E_REPLAY,
	TOKEN_E_ACTH,
	TOKEN_E_NOCAP,
	TOKEN_E_APPROVAL,
	TOKEN_E_COUNT,
	TOKEN_E_RATE,
	TOKEN_E_LIMIT,
	TOKEN_E_LOG,
	/* keep last */
	TOKEN_CODE_COUNT
};

/* Which part of a presentation: a token by its index from 0, or one of these. */
enum { TOKEN_HOP_NONE = -2, TOKEN_HOP_CEILING = -1, TOKEN_HOP_PROOF = 100 };

struct token_why {
	enum token_code code;
	int hop;
	struct writ_err err; /* .what says what was found */
};

const char *token_code_name(enum token_code code); /* "E_SIZE" */
const char *token_code_says(enum token_code code); /* "larger than a token may be" */

/* Fill *@why, leaving its hop alone, and give WRIT_E_DENIED or WRIT_E_NOMEM. */
printf_like(3, 4)
	must_check int token_no(struct token_why *why, enum token_code code, const char *fmt, ...);
must_check int token_nomem(struct token_why *why);

#endif
