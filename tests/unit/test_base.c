#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/packet.h"
#include "base/remove.h"
#include "base/sv.h"

static void test_sv(void)
{
	struct sv s = SV("a:b::c");
	uint64_t v = 7;

	is_sv(sv_cut(&s, ':'), SV("a"), "first part");
	is_sv(sv_cut(&s, ':'), SV("b"), "second part");
	is_sv(sv_cut(&s, ':'), SV(""), "empty part");
	is_sv(sv_cut(&s, ':'), SV("c"), "last part");
	is_sv(sv_cut(&s, ':'), SV(""), "nothing left");
	is_sv(sv_trim(SV(" \tx y\t ")), SV("x y"), "trim both ends only");
	ok(sv_cmp(SV("a"), SV("ab")) < 0, "a prefix sorts first");
	ok(sv_cmp(SV("\xff"), SV("a")) > 0, "bytes are unsigned in order");
	ok(!sv_to_u64(SV("01"), 99, &v) && v == 7, "leading zero refused, out untouched");
	ok(!sv_to_u64(SV("-1"), 99, &v), "sign refused");
	ok(!sv_to_u64(SV("100"), 99, &v), "maximum holds");
	ok(!sv_to_u64(SV("18446744073709551616"), UINT64_MAX, &v), "overflow refused");
	ok(sv_to_u64(SV("18446744073709551615"), UINT64_MAX, &v) && v == UINT64_MAX, "u64 max");
	ok(sv_is_utf8(SV("caf\xc3\xa9")), "valid UTF-8");
	ok(!sv_is_utf8(SV("\xc0\xaf")), "overlong refused");
	ok(!sv_is_utf8(SV("\xed\xa0\x80")), "surrogate refused");
	ok(!sv_is_utf8(SV("\xf4\x90\x80\x80")), "above U+10FFFF refused");
	ok(!sv_is_utf8(SV("\xe2\x82")), "cut sequence refused");
	ok(sv_distance(SV("alow"), SV("allow"), 2) == 1, "one letter missing");
	ok(sv_distance(SV("kitten"), SV("sitting"), 2) == 3, "early exit above the maximum");
	ok(sv_find(SV("abc"), 'z') == SIZE_MAX && sv_rfind(SV("aba"), 'a') == 2, "find and rfind");
}

static void test_buf(void)
{
	scoped_buf b = BUF_INIT(10);
	struct writ_err err = { 0 };

	buf_fmt(&b, "%d-%s", 12, "ab");
	is_sv(buf_view(&b), SV("12-ab"), "formatted");
	buf_fill(&b, '.', 5);
	is_sv(buf_view(&b), SV("12-ab....."), "filled to the maximum");
	ok(buf_check(&b, &err) == 0, "nothing lost yet");
	buf_ch(&b, 'x');
	ok(b.failed && b.n == 10, "one more byte fails and changes nothing");
	ok(buf_check(&b, &err) == WRIT_E_LIMIT, "and is reported");
	buf_clear(&b);
	buf_str(&b, "again");
	is_sv(buf_view(&b), SV("again"), "usable after clear");
}

static void test_arena(void)
{
	scoped_arena a = ARENA_INIT(100000);
	VEC(int) v = { 0 };
	bool same = true;

	for (int i = 0; i < 1000; i++) {
		int *p = vec_push(&a, &v);

		if (!p)
			break;
		*p = i;
	}
	for (int i = 0; i < (int)v.n; i++)
		same = same && v.v[i] == i;
	ok(v.n == 1000 && same, "a vector keeps its elements as it grows");
	{
		const int *before;

		ok(vec_reserve(&a, &v, 500) && v.room >= 1500 && v.n == 1000 && v.v[999] == 999,
		   "reserving keeps what is there");
		before = v.v;
		ok(vec_push(&a, &v) && v.v == before, "and the next push does not move it");
	}
	ok(!arena_alloc(&a, 200000, 1), "the arena's maximum holds");
	ok(!arena_alloc(&a, SIZE_MAX / 2, 3), "overflowing sizes are refused");
	is_str(arena_fmt(&a, "%s/%d", "x", 3), "x/3", "formatted string");
}

static void test_err(void)
{
	struct writ_err err = { 0 };

	ok(writ_fail(&err, WRIT_E_SYS, 2, "open %s", "a\nb") == WRIT_E_SYS, "returns its code");
	is_str(err.what, "open a?b", "never a newline");
}

static void test_fd(void)
{
	char dir[] = "/tmp/writ-base-XXXXXX";
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(64);
	char path[64];
	struct stat st;

	if (!ok(mkdtemp(dir) != NULL, "temporary directory"))
		return;
	(void)snprintf(path, sizeof(path), "%s/f", dir);
	ok(fd_replace_file(path, SV("one"), 0600, &err) == 0, "new file");
	ok(fd_replace_file(path, SV("two"), 0600, &err) == 0, "replaced");
	ok(fd_read_file(path, &b, &err) == 0, "read back");
	is_sv(buf_view(&b), SV("two"), "the new bytes");
	ok(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600, "mode as asked");
	ok(fd_read_file(dir, &b, &err) == WRIT_E_SYS, "a directory is not a file");
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/a/b", dir);
	ok(fd_make_dirs(path, &err) == 0 && stat(path, &st) == 0 && (st.st_mode & 0777) == 0700,
	   "directories, for us alone");
	ok(fd_make_dirs(path, &err) == 0, "they may be there already");
	ok(fd_put_at(AT_FDCWD, path, "x") == EISDIR, "put says why not");
	(void)rmdir(path);
	(void)snprintf(path, sizeof(path), "%s/a", dir);
	(void)rmdir(path);
	(void)rmdir(dir);
}

