/*
 * wallet.h - what a realm knows about tokens: keys, whom it trusts, what was revoked or used
 *
 * Reads:  its directory, the keys of the realm
 * Writes: its directory, the log of the realm
 * Next:   cli/ mints, derives, accepts and revokes; session/ ends when its token does
 *
 *	STATE/keys/holder/KID.pem	keys of holders, by their thumbprint
 *	STATE/tokens/lock		whoever changes anything below has it
 *	STATE/tokens/clock		the latest time that was seen
 *	STATE/tokens/revoked		what this realm has revoked: "JTI SECONDS" lines
 *	STATE/tokens/org.pem, trust	whose tokens count besides our own
 *	STATE/tokens/list.KID		what another issuer has revoked
 *	STATE/tokens/spent/SID		sessions that were opened, until their token ends
 *	STATE/tokens/counters		uses and bytes of what is counted; wallet/count.h
 *
 * token/ decides; here is what it calls the caller's part. Whoever can write here could
 * as well sign tokens: the same user. Nothing inside a session can.
 */
#ifndef WRIT_WALLET_WALLET_H
#define WRIT_WALLET_WALLET_H

#include "reach/quota.h"
#include "token/action.h"
#include "token/chain.h"

enum { WALLET_LIFE = 3600, WALLET_RVK = 300 };

/* What its files look like: has anything changed since? */
struct wallet_stamp {
	uint64_t sum;
	int64_t newest; /* when the last of them changed, in seconds */
};

struct wallet {
	struct arena *a;
	struct sv realm, state;
	const char *dir, *keys, *log;
	uint64_t now;	/* when it was opened */
	uint64_t floor; /* the latest time that was seen before */
	struct trust trust;
	const struct rvk *lists;
	size_t lists_n;
	const struct trust_issuer *self; /* NULL: there is no key yet */
	struct wallet_stamp stamp;
	struct arena news; /* what was read again */
};

/* What was read again; the rest is in the arena it was opened with. */
void wallet_close(struct wallet *w);

/* @make: with the realm's own key, if there is none yet. */
must_check int wallet_open(struct arena *a, struct sv state, struct sv realm, bool make,
			   struct wallet *ret, struct writ_err *err);

/*
 * Verifies a chain without a proof: step 1 to 7. @anywhere: for any realm of its issuer,
 * which is enough to derive from it. TOKEN_E_TIME if the clock went back.
 */
must_check int wallet_chain(const struct wallet *w, struct sv tokens, bool anywhere,
			    struct chain *ret, struct token_why *why);

/* The same with a proof, in this realm. */
must_check int wallet_present(const struct wallet *w, struct sv presentation, struct chain *ret,
			      struct token_why *why);

/*
 * Is @c still good @now: not revoked, its issuer trusted and heard of lately? Cheap if no
 * file has changed. SECURITY: no, if that cannot be found out.
 */
must_check int wallet_holds(struct wallet *w, const struct chain *c, uint64_t now,
			    struct token_why *why);

/* --- keys.c: crypto_wipe() pairs when done --- */

must_check int wallet_issuer(const struct wallet *w, struct jws_pair *ret, struct writ_err *err);
/* A new holder; its key may go after @exp. */
must_check int wallet_holder_new(const struct wallet *w, uint64_t exp, struct jws_pair *ret,
				 struct writ_err *err);
must_check int wallet_holder(const struct wallet *w, const struct jws_kid *kid,
			     struct jws_pair *ret, struct writ_err *err);
/* Nobody needs that key any more. */
void wallet_holder_end(const struct wallet *w, const struct jws_kid *kid);
/* A version 7 UUID. */
must_check int wallet_id(const struct wallet *w, struct token_id *ret, struct writ_err *err);

/* --- revoke.c, trust.c --- */

must_check int wallet_revoke(const struct wallet *w, const struct token_id *jti,
			     struct writ_err *err);
