#include "cap/component.h"

#include "base/banned.h"

enum { V6_TEXT_MAX = 40, V6_GROUPS = 8 };

static size_t addr_bits(const struct cap_net_addr *a)
{
	return a->v6 ? 128 : 32;
}

bool cap_addr_is_single(const struct cap_net_addr *a)
{
	return a->len == addr_bits(a);
}

/* Are the first @bits bits of @a and @b equal? */
static bool same_bits(const uint8_t *a, const uint8_t *b, size_t bits)
{
	const size_t whole = bits / 8;
	const uint8_t mask = (uint8_t)(0xff00 >> bits % 8);

	if (memcmp(a, b, whole) != 0)
		return false;
	return bits % 8 == 0 || ((a[whole] ^ b[whole]) & mask) == 0;
}

bool cap_addr_within(const struct cap_net_addr *child, const struct cap_net_addr *parent)
{
	return child->v6 == parent->v6 && child->len >= parent->len &&
	       same_bits(child->b, parent->b, parent->len);
}

/*
 * Loopback addresses are reserved: policies must write them as localhost. The unspecified address
 * is reserved too, because a connection to the unspecified address reaches the loopback.
 */
bool cap_addr_is_reserved(const struct cap_net_addr *a)
{
	static const struct cap_net_addr reserved[] = {
		{ .b = { 127 }, .len = 8 },
		{ .b = { 0 }, .len = 8 },
		{ .b = { [15] = 1 }, .len = 128, .v6 = true },
		{ .b = { 0 }, .len = 128, .v6 = true },
	};

	for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
		if (cap_addr_within(a, &reserved[i]) || cap_addr_within(&reserved[i], a))
			return true;
	return false;
}

/* Are the networks @a and @b the two halves of one network? */
bool cap_addr_is_half(const struct cap_net_addr *a, const struct cap_net_addr *b)
{
	return a->v6 == b->v6 && a->len == b->len && a->len > 0 &&
	       same_bits(a->b, b->b, (size_t)a->len - 1) && !same_bits(a->b, b->b, a->len);
}

/*
 * Compares two networks in a sort order that puts a network directly before the networks inside
 * that network.
 */
int cap_addr_order(const struct cap_net_addr *a, const struct cap_net_addr *b)
{
	int d = (int)a->v6 - (int)b->v6;

	if (d == 0)
		d = memcmp(a->b, b->b, sizeof(a->b));
	return d ? d : (int)a->len - (int)b->len;
}

static bool v4_parse(struct sv s, uint8_t b[static 4])
{
	for (size_t i = 0; i < 4; i++) {
		const bool dotted = sv_find(s, '.') != SIZE_MAX;
		uint64_t v;

		if (dotted != (i < 3) || !sv_to_u64(sv_cut(&s, '.'), 255, &v))
			return false;
		b[i] = (uint8_t)v;
	}
	return true;
}

/*
 * Parses one hexadecimal group of an IPv6 address at the start of *@s and moves *@s past the group.
 */
static bool group_parse(struct sv *s, uint16_t *ret_group)
{
	unsigned v = 0;
	size_t n = 0;

	for (; n < s->n && n < 4 && sv_hex_lower(s->p[n]) >= 0; n++)
		v = v << 4 | (unsigned)sv_hex_lower(s->p[n]);
	*s = sv_skip(*s, n);
	*ret_group = (uint16_t)v;
	return n > 0;
}

/*
 * Parses the groups of an IPv6 address and the position of "::". Accepts some texts that are not
 * canonical; v6_parse() rejects these texts by comparing with the canonical text.
 */
static bool groups_parse(struct sv s, uint16_t g[static V6_GROUPS], size_t *ret_n, size_t *ret_gap)
{
	size_t n = 0, gap = SIZE_MAX;

	if (sv_starts(s, SV("::"))) {
		gap = 0;
		s = sv_skip(s, 2);
	}
	while (s.n) {
		if (n == V6_GROUPS || !group_parse(&s, &g[n]))
			return false;
		n++;
		if (sv_starts(s, SV("::")) && gap == SIZE_MAX) {
			gap = n;
			s = sv_skip(s, 2);
		} else if (s.n > 1 && s.p[0] == ':') {
			s = sv_skip(s, 1);
		} else if (s.n) {
			return false;
		}
	}
	*ret_n = n;
	*ret_gap = gap;
	return gap == SIZE_MAX ? n == V6_GROUPS : n < V6_GROUPS;
}

