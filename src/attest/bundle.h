/*
 * bundle.h - a statement with its signature: DSSE in a Sigstore bundle v0.3
 *
 * Reads:  the text of a bundle, public keys as PEM
 * Writes: canonical JSON
 * Next:   check.h
 *
 * The key is ECDSA P-256 with SHA-256, the signature ASN.1 DER, and there is one. Nothing
 * here can sign or verify: writ-signer does.
 */
#ifndef WRIT_ATTEST_BUNDLE_H
#define WRIT_ATTEST_BUNDLE_H

#include "attest/attest.h"

enum {
	ATTEST_SPKI = 91,    /* bytes of a P-256 key as SubjectPublicKeyInfo */
	ATTEST_SIG_MAX = 72, /* bytes of a signature */
	ATTEST_KEYS_MAX = 16,
};

struct attest_key {
	uint8_t der[ATTEST_SPKI];
	struct digest id; /* SHA-256 of them: the hint */
};

must_check int attest_key_init(struct attest_key *ret, struct sv der, struct writ_err *err);
void attest_key_print(const struct attest_key *k, struct buf *b); /* PEM */
/* All keys of a file; other text between them is skipped, a key that is none refused. */
must_check int attest_keys_parse(struct sv pem, struct attest_key ret[static ATTEST_KEYS_MAX],
				 size_t *ret_n, struct writ_err *err);

struct bundle {
	struct digest key;
	struct sv payload, sig; /* decoded */
};

/* What is signed: the pre-authentication encoding of @payload. */
void bundle_signed(struct sv payload, struct buf *b);

must_check int bundle_print(const struct bundle *u, struct buf *b, struct writ_err *err);
must_check int bundle_parse(struct arena *a, struct sv bytes, struct bundle *ret,
			    struct writ_err *err);

#endif
