/*
 * wallet.h - a realm's state about tokens: keys, trusted issuers, revocations, uses
 *
 * Reads:  the directory of the wallet, the keys of the realm
 * Writes: the directory of the wallet, the log of the realm
 * Next:   cli/ mints, derives, accepts and revokes; session/ ends a session when its token expires
 *
 * 	STATE/keys/holder/KID.pem	keys of holders, named by thumbprint
 * 	STATE/tokens/lock		held by every process that changes a file below
 * 	STATE/tokens/clock		latest time seen; detects a clock that was set back
 * 	STATE/tokens/revoked		revocations by this realm: "JTI SECONDS" lines
 * 	STATE/tokens/org.pem, trust	key and bundle of the trusted organisation
 * 	STATE/tokens/list.KID		revocation list of another issuer
 * 	STATE/tokens/spent/SID		sessions that were opened, until their token expires
 * 	STATE/tokens/counters		uses and bytes of limited capabilities; see wallet_count()
 *
 * chain.h verifies tokens; the wallet supplies the state that chain.h leaves to its caller.
 * SECURITY: a process that can write here runs as the user and could sign tokens itself. No process
 * inside a session can write here.
 */
#ifndef WRIT_TOKEN_WALLET_H
#define WRIT_TOKEN_WALLET_H

#include "reach/quota.h"
#include "token/chain.h"

enum { WALLET_LIFE = 3600, WALLET_RVK = 300 };

/* Fingerprint of the wallet's files, to detect changes. */
struct wallet_stamp {
	uint64_t sum;
	int64_t newest; /* latest change of any of the files, in seconds since 1970 */
};

struct wallet {
	struct arena *a;
	struct sv realm, state;
	const char *dir, *keys, *log;
	uint64_t now;	/* time when the wallet was opened */
	uint64_t floor; /* latest time that an earlier use of the wallet stored */
	struct trust trust;
	const struct rvk *lists;
	size_t lists_n;
	/* this realm's own issuer; NULL: the realm has no issuer key yet */
	const struct trust_issuer *self;
	struct wallet_stamp stamp;
	struct arena reloaded; /* holds data read after wallet_open() */
};

/* Frees the data that was read after wallet_open(); all other data belongs to the arena. */
void wallet_close(struct wallet *w);

/* Opens the wallet of @realm. With @make the realm's own key is created if missing. */
must_check int wallet_open(struct arena *a, struct sv state, struct sv realm, bool make,
			   struct wallet *ret, struct writ_err *err);

/*
 * Verifies a chain without a proof: steps 1 to 7 of docs/protocol/tokens.md. With @anywhere a chain
 * for any realm of its issuer is accepted, which is enough for deriving. Refuses with TOKEN_E_TIME
 * if the clock was set back.
 */
must_check int wallet_chain(const struct wallet *w, struct sv tokens, bool anywhere,
			    struct chain *ret, struct token_why *why);

/* Verifies a chain with its proof of possession, for this realm. */
must_check int wallet_present(const struct wallet *w, struct sv presentation, struct chain *ret,
			      struct token_why *why);

/*
 * Checks again whether chain @c is valid @now: not revoked, its issuer trusted, a revocation list
 * fresh enough. The check is cheap if no file changed.
 * SECURITY: refuses if the state cannot be read.
 */
must_check int wallet_recheck(struct wallet *w, const struct chain *c, uint64_t now,
			      struct token_why *why);

/* --- keys: the caller must crypto_wipe() each pair --- */

must_check int wallet_issuer(const struct wallet *w, struct key_pair *ret, struct writ_err *err);
/* Makes a key for a new holder. wallet_sweep() removes the key file a day after @exp. */
must_check int wallet_holder_new(const struct wallet *w, uint64_t exp, struct key_pair *ret,
				 struct writ_err *err);
must_check int wallet_holder(const struct wallet *w, const struct jws_kid *kid,
			     struct key_pair *ret, struct writ_err *err);
/* Removes a holder's key that is no longer needed. */
void wallet_holder_remove(const struct wallet *w, const struct jws_kid *kid);
/* Makes a version 7 UUID for a token or session. */
must_check int wallet_new_id(const struct wallet *w, struct token_id *ret, struct writ_err *err);

/* --- wallet_trust.c --- */

must_check int wallet_revoke(const struct wallet *w, const struct token_id *jti,
			     struct writ_err *err);
/* Checks whether a recent entry of the realm's log mentions a token with the id @jti. */
bool wallet_has_logged(const struct wallet *w, const struct token_id *jti);
/* Appends this realm's revocation list, signed with its issuer key for other realms. */
must_check int wallet_sign_list(const struct wallet *w, struct buf *b, struct token_why *why);

