#include "parts/tokens_priv.h"

#include <time.h>

#include "parts/record.h"
#include "token/wallet.h"

#include "base/banned.h"

/*
 * A session that tokens opened. The tokens' capabilities are the policy of the session; this file
 * only ends the session with its tokens: when the first of them expires, or when one of them is
 * revoked.
 */

enum { LOOK_MS = 400 };

const struct session_initial tokens_initial = SESSION_INITIAL(struct tokens, .shared_fd = -1);

void tokens_clear(struct session *s)
{
	tokens_close(s);
	meter_close(s);
}

/* SECURITY: the record receives only digests and names of a token, never its text. */
void tokens_record(struct session *s)
{
	const struct session_token *t = s->opt->token;
	struct entry entry;

	if (!t)
		return;
	entry = record_begin("token");
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
	struct entry entry = record_begin(event);

	record_end(s, &entry);
	session_end(s, why, code);
}

/*
 * Ends the session because its token is no longer valid; revocation is by far the commonest reason.
 */
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

/*
 * Returns whether the token has expired by either clock: the wall clock, which people may set, or
 * the boot clock, which nobody can set.
 */
static bool is_late(const struct session *s)
{
	return (tokens_of(s)->token_ms && clock_boot_ms() >= tokens_of(s)->token_ms) ||
	       (uint64_t)time(NULL) >= s->opt->token->chain->deadline;
}

/* Is the token still valid? Checks the wallet every LOOK_MS, and returns true in between. */
static bool is_held(struct session *s, struct token_why *ret)
{
	const struct session_token *t = s->opt->token;
	const uint64_t wall = (uint64_t)time(NULL), now = clock_boot_ms();
	const uint64_t at =
		t->wallet->now +
		(tokens_of(s)->token_at_ms ? now - tokens_of(s)->token_at_ms : 0) / 1000;

	if (now < tokens_of(s)->token_look_ms)
		return true;
	tokens_of(s)->token_look_ms = now + LOOK_MS;
	return wallet_recheck(t->wallet, t->chain, wall > at ? wall : at, ret) == 0;
}

bool tokens_are_over(struct session *s)
{
	struct token_why why = { 0 };

	return s->opt->token && (is_late(s) || !is_held(s, &why));
}

int tokens_deadline(struct session *s, int least)
{
	const struct session_token *t = s->opt->token;
	const uint64_t now = clock_boot_ms();
	struct token_why why = { 0 };

	if (!t || session_phase(s) != SESSION_RUNNING || session_status(s)->has_exit)
		return least;
	if (!tokens_of(s)->token_ms) {
		tokens_of(s)->token_at_ms = now;
		tokens_of(s)->token_ms =
			now + (t->chain->deadline > t->wallet->now
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
	if (tokens_of(s)->token_ms - now < (uint64_t)least)
		least = (int)(tokens_of(s)->token_ms - now);
	return least < LOOK_MS ? least : LOOK_MS;
}