static uint16_t group_at(const uint8_t *b, size_t i)
{
	return (uint16_t)(b[2 * i] << 8 | b[2 * i + 1]);
}

/*
 * Finds the longest run of two or more zero groups in an IPv6 address; of several longest runs, the
 * first.
 */
static size_t zero_run(const uint8_t *b, size_t *ret_at)
{
	size_t best = 1;

	*ret_at = V6_GROUPS;
	for (size_t i = 0; i < V6_GROUPS; i++) {
		size_t n = 0;

		while (i + n < V6_GROUPS && group_at(b, i + n) == 0)
			n++;
		if (n > best) {
			best = n;
			*ret_at = i;
		}
		i += n;
	}
	return best;
}

static size_t group_text(uint16_t group, char *out)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = 0;

	for (int shift = 12; shift >= 0; shift -= 4)
		if (group >> shift || shift == 0)
			out[n++] = digits[group >> shift & 15];
	return n;
}

/*
 * Prints an IPv6 address as the canonical text of RFC 5952, without the RFC's exception for
 * embedded IPv4 addresses.
 */
static size_t v6_text(const uint8_t *b, char out[static V6_TEXT_MAX])
{
	size_t at, n = 0;
	const size_t run = zero_run(b, &at);

	for (size_t i = 0; i < V6_GROUPS; i++) {
		if (i == at) {
			out[n++] = ':';
			out[n++] = ':';
			i += run - 1;
			continue;
		}
		if (i && i != at + run)
			out[n++] = ':';
		n += group_text(group_at(b, i), out + n);
	}
	return n;
}

static bool v6_parse(struct sv s, uint8_t b[static 16])
{
	char text[V6_TEXT_MAX];
	uint16_t g[V6_GROUPS];
	size_t n, gap;

	if (!groups_parse(s, g, &n, &gap))
		return false;
	memset(b, 0, 16);
	for (size_t i = 0; i < n; i++) {
		const size_t to = i < gap ? i : i + V6_GROUPS - n;

		b[2 * to] = (uint8_t)(g[i] >> 8);
		b[2 * to + 1] = (uint8_t)g[i];
	}
	return sv_eq(s, (struct sv){ text, v6_text(b, text) });
}

/*
 * SECURITY: an IPv4-mapped IPv6 address is a second spelling of an IPv4 address. Rules for the IPv4
 * address would not match the mapped spelling, so refuse mapped addresses.
 */
static bool is_mapped(const struct cap_net_addr *a)
{
	static const struct cap_net_addr mapped = { .b = { [10] = 0xff, [11] = 0xff },
						    .len = 96,
						    .v6 = true };

	return cap_addr_within(a, &mapped);
}

static bool has_host_bits(const struct cap_net_addr *a)
{
	struct cap_net_addr zero = *a;

	for (size_t i = a->len; i < addr_bits(a); i++)
		zero.b[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
	return memcmp(zero.b, a->b, sizeof(zero.b)) != 0;
}

bool cap_addr_parse(struct sv s, struct cap_net_addr *ret_addr)
{
	struct cap_net_addr a = { .v6 = s.n && s.p[0] == '[' };
	const size_t slash = sv_find(s, '/');
	struct sv host = sv_sub(s, 0, slash);
	uint64_t len = addr_bits(&a);

	if (slash != SIZE_MAX && !sv_to_u64(sv_skip(s, slash + 1), addr_bits(&a) - 1, &len))
		return false;
	a.len = (uint8_t)len;
	if (a.v6) {
		if (host.n < 2 || host.p[host.n - 1] != ']')
			return false;
		if (!v6_parse(sv_sub(host, 1, host.n - 2), a.b))
			return false;
	} else if (!v4_parse(host, a.b)) {
		return false;
	}
	if (has_host_bits(&a) || is_mapped(&a))
		return false;
	*ret_addr = a;
	return true;
}

void cap_addr_print(const struct cap_net_addr *addr, struct buf *b)
{
	char text[V6_TEXT_MAX];

	if (addr->v6) {
		buf_ch(b, '[');
		buf_add(b, text, v6_text(addr->b, text));
		buf_ch(b, ']');
	} else {
		buf_fmt(b, "%u.%u.%u.%u", addr->b[0], addr->b[1], addr->b[2], addr->b[3]);
	}
	if (!cap_addr_is_single(addr))
		buf_fmt(b, "/%u", addr->len);
}
