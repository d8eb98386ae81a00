#include "base/sv.h"

#include <string.h>

#include "base/banned.h"

struct sv sv_from(const char *cstr)
{
	return cstr ? (struct sv){ cstr, strlen(cstr) } : SV("");
}

bool sv_eq(struct sv a, struct sv b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool sv_is(struct sv a, const char *cstr)
{
	/*
	 * Compare the first letter before calling strlen(): most comparisons in keyword chains end
	 * at the first letter.
	 */
	if (a.n && cstr && a.p[0] != cstr[0])
		return false;
	return sv_eq(a, sv_from(cstr));
}

size_t sv_index(struct sv s, const char *const *list, size_t n)
{
	size_t i = 0;

	while (i < n && !sv_is(s, list[i]))
		i++;
	return i;
}

int sv_cmp(struct sv a, struct sv b)
{
	const size_t n = a.n < b.n ? a.n : b.n;
	const int d = n ? memcmp(a.p, b.p, n) : 0;

	if (d)
		return d;
	return a.n < b.n ? -1 : a.n > b.n;
}

bool sv_starts(struct sv s, struct sv prefix)
{
	return s.n >= prefix.n && sv_eq(sv_sub(s, 0, prefix.n), prefix);
}

bool sv_ends(struct sv s, struct sv suffix)
{
	return s.n >= suffix.n && sv_eq(sv_skip(s, s.n - suffix.n), suffix);
}

struct sv sv_sub(struct sv s, size_t from, size_t n)
{
	s = sv_skip(s, from);
	if (s.n > n)
		s.n = n;
	return s;
}

struct sv sv_skip(struct sv s, size_t n)
{
	if (n > s.n)
		n = s.n;
	return (struct sv){ s.p + n, s.n - n };
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct sv sv_trim(struct sv s)
{
	while (s.n && is_blank(s.p[0]))
		s = sv_skip(s, 1);
	while (s.n && is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

size_t sv_find(struct sv s, char c)
{
	const char *hit = s.n ? memchr(s.p, c, s.n) : NULL;

	return hit ? (size_t)(hit - s.p) : SIZE_MAX;
}

size_t sv_rfind(struct sv s, char c)
{
	const char *hit = s.n ? memrchr(s.p, c, s.n) : NULL;

	return hit ? (size_t)(hit - s.p) : SIZE_MAX;
}

struct sv sv_cut(struct sv *in, char sep)
{
	const size_t at = sv_find(*in, sep);
	struct sv head = *in;

	if (at == SIZE_MAX) {
		*in = sv_skip(*in, in->n);
		return head;
	}
	head.n = at;
	*in = sv_skip(*in, at + 1);
	return head;
}

bool sv_has_word(struct sv list, char sep, struct sv word)
{
	while (list.n)
		if (sv_eq(sv_cut(&list, sep), word))
			return true;
	return false;
}

bool sv_below(struct sv path, struct sv dir)
{
	if (dir.n == 0 || !sv_starts(path, dir))
		return false;
	return path.n == dir.n || dir.p[dir.n - 1] == '/' || path.p[dir.n] == '/';
}

bool sv_is_straight(struct sv path)
{
	while (path.n) {
		const struct sv part = sv_cut(&path, '/');

		if (part.n == 0 || sv_is(part, ".") || sv_is(part, ".."))
			return false;
	}
	return true;
}

struct sv environ_get(char *const *envp, struct sv name)
{
	for (; *envp; envp++) {
		struct sv rest = sv_from(*envp);

		if (sv_eq(sv_cut(&rest, '='), name))
			return rest;
	}
	return (struct sv){ NULL, 0 };
}

bool sv_to_u64(struct sv s, uint64_t max, uint64_t *ret_v)
{
	uint64_t v = 0;

	if (s.n == 0 || s.n > 20 || (s.n > 1 && s.p[0] == '0'))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
			return false;
	}
	if (v > max)
		return false;
	*ret_v = v;
	return true;
}

int sv_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int sv_hex_lower(char c)
{
	return c >= 'A' && c <= 'F' ? -1 : sv_hex(c);
}

bool sv_hex_to_u64(struct sv s, size_t digits, uint64_t *ret_v)
{
	uint64_t v = 0;

	if (s.n != digits)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		const int digit = sv_hex_lower(s.p[i]);

		if (digit < 0)
			return false;
		v = v << 4 | (uint64_t)digit;
	}
	*ret_v = v;
	return true;
}

bool sv_is_alnum(struct sv s, const char *more)
{
	for (size_t i = 0; i < s.n; i++) {
		const char c = sv_lower(s.p[i]);

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') &&
		    sv_find(sv_from(more), s.p[i]) == SIZE_MAX)
			return false;
	}
	return true;
}

char sv_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool sv_is_graph(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < 0x21 || s.p[i] > 0x7e)
			return false;
	return true;
}

size_t sv_utf8_len(struct sv s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	uint32_t v, low;
	size_t len;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		len = 2, v = p[0] & 0x1f, low = 0x80;
	} else if ((p[0] & 0xf0) == 0xe0) {
		len = 3, v = p[0] & 0x0f, low = 0x800;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		len = 4, v = p[0] & 0x07, low = 0x10000;
	} else {
		return 0;
	}
	if (len > s.n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (p[i] & 0x3f);
	}
	if (v < low || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
		return 0;
	return len;
}

bool sv_is_utf8(struct sv s)
{
	while (s.n) {
		const size_t len = sv_utf8_len(s);

		if (len == 0)
			return false;
		s = sv_skip(s, len);
	}
	return true;
}

size_t sv_distance(struct sv a, struct sv b, size_t max)
{
	size_t row[65];

	if (a.n > 64 || b.n > 64)
		return max + 1;
	for (size_t j = 0; j <= b.n; j++)
		row[j] = j;
	for (size_t i = 1; i <= a.n; i++) {
		size_t diag = row[0];
		size_t best = row[0] = i;

		for (size_t j = 1; j <= b.n; j++) {
			const size_t keep = row[j];
			size_t v = diag + (a.p[i - 1] != b.p[j - 1]);

			if (row[j] + 1 < v)
				v = row[j] + 1;
			if (row[j - 1] + 1 < v)
				v = row[j - 1] + 1;
			row[j] = v;
			diag = keep;
			if (v < best)
				best = v;
		}
		if (best > max)
			return max + 1;
	}
	return row[b.n];
}
