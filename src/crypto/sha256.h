/*
 * sha256.h - SHA-256 by the processor's own instructions, where it has them
 *
 * Reads:  bytes
 * Writes: nothing
 * Next:   crypto/digest.c
 */
#ifndef WRIT_CRYPTO_SHA256_H
#define WRIT_CRYPTO_SHA256_H

#include "base/id.h"
#include "base/sv.h"

/* False: this processor has none, or nobody knows; libsodium does it then. */
must_check bool sha256_is_here(void);
/* Of all parts, one after another. Only where sha256_is_here(). */
struct digest sha256_parts(const struct sv *parts, size_t n);

#endif
