#include "codec/base64.h"

#include "base/banned.h"

static const char letters[2][65] = {
	[BASE64_PADDED] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
	[BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

size_t base64_length(enum base64_form form, size_t n)
{
	static const size_t rest[] = { 0, 2, 3 };

	return n / 3 * 4 + (form == BASE64_PADDED && n % 3 ? 4 : rest[n % 3]);
}

void base64_put(enum base64_form form, struct sv bytes, char *ret)
{
	const uint8_t *p = (const uint8_t *)bytes.p;
	const char *l = letters[form];
	size_t n = bytes.n;

	for (; n >= 3; n -= 3, p += 3, ret += 4) {
		const uint32_t bits = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];

		ret[0] = l[bits >> 18];
		ret[1] = l[bits >> 12 & 63];
		ret[2] = l[bits >> 6 & 63];
		ret[3] = l[bits & 63];
	}
	if (n) {
		const uint32_t bits = (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0);

		for (size_t i = 0; i <= n; i++)
			ret[i] = l[bits >> (18 - 6 * i) & 63];
		for (size_t i = n + 1; form == BASE64_PADDED && i < 4; i++)
			ret[i] = '=';
	}
}

void base64_encode(enum base64_form form, struct sv bytes, struct buf *b)
{
	char *to = buf_grow(b, base64_length(form, bytes.n));

	if (to)
		base64_put(form, bytes, to);
}

/*
 * Values of the base64 characters from '0' to 'z'. A table is faster than comparisons, which
 * matters for a CA bundle of a quarter of a million characters.
 */
/* clang-format off */
static const int8_t values[] = {
	52, 53, 54, 55, 56, 57, 58, 59, 60, 61, -1, -1, -1, -1, -1, -1,
	-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
	15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, -1, -1, -1, -1, -1,
	-1, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
	41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51,
};
/* clang-format on */

static int value(enum base64_form form, char c)
{
	const int v = c >= '0' && (size_t)(c - '0') < ARRAY_LEN(values) ? values[c - '0'] : -1;

	if (v >= 0)
		return v;
	if (c == letters[form][62])
		return 62;
	return c == letters[form][63] ? 63 : -1;
}

/* Removes the padding from the base64 @text. Returns false if the padding is wrong. */
static bool strip(enum base64_form form, struct sv text, struct sv *ret_letters)
{
	size_t pad = 0;

	if (form == BASE64_PADDED) {
		while (pad < 2 && pad < text.n && text.p[text.n - 1 - pad] == '=')
			pad++;
		if (text.n % 4 != 0)
			return false;
	}
	text.n -= pad;
	*ret_letters = text;
	return text.n % 4 != 1;
}

bool base64_check(enum base64_form form, struct sv text, size_t *ret_n)
{
	/* Bits of the last character that belong to no byte, by the length of its group. */
	static const int unused[] = { 0, 0, 15, 3 };
	struct sv s;
	int v = 0;

	if (!strip(form, text, &s))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		v = value(form, s.p[i]);
		if (v < 0)
			return false;
	}
	if (v & unused[s.n % 4])
		return false;
	*ret_n = s.n / 4 * 3 + s.n % 4 * 3 / 4;
	return true;
}

/*
 * Decodes the next group of four base64 characters from *@in, which base64_check() has accepted.
 * Missing characters count as zero.
 */
static void decode_group(enum base64_form form, struct sv *in, uint8_t ret_bytes[static 3])
{
	const size_t n = in->n < 4 ? in->n : 4;
	uint32_t bits = 0;

	for (size_t i = 0; i < 4; i++) {
		const int v = i < n ? value(form, in->p[i]) : 0;

		bits = bits << 6 | (v < 0 ? 0 : (uint32_t)v); /* '=' counts as zero */
	}
	for (size_t i = 0; i < 3; i++)
		ret_bytes[i] = (uint8_t)(bits >> (16 - 8 * i));
	*in = sv_skip(*in, n);
}

bool base64_decode(enum base64_form form, struct sv text, void *ret_bytes, size_t n)
{
	uint8_t *to = ret_bytes;
	uint8_t three[3];
	size_t have;

	if (!base64_check(form, text, &have) || have != n)
		return false;
	for (size_t done = 0; done < n;) {
		decode_group(form, &text, three);
		for (size_t i = 0; i < 3 && done < n; i++)
			to[done++] = three[i];
	}
	return true;
}

bool base64_decode_to(enum base64_form form, struct sv text, struct buf *b)
{
	size_t n;
	char *to;

	if (!base64_check(form, text, &n))
		return false;
	to = buf_grow(b, n);
	return !to || base64_decode(form, text, to, n);
}
