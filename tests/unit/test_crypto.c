#include "tap.h"

#include <sodium.h>
#include <stdlib.h>

#include "crypto/crypto.h"
#include "crypto/sha256.h"

static size_t unhex(const char *hex, uint8_t *out)
{
	size_t n = 0;

	for (; hex[2 * n]; n++) {
		const char pair[3] = { hex[2 * n], hex[2 * n + 1], 0 };

		out[n] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return n;
}

static bool digest_is(const struct digest *d, const char *hex)
{
	scoped_buf b = BUF_INIT(64);

	digest_hex(d, &b);
	return sv_eq(buf_view(&b), sv_from(hex));
}

static void test_digests(void)
{
	const char *const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
	struct digest d = crypto_sha256(SV("abc")), e = { { 7 } };

	ok(digest_is(&d, abc), "SHA-256 of abc");
	d = crypto_sha256(SV(""));
	ok(digest_is(&d, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
	   "SHA-256 of nothing");
	ok(digest_parse(sv_from(abc), &e) && digest_is(&e, abc), "hexadecimal round trip");
	d = crypto_sha256(SV("abc"));
	ok(digest_eq(&d, &e), "equal digests");
	e.b[31] ^= 1;
	ok(!digest_eq(&d, &e), "one bit makes a difference");
	ok(!digest_parse(sv_sub(sv_from(abc), 0, 63), &e), "63 digits refused");
	ok(!digest_parse(SV("BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
			 &e), "upper case refused");
	ok(!digest_parse(SV("ga7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
			 &e), "other letters refused");
	ok(!digest_eq(&d, &e), "a refused text leaves the digest alone");
}

/* Two that have nothing in common: ours, where the processor can, and libsodium's. */
static void test_two_ways(void)
{
	static uint8_t bytes[5000];
	unsigned wrong = 0, n = 0;

	if (!sha256_is_here()) {
		ok(true, "this processor does not hash by itself # SKIP");
		return;
	}
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 131 + i / 256);
	/* Every length around the ends of blocks, in three parts that end anywhere. */
	for (size_t len = 0; len < sizeof(bytes); len += len < 300 ? 1 : 97)
		for (size_t cut = 0; cut <= len && cut < 140; cut += 1 + cut / 3) {
			const size_t second = (len - cut) / 3;
			const char *p = (const char *)bytes;
			const struct sv parts[] = { { p, cut },
						    { p + cut, second },
						    { p + cut + second, len - cut - second } };
			struct digest want, got = sha256_parts(parts, ARRAY_LEN(parts));

			(void)crypto_hash_sha256(want.b, bytes, len);
			wrong += !digest_eq(&want, &got);
			n++;
		}
	ok(n > 3000 && wrong == 0, "%u texts have the same SHA-256 in two ways", n);
}

static void test_million(void)
{
	scoped_buf b = BUF_INIT(1000000);
	struct digest d;

	buf_fill(&b, 'a', 1000000);
	d = crypto_sha256(buf_view(&b));
	ok(digest_is(&d, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
	   "SHA-256 of a million letters");
}

/*
 * RFC 4231. Keys shorter than a block are padded with zeros by HMAC itself, and
 * longer ones are hashed first, so all of them fit the fixed 32 bytes.
 */
static const struct {
	const char *seed, *pub, *msg, *sig;
} ed25519[] = {
	{ "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
	  "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
	  "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
	  "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b" },
	{ "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
	  "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
	  "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
	  "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00" },
	{ "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
	  "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
	  "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
	  "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a" },
};

static void test_sign(void)
{
	struct writ_err err = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(ed25519); i++) {
		uint8_t seed[32], want[64], msg[8];
		const struct sv bytes = { (const char *)msg, unhex(ed25519[i].msg, msg) };
		struct sign_public pub, other;
		struct sign_secret sec;
		struct signature sig;

		(void)unhex(ed25519[i].seed, seed);
		(void)unhex(ed25519[i].pub, other.b);
		(void)unhex(ed25519[i].sig, want);
		sign_keypair(seed, &pub, &sec);
		ok(memcmp(pub.b, other.b, 32) == 0, "RFC 8032 test %zu: public key", i + 1);
		sig = sign_bytes(&sec, bytes);
		ok(memcmp(sig.b, want, 64) == 0, "RFC 8032 test %zu: signature", i + 1);
		ok(sign_verify(&pub, bytes, &sig, &err) == 0, "RFC 8032 test %zu: fits", i + 1);
		ok(sign_verify(&pub, SV("x"), &sig, &err) == WRIT_E_DENIED, "other bytes do not");
		sig.b[5] ^= 4;
		ok(sign_verify(&pub, bytes, &sig, &err) == WRIT_E_DENIED, "nor another R");
		crypto_wipe(&sec, sizeof(sec));
		ok(sec.b[0] == 0 && sec.b[63] == 0, "wiped");
	}
}

/* S and S + L are the same number to a careless verifier. */
static void test_second_signature(void)
{
	static const char order[] =
		"edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";
	struct writ_err err = { 0 };
	struct sign_public pub;
	struct signature sig;
	uint8_t l[32];
	unsigned carry = 0;

	(void)unhex(ed25519[1].pub, pub.b);
	(void)unhex(ed25519[1].sig, sig.b);
	(void)unhex(order, l);
	ok(sign_verify(&pub, SV("\x72"), &sig, &err) == 0, "the signature itself fits");
	for (size_t i = 0; i < 32; i++) {
		carry += (unsigned)sig.b[32 + i] + l[i];
		sig.b[32 + i] = (uint8_t)carry;
		carry >>= 8;
	}
	ok(sign_verify(&pub, SV("\x72"), &sig, &err) == WRIT_E_DENIED, "S plus L does not");
	is_str(err.what, "signature is not in canonical form", "and for this reason");
}

static void test_bad_keys(void)
{
	static const char spelling[] = "public key is not in canonical form";
	static const struct {
		const char *key, *what;
	} bad[] = {
		/* Points of order 1, 2, 4 and 8. */
		{ "0100000000000000000000000000000000000000000000000000000000000000", "order 1" },
		{ "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "order 2" },
		{ "0000000000000000000000000000000000000000000000000000000000000000", "order 4" },
		{ "0000000000000000000000000000000000000000000000000000000000000080", "order 4'" },
		{ "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", "order 8" },
		{ "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", "order 8'" },
		/* y of p, p + 1 and 2^255 - 1: second spellings. */
		{ "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "y = p" },
		{ "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "y = p+1" },
		{ "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "y = p+3" },
		{ "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "all ones" },
		/* Not on the curve. */
		{ "0200000000000000000000000000000000000000000000000000000000000000", "no point" },
	};
	struct writ_err err = { 0 };
	struct sign_public pub;
	struct signature sig = { { 0 } };

	sig.b[0] = 1; /* R neutral, S zero: fits everything under a key of order 1 */
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		(void)unhex(bad[i].key, pub.b);
		ok(sign_public_check(&pub, &err) == WRIT_E_SYNTAX, "%s refused", bad[i].what);
		ok((i >= 6 && i <= 9) == sv_is(sv_from(err.what), spelling), "%s: %s", bad[i].what,
		   err.what);
		ok(sign_verify(&pub, SV("m"), &sig, &err) == WRIT_E_SYNTAX, "%s never verifies",
		   bad[i].what);
	}
	(void)unhex(ed25519[0].pub, pub.b);
	ok(sign_public_check(&pub, &err) == 0, "a good key is not");
}

static void test_random(void)
{
	struct writ_err err = { 0 };
	uint8_t a[64] = { 0 }, b[64] = { 0 };

	ok(crypto_random(a, sizeof(a), &err) == 0 && crypto_random(b, sizeof(b), &err) == 0,
	   "random bytes");
	ok(memcmp(a, b, sizeof(a)) != 0, "are not the same twice");
	ok(crypto_random(a, 0, &err) == 0, "none are fine");
}

int main(void)
{
	struct writ_err err = { 0 };

	ok(crypto_start(&err) == 0 && crypto_start(&err) == 0, "starts, twice");
	test_digests();
	test_two_ways();
	test_million();
	test_sign();
	test_second_signature();
	test_bad_keys();
	test_random();
	return tap_done();
}
