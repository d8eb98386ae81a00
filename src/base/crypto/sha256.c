#include "crypto/sha256.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && __has_include(<sys/platform/x86.h>)
#define HAS_CODE 1
#include <immintrin.h>
#include <sys/platform/x86.h>
#else
#define HAS_CODE 0
#endif

#include "base/banned.h"

#if HAS_CODE

enum { BLOCK = 64, ROUNDS = 64, LENGTH_AT = BLOCK - 8 };

/* Round constants of FIPS 180-4, section 4.2.2. */
/* clang-format off */
_Alignas(16) static const uint32_t constants[ROUNDS] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
/* clang-format on */

/*
 * The eight state words in the order of the SHA instructions: f, e, b, a in one register and h, g,
 * d, c in the other, from the lowest element up.
 */
struct state {
	__m128i abef, cdgh;
};

#define BY_SHA __attribute__((target("sha,sse4.1,ssse3")))

BY_SHA static __m128i load(const void *p)
{
	return _mm_loadu_si128(p);
}

/*
 * Returns four words of the message schedule, computed from the sixteen words before these four
 * (oldest first).
 */
BY_SHA static __m128i schedule(__m128i w0, __m128i w1, __m128i w2, __m128i w3)
{
	const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4));

	return _mm_sha256msg2_epu32(sum, w3);
}

BY_SHA static void compress(struct state *s, const uint8_t *p, size_t blocks)
{
	const __m128i swap =
		_mm_set_epi64x((int64_t)0x0c0d0e0f08090a0b, (int64_t)0x0405060700010203);

	for (; blocks--; p += BLOCK) {
		__m128i abef = s->abef, cdgh = s->cdgh, w[4];

#pragma GCC unroll 16
		for (unsigned i = 0; i < ROUNDS / 4; i++) {
			__m128i *now = &w[i % 4], k;

			*now = i < 4 ? _mm_shuffle_epi8(load(p + (size_t)16 * i), swap)
				     : schedule(*now, w[(i + 1) % 4], w[(i + 2) % 4],
						w[(i + 3) % 4]);
			k = _mm_add_epi32(*now, load(&constants[(size_t)4 * i]));
			/*
			 * Each SHA instruction runs two rounds: the first with the lower half of k,
			 * the second with the upper half.
			 */
			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(k, 0x0e));
		}
		s->abef = _mm_add_epi32(s->abef, abef);
		s->cdgh = _mm_add_epi32(s->cdgh, cdgh);
	}
}

/* Input bytes of the hash that do not fill a block yet. */
struct rest {
	uint8_t block[BLOCK];
	size_t n;
};

static void update(struct state *s, struct rest *rest, struct sv bytes)
{
	if (bytes.n == 0)
		return;
	if (rest->n) {
		const size_t room = BLOCK - rest->n;
		const size_t n = bytes.n < room ? bytes.n : room;

		memcpy(rest->block + rest->n, bytes.p, n);
		rest->n += n;
		bytes = sv_skip(bytes, n);
		if (rest->n < BLOCK)
			return;
		compress(s, rest->block, 1);
	}
	compress(s, (const uint8_t *)bytes.p, bytes.n / BLOCK);
	rest->n = bytes.n % BLOCK;
	memcpy(rest->block, bytes.p + (bytes.n - rest->n), rest->n);
}

BY_SHA static struct digest finish(struct state *s, struct rest *rest, uint64_t bytes)
{
	const uint64_t bits = __builtin_bswap64(bytes * 8);
	uint32_t h[8];
	struct digest d;

	rest->block[rest->n++] = 0x80;
	if (rest->n > LENGTH_AT) {
		memset(rest->block + rest->n, 0, BLOCK - rest->n);
		compress(s, rest->block, 1);
		rest->n = 0;
	}
	memset(rest->block + rest->n, 0, LENGTH_AT - rest->n);
	memcpy(rest->block + LENGTH_AT, &bits, sizeof(bits));
	compress(s, rest->block, 1);
	/* After the two stores, h holds the state words in the order a, b, e, f, c, d, g, h. */
	_mm_storeu_si128((__m128i *)(void *)h, _mm_shuffle_epi32(s->abef, 0x1b));
	_mm_storeu_si128((__m128i *)(void *)(h + 4), _mm_shuffle_epi32(s->cdgh, 0x1b));
	for (size_t i = 0; i < 8; i++) {
		static const uint8_t at[8] = { 0, 1, 4, 5, 2, 3, 6, 7 };
		const uint32_t word = __builtin_bswap32(h[at[i]]);

		memcpy(d.b + 4 * i, &word, sizeof(word));
	}
	return d;
}

bool sha256_is_here(void)
{
	return CPU_FEATURE_ACTIVE(SHA) && CPU_FEATURE_ACTIVE(SSE4_1) && CPU_FEATURE_ACTIVE(SSSE3);
}

BY_SHA struct digest sha256_parts(const struct sv *parts, size_t n)
{
	/* Initial values a to h of FIPS 180-4, section 5.3.3. */
	struct state s = {
		.abef = _mm_set_epi32(0x6a09e667, (int)0xbb67ae85, 0x510e527f, (int)0x9b05688c),
		.cdgh = _mm_set_epi32(0x3c6ef372, (int)0xa54ff53a, 0x1f83d9ab, 0x5be0cd19),
	};
	struct rest rest = { .n = 0 };
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		update(&s, &rest, parts[i]);
		bytes += parts[i].n;
	}
	return finish(&s, &rest, bytes);
}

#else

bool sha256_is_here(void)
{
	return false;
}

struct digest sha256_parts(const struct sv *parts, size_t n)
{
	(void)parts, (void)n;
	abort();
}

#endif
