/*
 * crypto.h - hashes, signatures and random bytes
 *
 * Theory of operation
 *
 * The crypto module is the only caller of libsodium, so that the choice of algorithms and the
 * strictness of checks are in one place: SHA-256 and Ed25519. The functions are pure, apart from
 * crypto_start(), crypto_wipe() and crypto_random(), which asks the kernel.
 *
 * Ed25519 leaves implementations freedom that signatures in a log must not have. This
 * module accepts only canonical public keys and signatures and no small-order keys; see
 * sign_public_check() for the attacks that this prevents.
 *
 * Common mistakes
 *   - Call crypto_start() once before anything else.
 *   - sign_verify_known() skips the check of the key. Use it only for a key that this
 *     process has checked or made.
 *   - Wipe seeds and secret keys with crypto_wipe(); a plain memset() is optimised away.
 *
 * Reads:  bytes
 * Writes: nothing; random bytes come from the kernel
 * Next:   cap/ (digests), lang/ (trust pins), token/, tlog/, audit/
 */
#ifndef WRIT_CRYPTO_CRYPTO_H
#define WRIT_CRYPTO_CRYPTO_H

#include "base/buf.h"
#include "base/id.h"

struct sign_public { uint8_t b[32]; };
struct sign_secret {
	uint8_t b[64];
}; /* erase with crypto_wipe() after use */
struct signature { uint8_t b[64]; };

/*
 * Initialises libsodium. Call crypto_start() once per process before other functions of this
 * module; repeated calls are harmless.
 */
must_check int crypto_start(struct writ_err *err);

struct digest crypto_sha256(struct sv bytes);
/* Returns the digest of the concatenation of @parts. */
struct digest crypto_sha256_parts(const struct sv *parts, size_t n);
bool digest_eq(const struct digest *a, const struct digest *b); /* compares in constant time */
void digest_hex(const struct digest *d, struct buf *b);
/* Parses a digest of exactly 64 lower-case hexadecimal digits. */
must_check bool digest_parse(struct sv hex, struct digest *ret_d);

/* Ed25519 signatures, RFC 8032. */
void sign_keypair(const uint8_t seed[static 32], struct sign_public *ret_pub,
		  struct sign_secret *ret_sec);
struct signature sign_bytes(const struct sign_secret *sec, struct sv bytes);

/*
 * sign_public_check() and sign_verify() reject small-order and non-canonical keys; sign_verify()
 * also rejects non-canonical signatures.
 */
must_check int sign_public_check(const struct sign_public *pub, struct writ_err *err);
must_check int sign_verify(const struct sign_public *pub, struct sv bytes,
			   const struct signature *sig, struct writ_err *err);
/* Variant of sign_verify() for a key that was checked before or made by sign_keypair(). */
must_check int sign_verify_known(const struct sign_public *pub, struct sv bytes,
				 const struct signature *sig, struct writ_err *err);

must_check int crypto_random(void *ret_bytes, size_t n, struct writ_err *err);
void crypto_wipe(void *bytes, size_t n);

#endif
