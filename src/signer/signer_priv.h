/*
 * signer_priv.h - what the files of the program share
 *
 * Reads:  signer/signer.h
 * Writes: nothing
 * Next:   serve.c
 */
#ifndef WRIT_SIGNER_SIGNER_PRIV_H
#define WRIT_SIGNER_SIGNER_PRIV_H

#include "attest/prove.h"
#include "keys/keys.h"
#include "signer/signer.h"

/* --- p256.c: the only caller of OpenSSL here --- */

struct p256; /* a private key */

/* Before anything is confined: what the library does once. */
must_check int p256_start(struct writ_err *err);
/* attest.pem in @dir; made if there is none. */
must_check int p256_load(int dir, struct p256 **ret, struct writ_err *err);
void p256_free(struct p256 *k); /* wipes it */
must_check int p256_public(const struct p256 *k, struct attest_key *ret, struct writ_err *err);
must_check int p256_sign(const struct p256 *k, struct sv bytes, struct buf *sig,
			 struct writ_err *err);
must_check int p256_verify(const struct attest_key *key, struct sv bytes, struct sv sig,
			   struct writ_err *err);

/* --- hold.c: the log of others --- */

/* A realm below the current directory, which is the caller's own place. */
struct held {
	struct arena *a;
	struct sv realm, id;
	char path[3][ATTEST_ID_MAX + 16]; /* log, keys, sessions */
	struct tree_frontier tree;
	bool durable;
	bool over; /* its end is in the log */
};

enum { HELD_LOG, HELD_KEYS, HELD_SESSIONS };

void held_paths(struct held *h);
const char *held_origin(const struct held *h);
must_check int held_key(const struct held *h, const char *origin, struct key_pair *pair,
			struct note_key *ret, struct writ_err *err);
must_check int held_sign(const struct held *h, struct realm *log, bool sync, struct writ_err *err);

must_check int hold_session(int fd, struct writ_err *err);
must_check int hold_attest(int fd, struct writ_err *err);

/* --- lend.c: the caller's log, to be read; what witnesses said of it, to be kept --- */

must_check int lend_log(int fd, struct writ_err *err);

#endif
