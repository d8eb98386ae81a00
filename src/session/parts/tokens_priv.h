/*
 * tokens_priv.h - state of tokens and shared counters
 */
#ifndef WRIT_PARTS_TOKENS_PRIV_H
#define WRIT_PARTS_TOKENS_PRIV_H

#include "parts/tokens.h"

/* State of the token's session: unused, claimed by this process, or spent on a program. */
enum token_state { TOKEN_UNUSED = 0, TOKEN_CLAIMED, TOKEN_SPENT };

struct tokens {
	uint64_t token_ms; /* boot time at which the token expires; 0: not known yet */
	/* @token_at_ms: when @token_ms was computed; @token_look_ms: next check of the wallet. */
	uint64_t token_at_ms, token_look_ms;
	enum token_state token_state;
	struct quota_shared shared; /* counters shared with other sessions; empty: none */
	int shared_fd;		    /* descriptor of the counters' memory; -1: none */
};

static inline struct tokens *tokens_of(const struct session *s)
{
	return session_state(s, &tokens_initial);
}

/* token_session.c: gives the session of the token back if no program ran. */
void tokens_close(struct session *s);
/* Implemented in meter.c. */
void meter_close(struct session *s);

#endif
