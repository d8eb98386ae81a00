#include "crypto/crypto.h"

#include <sodium.h>

#include "crypto/sha256.h"

#include "base/banned.h"

_Static_assert(sizeof(struct digest) == crypto_hash_sha256_BYTES, "digest is SHA-256");

/* Casts a view for libsodium, which takes unsigned bytes. */
static const unsigned char *bytes_of(struct sv s)
{
	return (const unsigned char *)s.p;
}

struct digest crypto_sha256(struct sv bytes)
{
	struct digest d;

	if (sha256_is_here())
		return sha256_parts(&bytes, 1);
	(void)crypto_hash_sha256(d.b, bytes_of(bytes), bytes.n);
	return d;
}

struct digest crypto_sha256_parts(const struct sv *parts, size_t n)
{
	crypto_hash_sha256_state state;
	struct digest d;

	if (sha256_is_here())
		return sha256_parts(parts, n);
	(void)crypto_hash_sha256_init(&state);
	for (size_t i = 0; i < n; i++)
		(void)crypto_hash_sha256_update(&state, bytes_of(parts[i]), parts[i].n);
	(void)crypto_hash_sha256_final(&state, d.b);
	return d;
}

bool digest_eq(const struct digest *a, const struct digest *b)
{
	return sodium_memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

void digest_hex(const struct digest *d, struct buf *b)
{
	char hex[2 * sizeof(d->b) + 1];

	buf_str(b, sodium_bin2hex(hex, sizeof(hex), d->b, sizeof(d->b)));
}

bool digest_parse(struct sv hex, struct digest *ret_d)
{
	struct digest d;

	if (hex.n != 2 * sizeof(d.b))
		return false;
	for (size_t i = 0; i < sizeof(d.b); i++) {
		uint64_t byte;

		if (!sv_hex_to_u64(sv_sub(hex, 2 * i, 2), 2, &byte))
			return false;
		d.b[i] = (uint8_t)byte;
	}
	*ret_d = d;
	return true;
}
