/*
 * refusal.h - why a token was refused: a code for programs, a sentence for people
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   every file of this module; callers that record or print a refusal
 *
 * Functions of this module return 0 or a negative enum writ_code. Their last argument is a struct
 * token_why, never NULL, which is meaningful on failure only. A refusal is WRIT_E_DENIED with a
 * code. TOKEN_E_NONE with a failure means that this machine failed (memory): the token is not
 * accepted, but nothing is known about it.
 */
#ifndef WRIT_TOKEN_REFUSAL_H
#define WRIT_TOKEN_REFUSAL_H

#include "base/err.h"

/*
 * Codes of refusals, in the order of verification where an order exists; see
 * docs/protocol/tokens.md.
 */
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
	/*
	 * The caller decides about the following codes, which need state: nonces, the log.
	 */
	TOKEN_E_NONCE,
	TOKEN_E_REPLAY,
	TOKEN_E_ACTH,
	TOKEN_E_LOG,
	/* number of values; keep last */
	TOKEN_CODE_COUNT
};

/* Part of a presentation that was refused: the index of a token, from 0, or one of these values. */
enum { TOKEN_HOP_NONE = -2, TOKEN_HOP_PROOF = 100 };

struct token_why {
	enum token_code code;
	int hop;
	struct writ_err err; /* .what describes why the token was refused */
};

/* name of the code for programs, such as "E_SIZE" */
const char *token_code_name(enum token_code code);
const char *token_code_text(enum token_code code); /* explanation of the code for people */

/* Fill *@why, except its hop, and return WRIT_E_DENIED or WRIT_E_NOMEM. */
printf_like(3, 4) must_check int token_refuse(struct token_why *why, enum token_code code,
					      const char *fmt, ...);
must_check int token_nomem(struct token_why *why);

#endif
