#include "wire/address.h"

#include "tap.h"

static struct cap_net_addr address(const char *text)
{
	struct cap_net_addr a = { 0 };
	scoped_buf b = BUF_INIT(64);

	/* The one form that cap/ does not read: it is refused in policies. */
	if (strncmp(text, "::ffff:", 7) == 0 && text[11] == ':') {
		unsigned v[4];

		a = (struct cap_net_addr){ .b = { [10] = 0xff, 0xff }, .len = 128, .v6 = true };
		if (sscanf(text + 7, "%2x%2x:%2x%2x", v, v + 1, v + 2, v + 3) != 4)
			tap_ok(false, __FILE__, __LINE__, "mapped %s", text);
		for (size_t i = 0; i < 4; i++)
			a.b[12 + i] = (uint8_t)v[i];
		return a;
	}
	buf_fmt(&b, strchr(text, ':') ? "[%s]" : "%s", text);
	if (!cap_addr_parse(buf_view(&b), &a))
		tap_ok(false, __FILE__, __LINE__, "test address %s", text);
	return a;
}

/* The address before or behind @a; false if there is none. */
static bool step(struct cap_net_addr *a, int by)
{
	for (size_t i = a->v6 ? 16 : 4; i-- > 0;) {
		a->b[i] = (uint8_t)(a->b[i] + by);
		if (a->b[i] != (by > 0 ? 0 : 0xff))
			return true;
	}
	return false;
}

/* Does the verdict name the smallest range that has @a? Embedded forms have their own test. */
static bool is_longest(const struct cap_net_addr *a, const struct address_range *r, size_t n)
{
	const struct address_verdict v = address_judge(a);
	const struct address_range *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (cap_addr_within(a, &r[i].net) && (!best || r[i].net.len > best->net.len))
			best = &r[i];
	return v.form != ADDRESS_PLAIN ||
	       (best && v.class == best->class && strcmp(v.range, best->text) == 0);
}

