/*
 * signer_priv.h - functions shared by the files of the writ-signer program
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

/* --- p256.c: the only file that calls OpenSSL --- */

struct evp_pkey_st; /* a private key of OpenSSL, which calls it EVP_PKEY */

#define scoped_p256 __attribute__((cleanup(p256_free))) struct evp_pkey_st

/* Initialises OpenSSL. Call p256_start() before confinement, because OpenSSL opens files. */
must_check int p256_start(struct writ_err *err);
/* Loads the attestation key from attest.pem in @dir; makes the key if the file is missing. */
must_check int p256_load(int dir, struct evp_pkey_st **ret, struct writ_err *err);
void p256_free(struct evp_pkey_st **k); /* wipes and frees the key */
must_check int p256_public(const struct evp_pkey_st *k, struct attest_key *ret,
			   struct writ_err *err);
must_check int p256_sign(struct evp_pkey_st *k, struct sv bytes, struct buf *sig,
			 struct writ_err *err);
must_check int p256_verify(const struct attest_key *key, struct sv bytes, struct sv sig,
			   struct writ_err *err);

/* --- session_log.c: logs that writ-signer keeps for users --- */

/*
 * A realm and one of its sessions. Its files are below the current directory, which is the calling
 * user's part of the data directory.
 */
struct held {
	struct arena *a;
	struct sv realm, id;
	char path[3][ATTEST_ID_MAX + 16]; /* paths of log, keys and sessions */
	struct tree_frontier tree;
	bool durable;
	bool over; /* the end of the session is in the realm's log */
};

enum { HELD_LOG, HELD_KEYS, HELD_SESSIONS };

void signer_held_paths(struct held *h);
must_check int signer_held_key(const struct held *h, struct key_pair *pair, struct note_key *ret,
			       struct writ_err *err);
must_check int signer_held_sign(const struct held *h, struct realm *log, bool sync,
				struct writ_err *err);

must_check int signer_serve_session(int fd, struct writ_err *err);
must_check int signer_serve_attest(int fd, struct writ_err *err);

/* --- log_access.c: send the caller a copy of its log; store cosignatures --- */

must_check int signer_send_vkey(const struct held *h, int fd, struct writ_err *err);
must_check int signer_serve_log(int fd, struct writ_err *err);

#endif
