/*
 * crypto.h - hashes and signatures; the only caller of libsodium
 *
 * Reads:  bytes
 * Writes: nothing; random bytes come from the kernel
 * Next:   cap/ (digests), policy/ (trust pins), token/, tlog/, audit/
 */
#ifndef WRIT_CRYPTO_CRYPTO_H
#define WRIT_CRYPTO_CRYPTO_H

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "base/sv.h"

struct sign_public { uint8_t b[32]; };
struct sign_secret { uint8_t b[64]; }; /* crypto_wipe() when done */
struct signature { uint8_t b[64]; };

/* Once per process, before anything else here; safe to call again. */
must_check int crypto_start(struct writ_err *err);

struct digest crypto_sha256(struct sv bytes);
struct digest crypto_sha256_parts(const struct sv *parts, size_t n); /* of all, one after another */
struct digest crypto_hmac(const uint8_t key[static 32], struct sv bytes);
bool digest_eq(const struct digest *a, const struct digest *b); /* constant time */
void digest_hex(const struct digest *d, struct buf *b);
must_check bool digest_parse(struct sv hex, struct digest *ret_d); /* 64 lower-case digits */

/* Ed25519, RFC 8032. */
void sign_keypair(const uint8_t seed[static 32], struct sign_public *ret_pub,
		  struct sign_secret *ret_sec);
struct signature sign_bytes(const struct sign_secret *sec, struct sv bytes);

/* Refuses small-order and non-canonical keys and non-canonical signatures. */
must_check int sign_public_check(const struct sign_public *pub, struct writ_err *err);
must_check int sign_verify(const struct sign_public *pub, struct sv bytes,
			   const struct signature *sig, struct writ_err *err);
/* The same of a key that was checked before, or that sign_keypair() made. */
must_check int sign_verify_known(const struct sign_public *pub, struct sv bytes,
				 const struct signature *sig, struct writ_err *err);

must_check int crypto_random(void *ret_bytes, size_t n, struct writ_err *err);
void crypto_wipe(void *bytes, size_t n);

#endif