/* Does the realm's log have a token of that id? */
bool wallet_knows(const struct wallet *w, const struct token_id *jti);
/* Our list as others read it. */
must_check int wallet_list(const struct wallet *w, struct buf *b, struct token_why *why);

/* The revoked of this realm, in the form of a list that is never old. */
must_check int wallet_own_list(const struct wallet *w, struct arena *a, struct rvk *ret,
			       struct writ_err *err);

/*
 * Takes a bundle of @org, or with NULL of the organisation that was taken before, or a list
 * of an issuer that is trusted. *@ret_what says what came, for people. If TOKEN_E_NONE,
 * @err says why not.
 */
must_check int wallet_trust(const struct wallet *w, struct sv text, const struct sign_public *org,
			    const char **ret_what, struct token_why *why, struct writ_err *err);
must_check int wallet_load_trust(struct wallet *w, struct writ_err *err);
must_check int wallet_load_lists(const struct wallet *w, struct arena *a, const struct rvk **ret,
				 size_t *ret_n, struct writ_err *err);

/* --- spend.c --- */

/* A line for the realm's log. What is 0, NULL or empty is left out. */
struct wallet_note {
	const char *event;
	struct digest token; /* of a token's text */
	struct digest key;   /* of its signing input: what is spent */
	struct sv iss, jti, sid, session;
	uint64_t hops, exp;
};
must_check int wallet_log(const struct wallet *w, const struct wallet_note *v, size_t n,
			  struct writ_err *err);

/*
 * The session of the leaf, in three steps. First it is ours and nobody else's: on the disk
 * before this returns (TOKEN_E_REPLAY, TOKEN_E_LOG). When all is ready and the first program
 * is about to run, it is spent: in the log, on the disk as well (TOKEN_E_LOG). If nothing
 * ran, it is given back. Who dies in between keeps it.
 */
must_check int wallet_claim(const struct wallet *w, const struct chain *c, struct token_why *why);
must_check int wallet_spend(const struct wallet *w, const struct chain *c, const char *session,
			    struct token_why *why);
must_check int wallet_give_back(const struct wallet *w, const struct chain *c, const char *session,
				bool spent, struct writ_err *err);

/* Keeps the time, so that it cannot go back. */
must_check int wallet_tick(const struct wallet *w, struct writ_err *err);

/* --- count.c --- */

/* What is counted together: a token, or a session with its agents. */
struct wallet_level {
	struct digest key;
	const struct cap_entry *caps; /* those with a count or a maximum */
	size_t n;
	const uint64_t *limits; /* LIMIT_COUNT of them: requests, up and down */
	uint64_t exp;
};
struct wallet_level wallet_level_of(const struct token *t);

/*
 * Counters for all that the levels count, by the prices of @set, which has all of theirs.
 * The descriptor is of the file that they are in; both are untouched if nothing is counted.
 */
must_check int wallet_count(const struct wallet *w, const struct wallet_level *v, size_t n,
			    const struct cap_set *set, struct quota_shared *ret, int *ret_fd,
			    struct writ_err *err);
/* The same in a file of the caller's, which nobody else changes meanwhile. */
must_check int wallet_count_in(struct arena *a, int fd, const struct wallet_level *v, size_t n,
			       const struct cap_set *set, uint64_t now, struct quota_shared *ret,
			       struct writ_err *err);

struct wallet_use {
	uint64_t uses, up, down;
};
/* What was used of @c of @t so far; false: nobody counts it. */
bool wallet_used(const struct wallet *w, const struct token *t, const struct cap *c,
		 struct wallet_use *ret);

/* The same of its limits on requests and bytes. */
bool wallet_used_limits(const struct wallet *w, const struct token *t, struct wallet_use *ret);

/* The lock of everything here, until it is closed. */
must_check int wallet_lock(const struct wallet *w, int *ret_fd, struct writ_err *err);
const char *wallet_path(const struct wallet *w, struct arena *a, const char *name);

#endif
