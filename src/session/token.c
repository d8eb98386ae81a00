#include "session/session_priv.h"

#include <time.h>

#include "wallet/wallet.h"

#include "base/banned.h"

/*
 * A session that tokens opened. What they allow is its policy; here is only that it ends
 * with them: at the smallest of their times, or when one of them is revoked.
 */

enum { LOOK_MS = 400 };

/* SECURITY: of a token only digests and names are ever written down. */
void token_record(struct session *s)
{
	const struct session_token *t = s->opt->token;
	struct entry entry = { 0 };

	if (!t)
		return;
	record_begin(s, &entry, "token");
	record_str(&entry, "iss", t->chain->issuer->iss);
	record_str(&entry, "sid", token_id_sv(&chain_leaf(t->chain)->sid));
	record_num(&entry, "hops", (int64_t)t->chain->n);
	record_num(&entry, "exp", (int64_t)t->chain->deadline);
	entry_digest(&entry, "chain", &t->chain->digest);
	entry_digest(&entry, "token", &chain_leaf(t->chain)->ath);
	if (s->opt->policy->set.has_rt)
		entry_digest(&entry, "base", &s->opt->policy->set.rt);
	record_end(s, &entry);
}

static void end(struct session *s, const char *event, const char *why, int code)
{
	struct entry entry = { 0 };

	record_begin(s, &entry, event);
	record_end(s, &entry);
	session_end(s, why, code);
}

bool token_is_over(const struct session *s)
{
	const struct session_token *t = s->opt->token;

	return t && ((s->token_ms && clock_ms() >= s->token_ms) ||
		     (uint64_t)time(NULL) >= t->chain->deadline ||
		     wallet_revoked(t->wallet, t->chain));
}

int token_timeout(struct session *s, int least)
{
	const struct session_token *t = s->opt->token;
	const uint64_t wall = (uint64_t)time(NULL), now = clock_ms();

	if (!t || s->state != SESSION_RUNNING || s->has_exit)
		return least;
	/* Both clocks count: the one that people may set, and the one that nobody can. */
	if (!s->token_ms)
		s->token_ms = now + (t->chain->deadline > t->wallet->now
					     ? (t->chain->deadline - t->wallet->now) * 1000
					     : 0);
	if (now >= s->token_ms || wall >= t->chain->deadline) {
		end(s, "token.expired", "token's time", SESSION_TIMEOUT);
		return 0;
	}
	if (wallet_revoked(t->wallet, t->chain)) {
		end(s, "token.revoked", "the token was revoked, and everything was ended",
		    SESSION_SIGNALLED + 15);
		return 0;
	}
	if (s->token_ms - now < (uint64_t)least)
		least = (int)(s->token_ms - now);
	return least < LOOK_MS ? least : LOOK_MS;
}

struct quota_shared token_counters(const struct session *s)
{
	return s->opt->token ? s->opt->token->counters : (struct quota_shared){ 0 };
}