/* Returns this realm's revocations as a list that was issued just now, and so is fresh. */
must_check int wallet_own_list(const struct wallet *w, struct arena *a, struct rvk *ret,
			       struct writ_err *err);

/*
 * Imports a trust bundle of @org (NULL: of the organisation imported before) or a revocation list
 * of a trusted issuer. *@ret_what describes the imported text for people. If why->code is
 * TOKEN_E_NONE after a failure, @err has the reason.
 */
must_check int wallet_import(const struct wallet *w, struct sv text, const struct sign_public *org,
			     const char **ret_what, struct token_why *why, struct writ_err *err);
must_check int wallet_load_trust(struct wallet *w, struct writ_err *err);
must_check int wallet_load_lists(const struct wallet *w, struct arena *a, const struct rvk **ret,
				 size_t *ret_n, struct writ_err *err);

/* --- wallet_spend.c --- */

/*
 * An entry for the realm's log. Members of this struct that are 0, NULL or empty are left out of
 * the entry.
 */
struct wallet_note {
	const char *event;
	struct digest token; /* digest of a token's text */
	struct digest key;   /* digest of the token's signing input, which identifies the spend */
	struct sv iss, jti, sid, session;
	uint64_t hops, exp;
};
must_check int wallet_log(const struct wallet *w, const struct wallet_note *v, size_t n,
			  struct writ_err *err);

/*
 * A leaf token opens its session once, in three steps. wallet_claim() takes the token exclusively
 * and syncs the claim to disk (TOKEN_E_REPLAY, TOKEN_E_LOG). wallet_spend() records the token in
 * the log, also synced, when the first program is about to run (TOKEN_E_LOG). wallet_unclaim()
 * returns the token if no program ran. A process that dies in between leaves the token claimed,
 * which is the safe side.
 */
must_check int wallet_claim(const struct wallet *w, const struct chain *c, struct token_why *why);
must_check int wallet_spend(const struct wallet *w, const struct chain *c, const char *session,
			    struct token_why *why);
must_check int wallet_unclaim(const struct wallet *w, const struct chain *c, const char *session,
			      bool spent, struct writ_err *err);

/* Stores the time at which the wallet was opened, so that a clock set back later is detected. */
must_check int wallet_save_clock(const struct wallet *w, struct writ_err *err);

/* --- wallet_count.c --- */

/* A group of counters: the counters of one token, or of a session with its agents. */
struct wallet_level {
	struct digest key;
	/* capabilities; only those with a count or a maximum are counted */
	const struct cap_entry *caps;
	size_t n;
	const uint64_t *limits; /* array of LIMIT_COUNT limits; requests, up and down are counted */
	uint64_t exp;
};
struct wallet_level wallet_level_of(const struct token *t);

/*
 * Maps the counters of the groups @v. @set is the session's set; each counted capability of the
 * groups must be one of its prices. *@ret_fd refers to the counter file. *@ret and *@ret_fd are
 * untouched if no group counts anything.
 */
must_check int wallet_count(const struct wallet *w, const struct wallet_level *v, size_t n,
			    const struct cap_set *set, struct quota_shared *ret, int *ret_fd,
			    struct writ_err *err);
/* Like wallet_count(), in the file @fd of the caller, which no other process changes meanwhile. */
must_check int wallet_count_in(struct arena *a, int fd, const struct wallet_level *v, size_t n,
			       const struct cap_set *set, uint64_t now, struct quota_shared *ret,
			       struct writ_err *err);

struct wallet_use {
	uint64_t uses, up, down;
};
/* Returns the recorded use of capability @c of token @t; false if the capability is not counted. */
bool wallet_used(const struct wallet *w, const struct token *t, const struct cap *c,
		 struct wallet_use *ret);

/*
 * Returns the recorded use of the limits of token @t on requests and bytes; false if @t has no such
 * limits.
 */
bool wallet_used_limits(const struct wallet *w, const struct token *t, struct wallet_use *ret);

/* Takes the lock of the wallet until the descriptor is closed. */
must_check int wallet_lock(const struct wallet *w, int *ret_fd, struct writ_err *err);
const char *wallet_path(const struct wallet *w, struct arena *a, const char *name);
/*
 * Reads the file @name of the wallet into @a. Returns 1, or 0 and an empty *@ret if there is no
 * such file.
 */
must_check int wallet_read(const struct wallet *w, struct arena *a, const char *name, size_t max,
			   struct sv *ret, struct writ_err *err);
must_check int wallet_write(const struct wallet *w, const char *name, struct sv text,
			    struct writ_err *err);
/*
 * Removes the files in @dir whose tokens expired more than @grace seconds ago. The mtime of each
 * file is the expiry of its token.
 */
void wallet_sweep(const struct wallet *w, const char *dir, uint64_t grace);

#endif
