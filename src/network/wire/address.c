#include "wire/address.h"

#include "base/banned.h"

/*
 * The classified address ranges. Ranges nest; the longest matching prefix decides. Sources: IANA's
 * IPv4 and IPv6 special-purpose address registries, the multicast ranges, and the addresses where
 * AWS, Azure, Google, Oracle, Alibaba, Tencent, Scaleway and OpenStack serve instance credentials.
 */
/* clang-format off */
static const struct address_range ranges[] = {
	{ { { 0 }, 8 }, ADDRESS_UNSPECIFIED, "0.0.0.0/8" },
	{ { { 10 }, 8 }, ADDRESS_PRIVATE, "10.0.0.0/8" },
	{ { { 100, 64 }, 10 }, ADDRESS_CGNAT, "100.64.0.0/10" },
	{ { { 100, 100, 100, 200 }, 32 }, ADDRESS_METADATA, "100.100.100.200/32" },
	{ { { 127 }, 8 }, ADDRESS_LOOPBACK, "127.0.0.0/8" },
	{ { { 168, 63, 129, 16 }, 32 }, ADDRESS_METADATA, "168.63.129.16/32" },
	{ { { 169, 254 }, 16 }, ADDRESS_LINK_LOCAL, "169.254.0.0/16" },
	{ { { 169, 254, 0, 23 }, 32 }, ADDRESS_METADATA, "169.254.0.23/32" },
	{ { { 169, 254, 42, 42 }, 32 }, ADDRESS_METADATA, "169.254.42.42/32" },
	{ { { 169, 254, 169 }, 24 }, ADDRESS_METADATA, "169.254.169.0/24" },
	{ { { 169, 254, 170 }, 24 }, ADDRESS_METADATA, "169.254.170.0/24" },
	{ { { 172, 16 }, 12 }, ADDRESS_PRIVATE, "172.16.0.0/12" },
	{ { { 192 }, 24 }, ADDRESS_RESERVED, "192.0.0.0/24" },
	{ { { 192, 0, 0, 192 }, 32 }, ADDRESS_METADATA, "192.0.0.192/32" },
	{ { { 192, 0, 2 }, 24 }, ADDRESS_DOCUMENTATION, "192.0.2.0/24" },
	{ { { 192, 31, 196 }, 24 }, ADDRESS_RESERVED, "192.31.196.0/24" },
	{ { { 192, 52, 193 }, 24 }, ADDRESS_RESERVED, "192.52.193.0/24" },
	{ { { 192, 88, 99 }, 24 }, ADDRESS_RESERVED, "192.88.99.0/24" },
	{ { { 192, 168 }, 16 }, ADDRESS_PRIVATE, "192.168.0.0/16" },
	{ { { 192, 175, 48 }, 24 }, ADDRESS_RESERVED, "192.175.48.0/24" },
	{ { { 198, 18 }, 15 }, ADDRESS_BENCHMARK, "198.18.0.0/15" },
	{ { { 198, 51, 100 }, 24 }, ADDRESS_DOCUMENTATION, "198.51.100.0/24" },
	{ { { 203, 0, 113 }, 24 }, ADDRESS_DOCUMENTATION, "203.0.113.0/24" },
	{ { { 224 }, 4 }, ADDRESS_MULTICAST, "224.0.0.0/4" },
	{ { { 240 }, 4 }, ADDRESS_RESERVED, "240.0.0.0/4" },
	{ { { 255, 255, 255, 255 }, 32 }, ADDRESS_RESERVED, "255.255.255.255/32" },
	{ { { 0 }, 128, true }, ADDRESS_UNSPECIFIED, "::/128" },
	{ { { [15] = 0x01 }, 128, true }, ADDRESS_LOOPBACK, "::1/128" },
	{ { { 0x01 }, 64, true }, ADDRESS_RESERVED, "100::/64" },
	{ { { 0x01, [7] = 0x01 }, 64, true }, ADDRESS_RESERVED, "100:0:0:1::/64" },
	{ { { 0x20 }, 3, true }, ADDRESS_PUBLIC, "2000::/3" },
	{ { { 0x20, 0x01 }, 23, true }, ADDRESS_RESERVED, "2001::/23" },
	{ { { 0x20, 0x01, [3] = 0x02 }, 48, true }, ADDRESS_BENCHMARK, "2001:2::/48" },
	{ { { 0x20, 0x01, 0x0d, 0xb8 }, 32, true }, ADDRESS_DOCUMENTATION, "2001:db8::/32" },
	{ { { 0x26, 0x20, [3] = 0x4f, 0x80 }, 48, true }, ADDRESS_RESERVED, "2620:4f:8000::/48" },
	{ { { 0x3f, 0xff }, 20, true }, ADDRESS_DOCUMENTATION, "3fff::/20" },
	{ { { 0x5f }, 16, true }, ADDRESS_RESERVED, "5f00::/16" },
	{ { { 0xfc }, 7, true }, ADDRESS_PRIVATE, "fc00::/7" },
	{ { { 0xfd, [3] = 0x42, [15] = 0x42 }, 128, true }, ADDRESS_METADATA, "fd00:42::42/128" },
	{ { { 0xfd, [3] = 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe }, 128, true }, ADDRESS_METADATA, "fd00:c1::a9fe:a9fe/128" },
	{ { { 0xfd, [2] = 0x0e, 0xc2 }, 32, true }, ADDRESS_METADATA, "fd00:ec2::/32" },
	{ { { 0xfd, 0x20, [3] = 0xce, [14] = 0x02, 0x54 }, 128, true }, ADDRESS_METADATA, "fd20:ce::254/128" },
	{ { { 0xfe, 0x80 }, 10, true }, ADDRESS_LINK_LOCAL, "fe80::/10" },
	{ { { 0xfe, 0x80, [12] = 0xa9, 0xfe, 0xa9, 0xfe }, 128, true }, ADDRESS_METADATA, "fe80::a9fe:a9fe/128" },
	{ { { 0xfe, 0xc0 }, 10, true }, ADDRESS_PRIVATE, "fec0::/10" },
	{ { { 0xff }, 8, true }, ADDRESS_MULTICAST, "ff00::/8" },
};

