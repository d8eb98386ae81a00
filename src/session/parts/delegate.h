/*
 * delegate.h - the policy and the token that an agent gets from its session
 *
 * Reads:  the policy, the token
 * Writes: a policy, a token
 * Next:   spawn.c starts the agent
 */
#ifndef WRIT_PARTS_DELEGATE_H
#define WRIT_PARTS_DELEGATE_H

#include "loop/loop.h"

struct token_id;

must_check int delegate_policy(struct session *s, const struct policy_agent *agent,
			       struct policy *ret, struct writ_err *err);
/* Derives the token of an agent. If the token is refused, @err and @ret->why have the reason. */
must_check int delegate_token(struct session *s, const struct policy_agent *agent,
			      const struct token_id *sid, struct session_token *ret,
			      struct writ_err *err);

#endif
