/*
 * tokens.h - sessions that tokens have opened
 *
 * Reads:  the wallet
 * Writes: the wallet, shared counters
 * Next:   token/ verifies; delegate.c derives tokens for agents
 *
 * A token names one session by an id (sid). The holder of the token proves that it wants to run
 * this command under this policy and plan. Then the supervisor claims the session of the token,
 * spends it when the first program is about to run, and gives it back if no program ran. A session
 * ends when its token expires or is revoked.
 */
#ifndef WRIT_PARTS_TOKENS_H
#define WRIT_PARTS_TOKENS_H

#include "loop/loop.h"

struct token_id;
struct wallet_level;

extern const struct session_initial tokens_initial;
must_check int tokens_start(struct session *s, struct writ_err *err);
int tokens_deadline(struct session *s, int least);
void tokens_clear(struct session *s);

void tokens_record(struct session *s);
must_check bool tokens_are_over(struct session *s);
/* Spends the session of the token, before the first program is released. */
must_check int tokens_spend(struct session *s, struct writ_err *err);
void tokens_session_name(const struct token_id *sid, char ret_id[static SESSION_ID + 1]);

/* meter.c: opens the counters that several sessions share. */
must_check int meter_start(struct session *s, struct writ_err *err);
/* Returns the level (key and limits of the counters) that agents of @s share with @s. */
struct wallet_level meter_level(const struct session *s);
const struct quota_shared *meter_shared(const struct session *s);
int meter_fd(const struct session *s); /* descriptor of the shared counters; -1: none are shared */

#endif