/* IPv6 prefixes that carry an IPv4 address, with the offset of the IPv4 address in bytes. */
static const struct {
	struct cap_net_addr net;
	enum address_form form;
	uint8_t at;
} forms[] = {
	{ { { [10] = 0xff, 0xff }, 96, true }, ADDRESS_MAPPED, 12 },
	{ { { [8] = 0xff, 0xff }, 96, true }, ADDRESS_TRANSLATED, 12 },
	{ { { 0x00, 0x64, 0xff, 0x9b }, 96, true }, ADDRESS_NAT64, 12 },
	{ { { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, true }, ADDRESS_NAT64_LOCAL, 12 },
	{ { { 0x20, 0x02 }, 16, true }, ADDRESS_6TO4, 2 },
	{ { { 0x20, 0x01 }, 32, true }, ADDRESS_TEREDO, 12 },
	{ { { 0 }, 96, true }, ADDRESS_COMPATIBLE, 12 },
};
/* clang-format on */

static const struct {
	const char *name;
	bool openable;
} classes[ADDRESS_CLASS_COUNT] = {
	[ADDRESS_RESERVED] = { "reserved", false },
	[ADDRESS_UNSPECIFIED] = { "unspecified", false },
	[ADDRESS_LOOPBACK] = { "loopback", false },
	[ADDRESS_LINK_LOCAL] = { "link-local", true },
	[ADDRESS_METADATA] = { "metadata", false },
	[ADDRESS_PRIVATE] = { "private", true },
	[ADDRESS_CGNAT] = { "carrier-grade NAT", true },
	[ADDRESS_MULTICAST] = { "multicast", false },
	[ADDRESS_DOCUMENTATION] = { "documentation", true },
	[ADDRESS_BENCHMARK] = { "benchmark", true },
	[ADDRESS_EMBEDDED] = { "embedded IPv4", false },
	[ADDRESS_PUBLIC] = { "public", false },
};

const struct address_range *address_ranges(size_t *ret_n)
{
	*ret_n = ARRAY_LEN(ranges);
	return ranges;
}

const char *address_class_name(enum address_class class)
{
	return classes[class].name;
}

static struct address_verdict by_range(const struct cap_net_addr *a)
{
	struct address_verdict v = { .class = a->v6 ? ADDRESS_RESERVED : ADDRESS_PUBLIC,
				     .range = "" };
	int longest = -1;

	for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
		if (ranges[i].net.len <= longest || !cap_addr_within(a, &ranges[i].net))
			continue;
		longest = ranges[i].net.len;
		v.class = ranges[i].class;
		v.range = ranges[i].text;
	}
	v.openable = classes[v.class].openable;
	return v;
}

static struct cap_net_addr inner_at(const struct cap_net_addr *a, size_t at, uint8_t mask)
{
	struct cap_net_addr v4 = { .len = 32 };

	for (size_t i = 0; i < 4; i++)
		v4.b[i] = a->b[at + i] ^ mask;
	return v4;
}

/*
 * Classifies an IPv6 address by the IPv4 address that it carries. If the carried address is public,
 * the class is @outer, the class of the IPv6 range, or ADDRESS_EMBEDDED if @outer is public too.
 */
static struct address_verdict by_inner(struct address_verdict outer, enum address_form form,
				       struct cap_net_addr inner)
{
	struct address_verdict v = by_range(&inner);

	if (v.class == ADDRESS_PUBLIC) {
		v = outer;
		if (v.class == ADDRESS_PUBLIC)
			v.class = ADDRESS_EMBEDDED;
	}
	v.form = form;
	v.inner = inner;
	v.openable = false;
	return v;
}

/*
 * Classifies a Teredo address, which carries two IPv4 addresses: the client's, stored inverted, and
 * the relay server's. Traffic may reach either address, so both must be harmless.
 */
static struct address_verdict by_teredo(const struct cap_net_addr *a)
{
	const struct address_verdict outer = { .class = ADDRESS_PUBLIC, .range = "" };
	const struct address_verdict v = by_inner(outer, ADDRESS_TEREDO, inner_at(a, 12, 0xff));

	if (v.class != ADDRESS_EMBEDDED)
		return v;
	return by_inner(outer, ADDRESS_TEREDO, inner_at(a, 4, 0));
}

static bool is_isatap(const struct cap_net_addr *a)
{
	return (a->b[8] & ~0x02) == 0 && a->b[9] == 0 && a->b[10] == 0x5e && a->b[11] == 0xfe;
}

struct address_verdict address_judge(const struct cap_net_addr *a)
{
	const struct address_verdict open = { .class = ADDRESS_PUBLIC, .range = "" };
	struct address_verdict v;

	if (a->len != (a->v6 ? 128 : 32))
		return (struct address_verdict){ .class = ADDRESS_RESERVED, .range = "" };
	v = by_range(a);
	if (!a->v6 || v.class == ADDRESS_UNSPECIFIED || v.class == ADDRESS_LOOPBACK)
		return v;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		if (!cap_addr_within(a, &forms[i].net))
			continue;
		if (forms[i].form == ADDRESS_TEREDO)
			return by_teredo(a);
		return by_inner(open, forms[i].form, inner_at(a, forms[i].at, 0));
	}
	if (is_isatap(a))
		return by_inner(v, ADDRESS_ISATAP, inner_at(a, 12, 0));
	return v;
}
