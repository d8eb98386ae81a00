/*
 * bundle.h - a statement with its signature: DSSE in a Sigstore bundle v0.3
 *
 * Reads:  the text of a bundle, public keys as PEM
 * Writes: canonical JSON
 * Next:   check.h
 *
 * A bundle has exactly one signature: ECDSA P-256 with SHA-256, ASN.1 DER. This file neither makes
 * nor verifies the signature; writ-signer does both, so that no other program links a P-256
 * library.
 */
#ifndef WRIT_ATTEST_BUNDLE_H
#define WRIT_ATTEST_BUNDLE_H

#include "attest/attest.h"

enum {
	ATTEST_SPKI = 91,    /* length of a P-256 key as SubjectPublicKeyInfo */
	ATTEST_SIG_MAX = 72, /* maximum length of a signature */
	ATTEST_KEYS_MAX = 16,
};

struct attest_key {
	uint8_t der[ATTEST_SPKI];
	struct digest id; /* SHA-256 of der; names the key in a bundle as a hint */
};

must_check int attest_key_init(struct attest_key *ret, struct sv der, struct writ_err *err);
void attest_key_print(const struct attest_key *k, struct buf *b); /* prints the public key as PEM */
/* Parses all keys of a PEM file. Text between the keys is skipped; a malformed key is an error. */
must_check int attest_keys_parse(struct sv pem, struct attest_key ret[static ATTEST_KEYS_MAX],
				 size_t *ret_n, struct writ_err *err);

/*
 * Adds @key to the file @path of keys that this user trusts, which is created if missing. Does
 * nothing if the file already has @key.
 */
must_check int attest_pin_key(const char *path, const struct attest_key *key, struct writ_err *err);

struct bundle {
	struct digest key;
	struct sv payload, sig; /* payload and signature, both decoded from base64 */
};

/* Appends the bytes that the signature covers: the DSSE pre-authentication encoding of @payload. */
void bundle_signed(struct sv payload, struct buf *b);

must_check int bundle_print(const struct bundle *u, struct buf *b, struct writ_err *err);
must_check int bundle_parse(struct arena *a, struct sv bytes, struct bundle *ret,
			    struct writ_err *err);

#endif
