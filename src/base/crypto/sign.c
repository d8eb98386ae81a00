#include "crypto/crypto.h"

#include <sodium.h>

#include "base/banned.h"

_Static_assert(sizeof(struct sign_public) == crypto_sign_ed25519_PUBLICKEYBYTES, "public key");
_Static_assert(sizeof(struct sign_secret) == crypto_sign_ed25519_SECRETKEYBYTES, "secret key");
_Static_assert(sizeof(struct signature) == crypto_sign_ed25519_BYTES, "signature");

/* The field prime 2^255 - 19 and the order of the base point, least significant byte first. */
static const uint8_t field_prime[32] = {
	0xed, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
};
static const uint8_t group_order[32] = {
	0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
	0xa2, 0xde, 0xf9, 0xde, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10,
};

/*
 * Is @a less than @b, as numbers with the least significant byte first? The values are public, so
 * the early exit leaks nothing through its timing.
 */
static bool less_than(const uint8_t a[static 32], const uint8_t b[static 32])
{
	for (size_t i = 32; i-- > 0;)
		if (a[i] != b[i])
			return a[i] < b[i];
	return false;
}

static bool y_is_canonical(const struct sign_public *pub)
{
	struct sign_public y = *pub;

	y.b[31] &= 0x7f; /* clear the top bit, which is the sign of x */
	return less_than(y.b, field_prime);
}

void sign_keypair(const uint8_t seed[static 32], struct sign_public *ret_pub,
		  struct sign_secret *ret_sec)
{
	(void)crypto_sign_ed25519_seed_keypair(ret_pub->b, ret_sec->b, seed);
}

struct signature sign_bytes(const struct sign_secret *sec, struct sv bytes)
{
	struct signature sig;

	(void)crypto_sign_ed25519_detached(sig.b, NULL, (const unsigned char *)bytes.p, bytes.n,
					   sec->b);
	return sig;
}

/*
 * SECURITY: with a small-order key, one signature is valid for many messages. A non-canonical
 * encoding is a second spelling of the same key and would bypass a list of revoked keys.
 */
int sign_public_check(const struct sign_public *pub, struct writ_err *err)
{
	if (!y_is_canonical(pub))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "public key is not in canonical form");
	if (crypto_core_ed25519_is_valid_point(pub->b) != 1)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "public key is not a point of the group");
	return 0;
}

int sign_verify(const struct sign_public *pub, struct sv bytes, const struct signature *sig,
		struct writ_err *err)
{
	const int r = sign_public_check(pub, err);

	return r < 0 ? r : sign_verify_known(pub, bytes, sig, err);
}

int sign_verify_known(const struct sign_public *pub, struct sv bytes, const struct signature *sig,
		      struct writ_err *err)
{
	/*
	 * A signature whose second half is not below the group order is a second spelling of
	 * another signature. libsodium refuses it too, unless built with ED25519_COMPAT.
	 */
	if (!less_than(sig->b + 32, group_order))
		return writ_fail(err, WRIT_E_DENIED, 0, "signature is not in canonical form");
	if (crypto_sign_ed25519_verify_detached(sig->b, (const unsigned char *)bytes.p, bytes.n,
						pub->b) != 0)
		return writ_fail(err, WRIT_E_DENIED, 0, "signature does not fit");
	return 0;
}