/* Every range, at its edges. What lies outside is what another range says. */
static void test_edges(void)
{
	size_t n;
	const struct address_range *r = address_ranges(&n);

	for (size_t i = 0; i < n; i++) {
		struct cap_net_addr first = r[i].net, last = r[i].net, before, behind;
		const size_t bits = first.v6 ? 128 : 32;

		for (size_t bit = first.len; bit < bits; bit++)
			last.b[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
		first.len = last.len = (uint8_t)bits;
		before = first;
		behind = last;
		ok(is_longest(&first, r, n), "%s starts there", r[i].text);
		ok(is_longest(&last, r, n), "%s ends there", r[i].text);
		if (step(&before, -1))
			ok(strcmp(address_judge(&before).range, r[i].text) != 0, "not before %s",
			   r[i].text);
		if (step(&behind, 1))
			ok(strcmp(address_judge(&behind).range, r[i].text) != 0, "not behind %s",
			   r[i].text);
	}
}

struct judged {
	const char *text;
	enum address_class class;
	enum address_form form;
	bool openable;
};

static void judge(const struct judged *c)
{
	const struct cap_net_addr a = address(c->text);
	const struct address_verdict v = address_judge(&a);

	ok(v.class == c->class && v.form == c->form && v.openable == c->openable, "%s is %s",
	   c->text, address_class_name(c->class));
	if (v.class != c->class || v.form != c->form)
		tap_note("%s, form %d", address_class_name(v.class), v.form);
}

/* First - 1, first, last, last + 1, written out so that the table is checked by hand. */
static void test_v4(void)
{
	static const struct judged cases[] = {
		{ "0.0.0.0", ADDRESS_UNSPECIFIED, 0, false },
		{ "0.255.255.255", ADDRESS_UNSPECIFIED, 0, false },
		{ "1.0.0.0", ADDRESS_PUBLIC, 0, false },
		{ "9.255.255.255", ADDRESS_PUBLIC, 0, false },
		{ "10.0.0.0", ADDRESS_PRIVATE, 0, true },
		{ "10.255.255.255", ADDRESS_PRIVATE, 0, true },
		{ "11.0.0.0", ADDRESS_PUBLIC, 0, false },
		{ "100.63.255.255", ADDRESS_PUBLIC, 0, false },
		{ "100.64.0.0", ADDRESS_CGNAT, 0, true },
		{ "100.100.100.199", ADDRESS_CGNAT, 0, true },
		{ "100.100.100.200", ADDRESS_METADATA, 0, false },
		{ "100.100.100.201", ADDRESS_CGNAT, 0, true },
		{ "100.127.255.255", ADDRESS_CGNAT, 0, true },
		{ "100.128.0.0", ADDRESS_PUBLIC, 0, false },
		{ "126.255.255.255", ADDRESS_PUBLIC, 0, false },
		{ "127.0.0.0", ADDRESS_LOOPBACK, 0, false },
		{ "127.0.0.1", ADDRESS_LOOPBACK, 0, false },
		{ "127.255.255.255", ADDRESS_LOOPBACK, 0, false },
		{ "128.0.0.0", ADDRESS_PUBLIC, 0, false },
		{ "168.63.129.15", ADDRESS_PUBLIC, 0, false },
		{ "168.63.129.16", ADDRESS_METADATA, 0, false },
		{ "168.63.129.17", ADDRESS_PUBLIC, 0, false },
		{ "169.253.255.255", ADDRESS_PUBLIC, 0, false },
		{ "169.254.0.0", ADDRESS_LINK_LOCAL, 0, true },
		{ "169.254.0.22", ADDRESS_LINK_LOCAL, 0, true },
		{ "169.254.0.23", ADDRESS_METADATA, 0, false },
		{ "169.254.0.24", ADDRESS_LINK_LOCAL, 0, true },
		{ "169.254.42.41", ADDRESS_LINK_LOCAL, 0, true },
		{ "169.254.42.42", ADDRESS_METADATA, 0, false },
		{ "169.254.42.43", ADDRESS_LINK_LOCAL, 0, true },
		{ "169.254.168.255", ADDRESS_LINK_LOCAL, 0, true },
		{ "169.254.169.254", ADDRESS_METADATA, 0, false },
		{ "169.254.170.2", ADDRESS_METADATA, 0, false },
		{ "169.254.171.0", ADDRESS_LINK_LOCAL, 0, true },
		{ "169.254.255.255", ADDRESS_LINK_LOCAL, 0, true },
		{ "169.255.0.0", ADDRESS_PUBLIC, 0, false },
		{ "172.15.255.255", ADDRESS_PUBLIC, 0, false },
		{ "172.16.0.0", ADDRESS_PRIVATE, 0, true },
		{ "172.31.255.255", ADDRESS_PRIVATE, 0, true },
		{ "172.32.0.0", ADDRESS_PUBLIC, 0, false },
		{ "191.255.255.255", ADDRESS_PUBLIC, 0, false },
		{ "192.0.0.0", ADDRESS_RESERVED, 0, false },
		{ "192.0.0.191", ADDRESS_RESERVED, 0, false },
		{ "192.0.0.192", ADDRESS_METADATA, 0, false },
		{ "192.0.0.193", ADDRESS_RESERVED, 0, false },
		{ "192.0.0.255", ADDRESS_RESERVED, 0, false },
		{ "192.0.1.0", ADDRESS_PUBLIC, 0, false },
		{ "192.0.1.255", ADDRESS_PUBLIC, 0, false },
		{ "192.0.2.0", ADDRESS_DOCUMENTATION, 0, true },
		{ "192.0.2.255", ADDRESS_DOCUMENTATION, 0, true },
		{ "192.0.3.0", ADDRESS_PUBLIC, 0, false },
		{ "192.31.195.255", ADDRESS_PUBLIC, 0, false },
		{ "192.31.196.0", ADDRESS_RESERVED, 0, false },
		{ "192.31.196.255", ADDRESS_RESERVED, 0, false },
		{ "192.31.197.0", ADDRESS_PUBLIC, 0, false },
		{ "192.52.192.255", ADDRESS_PUBLIC, 0, false },
		{ "192.52.193.0", ADDRESS_RESERVED, 0, false },
		{ "192.52.194.0", ADDRESS_PUBLIC, 0, false },
		{ "192.88.98.255", ADDRESS_PUBLIC, 0, false },
		{ "192.88.99.0", ADDRESS_RESERVED, 0, false },
		{ "192.88.99.255", ADDRESS_RESERVED, 0, false },
		{ "192.88.100.0", ADDRESS_PUBLIC, 0, false },
		{ "192.167.255.255", ADDRESS_PUBLIC, 0, false },
		{ "192.168.0.0", ADDRESS_PRIVATE, 0, true },
		{ "192.168.255.255", ADDRESS_PRIVATE, 0, true },
		{ "192.169.0.0", ADDRESS_PUBLIC, 0, false },
		{ "192.175.47.255", ADDRESS_PUBLIC, 0, false },
		{ "192.175.48.0", ADDRESS_RESERVED, 0, false },
		{ "192.175.49.0", ADDRESS_PUBLIC, 0, false },
		{ "198.17.255.255", ADDRESS_PUBLIC, 0, false },
		{ "198.18.0.0", ADDRESS_BENCHMARK, 0, true },
		{ "198.19.255.255", ADDRESS_BENCHMARK, 0, true },
		{ "198.20.0.0", ADDRESS_PUBLIC, 0, false },
		{ "198.51.99.255", ADDRESS_PUBLIC, 0, false },
		{ "198.51.100.0", ADDRESS_DOCUMENTATION, 0, true },
		{ "198.51.101.0", ADDRESS_PUBLIC, 0, false },
		{ "203.0.112.255", ADDRESS_PUBLIC, 0, false },
		{ "203.0.113.0", ADDRESS_DOCUMENTATION, 0, true },
		{ "203.0.114.0", ADDRESS_PUBLIC, 0, false },
		{ "223.255.255.255", ADDRESS_PUBLIC, 0, false },
		{ "224.0.0.0", ADDRESS_MULTICAST, 0, false },
		{ "239.255.255.255", ADDRESS_MULTICAST, 0, false },
		{ "240.0.0.0", ADDRESS_RESERVED, 0, false },
		{ "255.255.255.254", ADDRESS_RESERVED, 0, false },
		{ "255.255.255.255", ADDRESS_RESERVED, 0, false },
		{ "1.1.1.1", ADDRESS_PUBLIC, 0, false },
		{ "8.8.8.8", ADDRESS_PUBLIC, 0, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		judge(&cases[i]);
}

static void test_v6(void)
{
	static const struct judged cases[] = {
		{ "::", ADDRESS_UNSPECIFIED, 0, false },
		{ "::1", ADDRESS_LOOPBACK, 0, false },
		{ "::2", ADDRESS_UNSPECIFIED, ADDRESS_COMPATIBLE, false },
		{ "::1:0:0:0", ADDRESS_RESERVED, 0, false },
		{ "ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_RESERVED, 0, false },
		{ "100::", ADDRESS_RESERVED, 0, false },
		{ "100:0:0:1::1", ADDRESS_RESERVED, 0, false },
		{ "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_RESERVED, 0, false },
		{ "2000::", ADDRESS_PUBLIC, 0, false },
		{ "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_PUBLIC, 0, false },
		{ "2001:1::1", ADDRESS_RESERVED, 0, false },
		{ "2001:2::", ADDRESS_BENCHMARK, 0, true },
		{ "2001:2:0:ffff:ffff:ffff:ffff:ffff", ADDRESS_BENCHMARK, 0, true },
		{ "2001:2:1::", ADDRESS_RESERVED, 0, false },
		{ "2001:20::1", ADDRESS_RESERVED, 0, false },
		{ "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_RESERVED, 0, false },
		{ "2001:200::", ADDRESS_PUBLIC, 0, false },
		{ "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_PUBLIC, 0, false },
		{ "2001:db8::", ADDRESS_DOCUMENTATION, 0, true },
		{ "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_DOCUMENTATION, 0, true },
		{ "2001:db9::", ADDRESS_PUBLIC, 0, false },
		{ "2620:4f:7fff:ffff:ffff:ffff:ffff:ffff", ADDRESS_PUBLIC, 0, false },
		{ "2620:4f:8000::", ADDRESS_RESERVED, 0, false },
		{ "2620:4f:8001::", ADDRESS_PUBLIC, 0, false },
		{ "2606:4700:4700::1111", ADDRESS_PUBLIC, 0, false },
		{ "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_PUBLIC, 0, false },
		{ "3fff::", ADDRESS_DOCUMENTATION, 0, true },
		{ "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_DOCUMENTATION, 0, true },
		{ "3fff:1000::", ADDRESS_PUBLIC, 0, false },
		{ "4000::", ADDRESS_RESERVED, 0, false },
		{ "5f00::1", ADDRESS_RESERVED, 0, false },
		{ "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_RESERVED, 0, false },
		{ "fc00::", ADDRESS_PRIVATE, 0, true },
		{ "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_PRIVATE, 0, true },
		{ "fe00::", ADDRESS_RESERVED, 0, false },
		{ "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_RESERVED, 0, false },
		{ "fe80::1", ADDRESS_LINK_LOCAL, 0, true },
		{ "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_LINK_LOCAL, 0, true },
		{ "fec0::", ADDRESS_PRIVATE, 0, true },
		{ "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_PRIVATE, 0, true },
		{ "ff00::", ADDRESS_MULTICAST, 0, false },
		{ "ff02::1", ADDRESS_MULTICAST, 0, false },
		{ "fd00:ec1:ffff:ffff:ffff:ffff:ffff:ffff", ADDRESS_PRIVATE, 0, true },
		{ "fd00:ec2::254", ADDRESS_METADATA, 0, false },
		{ "fd00:ec2::23", ADDRESS_METADATA, 0, false },
		{ "fd00:ec3::", ADDRESS_PRIVATE, 0, true },
		{ "fd20:ce::253", ADDRESS_PRIVATE, 0, true },
		{ "fd20:ce::254", ADDRESS_METADATA, 0, false },
		{ "fd20:ce::255", ADDRESS_PRIVATE, 0, true },
		{ "fd00:42::42", ADDRESS_METADATA, 0, false },
		{ "fd00:c1::a9fe:a9fe", ADDRESS_METADATA, 0, false },
		{ "fe80::a9fe:a9fe", ADDRESS_METADATA, 0, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		judge(&cases[i]);
}

static void test_embedded(void)
{
	static const struct judged cases[] = {
		{ "::ffff:7f00:0001", ADDRESS_LOOPBACK, ADDRESS_MAPPED, false },
		{ "::ffff:a9fe:a9fe", ADDRESS_METADATA, ADDRESS_MAPPED, false },
		{ "::ffff:0a00:0001", ADDRESS_PRIVATE, ADDRESS_MAPPED, false },
		{ "::ffff:0808:0808", ADDRESS_EMBEDDED, ADDRESS_MAPPED, false },
		{ "::ffff:0000:0000", ADDRESS_UNSPECIFIED, ADDRESS_MAPPED, false },
		{ "::7f00:1", ADDRESS_LOOPBACK, ADDRESS_COMPATIBLE, false },
		{ "::808:808", ADDRESS_EMBEDDED, ADDRESS_COMPATIBLE, false },
		{ "::ffff:0:7f00:1", ADDRESS_LOOPBACK, ADDRESS_TRANSLATED, false },
		{ "::ffff:0:808:808", ADDRESS_EMBEDDED, ADDRESS_TRANSLATED, false },
		{ "64:ff9b::7f00:1", ADDRESS_LOOPBACK, ADDRESS_NAT64, false },
		{ "64:ff9b::a9fe:a9fe", ADDRESS_METADATA, ADDRESS_NAT64, false },
		{ "64:ff9b::808:808", ADDRESS_EMBEDDED, ADDRESS_NAT64, false },
		{ "64:ff9b::1:0:0", ADDRESS_RESERVED, 0, false },
		{ "64:ff9b:1::a00:1", ADDRESS_PRIVATE, ADDRESS_NAT64_LOCAL, false },
		{ "64:ff9b:1:ffff:ffff:ffff:808:808", ADDRESS_EMBEDDED, ADDRESS_NAT64_LOCAL,
		  false },
		{ "64:ff9b:2::a00:1", ADDRESS_RESERVED, 0, false },
		{ "2002:7f00:1::", ADDRESS_LOOPBACK, ADDRESS_6TO4, false },
		{ "2002:c0a8:101::1", ADDRESS_PRIVATE, ADDRESS_6TO4, false },
		{ "2002:808:808::", ADDRESS_EMBEDDED, ADDRESS_6TO4, false },
		{ "2003::", ADDRESS_PUBLIC, 0, false },
		{ "2001:0:808:808::80ff:fffe", ADDRESS_LOOPBACK, ADDRESS_TEREDO, false },
		{ "2001:0:808:808::f7f7:f7f7", ADDRESS_EMBEDDED, ADDRESS_TEREDO, false },
		{ "2001:0:a00:1::f7f7:f7f7", ADDRESS_PRIVATE, ADDRESS_TEREDO, false },
		{ "2606:4700::5efe:7f00:1", ADDRESS_LOOPBACK, ADDRESS_ISATAP, false },
		{ "2606:4700::200:5efe:a00:1", ADDRESS_PRIVATE, ADDRESS_ISATAP, false },
		{ "2606:4700::5efe:808:808", ADDRESS_EMBEDDED, ADDRESS_ISATAP, false },
		{ "2606:4700::100:5efe:a00:1", ADDRESS_PUBLIC, 0, false },
		{ "fe80::5efe:808:808", ADDRESS_LINK_LOCAL, ADDRESS_ISATAP, false },
		{ "fe80::5efe:7f00:1", ADDRESS_LOOPBACK, ADDRESS_ISATAP, false },
	};
	struct cap_net_addr a;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		judge(&cases[i]);
	a = address("64:ff9b::808:404");
	ok(memcmp(address_judge(&a).inner.b, (uint8_t[]){ 8, 8, 4, 4 }, 4) == 0, "what it carries");
	ok(cap_addr_parse(SV("8.0.0.0/8"), &a) && address_judge(&a).class == ADDRESS_RESERVED,
	   "a network is not judged");
}

int main(void)
{
	test_edges();
	test_v4();
	test_v6();
	test_embedded();
	return tap_done();
}
