/*
 * sha256.h - SHA-256 with the processor's SHA instructions
 *
 * Reads:  bytes
 * Writes: nothing
 * Next:   crypto/digest.c
 *
 * libsodium 1.0.18 does not use these instructions and takes five times as long (bench/micro.c:
 * 12.3 us instead of 2.4 us for 4 KiB). A start of `writ run -- true` hashes 1,284 blocks, which
 * costs the supervisor 4 to 5 % more processor time with libsodium (docs/benchmarks.md). Delete
 * this code once libsodium catches up.
 */
#ifndef WRIT_CRYPTO_SHA256_H
#define WRIT_CRYPTO_SHA256_H

#include "base/id.h"
#include "base/sv.h"

/*
 * Does this processor have SHA instructions, as far as the C library can say? If not, the caller
 * must use libsodium.
 */
must_check bool sha256_is_here(void);
/* Returns the SHA-256 digest of @parts, concatenated. Call only if sha256_is_here(). */
struct digest sha256_parts(const struct sv *parts, size_t n);

#endif
