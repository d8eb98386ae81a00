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

/* What ends it, on record and for people; E_REVOKED is by far the commonest. */
static void end_refused(struct session *s, const struct token_why *why)
{
	const char *text;

	if (why->code == TOKEN_E_REVOKED) {
		end(s, "token.revoked", "the token was revoked, and everything was ended",
		    SESSION_SIGNALLED + 15);
		return;
	}
	text = arena_fmt(s->a,
			 "the token does not count any more (%s: %s), and everything was ended",
			 token_code_name(why->code), why->err.what);
	end(s, why->code == TOKEN_E_RVK_STALE ? "token.stale" : "token.untrusted",
	    text ? text : "the token does not count any more", SESSION_SIGNALLED + 15);
}

/* Both clocks count: the one that people may set, and the one that nobody can. */
static bool is_late(const struct session *s)
{
	return (s->token_ms && clock_ms() >= s->token_ms) ||
	       (uint64_t)time(NULL) >= s->opt->token->chain->deadline;
}

/* Whether it still counts, as far as it was looked at lately. */
static bool is_held(struct session *s, struct token_why *ret)
{
	const struct session_token *t = s->opt->token;
	const uint64_t wall = (uint64_t)time(NULL), now = clock_ms();
	const uint64_t at = t->wallet->now + (s->token_at_ms ? now - s->token_at_ms : 0) / 1000;

	if (now < s->token_look_ms)
		return true;
	s->token_look_ms = now + LOOK_MS;
	return wallet_holds(t->wallet, t->chain, wall > at ? wall : at, ret) == 0;
}

bool token_is_over(struct session *s)
{
	struct token_why why = { 0 };

	return s->opt->token && (is_late(s) || !is_held(s, &why));
}

int token_timeout(struct session *s, int least)
{
	const struct session_token *t = s->opt->token;
	const uint64_t now = clock_ms();
	struct token_why why = { 0 };

	if (!t || s->state != SESSION_RUNNING || s->has_exit)
		return least;
	if (!s->token_ms) {
		s->token_at_ms = now;
		s->token_ms = now + (t->chain->deadline > t->wallet->now
					     ? (t->chain->deadline - t->wallet->now) * 1000
					     : 0);
	}
	if (is_late(s)) {
		end(s, "token.expired", "token's time", SESSION_TIMEOUT);
		return 0;
	}
	if (!is_held(s, &why)) {
		end_refused(s, &why);
		return 0;
	}
	if (s->token_ms - now < (uint64_t)least)
		least = (int)(s->token_ms - now);
	return least < LOOK_MS ? least : LOOK_MS;
}
