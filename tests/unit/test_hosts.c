#include "tap.h"

#include "base/buf.h"
#include "resolve/resolve.h"

static void is_found(const char *file, const char *name, const char *want, const char *what)
{
	struct cap_net_addr v[4];
	const size_t n = hosts_find(sv_from(file), sv_from(name), v, ARRAY_LEN(v));
	struct buf b = BUF_INIT(512);

	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_str(&b, " ");
		cap_addr_print(&v[i], &b);
	}
	is_sv(buf_view(&b), sv_from(want), what);
	buf_clear(&b);
}

int main(void)
{
	static const char usual[] = "127.0.0.1\tlocalhost\n"
				    "127.0.1.1 box.example.com box\n"
				    "\n"
				    "# 10.0.0.9 old.example.com\n"
				    "10.0.0.1 a.example.com b.example.com # c.example.com\n"
				    "10.0.0.2   A.Example.COM.\r\n"
				    "2001:db8::1 a.example.com\n"
				    "::1 ip6-localhost";

	is_found(usual, "localhost", "127.0.0.1", "a name");
	is_found(usual, "box", "127.0.1.1", "an alias");
	is_found(usual, "a.example.com", "10.0.0.1 10.0.0.2 [2001:db8::1]",
		 "every line that has it, however it is written");
	is_found(usual, "b.example.com", "10.0.0.1", "a later name of a line");
	is_found(usual, "c.example.com", "", "not in a comment behind a line");
	is_found(usual, "old.example.com", "", "not in a line that is a comment");
	is_found(usual, "ip6-localhost", "[::1]", "a last line without an end");
	is_found(usual, "example.com", "", "not a part of a name");
	is_found(usual, "127.0.0.1", "", "not an address");
	is_found(usual, "", "", "not nothing");
	is_found("", "a", "", "an empty file");
	is_found("a", "a", "", "a line of one word");
	is_found("x a\n10.0.0.1 a\n", "a", "10.0.0.1", "a line with no address is skipped");
	is_found("010.0.0.1 a\n127.1 a\n0x7f000001 a\n2130706433 a\n", "a", "",
		 "other spellings of addresses are none");
	is_found("fe80::1%eth0 a\n[::1] a\n:: b", "a", "", "nor is a zone, or brackets");
	is_found("10.0.0.1 a a a\n", "a", "10.0.0.1", "a name twice in a line is one");
	is_found("1.0.0.1 a\n1.0.0.2 a\n1.0.0.3 a\n1.0.0.4 a\n1.0.0.5 a\n", "a",
		 "1.0.0.1 1.0.0.2 1.0.0.3 1.0.0.4", "more than there is room for");
	is_found("10.0.0.1 a..\n", "a", "", "two dots at the end are no name");
	is_found("10.0.0.1\ta\n", "a", "10.0.0.1", "tabs");
	is_found("10.0.0.1 a\v10.0.0.2\n", "a", "", "but not every blank");
	return tap_done();
}