static void test_paths(void)
{
	ok(sv_below(SV("/a/b"), SV("/a")) && sv_below(SV("/a"), SV("/a")), "below, or the same");
	ok(!sv_below(SV("/ab"), SV("/a")) && !sv_below(SV("/"), SV("/a")), "beside is not below");
	ok(sv_below(SV("/a"), SV("/")) && !sv_below(SV("/a"), SV("")), "the root, and nothing");
	ok(sv_has_word(SV("cpu,memory"), ',', SV("memory")) &&
		   !sv_has_word(SV("cpuset"), ',', SV("cpu")),
	   "whole words");
	ok(sv_hex_lower('f') == 15 && sv_hex_lower('F') == -1 && sv_hex('F') == 15,
	   "lower case only");
}

static void test_packet(void)
{
	struct writ_err err = { 0 };
	int pair[2], ends[2], got[PACKET_FDS];
	size_t n = 0, got_n = 0;
	char text[16], one[] = "in ", two[] = "parts";
	struct iovec parts[] = { { one, 3 }, { two, 5 } };

	if (!ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 &&
			pipe2(ends, O_CLOEXEC) == 0,
		"a pair of sockets and a pipe"))
		return;
	ok(packet_send(pair[0], SV("two"), ends, 2, &err) == 0, "sent");
	ok(packet_receive(pair[1], text, sizeof(text), &n, got, &got_n, &err) == 1, "received");
	ok(n == 3 && memcmp(text, "two", 3) == 0, "the bytes");
	ok(got_n == 2 && got[0] >= 0 && got[1] >= 0 && got[2] == -1, "two descriptors");
	ok(fcntl(got[0], F_GETFD) == FD_CLOEXEC, "that no program inherits");
	ok(write(got[1], "x", 1) == 1 && read(ends[0], text, 1) == 1, "and that work");
	for (int i = 0; i < 2; i++)
		ok(close(got[i]) == 0 && close(ends[i]) == 0, "closed");
	ok(packet_send(pair[0], SV("x"), ends, PACKET_FDS + 1, &err) == WRIT_E_BUG, "not too many");
	ok(packet_send_parts(pair[0], parts, 2, NULL, 0, &err) == 0 &&
		   packet_receive(pair[1], text, sizeof(text), &n, got, &got_n, &err) == 1 &&
		   n == 8 && memcmp(text, "in parts", 8) == 0 && got_n == 0 && got[0] == -1,
	   "parts are one message");
	ok(packet_send_parts(pair[0], parts, 2, ends, PACKET_SENT_FDS + 1, &err) == WRIT_E_BUG,
	   "and have a maximum too");
	ok(packet_send(pair[1], SV("last"), NULL, 0, &err) == 0 &&
		   packet_send(pair[0], SV("unread"), NULL, 0, &err) == 0 && close(pair[1]) == 0,
	   "one ends with something unread");
	ok(packet_receive(pair[0], text, sizeof(text), &n, got, &got_n, &err) == 1 && n == 4,
	   "and what it said is heard");
	ok(packet_receive(pair[0], text, sizeof(text), &n, got, &got_n, &err) == 0, "then the end");
	(void)close(pair[0]);
}

/* Deeper than any process has descriptors, with rights taken away, and links that lead out. */
static void test_tree(void)
{
	char top[] = "/tmp/writ-tree.XXXXXX", outside[] = "/tmp/writ-out.XXXXXX";
	const int kept = mkstemp(outside);
	int fd = mkdtemp(top) ? open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	bool made = fd >= 0 && kept >= 0;

	made = made && mkdirat(fd, "deep-0", 0700) == 0 && mkdirat(fd, "deep-0/x", 0700) == 0 &&
	       symlinkat(outside, fd, "link") == 0 && symlinkat("/tmp", fd, "tmp") == 0;
	for (int i = 0; made && i < 1500; i++) {
		const int next = mkdirat(fd, "d", 0700) == 0
					 ? openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
					 : -1;

		made = next >= 0 && linkat(AT_FDCWD, outside, next, "f", 0) == 0 &&
		       fchmod(fd, i % 3	  ? 0700
				  : i % 2 ? 0500
					  : 0) == 0;
		(void)close(fd);
		fd = next;
	}
	(void)close(fd);
	ok(made, "a tree");
	remove_tree(AT_FDCWD, top);
	ok(access(top, F_OK) < 0 && errno == ENOENT, "all of it is removed");
	ok(access(outside, F_OK) == 0, "and nothing that it leads to");
	remove_tree(AT_FDCWD, outside);
	ok(access(outside, F_OK) < 0, "a file, too");
	(void)close(kept);
}

int main(void)
{
	test_tree();
	test_sv();
	test_buf();
	test_arena();
	test_err();
	test_fd();
	test_paths();
	test_packet();
	return tap_done();
}
